//! Workers, killed again and again, against a remote that loses answers.
//!
//! `torture [--seed N] [--workers 8] [--operations 2000] [--at-once 2]`, in the
//! release profile for figures. It prints what it found, and fails if a promise
//! was broken.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use onceseal_tests::program::build;
use onceseal_tests::workers::{Size, run};

fn main() -> ExitCode {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let (mut seed, mut size) = (u64::from(since.subsec_nanos()), Size::full());
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().and_then(|value| value.parse::<u64>().ok());
        let Some(value) = value else { return usage() };
        let number = usize::try_from(value).unwrap_or(usize::MAX);
        match name.as_str() {
            "--seed" => seed = value,
            "--workers" if number > 0 => size.workers = number,
            "--operations" => size.operations = number,
            "--at-once" if number > 0 => size.at_once = number,
            _ => return usage(),
        }
    }
    println!("seed {seed}");
    let report = run(&build("onceseal-cli"), seed, &size);
    println!("{report}");
    ExitCode::from(u8::from(!report.broken.is_empty()))
}

fn usage() -> ExitCode {
    eprintln!("torture [--seed N] [--workers N] [--operations N] [--at-once N]");
    ExitCode::from(2)
}

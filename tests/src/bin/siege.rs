//! Servers that fail under load, and a history of what clients were told.
//!
//! `siege [--fault NAME] [--seed N] [--operations 200000] [--processes 4]
//! [--clients 32] [--strikes 8]`, in the release profile for figures; without a
//! name each fault in turn. It prints what it found, and fails if a promise was
//! broken. `client …` is what it starts itself as.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use onceseal_tests::nemesis::client::{Orders, serve};
use onceseal_tests::nemesis::{Fault, Size, WENT_BACK, run};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, url, number, clients, effects, seed, ahead, file] = &arguments[..]
        && word == "client"
    {
        let count = |text: &str| text.parse().expect("a number");
        let (number, clients, effects, seed) = (count(number), count(clients), count(effects), count(seed));
        let (url, ahead) = (url.clone(), ahead.parse().expect("a number"));
        let has_all = serve(&Orders { url, number, clients, effects, seed, ahead }, file.as_ref());
        return if has_all { ExitCode::SUCCESS } else { ExitCode::from(WENT_BACK) };
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let (mut seed, mut faults) = (u64::from(since.subsec_nanos()), Fault::ALL.to_vec());
    let mut size = Size { operations: 200_000, processes: 4, clients: 32, strikes: 8 };
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return usage() };
        let number = value.parse::<u64>().ok().filter(|number| *number > 0);
        match (name.as_str(), Fault::parse(value), number) {
            ("--fault", Some(fault), _) => faults = vec![fault],
            ("--seed", _, Some(number)) => seed = number,
            ("--operations", _, Some(number)) => size.operations = number,
            ("--processes", _, Some(number)) => size.processes = number as usize,
            ("--clients", _, Some(number)) => size.clients = number,
            ("--strikes", _, Some(number)) => size.strikes = number as usize,
            _ => return usage(),
        }
    }
    let program = std::env::current_exe().expect("this program");
    let mut broken = 0;
    for fault in faults {
        if !fault.available() {
            println!("{fault}: not run, it needs root and network namespaces");
            continue;
        }
        let report = run(fault, &program, seed, &size);
        println!("{report}");
        broken += report.broken.len();
    }
    ExitCode::from(u8::from(broken > 0))
}

fn usage() -> ExitCode {
    eprintln!(
        "siege [--fault NAME] [--seed N] [--operations N] [--processes N] [--clients N] [--strikes N]\n\
         faults: restart terminate failover freeze partition pooler lost"
    );
    ExitCode::from(2)
}

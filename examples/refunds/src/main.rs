//! The provider as a program: see the README beside it.

use std::net::{Ipv4Addr, TcpListener};
use std::process::ExitCode;
use std::time::Duration;

use onceseal_example_refunds::{Faults, Options, Service};

const USAGE: &str = "refunds [--port 4010] [--ledger ledger]
        [--seed 0] [--drop PERCENT] [--lose PERCENT] [--late PERCENT] [--late-by MILLISECONDS]";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), String> {
    let (mut port, mut ledger) = (4010, "ledger".to_owned());
    let mut faults = Faults { late_by: Duration::from_secs(3), ..Faults::default() };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        let number = || value.parse::<u64>().map_err(|_| format!("{name}: {value} is no number\n{USAGE}"));
        match name.as_str() {
            "--port" => port = u16::try_from(number()?).map_err(|_| USAGE)?,
            "--ledger" => ledger = value,
            "--seed" => faults.seed = number()?,
            "--drop" => faults.drop = number()?,
            "--lose" => faults.lose = number()?,
            "--late" => faults.late = number()?,
            "--late-by" => faults.late_by = Duration::from_millis(number()?),
            _ => return Err(USAGE.to_owned()),
        }
    }
    let failed = |error: std::io::Error| format!("port {port} and the ledger {ledger} are needed: {error}");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
    let (takes, tell) = (Duration::ZERO, |what: &str| println!("{what}"));
    let options = Options { ledger: ledger.clone().into(), faults, takes, tell };
    let service = Service::start(listener, options).map_err(failed)?;
    println!("listening at http://{}/refunds; what was paid is in {ledger}", service.address());
    loop {
        std::thread::park();
    }
}

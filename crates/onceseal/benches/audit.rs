//! How many events an audit looks at in a second.
//!
//! `cargo bench -p onceseal --bench audit -- [actions]`: makes a store of that
//! many actions (default 60,000, four events each), then audits it five times.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use onceseal::config::Settings;
use onceseal::core::json::{self, Limits, Value};
use onceseal::core::policy::ActivePolicy;
use onceseal::store::place::Surroundings;
use onceseal::{AuditOptions, Control, Failure, Opening, Principal, audit};

const POLICY: &str = r#"{"schema":"onceseal.policy/v1","actions":{"stripe.refund":{"effect":"refund:{payment_id}","decision":"allow"}}}"#;
const CALLERS: u64 = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let wanted = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let ground = tempfile::tempdir()?;
    let control = open(ground.path())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let begun = Instant::now();
    runtime.block_on(fill(&control, wanted.unwrap_or(60_000)))?;
    println!("made in {:.1} s", begun.elapsed().as_secs_f64());
    for _ in 0..5 {
        let begun = Instant::now();
        let report = audit(&control, &AuditOptions::default())?;
        let took = begun.elapsed().as_secs_f64();
        let pace = report.events as f64 / took;
        let found = report.findings.len();
        println!("{} events, {found} findings, {took:.2} s: {pace:.0} events/s", report.events);
    }
    Ok(())
}

fn open(ground: &Path) -> Result<Control, Box<dyn Error>> {
    let mut opening = Opening::new(Settings::default())?;
    opening.surroundings = Surroundings {
        state: Some(ground.canonicalize()?.join("state").into()),
        xdg_state_home: Some(ground.join("xdg").into()),
        home: None,
        ..Surroundings::of_process(ground.to_owned())
    };
    Ok(Control::found(&opening)?)
}

async fn fill(control: &Control, wanted: u64) -> Result<(), Box<dyn Error>> {
    let document = json::read(POLICY.as_bytes(), &Limits::DATA)?;
    control.activate(Arc::new(ActivePolicy::compile(&document)?), false, None).await?;
    let next = Arc::new(AtomicU64::new(0));
    let callers = (0..CALLERS).map(|_| {
        let (control, next) = (control.clone(), next.clone());
        tokio::spawn(async move {
            while next.load(Ordering::Relaxed) < wanted {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let call = control
                    .action("stripe.refund")
                    .arg("payment_id", format!("txn_{number}"))
                    .arg("amount", Value::Integer(2_000))
                    .arg("note", "x".repeat(230))
                    .by(Principal::agent("bench"));
                call.execute(|_| async { Ok::<_, Failure>("done") }).await?;
            }
            Ok::<_, onceseal::Error>(())
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await??;
    }
    Ok(())
}

//! `worker`: carries operations out.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use onceseal::core::json::{Object, Value};
use onceseal::core::time::Span;
use onceseal::operations::{Drained, Operations, Tool};

use super::list;
use super::operations::tools;
use crate::context::Context;
use crate::error::{CliError, REFUSED, UNUSABLE};

/// Carry operations out until it is told to stop
///
/// Works on the tools of the configuration. At SIGTERM or SIGINT nothing more is claimed, and what is under way is
/// waited for; exit 0 if all of it ended, 1 if not: its outcome is recorded when its lease ends. What could not be
/// looked at is said on stderr, and makes it 1 too.
#[derive(Debug, Args)]
pub(crate) struct Worker {
    /// So many at once
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=4096))]
    at_once: u16,
    /// Stop once nothing is due
    #[arg(long)]
    until_dry: bool,
    /// How long what is under way is waited for at the end
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = list::span)]
    drain: Span,
}

pub(crate) fn run(context: &Context, worker: &Worker) -> Result<ExitCode, CliError> {
    let config = context.config()?;
    let tools = tools(&config)?;
    if tools.is_empty() {
        let error = CliError::usage("the configuration declares no tools, so there is nothing to carry out");
        return Err(error.next("add a section `tools` to onceseal.yaml"));
    }
    let control = context.stay(&config)?;
    let names: Vec<String> = tools.iter().map(|tool| Tool::name(tool).to_owned()).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        CliError::new(
            "runtime_failed",
            format!("the system gives no event queue: {}", error.kind()),
            UNUSABLE,
        )
    })?;
    let json = context.out.is_json();
    let Drained { failed, left } = runtime.block_on(async {
        // Before anything is claimed: from then on it must not be stopped by force.
        let stop = stop();
        let operations = Operations::of(&control, tools).await?;
        let strays = operations.strays().await?;
        if strays > 0 {
            context.out.note(&format!(
                "note: {strays} operations wait under contracts that the configuration no longer has; \
                 they are given up when their time is over, see `onceseal operations list --state queued`"
            ));
        }
        let working =
            operations.worker().at_once(usize::from(worker.at_once)).drain_for(worker.drain.to_std());
        let working = working.tell(move |action, error| {
            if !json {
                // A closed stderr must not stop the work in hand, as the macro's panic would.
                let _ = writeln!(std::io::stderr(), "{action}: {}: {error}", error.code());
            }
        });
        if worker.until_dry {
            return working.run_dry(stop).await;
        }
        context.out.note(&format!("carrying out: {}", names.join(", ")));
        working.run(stop).await
    })?;
    runtime.shutdown_timeout(Duration::from_secs(1));
    if context.out.is_json() {
        let mut object = Object::new();
        for (name, number) in [("left", left), ("failed", failed)] {
            object.insert(name, Value::Integer(i64::try_from(number).unwrap_or(i64::MAX)));
        }
        context.out.document(object)?;
    } else if left > 0 {
        context.out.note(&format!(
            "{left} were still under way and were stopped: what became of them is not known, see \
             `onceseal effects list --state ambiguous`"
        ));
    }
    Ok(ExitCode::from(if left + failed == 0 { 0 } else { REFUSED }))
}

/// SIGTERM or SIGINT, from the call on: not only once it is waited for.
fn stop() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    async {
        let (Ok(mut term), Ok(mut int)) = signals else {
            // A system without signals stops it by force.
            return std::future::pending().await;
        };
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    }
}

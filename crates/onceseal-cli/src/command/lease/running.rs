//! Running a program while a resource is held.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use onceseal::core::code::{Code, Retry};
use onceseal::core::json::{Object, Value};
use onceseal::core::time::Span;
use onceseal::process::{Ended, Process};
use onceseal::runs::LeaseGuard;

use super::{Length, What, proof, refused};
use crate::command::list;
use crate::context::{Context, wait};
use crate::error::{CliError, REFUSED};
use crate::text::{shell, shown};

/// Run a program while a resource is held
///
/// The lease is renewed as long as the program runs. If it is lost, since somebody took it or the store could not be
/// reached for so long, the program is asked to end and killed 5 seconds later. When the program has ended, the lease is
/// given up with its exit status as the outcome, and this command exits with that status; 128 and the number of a signal
/// that ended it. Signals that would end this command are passed on to the program. If it is killed all the same, the
/// program may go on: it should look at its lease.
///
/// The program finds its lease in ONCESEAL_LEASE, where `onceseal lease` and `onceseal runs transition` look for it.
#[derive(Debug, Args)]
#[command(after_help = "Example: onceseal lease run deploy --wait 10m -- ./deploy.sh")]
pub(crate) struct Run {
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    length: Length,
    /// Beside others who take it so
    #[arg(long)]
    shared: bool,
    /// Wait so long for whoever holds it now
    #[arg(long, value_name = "TIME", value_parser = list::span)]
    wait: Option<Span>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(super) fn run(context: &Context, run: Run) -> Result<ExitCode, CliError> {
    let control = context.work(true)?;
    let leasing = control.lease(run.what.resource(&control)?).length(run.length.length);
    let leasing = if run.shared { leasing.shared() } else { leasing };
    let leasing = leasing.wait(run.wait.map_or(Duration::ZERO, Span::to_std));
    wait(async {
        let mut lease = leasing.take().await.map_err(|error| refused(error, Some(&run.what), &run.length))?;
        let resource = shown(&lease.resource().to_string());
        context.out.note(&format!("{resource} is yours while the program runs, fence {}", lease.fence()));
        let (program, args) =
            run.command.split_first().ok_or_else(|| CliError::usage("a program is needed"))?;
        let told = (proof::VARIABLE.into(), proof::text(lease.lease()).into());
        let process =
            Process { args: args.to_vec(), env: vec![told], passes_all_on: true, ..Process::new(program) };
        let ran = process.run_until(lease.lost(), |_| {}).await;
        ended(&mut lease, &ran.ended).await
    })?
}

/// Gives the lease up, and says how the program ended.
async fn ended(lease: &mut LeaseGuard, ended: &Ended) -> Result<ExitCode, CliError> {
    let resource = &lease.resource().to_string();
    let mut outcome = Object::new();
    let (exit, signal) = match ended {
        Ended::Exit(status) => (Value::Integer((*status).into()), Value::Null),
        Ended::Signal(signal) => (Value::Null, Value::Integer((*signal).into())),
        // Nothing was done.
        Ended::NotStarted(_) => {
            lease.give_back().await?;
            let error = CliError::new("lease_unused", ended.to_string(), 2);
            return Err(error.about("child", ended.code()));
        }
        _ if lease.is_lost() => return Err(lost(resource, "it was stopped")),
        _ => return Err(lost(resource, "how it ended is not known")),
    };
    outcome.insert("exit", exit);
    outcome.insert("signal", signal);
    match lease.commit(outcome).await {
        Ok(_) => {}
        Err(error) if error.code() == Code::LeaseFenced.as_str() => {
            return Err(lost(resource, &format!("{ended} before it could be stopped")));
        }
        Err(error) => {
            let why = format!("{ended}, and the lease ends by itself");
            return Err(CliError::from(error).because(why).ran());
        }
    }
    Ok(ExitCode::from(match ended {
        Ended::Exit(status) => u8::try_from(*status).unwrap_or(REFUSED),
        Ended::Signal(signal) => u8::try_from(128 + signal).unwrap_or(REFUSED),
        _ => REFUSED,
    }))
}

/// The program did not have the resource to its end.
fn lost(resource: &str, what: &str) -> CliError {
    let message = format!("the lease on {} was lost while the program ran", shown(resource));
    CliError::new("lease_lost", message, REFUSED)
        .retry(Retry::Later)
        .because(what)
        .about("resource", resource)
        .next(format!("onceseal lease inspect {}", shell(resource)))
}

//! `worker`: carries operations out.

use std::convert::Infallible;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use onceseal::config::Config;
use onceseal::core::action::ActionState;
use onceseal::core::id::ActionId;
use onceseal::core::json::{Object, Value};
use onceseal::core::time::Span;
use onceseal::operations::{Carried, Drained, Operations, Tool, Worker as Engine};
use onceseal::views::action_state;
use onceseal::{Control, Error};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use super::away::missed;
use super::list;
use super::operations::tools;
use crate::context::Context;
use crate::error::{CliError, REFUSED, UNUSABLE};
use crate::out::Out;
use crate::text::shown;

/// Carry operations out until it is told to stop
///
/// Works on the tools of the configuration, and says on stderr of each operation that it ended, was put off or parked.
/// At SIGTERM or SIGINT nothing more is claimed, and what is under way is waited for, until a second one; exit 0 if all
/// of it ended, 1 if not: its outcome is recorded when its lease ends. What could not be looked at is said on stderr,
/// and makes it 1 too. At SIGHUP the configuration is read anew; one with an error is told of, and the old one stays.
#[derive(Debug, Args)]
pub(crate) struct Worker {
    /// So many at once
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=4096))]
    at_once: u16,
    /// Stop once nothing is due
    #[arg(long)]
    until_dry: bool,
    /// Stop once nothing waits, be it due or later
    #[arg(long, conflicts_with = "until_dry")]
    until_empty: bool,
    /// How long what is under way is waited for at the end
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = list::span)]
    drain: Span,
}

pub(crate) fn run(context: &Context, worker: &Worker) -> Result<ExitCode, CliError> {
    let config = context.config()?;
    if config.tools.is_empty() {
        let error = CliError::usage("the configuration declares no tools, so there is nothing to carry out");
        return Err(error.next("add a section `tools` to onceseal.yaml"));
    }
    let tools = tools(&config)?;
    let control = context.stay(&config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        CliError::new(
            "runtime_failed",
            format!("the system gives no event queue: {}", error.kind()),
            UNUSABLE,
        )
    })?;
    let out = context.out;
    let Drained { failed, left } = runtime.block_on(async {
        // Before anything is said: whoever reads that it works may tell it to stop.
        let signals = Signals::listen();
        let operations =
            taken(context, &control, tools, &config, !(worker.until_dry || worker.until_empty)).await?;
        let working = operations.worker().at_once(usize::from(worker.at_once));
        let working = working.drain_for(worker.drain.to_std());
        let working = working.tell(move |action, error| failed_at(out, action, error));
        let working = working.tell_each(move |carried| became(out, carried));
        let working = working.tell_store(move |error| {
            let told = error.map(|error| (error.code(), error.to_string()));
            missed(out, told.as_ref().map(|(code, message)| (*code, message.as_str())));
        });
        let (stop, stopped) = oneshot::channel();
        // Dropped only with what it would stop.
        let stopped = async { drop(stopped.await) };
        let run = async {
            match (worker.until_dry, worker.until_empty) {
                (true, _) => working.clone().run_dry(stopped).await,
                (_, true) => working.clone().run_empty(stopped).await,
                _ => working.clone().run(stopped).await,
            }
        };
        tokio::select! {
            drained = run => drained.map_err(CliError::from),
            never = obey(signals, context, &control, &config, &working, stop) => match never {},
        }
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

/// The tools of a configuration, with those that its file had before, and what
/// is to be said of them.
async fn taken(
    context: &Context,
    control: &Control,
    tools: Vec<Tool>,
    config: &Config,
    names: bool,
) -> Result<Operations, CliError> {
    let operations = Operations::of(control, tools).await?.with_earlier(&config.directory);
    let strays = operations.strays().await?;
    if strays > 0 {
        context.out.note(&format!(
            "note: {strays} operations wait under contracts that the configuration no longer has; \
             they are given up when their time is over, see `onceseal operations list --state queued`"
        ));
    }
    for tool in &config.tools {
        for variable in tool.unset() {
            context.out.note(&format!(
                "warning: {variable} is not set, which {} needs: what it should carry out is parked",
                shown(tool.name())
            ));
        }
    }
    if names {
        let names: Vec<&str> = config.tools.iter().map(|tool| tool.name()).collect();
        match context.out.is_json() {
            true => {
                let mut object = Object::new();
                object.insert("carrying_out", names.into_iter().map(Value::from).collect::<Vec<_>>());
                context.out.json_note(object);
            }
            false => context.out.note(&format!("carrying out: {}", names.join(", "))),
        }
    }
    Ok(operations)
}

/// Tells of an operation that could not be looked at.
fn failed_at(out: Out, action: ActionId, error: &Error) {
    if !out.is_json() {
        return out.note(&format!("{action}: {}: {error}", error.code()));
    }
    let (mut object, mut told) = (Object::new(), Object::new());
    told.insert("action", action.to_string());
    told.insert("code", error.code());
    told.insert("message", error.to_string());
    object.insert("error", told);
    out.json_note(object);
}

/// Tells what became of an operation: no argument and no result of it.
fn became(out: Out, carried: &Carried) {
    let Carried { action, status_ref, tool, state, code, said } = carried;
    let name = action_state(state);
    let due = match state {
        ActionState::Queued { due, .. } => Some(due.to_string()),
        _ => None,
    };
    let code = code.map(|code| code.to_string());
    if !out.is_json() {
        let text = |text: &Option<String>| text.as_deref().map_or("erased".to_owned(), shown);
        let due = due.map(|due| format!(" until {due}")).unwrap_or_default();
        // One that is unknown is so for no other reason.
        let code = code.filter(|code| code != name).map(|code| format!(": {code}")).unwrap_or_default();
        let said = said.as_ref().map(|said| format!(" ({})", shown(said))).unwrap_or_default();
        return out.note(&format!("{} {} {name}{due}{code}{said}", text(status_ref), text(tool)));
    }
    let (mut object, mut told) = (Object::new(), Object::new());
    told.insert("action", action.to_string());
    told.insert("state", name);
    for (name, value) in
        [("code", &code), ("said", said), ("due", &due), ("status_ref", status_ref), ("tool", tool)]
    {
        told.insert(name, value.clone().map_or(Value::Null, Value::Text));
    }
    object.insert("operation", told);
    out.json_note(object);
}

/// What a worker may be told by.
struct Signals {
    term: Signal,
    int: Signal,
    hangup: Signal,
    /// How many terminals there were.
    terminals: usize,
}

impl Signals {
    fn listen() -> Option<Signals> {
        let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
        let [Ok(term), Ok(int), Ok(hangup)] = kinds.map(signal) else { return None };
        Some(Signals { term, int, hangup, terminals: terminals() })
    }
}

/// Does what signals say for as long as there is a worker: SIGTERM or SIGINT
/// stops it, and once more ends its waiting; SIGHUP has the configuration read
/// anew, unless it says that the terminal is gone.
async fn obey(
    signals: Option<Signals>,
    context: &Context,
    control: &Control,
    config: &Config,
    worker: &Engine,
    stop: oneshot::Sender<()>,
) -> Infallible {
    // A system without signals stops it by force.
    let Some(Signals { mut term, mut int, mut hangup, terminals }) = signals else {
        return std::future::pending().await;
    };
    let mut stop = Some(stop);
    loop {
        let ends = tokio::select! {
            _ = term.recv() => true,
            _ = int.recv() => true,
            _ = hangup.recv() => self::terminals() < terminals,
        };
        match (ends, stop.take()) {
            // Nobody hears it if the worker has ended by itself.
            (true, Some(stop)) => drop(stop.send(())),
            (true, None) => worker.leave(),
            (false, kept) => {
                stop = kept;
                if let Err(error) = read_anew(context, control, config, worker).await {
                    context.out.error(&error.because("the configuration that was read before stays"));
                }
            }
        }
    }
}

/// Reads the configuration again and works on as it says from here on.
async fn read_anew(
    context: &Context,
    control: &Control,
    config: &Config,
    worker: &Engine,
) -> Result<(), CliError> {
    let new = context.config()?;
    let tools = tools(&new)?;
    context.activate(control, &new).await?;
    worker.replace(taken(context, control, tools, &new, true).await?);
    if new.settings != config.settings {
        context.out.note("note: the settings changed, which counts from the next start on");
    }
    Ok(())
}

/// How many of the standard streams are a terminal that is there.
fn terminals() -> usize {
    let all = [io::stdin().is_terminal(), io::stdout().is_terminal(), io::stderr().is_terminal()];
    all.into_iter().filter(|is_one| *is_one).count()
}

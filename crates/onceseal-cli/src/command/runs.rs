//! `runs`: long jobs that survive their process.

mod acting;
mod blockers;
mod delivering;
mod history;
mod next;
mod parts;
mod show;
mod telling;
mod watch;

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use onceseal::core::code::Code;
use onceseal::core::id::RunId;
use onceseal::core::policy::nearest;
use onceseal::runs::{Definition, Run, RunFilter, Runs as Known, Subject};
use onceseal::{Control, Error, Principal};

use crate::context::{Context, wait};
use crate::error::CliError;

pub(crate) use acting::{digest, document, earlier, under};

/// What to do with runs.
#[derive(Debug, Subcommand)]
pub(crate) enum Runs {
    /// List runs
    #[command(after_help = "Example: onceseal runs list --state living --kind delivery")]
    List(show::List),
    /// Start a run of a change, or join the one that lives
    ///
    /// A change has one living run of each kind: whoever starts it again, in whichever process, joins that one. After it
    /// has ended a new one begins, which names the last.
    #[command(after_help = "Example: onceseal runs start simple add-login --request start-1")]
    Start(acting::Start),
    /// Show one run: where it stands, who holds it, and what may follow
    #[command(after_help = "Example: onceseal runs show simple/add-login")]
    Show(Which),
    /// List what happened to a run, its gates, tasks, leases and handoffs, with who asked for each and by which request
    #[command(after_help = "Example: onceseal runs events simple/add-login")]
    Events(history::Events),
    /// Show what changed of a run and of its parts between two of its events
    #[command(after_help = "Example: onceseal runs diff simple/add-login 1 3")]
    Diff(history::Diff),
    /// Audit one run: its chain, its seals, and what its events come to
    #[command(after_help = "Example: onceseal runs verify simple/add-login")]
    Verify(Which),
    /// Fold the events of a run anew, and compare with what is stored; nothing is written
    #[command(after_help = "Example: onceseal runs rebuild simple/add-login --json")]
    Rebuild(Which),
    /// Write the events of a run as JSON lines, each with what proves it
    #[command(after_help = "Example: onceseal runs export simple/add-login > add-login.jsonl")]
    Export(Which),
    /// Follow runs as they go on; one run to its end
    ///
    /// At a terminal, and without a run, it shows those that live, with their ages.
    #[command(after_help = "Example: onceseal runs watch simple/add-login --json")]
    Watch(watch::Watch),
    /// Move a run on to a state that its definition lets follow
    #[command(after_help = "Example: onceseal runs transition simple/add-login running --request begin-1")]
    Transition(acting::Transition),
    /// Name the change of a run that was started without one
    #[command(after_help = "Example: onceseal runs bind run_0190b6f2f8a17c3e8a4f5b6c7d8e9f00 add-login")]
    Bind(acting::Bind),
    /// Ask what an operator may ask for where a run stands; `show` lists that
    #[command(after_help = "Example: onceseal runs command simple/add-login pause --code lunch")]
    Command(acting::Command),
    /// Bind what was worked out for a run to its gates, once for ever
    ///
    /// A gate that asks for proof takes only what a person approved: with --ask the person is asked to approve exactly
    /// this delivery, and with --approval it is bound by the approval, which is used for it.
    #[command(
        after_help = "Example: onceseal runs deliver delivery/add-login gate-a 1 --receipt-file design.md --ask"
    )]
    Deliver(delivering::Deliver),
    /// List everything that stands in the way of a run at once
    #[command(after_help = "Example: onceseal runs blockers delivery/add-login")]
    Blockers(Which),
    /// Cancel a run: `runs command RUN cancel`
    #[command(after_help = "Example: onceseal runs cancel simple/add-login --code no-longer-wanted")]
    Cancel(acting::Moved),
    /// Discard a run: `runs command RUN discard`
    #[command(after_help = "Example: onceseal runs discard delivery/add-login")]
    Discard(acting::Moved),
    /// List the definitions that runs can be started by: those built in, and those of the section `runs` of the
    /// configuration
    #[command(after_help = "Example: onceseal runs definitions --json")]
    Definitions,
}

/// One run.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Its id, `run_…`, or its kind and change as in simple/add-login: the one that lives, or else the last
    #[arg(value_name = "RUN|KIND/CHANGE")]
    pub(crate) run: String,
}

/// Who asks, and by which request.
#[derive(Debug, Args)]
pub(crate) struct Asking {
    /// What makes two of these the same request: repeated with the same id, it is answered as the first time [default:
    /// drawn at random, and printed]
    #[arg(long, value_name = "ID")]
    request: Option<String>,
    #[command(flatten)]
    who: Who,
}

/// Who asks.
#[derive(Debug, Args)]
pub(crate) struct Who {
    /// Who asks [default: cli:<login>]
    #[arg(long, value_name = "NAME", env = "ONCESEAL_AGENT", hide_env_values = true)]
    agent: Option<String>,
    /// The person it asks for
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
}

impl Who {
    pub(crate) fn principal(&self) -> Principal {
        let agent = self.agent.clone().unwrap_or_else(|| format!("cli:{}", Control::account().name));
        Principal { agent, user: self.user.clone() }
    }
}

impl Asking {
    pub(crate) fn principal(&self) -> Principal {
        self.who.principal()
    }

    pub(crate) fn request(&self) -> Result<String, CliError> {
        match &self.request {
            Some(id) => Ok(id.clone()),
            None => Ok(onceseal::runs::draw_request()?),
        }
    }
}

/// Says which id was drawn for a request. Whoever gave one knows it.
pub(crate) fn drawn(context: &Context, request: &str) {
    if request.strip_prefix("req-").is_some_and(|rest| rest.len() == 32) {
        context.out.note(&format!("the same request again: --request {request}"));
    }
}

pub(crate) fn run(context: &Context, runs: Runs) -> Result<ExitCode, CliError> {
    match runs {
        Runs::List(list) => show::list(context, &list),
        Runs::Start(start) => acting::start(context, &start),
        Runs::Show(which) => show::show(context, &which),
        Runs::Events(events) => history::events(context, &events),
        Runs::Diff(diff) => history::diff(context, &diff),
        Runs::Verify(which) => history::verify(context, &which),
        Runs::Rebuild(which) => history::rebuild(context, &which),
        Runs::Export(which) => history::export(context, &which),
        Runs::Watch(watch) => watch::run(context, &watch),
        Runs::Transition(transition) => acting::transition(context, &transition),
        Runs::Bind(bind) => acting::bind(context, &bind),
        Runs::Command(command) => acting::command(context, &command.name, &command.moved),
        Runs::Deliver(deliver) => delivering::deliver(context, &deliver),
        Runs::Blockers(which) => blockers::blockers(context, &which),
        Runs::Cancel(moved) => acting::command(context, "cancel", &moved),
        Runs::Discard(moved) => acting::command(context, "discard", &moved),
        Runs::Definitions => show::definitions(context),
    }
}

/// The run that is asked for something: under a kind and change the one to which a
/// request with this id was made, if one was.
pub(crate) fn find_asked(
    context: &Context,
    control: &Control,
    which: &Which,
    asking: &Asking,
) -> Result<Run, CliError> {
    let runs = control.runs().by(asking.principal());
    let Some(request) = asking.request.as_deref() else { return find(&runs, which) };
    match which.named()? {
        Named::Run(id) => Ok(runs.run(id)),
        Named::Change(kind, change) => {
            let asked = wait(runs.find_asked(kind, &change, request))??.ok_or_else(unknown)?;
            let newest = wait(runs.find(kind, &change))??;
            if let Some(newest) = newest.filter(|newest| newest.id() != asked.id()) {
                context.out.note(&format!(
                    "note: this request was made to {}, which has ended and answers it; the one that followed is {}",
                    asked.id(),
                    newest.id()
                ));
            }
            Ok(asked)
        }
    }
}

/// The run that is named, of this store's project.
pub(crate) fn find(runs: &Known, which: &Which) -> Result<Run, CliError> {
    match which.named()? {
        Named::Run(id) => Ok(runs.run(id)),
        Named::Change(kind, change) => wait(runs.find(kind, &change))??.ok_or_else(unknown),
    }
}

/// How a run is named.
enum Named<'a> {
    Run(RunId),
    /// By its kind and change.
    Change(&'a str, Subject),
}

impl Which {
    fn named(&self) -> Result<Named<'_>, CliError> {
        if let Some(id) = RunId::parse(&self.run) {
            return Ok(Named::Run(id));
        }
        let Some((kind, change)) = self.run.split_once('/') else {
            return Err(CliError::usage(
                "a run is named by its id, run_ and 32 hex digits, or as KIND/CHANGE",
            ));
        };
        Ok(Named::Change(kind, Subject::Change(change.to_owned())))
    }
}

/// The store to read from, and the id of the run that is named.
pub(crate) fn opened(context: &Context, which: &Which) -> Result<(Control, RunId), CliError> {
    let control = context.read()?.ok_or_else(unknown)?;
    let found = find(&control.runs(), which).map_err(|error| match which.named() {
        Ok(Named::Change(kind, _)) if error.is(Code::RunUnknown) => {
            known_kind(context, kind).err().unwrap_or(error)
        }
        _ => error,
    });
    Ok((control, found?.id()))
}

/// Whether runs can be of a kind: where none was found, it may be misspelt. A kind may
/// have been taken out of the file since.
pub(crate) fn known_kind(context: &Context, kind: &str) -> Result<(), CliError> {
    let built_in = Definition::built_in().into_iter().map(|definition| definition.kind().to_owned());
    // Whoever looks at runs does without a file that can be read.
    let configured = context.definitions().unwrap_or_default();
    let known: BTreeSet<_> =
        built_in.chain(configured.iter().map(|definition| definition.kind().to_owned())).collect();
    let of_kind = RunFilter { kind: Some(kind.to_owned()), ..RunFilter::default() };
    let has_runs = || match context.read() {
        Ok(Some(control)) => control.list_runs(&of_kind, 1).is_ok_and(|page| !page.items.is_empty()),
        _ => false,
    };
    if known.contains(kind) || has_runs() {
        return Ok(());
    }
    Err(kind_unknown(kind.to_owned(), known.into_iter().collect()))
}

/// There is no such kind, with the one that was probably meant.
fn kind_unknown(kind: String, known: Vec<String>) -> CliError {
    let meant = nearest(&kind, known.iter().map(String::as_str));
    let error = CliError::from(Error::KindUnknown { kind, known });
    let error = meant.iter().fold(error, |error, meant| error.next(format!("did you mean {meant}?")));
    error.next("onceseal runs definitions")
}

pub(crate) fn unknown() -> CliError {
    CliError::missing(Code::RunUnknown).next("onceseal runs list")
}

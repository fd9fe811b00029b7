//! `lease`: who holds a resource, and running a program while it is held.

mod handing;
mod kept;
pub(crate) mod proof;
mod running;
mod showing;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, Args, Subcommand};
use onceseal::core::approval::Identity;
use onceseal::core::code::Code;
use onceseal::core::id::{HolderKey, RootId};
use onceseal::core::json::{self, Limits, Object, Value};
use onceseal::core::limits;
use onceseal::core::time::Span;
use onceseal::runs::{LeaseNow, Misnamed, Named, Preempt, Resource, Subject};
use onceseal::{Control, Error};

pub(crate) use self::kept::{Kept, Place};
use super::list::{self, Pages};
use super::refused::remarks;
use super::runs::unknown;
use crate::context::{Context, wait};
use crate::error::{CliError, UNUSABLE};
use crate::files;
use crate::table::fields;
use crate::text::{cut, shell, shown};

/// What to do with leases.
#[derive(Debug, Subcommand)]
pub(crate) enum Lease {
    /// Take a resource, and print what is needed to renew the lease and to give it up
    ///
    /// Nothing renews it: `lease run` does, while a program runs.
    #[command(after_help = "Example: onceseal lease acquire deploy --for 30s --to lease.json")]
    Acquire(Acquire),
    /// Move the end of a lease to so long from now, later or earlier
    #[command(after_help = "Example: onceseal lease renew --lease lease.json --for 5m")]
    Renew(Renew),
    /// Give a lease up with an outcome, which is final
    #[command(
        after_help = "Example: onceseal lease commit --lease lease.json --outcome '{\"version\":\"1.4\"}'"
    )]
    Commit(Commit),
    /// Give a lease up without an outcome; a run that it is on stays where it is
    #[command(after_help = "Example: onceseal lease interrupt --lease lease.json")]
    Interrupt(Proven),
    /// Take a resource from whoever holds it, by your word, which is recorded
    ///
    /// Whoever held it is told at the next renewal, and does nothing under the old lease any more.
    #[command(after_help = "Example: onceseal lease preempt deploy --for 1m --reason 'the builder hangs'")]
    Preempt(Take),
    /// Prepare that a resource goes over to another holder, with the facts that it goes on from
    ///
    /// Whoever accepts it has the resource from then on, if it is still as it was, and whoever had it is fenced.
    #[command(
        after_help = "Example: onceseal lease hand-over deploy sha256:… --facts '{\"position\":7}' --lease lease.json"
    )]
    HandOver(handing::HandOver),
    /// Accept what was handed over, once: the resource is yours
    #[command(after_help = "Example: onceseal lease accept deploy sha256:… --for 1m --to lease.json")]
    Accept(handing::Accept),
    /// Let nobody accept a handoff any more
    #[command(after_help = "Example: onceseal lease withdraw deploy sha256:… --lease lease.json")]
    Withdraw(handing::Withdraw),
    /// Show who holds a resource, and with what outcomes it was given up; changes nothing
    #[command(after_help = "Example: onceseal lease inspect deploy")]
    Inspect {
        #[command(flatten)]
        what: What,
    },
    /// List everything that somebody holds, with until when
    #[command(after_help = "Example: onceseal lease list --newest")]
    List(Pages),
    Run(running::Run),
}

/// A resource.
#[derive(Debug, Args)]
pub(crate) struct What {
    /// A name, as in deploy or name/deploy; a run, run_… or KIND/CHANGE; a task of a run, run_…/task/NAME; a path of
    /// this project, path/src/lib.rs; its directory on a host, workspace@HOST; or any of these as `inspect` prints it
    resource: String,
}

/// How long.
#[derive(Debug, Args)]
pub(crate) struct Length {
    /// How long it lasts unless it is renewed: 1s to 24h
    #[arg(long = "for", value_name = "TIME", value_parser = list::span, default_value = "30s")]
    pub(crate) length: Span,
}

/// A resource to take.
#[derive(Debug, Args)]
pub(crate) struct Acquire {
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    length: Length,
    /// Beside others who take it so
    #[arg(long)]
    shared: bool,
    /// Who takes it: whoever names the key under which it was taken gets the lease again, so keep it to yourself [default: drawn at random]
    #[arg(long, value_name = "KEY", value_parser = holder)]
    holder: Option<HolderKey>,
    #[command(flatten)]
    kept: Kept,
}

/// A lease that is held.
#[derive(Debug, Args)]
pub(crate) struct Proven {
    /// A file with what `lease acquire` wrote, - for stdin [default: what ONCESEAL_LEASE says]
    #[arg(long, value_name = "FILE")]
    lease: Option<PathBuf>,
}

/// A lease to renew.
#[derive(Debug, Args)]
pub(crate) struct Renew {
    #[command(flatten)]
    proven: Proven,
    #[command(flatten)]
    length: Length,
}

/// A lease to give up.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["outcome", "outcome_file"])))]
pub(crate) struct Commit {
    #[command(flatten)]
    proven: Proven,
    /// The outcome: a JSON object of at most 64 KiB
    #[arg(long, value_name = "JSON")]
    outcome: Option<String>,
    /// The same from a file
    #[arg(long, value_name = "FILE")]
    outcome_file: Option<PathBuf>,
}

/// A resource to take from others.
#[derive(Debug, Args)]
pub(crate) struct Take {
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    length: Length,
    /// Why; kept with the resource
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    kept: Kept,
}

pub(crate) fn run(context: &Context, lease: Lease) -> Result<ExitCode, CliError> {
    match lease {
        Lease::Acquire(acquire) => self::acquire(context, &acquire),
        Lease::Renew(renew) => self::renew(context, &renew),
        Lease::Commit(commit) => self::commit(context, &commit),
        Lease::Interrupt(proven) => interrupt(context, &proven),
        Lease::Preempt(take) => preempt(context, &take),
        Lease::HandOver(over) => handing::hand_over(context, &over),
        Lease::Accept(accept) => handing::accept(context, &accept),
        Lease::Withdraw(withdraw) => handing::withdraw(context, &withdraw),
        Lease::Inspect { what } => showing::inspect(context, &what),
        Lease::List(pages) => showing::list(context, &pages),
        Lease::Run(run) => running::run(context, run),
    }
}

/// The key that was named, or one drawn now: it is known before anything is taken.
pub(crate) fn drawn(named: Option<HolderKey>) -> Result<HolderKey, CliError> {
    named.map_or_else(|| Ok(onceseal::holder_key()?), Ok)
}

pub(crate) fn holder(text: &str) -> Result<HolderKey, String> {
    HolderKey::parse(text).ok_or_else(|| "a key of a holder is holderkey_ and 32 hex digits".to_owned())
}

impl What {
    /// The resource, of this store's project where it names none.
    fn resource(&self, control: &Control) -> Result<Resource, CliError> {
        match self.named(control.root())? {
            Named::Resource(resource) => Ok(resource),
            Named::OfChange { kind, change, task } => {
                let found = wait(control.runs().find(&kind, &Subject::Change(change)))??;
                let run = found.ok_or_else(|| self.no_run())?;
                Ok(match task {
                    Some(task) => Resource::Task(run.id(), task),
                    None => Resource::Run(run.id()),
                })
            }
        }
    }

    fn no_run(&self) -> CliError {
        let name = shell(&format!("name/{}", self.resource));
        let path = shell(&format!("path/{}", self.resource));
        unknown()
            .because("it is named as KIND/CHANGE")
            .next(format!("{} if it is a path of this project", cut(&path)))
            .next(format!("{} if that is its name", cut(&name)))
    }

    fn named(&self, root: RootId) -> Result<Named, CliError> {
        let text = &self.resource;
        Named::read(text, root).map_err(|why| {
            let error = CliError::usage(format!("{} names no resource: {why}", cut(text)));
            let name = format!("name/{text}");
            match Resource::parse(&name) {
                Some(_) if why != Misnamed::Name => {
                    error.next(format!("{} if that is its name", cut(&shell(&name))))
                }
                _ => error.next("onceseal lease acquire --help"),
            }
        })
    }
}

fn acquire(context: &Context, acquire: &Acquire) -> Result<ExitCode, CliError> {
    let control = context.work(false)?;
    let resource = acquire.what.resource(&control)?;
    let key = drawn(acquire.holder)?;
    let own = control.store().tenant().holder(key);
    let place = acquire.kept.look(|lease| lease.resource == resource && lease.holder == own)?;
    let leasing = control.lease(resource.clone()).length(acquire.length.length);
    let leasing = if acquire.shared { leasing.shared() } else { leasing };
    let now = wait(leasing.holder(key).once())?
        .map_err(|error| refused(error, Some(&acquire.what), &acquire.length))?;
    let again = again(&acquire.what, key) + if acquire.shared { " --shared" } else { "" };
    taken(context, &now, &place, &again)
}

/// What gives a lease again that was taken under a key.
fn again(what: &What, key: HolderKey) -> String {
    format!("onceseal lease acquire {} --holder {key}", shell(&what.resource))
}

/// Why a lease was not given, with what its length may be, and what to look at.
pub(crate) fn refused(error: Error, what: Option<&What>, length: &Length) -> CliError {
    let is_length = error.code() == Code::OutOfBounds.as_str()
        && !(limits::LEASE_MIN..=limits::LEASE_MAX).contains(&length.length);
    let held = error.code() == Code::LeaseHeld.as_str();
    let error = CliError::from(error);
    match (is_length, what.filter(|_| held)) {
        (true, _) => error.because(format!(
            "--for is {}, and a lease lasts {} to {}",
            length.length,
            limits::LEASE_MIN,
            limits::LEASE_MAX
        )),
        (_, Some(What { resource })) => error
            .next(format!("onceseal lease inspect {}", shell(resource)))
            .next("the same command again once it is free; `lease run --wait` waits for that"),
        _ => error,
    }
}

/// Says what was taken, and hands over what proves it.
fn taken(context: &Context, now: &LeaseNow, place: &Place<'_>, again: &str) -> Result<ExitCode, CliError> {
    place.write(now, again)?;
    let mut object = proof::object(now);
    if place.file().is_some() {
        object.remove("token");
    }
    if context.out.is_json() {
        place.printed(context.out.document(object), again)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = vec![
        ("holder", now.lease.holder.to_string()),
        ("fence", now.lease.fence.to_string()),
        ("until", now.until.to_string()),
    ];
    let token = object.get("token").and_then(Value::as_text).map(str::to_owned);
    rows.extend(token.map(|token| ("token", token)));
    let resource = shown(&now.lease.resource.to_string());
    place.printed(context.out.text(&format!("{resource}\n{}", fields(&rows))), again)?;
    context.out.note(&match place.file() {
        Some(file) => {
            format!("next: onceseal lease renew --lease {}, then commit or interrupt", context.path(file))
        }
        None => "note: with --to FILE, or --json, it is written as renew and commit read it".to_owned(),
    });
    Ok(ExitCode::SUCCESS)
}

fn renew(context: &Context, renew: &Renew) -> Result<ExitCode, CliError> {
    let lease = renew.proven.read()?;
    let control = context.answer()?.ok_or_else(gone)?;
    let resource = lease.resource.to_string();
    let renewed = wait(control.renew_lease(lease, renew.length.length))?;
    let now = renewed.map_err(|error| fenced(refused(error, None, &renew.length), &resource))?;
    if context.out.is_json() {
        let mut object = proof::object(&now);
        object.remove("token");
        context.out.document(object)?;
    } else {
        let resource = shown(&now.lease.resource.to_string());
        context.out.text(&format!("{resource} is yours until {}\n", now.until))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn commit(context: &Context, commit: &Commit) -> Result<ExitCode, CliError> {
    let lease = commit.proven.read()?;
    let text = match (&commit.outcome, &commit.outcome_file) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(file)) => files::read(file, limits::RESULT_BYTES)?,
        (None, None) => return Err(CliError::usage("--outcome or --outcome-file is needed")),
    };
    let invalid = |why: String| {
        let code = Code::OutcomeInvalid;
        CliError::new(code.as_str(), code.sentence(), UNUSABLE).because(why)
    };
    let outcome = match json::read(&text, &Limits::DATA) {
        Ok(Value::Object(outcome)) => outcome,
        Ok(_) => return Err(invalid("it is no object".to_owned())),
        Err(error) => return Err(invalid(error.to_string())),
    };
    let control = context.answer()?.ok_or_else(gone)?;
    let resource = lease.resource.to_string();
    let changed =
        wait(control.commit_lease(lease, outcome))?.map_err(|error| fenced(error.into(), &resource))?;
    ended(context, &resource, "committed", changed)
}

fn interrupt(context: &Context, proven: &Proven) -> Result<ExitCode, CliError> {
    let lease = proven.read()?;
    let control = context.answer()?.ok_or_else(gone)?;
    let resource = lease.resource.to_string();
    wait(control.interrupt_lease(lease))?.map_err(|error| fenced(error.into(), &resource))?;
    ended(context, &resource, "interrupted", true)
}

fn ended(context: &Context, resource: &str, how: &str, changed: bool) -> Result<ExitCode, CliError> {
    if context.out.is_json() {
        let mut object = Object::new();
        object.insert("resource", resource);
        object.insert("ended", how);
        object.insert("repeated", !changed);
        context.out.document(object)?;
    } else {
        let before = if changed { "" } else { " (it was so before)" };
        let how = if how == "interrupted" { "given up without an outcome" } else { how };
        context.out.text(&format!("{} {how}{before}\n", shown(resource)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn preempt(context: &Context, take: &Take) -> Result<ExitCode, CliError> {
    let control = context.work(false)?;
    let place = take.kept.look(|_| false)?;
    let person: Identity = Control::account();
    let preempt = Preempt { person, reason: take.reason.clone() };
    let leasing = control.lease(take.what.resource(&control)?).length(take.length.length).preempt(preempt);
    let key = drawn(None)?;
    let now = wait(leasing.holder(key).once())?.map_err(|error| {
        remarks(refused(error, Some(&take.what), &take.length), &[("--reason", Some(take.reason.as_str()))])
    })?;
    taken(context, &now, &place, &again(&take.what, key))
}

fn gone() -> CliError {
    CliError::missing(Code::LeaseFenced)
}

/// With who has the resource now, where a lease on it is over.
pub(crate) fn fenced(error: CliError, resource: &str) -> CliError {
    match error.is(Code::LeaseFenced) {
        true => error.next(format!("onceseal lease inspect {}", shell(resource))),
        false => error,
    }
}

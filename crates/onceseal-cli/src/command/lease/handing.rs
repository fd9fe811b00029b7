//! Handing a resource over: prepared by whoever has it, accepted once by the next.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, Args};
use onceseal::core::code::Code;
use onceseal::core::hash::Hash;
use onceseal::core::id::HolderKey;
use onceseal::core::json::{self, Limits, Object, Value};
use onceseal::core::limits;
use onceseal::runs::{Giver, Handing, Resource};
use onceseal::{Control, Error, render};

use super::{Kept, Length, What, drawn, gone, holder, proof, refused, taken};
use crate::command::actions::as_object;
use crate::command::refused::remarks;
use crate::command::runs::{Who, digest};
use crate::context::{Context, wait};
use crate::error::{CliError, UNUSABLE};
use crate::files;
use crate::text::{literal, shell, shown};

/// On whose word.
#[derive(Debug, Args)]
pub(crate) struct Word {
    /// That of whoever has it: a file with what `lease acquire` wrote, - for stdin [default: what ONCESEAL_LEASE says, if
    /// it is about this resource]
    #[arg(long, value_name = "FILE", conflicts_with = "reason")]
    lease: Option<PathBuf>,
    /// Yours instead, where whoever has it cannot say so, and why; kept with the handoff
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// A handoff to prepare.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("given").required(true).args(["facts", "facts_file"])))]
pub(crate) struct HandOver {
    #[command(flatten)]
    what: What,
    /// The digest of the receipt that names the handoff, once and for ever, `sha256:…`
    #[arg(value_parser = digest)]
    receipt: Hash,
    /// What the next holder goes on from: a JSON object of at most 64 KiB
    #[arg(long, value_name = "JSON")]
    facts: Option<String>,
    /// The same from a file
    #[arg(long, value_name = "FILE")]
    facts_file: Option<PathBuf>,
    #[command(flatten)]
    word: Word,
    #[command(flatten)]
    who: Who,
}

/// A handoff to accept.
#[derive(Debug, Args)]
pub(crate) struct Accept {
    #[command(flatten)]
    what: What,
    /// The receipt's digest
    #[arg(value_parser = digest)]
    receipt: Hash,
    #[command(flatten)]
    length: Length,
    /// Who accepts it: whoever names the key under which it was accepted gets the lease again, so keep it to yourself [default: drawn at random]
    #[arg(long, value_name = "KEY", value_parser = holder)]
    holder: Option<HolderKey>,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    who: Who,
}

/// A handoff to withdraw.
#[derive(Debug, Args)]
pub(crate) struct Withdraw {
    #[command(flatten)]
    what: What,
    /// The receipt's digest
    #[arg(value_parser = digest)]
    receipt: Hash,
    #[command(flatten)]
    word: Word,
}

impl Word {
    fn giver(&self, resource: &Resource) -> Result<Giver, CliError> {
        if let Some(reason) = &self.reason {
            return Ok(Giver::Operator { person: Control::account(), reason: reason.clone() });
        }
        let lease = match &self.lease {
            Some(file) => Some(proof::read(file)?),
            None => proof::told()?.filter(|lease| lease.resource == *resource),
        };
        lease.map(Giver::Holder).ok_or_else(|| {
            CliError::usage("--lease FILE of whoever has it, or --reason for your own word, is needed")
        })
    }

    fn remarks(&self, error: CliError) -> CliError {
        remarks(error, &[("--reason", self.reason.as_deref())])
    }
}

pub(super) fn hand_over(context: &Context, over: &HandOver) -> Result<ExitCode, CliError> {
    let text = match (&over.facts, &over.facts_file) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(file)) => files::read(file, limits::RESULT_BYTES)?,
        (None, None) => return Err(CliError::usage("--facts or --facts-file is needed")),
    };
    let invalid = |why: String| {
        let code = Code::FactsInvalid;
        CliError::new(code.as_str(), code.sentence(), UNUSABLE).because(why)
    };
    let facts = match json::read(&text, &Limits::DATA) {
        Ok(Value::Object(facts)) => facts,
        Ok(_) => return Err(invalid("they are no object".to_owned())),
        Err(error) => return Err(invalid(error.to_string())),
    };
    let control = context.answer()?.ok_or_else(gone)?;
    let resource = over.what.resource(&control)?;
    let giver = over.word.giver(&resource)?;
    let handing = control.handoff(resource.clone(), over.receipt).by(over.who.principal());
    let changed = wait(handing.clone().prepare(facts, giver))?
        .map_err(|error| {
            let error = over.word.remarks(told_of(&handing, &control, &resource, error));
            // Whoever prepares is not whoever accepts.
            match error.is(Code::HandoffOver) {
                true => error.in_words(
                    "this receipt names a handoff that is over, once and for ever; prepare another with another receipt",
                ),
                false => error,
            }
        })?;
    said(context, &handing, changed)?;
    if !context.out.is_json() {
        let resource = shell(&over.what.resource);
        context.out.note(&format!("next: onceseal lease accept {resource} {}", over.receipt));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn accept(context: &Context, accept: &Accept) -> Result<ExitCode, CliError> {
    let control = context.answer()?.ok_or_else(|| CliError::missing(Code::HandoffUnknown))?;
    let resource = accept.what.resource(&control)?;
    let key = drawn(accept.holder)?;
    let own = control.store().tenant().holder(key);
    let place = accept.kept.look(|lease| lease.resource == resource && lease.holder == own)?;
    let handing = control.handoff(resource.clone(), accept.receipt).by(accept.who.principal());
    let accepting = handing.clone().length(accept.length.length).holder(key);
    let now = wait(accepting.accept_once())?.map_err(|error| match error.code() {
        code if code == Code::OutOfBounds.as_str() || code == Code::LeaseHeld.as_str() => {
            refused(error, Some(&accept.what), &accept.length)
        }
        _ => told_of(&handing, &control, &resource, error),
    })?;
    let facts = wait(handing.view())?.ok().and_then(|view| view.facts);
    if let Some(facts) = facts.filter(|_| !context.out.is_json()) {
        context.out.note(&format!("facts: {}", literal(&facts.into())));
    }
    let (resource, receipt) = (shell(&accept.what.resource), accept.receipt);
    let again = format!("onceseal lease accept {resource} {receipt} --holder {key}");
    taken(context, &now, &place, &again)
}

pub(super) fn withdraw(context: &Context, withdraw: &Withdraw) -> Result<ExitCode, CliError> {
    let control = context.answer()?.ok_or_else(|| CliError::missing(Code::HandoffUnknown))?;
    let resource = withdraw.what.resource(&control)?;
    let giver = withdraw.word.giver(&resource)?;
    let handing = control.handoff(resource.clone(), withdraw.receipt);
    let changed = wait(handing.clone().withdraw(giver))?
        .map_err(|error| withdraw.word.remarks(told_of(&handing, &control, &resource, error)))?;
    said(context, &handing, changed)?;
    Ok(ExitCode::SUCCESS)
}

/// Why a handoff is refused, with where the one that is in the way stands.
fn told_of(handing: &Handing, control: &Control, resource: &Resource, error: Error) -> CliError {
    let error = CliError::from(error).about("resource", resource.to_string());
    // A store that cannot say leaves it out.
    let own = wait(handing.view()).ok().and_then(Result::ok);
    if error.is(Code::HandoffOver)
        && let Some(view) = own
    {
        return error.because(format!("it is {}", view.row.state));
    }
    if error.is(Code::HandoffPrepared)
        && let Ok(Some(other)) = control.prepared_handoff(resource)
    {
        let by = other.row.private.agent.as_deref().map_or("erased".to_owned(), shown);
        return error.because(format!("{by} prepared it at {}", other.row.created_at));
    }
    error
}

/// Says how a handoff stands.
fn said(context: &Context, handing: &Handing, changed: bool) -> Result<(), CliError> {
    let view = wait(handing.view())??;
    if context.out.is_json() {
        let mut object: Object = as_object(render::handoff(&view));
        object.insert("repeated", !changed);
        return context.out.document(object);
    }
    let before = if changed { "" } else { " (it was so before)" };
    let resource = view.row.private.resource.as_deref().map_or("erased".to_owned(), shown);
    context.out.text(&format!("handoff of {resource} {}{before}\n", view.row.state))
}

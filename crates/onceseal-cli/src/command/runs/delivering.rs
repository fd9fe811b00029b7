//! Binding deliveries to the gates of a run, and asking for the approvals that they
//! need.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use onceseal::core::action::Action;
use onceseal::core::code::Code;
use onceseal::core::hash::Hash;
use onceseal::core::id::ApprovalId;
use onceseal::core::json::{self, Limits, Object, Value};
use onceseal::core::reply::{Reply, RunNow};
use onceseal::core::run::Proving;
use onceseal::core::time::Timestamp;
use onceseal::runs::{AskedDelivery, Delivery, Run};
use onceseal::{Control, Error, render};

use super::acting::{document, go_on};
use super::{Asking, Which, digest, drawn, earlier, find_asked, under, unknown};
use crate::command::exec::approval;
use crate::command::list;
use crate::command::refused::{self, integer};
use crate::context::{Context, wait};
use crate::error::{CliError, REFUSED};
use crate::files;
use crate::table::{Cell, Table};
use crate::text::{shell, shown};

/// Many times what a delivery needs, 64 times.
const MOST: usize = 256 * 1024;
/// What is delivered is read whole, to be hashed.
const CONTENT: usize = 64 * 1024 * 1024;

/// What is delivered.
#[derive(Debug, Args)]
pub(crate) struct Deliver {
    #[command(flatten)]
    which: Which,
    /// The gate, one of the run's definition
    #[arg(required_unless_present = "file", requires = "revision")]
    gate: Option<String>,
    /// Its revision, from 1; those of a gate only grow
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    revision: Option<u64>,
    /// The digest of what is delivered, `sha256:…`
    #[arg(long, value_name = "HASH", value_parser = digest, conflicts_with = "receipt_file")]
    receipt: Option<Hash>,
    /// What is delivered itself: its SHA-256 is the receipt
    #[arg(long, value_name = "FILE")]
    receipt_file: Option<PathBuf>,
    /// The digest of the contract that it fulfils
    #[arg(long, value_name = "HASH", value_parser = digest)]
    contract: Option<Hash>,
    /// The digest of the record of how it came about
    #[arg(long, value_name = "HASH", value_parser = digest)]
    record: Option<Hash>,
    /// The approval that proves it
    #[arg(long, value_name = "ID", value_parser = approval)]
    approval: Option<ApprovalId>,
    /// Several at once, all or none: a file with a list of objects with gate, revision, receipt, and perhaps contract,
    /// record and approval; - for stdin
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["gate", "revision", "receipt", "receipt_file", "contract", "record", "approval"]
    )]
    file: Option<PathBuf>,
    /// Bind nothing, and ask a person to approve it: the action `run.bind_delivery` is proposed
    #[arg(long, conflicts_with = "approval")]
    ask: bool,
    /// The environment in which the approval is asked for
    #[arg(long, value_name = "NAME", default_value = Action::DEFAULT_ENVIRONMENT)]
    environment: String,
    /// Only while this lease on the run holds: a file with what `lease acquire` wrote, - for stdin [default: what
    /// ONCESEAL_LEASE says, if it is about this run]
    #[arg(long, value_name = "FILE")]
    lease: Option<PathBuf>,
    #[command(flatten)]
    asking: Asking,
}

impl Deliver {
    fn deliveries(&self) -> Result<Vec<Delivery>, CliError> {
        if let Some(file) = &self.file {
            return parse(&files::read(file, MOST)?);
        }
        let (Some(gate), Some(revision)) = (self.gate.clone(), self.revision) else {
            return Err(CliError::usage("a gate and its revision, or --file, are needed"));
        };
        let receipt = match (self.receipt, &self.receipt_file) {
            (Some(receipt), _) => receipt,
            // Without a purpose before it: it is what `sha256sum` prints.
            (None, Some(file)) => Hash::of("", &[&files::read(file, CONTENT)?]),
            (None, None) => return Err(CliError::usage("--receipt or --receipt-file is needed")),
        };
        let Deliver { contract, record, approval, .. } = *self;
        Ok(vec![Delivery { gate, revision, receipt, contract, record, approval }])
    }

    /// The same command for one delivery, without what differs.
    fn line(&self, delivery: &Delivery) -> String {
        let mut line = format!(
            "onceseal runs deliver {} {} {} --receipt {}",
            shell(&self.which.run),
            shell(&delivery.gate),
            delivery.revision,
            delivery.receipt
        );
        for (flag, hash) in [("--contract", delivery.contract), ("--record", delivery.record)] {
            if let Some(hash) = hash {
                line.push_str(&format!(" {flag} {hash}"));
            }
        }
        if self.environment != Action::DEFAULT_ENVIRONMENT {
            line.push_str(&format!(" --environment {}", shell(&self.environment)));
        }
        line
    }
}

/// Reads a list of deliveries.
fn parse(content: &[u8]) -> Result<Vec<Delivery>, CliError> {
    let wrong = |what: String| CliError::usage(format!("the file of --file: {what}"));
    let list = match json::read(content, &Limits::DATA) {
        Ok(Value::List(list)) => list,
        Ok(_) => return Err(wrong("it is no list".to_owned())),
        Err(error) => return Err(wrong(error.to_string())),
    };
    let one = |(at, item): (usize, &Value)| {
        let object = item.as_object().ok_or_else(|| wrong(format!("[{at}] is no object")))?;
        let known = ["gate", "revision", "receipt", "contract", "record", "approval"];
        if let Some((name, _)) = object.iter().find(|(name, _)| !known.contains(name)) {
            return Err(wrong(format!("[{at}].{name} is not known; known are {}", known.join(", "))));
        }
        let text = |name: &str| match object.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(wrong(format!("[{at}].{name} is no text"))),
        };
        let hash = |name: &str| match text(name)?.map(digest) {
            None => Ok(None),
            Some(Ok(hash)) => Ok(Some(hash)),
            Some(Err(what)) => Err(wrong(format!("[{at}].{name}: {what}"))),
        };
        let revision = object.get("revision").and_then(Value::as_integer).and_then(|n| u64::try_from(n).ok());
        let approval = text("approval")?.map(approval).transpose();
        Ok(Delivery {
            gate: text("gate")?.ok_or_else(|| wrong(format!("[{at}].gate is missing")))?.to_owned(),
            revision: revision.ok_or_else(|| wrong(format!("[{at}].revision is a number from 1")))?,
            receipt: hash("receipt")?.ok_or_else(|| wrong(format!("[{at}].receipt is missing")))?,
            contract: hash("contract")?,
            record: hash("record")?,
            approval: approval.map_err(|what| wrong(format!("[{at}].approval: {what}")))?,
        })
    };
    list.iter().enumerate().map(one).collect()
}

pub(super) fn deliver(context: &Context, deliver: &Deliver) -> Result<ExitCode, CliError> {
    let deliveries = deliver.deliveries()?;
    if deliver.ask {
        return ask(context, deliver, deliveries);
    }
    let control = context.answer()?.ok_or_else(unknown)?;
    let run = find_asked(context, &control, &deliver.which, &deliver.asking)?;
    let request = deliver.asking.request()?;
    let mut binding = run.bind(deliveries.clone()).environment(&deliver.environment).request(&request);
    if let Some(lease) = under(deliver.lease.as_deref(), run.id())? {
        binding = binding.under_lease(lease);
    }
    match wait(binding.send())? {
        Ok(now) => bound(context, &control, &deliveries, &now, &request),
        Err(error) => {
            let error = refused::of(&control, error).about("run", run.id().to_string());
            Err(earlier(&run, &request, to_prove(deliver, &deliveries, error)))
        }
    }
}

/// Says what is bound now, and what a person would type next.
fn bound(
    context: &Context,
    control: &Control,
    deliveries: &[Delivery],
    answer: &RunNow,
    request: &str,
) -> Result<ExitCode, CliError> {
    let run = answer.answered.run;
    if context.out.is_json() {
        let mut object = document(answer, request, "now");
        object.insert("joined", false);
        let rows = deliveries.iter().map(|of| control.delivery(run, &of.gate, of.revision));
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        object.insert("deliveries", Value::List(rows.iter().flatten().map(render::delivery).collect()));
        context.out.document(object)?;
        return Ok(ExitCode::SUCCESS);
    }
    let how = if answer.replayed { " (asked before)" } else { "" };
    for Delivery { gate, revision, receipt, .. } in deliveries {
        context.out.text(&format!("{run} has bound {} {revision}: {receipt}{how}\n", shown(gate)))?;
    }
    drawn(context, request);
    go_on(context, control, run)?;
    Ok(ExitCode::SUCCESS)
}

/// Why nothing was bound, with how an approval is come by.
fn to_prove(deliver: &Deliver, deliveries: &[Delivery], error: CliError) -> CliError {
    if !error.is(Code::ProofRequired) && !error.is(Code::ApprovalMismatch) {
        return error;
    }
    match deliveries {
        [one] => error.next(format!("{} --ask", deliver.line(one))),
        _ => error.next("the same command with --ask, then each approval in its delivery"),
    }
}

/// What a person was asked about a delivery.
struct Asked {
    delivery: Delivery,
    approval: ApprovalId,
    granted: bool,
    until: Timestamp,
}

fn ask(context: &Context, deliver: &Deliver, deliveries: Vec<Delivery>) -> Result<ExitCode, CliError> {
    let config = context.config()?;
    let control = context.act(&config)?;
    let run = find_asked(context, &control, &deliver.which, &deliver.asking)?;
    let view = control.run(run.id())?.ok_or_else(unknown)?;
    let mut asked = Vec::new();
    for delivery in deliveries {
        let bound = control.delivery(run.id(), &delivery.gate, delivery.revision)?;
        let is_bound = bound.is_some();
        let of_it = AskedDelivery { run: view.clone(), delivery, bound };
        // Nobody is asked about what could not be bound.
        if let Some(code) = of_it.cannot_be_bound() {
            return Err(not_asked(&of_it, code));
        }
        let delivery = of_it.delivery;
        if is_bound {
            if !context.out.is_json() {
                context.out.note(&format!("{} {} is bound", delivery.gate, delivery.revision));
            }
            continue;
        }
        let gate = view.definition.as_ref().and_then(|definition| definition.gates().get(&delivery.gate));
        if gate.is_some_and(|gate| gate.proof == Proving::None) {
            let gate = shown(&delivery.gate);
            let error = CliError::usage(format!("the gate {gate} needs no proof, so nobody need be asked"));
            return Err(error.about("run", run.id().to_string()).next(deliver.line(&delivery)));
        }
        asked.push(propose(context, &control, &run, deliver, delivery)?);
    }
    print(context, deliver, &run, &asked)
}

fn not_asked(asked: &AskedDelivery, code: Code) -> CliError {
    let AskedDelivery { run, delivery, .. } = asked;
    let error = CliError::missing(code).about("run", run.id.to_string());
    match code {
        Code::GateUnknown => {
            let gates = run.definition.iter().flat_map(|definition| definition.gates().keys());
            let gates: Vec<&str> = gates.map(String::as_str).collect();
            error.because(format!("its gates: {}", gates.join(", ")))
        }
        Code::DeliveryOld | Code::OutOfBounds => {
            let newest = run.row.revision_of(&delivery.gate);
            let newest = newest.map_or("none".to_owned(), |newest| newest.to_string());
            error.because(format!(
                "revision {} was given, and the newest of {} is {newest}",
                delivery.revision, delivery.gate
            ))
        }
        _ => error.next(format!("onceseal runs show {}", run.id)),
    }
}

fn propose(
    context: &Context,
    control: &Control,
    run: &Run,
    deliver: &Deliver,
    delivery: Delivery,
) -> Result<Asked, CliError> {
    let policy = context.config()?.policy;
    let proposing = run.ask_to_bind(&delivery).environment(&deliver.environment);
    match wait(proposing.propose())? {
        Err(Error::ApprovalNeeded { approval, expires_at, .. }) => {
            Ok(Asked { delivery, approval, granted: false, until: expires_at })
        }
        Ok(Reply::Ready { action, until }) => {
            let approval = control.action_row(action)?.ok_or_else(list::corrupt)?.approval;
            let approval = approval.ok_or_else(|| {
                let why =
                    "the policy permits `run.bind_delivery` without asking anybody, and this needs a yes";
                CliError::new(Code::ProofRequired.as_str(), Code::ProofRequired.sentence(), REFUSED)
                    .because(why)
                    .next("write `decision: approve` for it in onceseal.yaml")
            })?;
            Ok(Asked { delivery, approval, granted: true, until })
        }
        Ok(_) => Err(Error::Unexpected.into()),
        Err(Error::Refused(refusal)) => {
            let action = delivery.action(run.id(), &deliver.asking.principal(), &deliver.environment);
            Err(refused::call(control, &policy.policy, &action, &refusal))
        }
        Err(error) => Err(error.into()),
    }
}

fn print(context: &Context, deliver: &Deliver, run: &Run, asked: &[Asked]) -> Result<ExitCode, CliError> {
    let mut table = Table::new(&["GATE", "REVISION", "APPROVAL", "STATUS", "UNTIL"]);
    let mut items = Vec::new();
    for Asked { delivery, approval, granted, until } in asked {
        let status = if *granted { "granted" } else { "pending" };
        table.row(vec![
            delivery.gate.as_str().into(),
            delivery.revision.to_string().into(),
            approval.to_string().into(),
            Cell::state(status),
            until.to_string().into(),
        ]);
        let mut item = Object::new();
        item.insert("gate", delivery.gate.as_str());
        item.insert("revision", integer(delivery.revision));
        item.insert("receipt", delivery.receipt.to_string());
        item.insert("approval", approval.to_string());
        item.insert("status", status);
        item.insert("until", until.to_string());
        items.push(item.into());
    }
    if context.out.is_json() {
        let mut page = Object::new();
        page.insert("run", run.id().to_string());
        page.insert("items", Value::List(items));
        page.insert("policy_activated", context.activated());
        context.out.document(page)?;
        return Ok(ExitCode::SUCCESS);
    }
    if asked.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    context.out.text(&table.render())?;
    for Asked { approval, .. } in asked.iter().filter(|asked| !asked.granted) {
        context.out.note(&format!("next: onceseal approve {approval}"));
    }
    match asked {
        [one] if deliver.file.is_none() => {
            context.out.note(&format!("then: {} --approval {}", deliver.line(&one.delivery), one.approval));
        }
        _ => context.out.note("then: the same command without --ask, each approval in its delivery"),
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_deliveries_is_read_and_what_is_wrong_is_named_with_its_place() {
        let hash = format!("sha256:{}", "a".repeat(64));
        let good = format!(r#"[{{"gate":"a","revision":2,"receipt":"{hash}","contract":null}}]"#);
        let read = parse(good.as_bytes()).expect("a list");
        assert_eq!((read[0].gate.as_str(), read[0].revision, read[0].contract), ("a", 2, None));
        for (from, to, what) in [
            ("\"gate\"", "\"Gate\"", "[0].Gate is not known"),
            ("2", "-2", "[0].revision is a number"),
            ("sha256", "sha1", "[0].receipt: a digest"),
            ("null", "7", "[0].contract is no text"),
            ("[{", "[7,{", "[0] is no object"),
        ] {
            let error = parse(good.replacen(from, to, 1).as_bytes()).expect_err("wrong");
            let told = error.to_block();
            assert!(told.contains(what), "{told}");
        }
        assert!(parse(b"{}").is_err() && parse(b"[").is_err());
    }
}

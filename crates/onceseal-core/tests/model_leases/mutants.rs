//! Rules of leases broken on purpose, and the promise that tells of each.

pub(crate) mod handing;
pub(crate) mod runs;
pub(crate) mod taking;
pub(crate) mod words;

use std::sync::Arc;

use onceseal_core::approval::{Identity, Proof};
use onceseal_core::command::Command;
use onceseal_core::decide::Verdict;
use onceseal_core::handoff::Giver;
use onceseal_core::id::RootId;
use onceseal_core::journal::{Event, Kind, Row};
use onceseal_core::lease::{Lease, LeaseRow};
use onceseal_core::stream::StreamId;
use onceseal_core::time::Timestamp;
use onceseal_core::view::{Loaded, Pinned, View};

use crate::broken::{Broken, seen};
use crate::executor::Rules;
use crate::protocol::{Bounds, TWO_PATHS};

/// Two paths, and one lease of each.
const PATHS: Bounds = Bounds { leases: 1, ..TWO_PATHS };

/// A broken rule, where it is looked for, and what tells.
pub(crate) struct Mutant {
    pub(crate) name: &'static str,
    pub(crate) bounds: Bounds,
    pub(crate) rules: &'static dyn Rules,
    pub(crate) promise: &'static str,
}

/// The lease that a command is to be done under.
fn under(command: &Command) -> Option<&Lease> {
    match command {
        Command::RenewLease(renew) => Some(&renew.lease),
        Command::CommitLease(commit) => Some(&commit.lease),
        Command::InterruptLease(interrupt) => Some(&interrupt.lease),
        Command::Transition(step) => step.under.as_ref(),
        _ => None,
    }
}

fn under_mut(command: &mut Command) -> Option<&mut Lease> {
    match command {
        Command::RenewLease(renew) => Some(&mut renew.lease),
        Command::CommitLease(commit) => Some(&mut commit.lease),
        Command::InterruptLease(interrupt) => Some(&mut interrupt.lease),
        Command::Transition(step) => step.under.as_mut(),
        _ => None,
    }
}

/// The resource that a command is about.
fn about(pinned: &Pinned, command: &Command) -> Option<StreamId> {
    match command {
        Command::AcquireLease(acquire) => Some(pinned.tenant.lease(&acquire.resource.to_string())),
        Command::Lapse(stream) => Some(*stream),
        other => under(other).map(|lease| pinned.tenant.lease(&lease.resource.to_string())),
    }
}

/// The word of whoever may take anything away.
pub(crate) fn operator() -> Giver {
    let person = Identity { proof: Proof::Os, name: "owner".to_owned() };
    Giver::Operator { person, reason: "stuck".to_owned() }
}

fn is_taking(command: &Command) -> bool {
    matches!(command, Command::AcquireLease(_))
}

fn path(pinned: &Pinned, path: &str) -> StreamId {
    pinned.tenant.lease(&format!("root/{}/path/{path}", RootId([1; 16])))
}

/// Changes how a resource is seen.
fn see(view: &mut View, stream: Option<StreamId>, change: impl FnOnce(&mut LeaseRow)) {
    let Some(stream) = stream else { return };
    let Some(mut stored) = seen(view, &stream).cloned() else { return };
    if let Row::Lease(row) = &mut stored.row {
        change(row);
    }
    view.load(stream, Loaded::Row(Arc::new(stored)));
}

/// Changes what a lease's event is folded on.
fn folded(row: Option<Row>, event: &Event, kind: Kind, change: impl FnOnce(&mut LeaseRow)) -> Option<Row> {
    match row {
        Some(Row::Lease(mut row)) if event.body.kind() == kind => {
            change(&mut row);
            Some(Row::Lease(row))
        }
        row => row,
    }
}

/// Shows the leases of what a command is about with another end.
fn ends(view: &mut View, pinned: &Pinned, command: &Command, end: fn(Timestamp) -> Timestamp) {
    see(view, about(pinned, command), |row| {
        row.holders.iter_mut().for_each(|holder| holder.until = end(holder.until));
    });
}

/// Without what was decided of these.
fn without(verdict: &mut Verdict, is: impl Fn(&StreamId, Kind) -> bool) {
    verdict.drafts.retain(|draft| !is(&draft.stream, draft.event.body.kind()));
}

/// The resource that is taken, told by what is recorded.
fn taken(verdict: &Verdict) -> Option<StreamId> {
    let is_taken = |kind| kind == Kind::LeaseTaken;
    verdict.drafts.iter().find(|draft| is_taken(draft.event.body.kind())).map(|draft| draft.stream)
}

fn rules(broken: Broken) -> &'static dyn Rules {
    Box::leak(Box::new(broken))
}

fn mutant(name: &'static str, bounds: Bounds, promise: &'static str, broken: Broken) -> Mutant {
    Mutant { name, bounds, rules: rules(broken), promise }
}

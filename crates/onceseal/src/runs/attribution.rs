//! What is known of an event of a run elsewhere: who asked, by which request, on
//! whose word, and what else came of it.

use onceseal_core::action::Principal;
use onceseal_core::id::RunId;
use onceseal_core::journal::{Body, Row};
use onceseal_store::StoreError;
use onceseal_store::read::{Snapshot, StoredEvent, row_of};

use super::happened::{Part, Replanned, RunEvent};
use crate::control::Control;

/// An event with what is known of it elsewhere.
pub(super) fn told(
    control: &Control,
    snapshot: &dyn Snapshot,
    run: RunId,
    (part, task): (Part, Option<String>),
    stored: StoredEvent,
) -> Result<RunEvent, StoreError> {
    let body = stored.event.as_ref().map(|event| &event.body);
    let by = body.and_then(asker);
    let (person, reason) = body.map_or((None, None), said);
    let delivery = match body {
        Some(Body::RunBound(data, _)) => {
            let stream = control.store().tenant().delivery(run, &data.gate, data.revision);
            match row_of(snapshot.stream(&stream)?).map(|stored| stored.row) {
                Some(Row::Delivery(row)) => Some(row),
                _ => None,
            }
        }
        _ => None,
    };
    let replanned = match body {
        Some(Body::PlanSet(data, _)) => Some(replanned(snapshot, &stored, data.tasks)?),
        _ => None,
    };
    let request = request(snapshot, &stored)?;
    Ok(RunEvent { stored, part, task, by, person, reason, request, delivery, replanned })
}

/// The request that an event answers: its answer is the last event of the command.
fn request(snapshot: &dyn Snapshot, stored: &StoredEvent) -> Result<Option<String>, StoreError> {
    let behind = u64::from(stored.stamp.of.saturating_sub(stored.stamp.part));
    if behind == 0 {
        return Ok(None);
    }
    let last = snapshot.log(stored.position + behind - 1, 1)?.pop();
    let last = last.filter(|last| last.stamp.command == stored.stamp.command);
    Ok(match last.and_then(|last| last.event).map(|event| event.body) {
        Some(Body::RequestAnswered(_, sealed)) => sealed.id,
        _ => None,
    })
}

/// What the events of the command that set a plan did to its tasks.
fn replanned(snapshot: &dyn Snapshot, set: &StoredEvent, tasks: u32) -> Result<Replanned, StoreError> {
    let before = set.position.saturating_sub(set.stamp.part.into());
    let all = snapshot.log(before, set.stamp.of as usize)?;
    let mut found = Replanned::default();
    for stored in all.iter().filter(|other| other.stamp.command == set.stamp.command) {
        match stored.event.as_ref().map(|event| &event.body) {
            Some(Body::TaskAdded(..)) if stored.stamp.sequence == 1 => found.added += 1,
            Some(Body::TaskAdded(..)) => found.restarted += 1,
            Some(Body::TaskDropped(..)) => found.closed += 1,
            _ => {}
        }
    }
    found.kept = u64::from(tasks).saturating_sub(found.added + found.restarted);
    Ok(found)
}

fn asker(body: &Body) -> Option<Principal> {
    let (agent, user) = match body {
        Body::RunStarted(_, sealed) => (&sealed.agent, &sealed.user),
        Body::RunNamed(_, sealed) => (&sealed.agent, &sealed.user),
        Body::TaskMoved(_, sealed) => (&sealed.agent, &sealed.user),
        Body::HandoffPrepared(_, sealed) => (&sealed.agent, &sealed.user),
        Body::RunMoved(_, sealed) => (&sealed.agent, &sealed.user),
        Body::RunBound(_, sealed) | Body::TaskTaken(_, sealed) => (&sealed.agent, &sealed.user),
        Body::PlanSet(_, sealed) | Body::HandoffAccepted(_, sealed) => (&sealed.agent, &sealed.user),
        _ => return None,
    };
    agent.as_ref().map(|agent| Principal { agent: agent.clone(), user: user.clone() })
}

/// On whose word, and why.
fn said(body: &Body) -> (Option<String>, Option<String>) {
    match body {
        Body::TaskGranted(_, said) | Body::LeasePreempted(_, said) | Body::HandoffWithdrawn(_, said) => {
            (said.person.clone(), said.reason.clone())
        }
        Body::HandoffPrepared(_, sealed) => (sealed.person.clone(), sealed.reason.clone()),
        _ => (None, None),
    }
}

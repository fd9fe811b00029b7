//! What happened to a run, in words.

use onceseal::core::hash::Hash;
use onceseal::core::journal::Body;
use onceseal::runs::{DeliveryRow, Part, RunEvent};

use crate::command::list;
use crate::error::CliError;
use crate::text::{counted, shown};

/// So much of a digest is told in a table; all of it is in JSON.
const DIGEST: usize = "sha256:".len() + 12;

/// What an event did, its code, who asked for it, and by which request.
pub(super) fn told(event: &RunEvent) -> Result<[String; 4], CliError> {
    let body = &event.stored.event.as_ref().ok_or_else(list::corrupt)?.body;
    let what = what(event, body);
    let reason = event.reason.as_deref().map_or(String::new(), |reason| format!(": {}", shown(reason)));
    let by = match (&event.by, &event.person) {
        (_, Some(person)) => shown(person),
        (None, None) => "-".to_owned(),
        (Some(by), None) => match &by.user {
            Some(user) => format!("{} for {}", shown(&by.agent), shown(user)),
            None => shown(&by.agent),
        },
    };
    let code = match body {
        Body::RunMoved(data, _) => data.code.as_deref(),
        Body::RunInterrupted(data, _) => data.code.as_deref(),
        Body::TaskMoved(data, _) => data.code.as_deref(),
        _ => None,
    };
    let optional = |text: Option<&str>| text.map_or("-".to_owned(), shown);
    Ok([format!("{what}{reason}"), optional(code), by, optional(event.request.as_deref())])
}

fn what(event: &RunEvent, body: &Body) -> String {
    let of = match (event.part, event.task.as_deref()) {
        (_, Some(task)) => format!("task {}", shown(task)),
        (Part::Task, None) => "task erased".to_owned(),
        _ => "run".to_owned(),
    };
    match body {
        Body::RunStarted(data, _) => format!("started in {}", shown(&data.state)),
        Body::RunMoved(data, _) => format!("{} > {}", shown(&data.from), shown(&data.to)),
        Body::RunInterrupted(data, _) => {
            format!("{} > {} (interrupted)", shown(&data.from), shown(&data.to))
        }
        Body::RunNamed(_, sealed) => {
            let key = sealed.key.as_deref().map(|key| key.strip_prefix("change:").unwrap_or(key));
            format!("named {}", key.map_or("erased".to_owned(), shown))
        }
        Body::RunBound(data, _) => {
            let bound = format!("bound {} {}", shown(&data.gate), data.revision);
            event.delivery.as_ref().map_or(bound.clone(), |row| format!("{bound}: {}", delivered(row)))
        }
        Body::PlanSet(data, _) => {
            let tasks = counted(usize::try_from(data.tasks).unwrap_or(usize::MAX), "task");
            let plan = event.replanned.unwrap_or_default();
            let all = [
                (plan.added, "new"),
                (plan.kept, "kept"),
                (plan.restarted, "restarted"),
                (plan.closed, "closed"),
            ];
            let all = all.into_iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}"));
            let all = all.collect::<Vec<_>>().join(", ");
            format!("planned revision {}: {tasks} ({all}), {} at once", data.revision, data.capacity)
        }
        Body::TaskAdded(data, _) if event.stored.stamp.sequence == 1 => {
            format!("{of} planned, {}", data.state)
        }
        Body::TaskAdded(data, _) => format!("{of} planned anew, {}", data.state),
        Body::TaskRenumbered(data, _) => format!("{of} has number {} in the plan", data.number),
        Body::TaskQueued(data, _) => format!("{of} {}", data.state),
        Body::TaskTaken(data, _) => format!("{of} taken, fence {}", data.fence),
        Body::TaskMoved(data, sealed) => {
            let by = sealed.produced_by.as_deref().map(|by| format!(" by {}", shown(by)));
            let fact =
                data.fact.as_deref().map(|fact| format!(": {}{}", shown(fact), by.unwrap_or_default()));
            format!("{of} {} > {}{}", data.from, data.to, fact.unwrap_or_default())
        }
        Body::TaskGranted(..) => format!("{of} has its attempts back"),
        Body::TaskDropped(..) => format!("{of} closed: the plan does not have it"),
        Body::LeaseTaken(data, _) => format!("{of} held, fence {}", data.fence),
        Body::LeaseCommitted(data, _) => format!("{of} given up with an outcome, fence {}", data.fence),
        Body::LeaseInterrupted(data, _) => format!("{of} given up, fence {}", data.fence),
        Body::LeaseLapsed(data, _) => format!("lease on {of} ended without a word, fence {}", data.fence),
        Body::LeasePreempted(..) => format!("{of} taken from its holder"),
        Body::HandoffPrepared(_, sealed) => {
            format!("{of} to be handed over: {}", sealed.receipt.map_or("erased".to_owned(), short))
        }
        Body::HandoffAccepted(data, _) => format!("{of} handed over, fence {}", data.fence),
        Body::HandoffWithdrawn(..) => format!("{of} not handed over"),
        other => other.kind().to_string(),
    }
}

/// What was delivered, and on whose approval.
fn delivered(row: &DeliveryRow) -> String {
    let hashes =
        [("", row.private.receipt), ("contract ", row.private.contract), ("record ", row.private.record)];
    let hashes = hashes.into_iter().filter_map(|(name, hash)| Some(format!("{name}{}", short(hash?))));
    let approval = row.approval.map(|id| format!("by {id}"));
    hashes.chain(approval).collect::<Vec<_>>().join(", ")
}

fn short(hash: Hash) -> String {
    format!("{}…", hash.to_string().chars().take(DIGEST).collect::<String>())
}

//! What streams say of each other: an action and the effect it holds, an
//! approval and the action that used it.
//!
//! All rows are read from one snapshot. A row that does not decode is named
//! where its own stream is checked, and nothing is said of it here.

use onceseal_core::action::{ActionRow, ActionState, Answer};
use onceseal_core::approval::{ApprovalRow, Status};
use onceseal_core::effect::{EffectRow, EffectState};
use onceseal_core::id::{ActionId, ApprovalId, RunId};
use onceseal_core::journal::Row;
use onceseal_core::policy::Verdict;
use onceseal_core::run::{RunRow, lookup};
use onceseal_core::stream::{StreamId, StreamKind, Tenant};
use onceseal_core::view::Loaded;
use onceseal_store::StoreError;
use onceseal_store::read::Snapshot;

use super::Tally;
use super::finding::{self as code, Finding};
use super::stream::Moves;

mod runs;
mod tasks;

/// Judges a row by the rows it names, and a run by its definition.
pub(super) fn judge(
    tenant: &Tenant,
    stream: StreamId,
    row: &Row,
    moves: &Moves,
    snapshot: &dyn Snapshot,
    tally: &mut Tally,
) -> Result<(), StoreError> {
    let mut judge = Judge { stream, snapshot, tally };
    match row {
        Row::Action(row) => judge.action(row),
        Row::Approval(row) => judge.approval(row),
        Row::Effect(row) => {
            if row.private.key.as_ref().is_some_and(|key| tenant.effect(key) != stream) {
                judge.misnamed("its effect key");
            }
            judge.effect(row)
        }
        Row::Route(row) => {
            let destination = row.private.destination.as_ref();
            if destination.is_some_and(|destination| tenant.route(destination) != stream) {
                judge.misnamed("its destination");
            }
            Ok(())
        }
        Row::Run(row) => {
            let key = row.private.key.as_ref();
            if key.is_some_and(|key| lookup(tenant, row.root, &row.kind, key) != row.lookup) {
                judge.misnamed("its lookup key");
            }
            judge.run(row, moves)
        }
        Row::Lease(row) => {
            judge.lease(tenant, row);
            Ok(())
        }
        Row::Delivery(row) => judge.delivery(tenant, row),
        Row::Task(row) => judge.task(tenant, row),
        Row::Plan(row) => judge.plan(tenant, row),
        Row::Handoff(row) => {
            let resource = row.private.resource.as_ref();
            if resource.is_some_and(|resource| tenant.lookup(resource) != row.resource) {
                judge.misnamed("its resource");
            }
            Ok(())
        }
        // What their names are made of is in no row.
        Row::Tool(_) | Row::Call(_) | Row::Definition(_) | Row::Request(_) => Ok(()),
        Row::Policy(_) | Row::Store(_) => {
            let name = match stream.kind {
                StreamKind::Policy => tenant.policy(),
                StreamKind::Store => tenant.store(),
                _ => stream,
            };
            if name != stream {
                judge.misnamed("its tenant");
            }
            Ok(())
        }
    }
}

struct Judge<'a> {
    stream: StreamId,
    snapshot: &'a dyn Snapshot,
    tally: &'a mut Tally,
}

/// What a row names.
#[derive(Clone)]
pub(super) enum Named<R> {
    /// There is none.
    Absent,
    /// It does not decode.
    Unreadable,
    /// This one.
    Is(R),
}

impl Judge<'_> {
    fn find(&mut self, code: &'static str, wrong: &str) {
        let sentence = format!("{} {wrong}", self.stream);
        self.tally.findings.push(Finding::of_stream(code, self.stream, sentence));
    }

    fn misnamed(&mut self, by: &str) {
        self.find(code::STREAM_MISNAMED, &format!("does not have the name that {by} leads to"));
    }

    fn action(&mut self, row: &ActionRow) -> Result<(), StoreError> {
        let id = ActionId(self.stream.name);
        match row.state {
            ActionState::Running { fence } => {
                let holds = match row.held {
                    Some((effect, held)) if held == fence => match self.effect_row(effect)? {
                        Named::Is(effect) => effect.held() && effect.fence == fence && effect.holder == id,
                        Named::Absent => false,
                        Named::Unreadable => true,
                    },
                    _ => false,
                };
                if !holds {
                    self.find(code::ATTEMPT_DIFFERS, "runs, and does not hold its effect");
                }
            }
            ActionState::Waiting { approval } => match self.approval_row(approval)? {
                Named::Is(approval) if approval.action != id => {
                    self.find(code::APPROVAL_DIFFERS, "waits for an approval of another action");
                }
                Named::Is(approval) if !approval.open() => {
                    self.find(code::APPROVAL_DIFFERS, "waits for an approval that is closed");
                }
                Named::Absent => self.find(code::APPROVAL_DIFFERS, "waits for an approval that is not there"),
                Named::Is(_) | Named::Unreadable => {}
            },
            ActionState::Queued { .. } | ActionState::Parked { .. } => self.waits_for_a_worker(id, row)?,
            ActionState::Ended { result: Answer::Cancelled, .. } => self.called_off(id, row)?,
            ActionState::Ended { result, .. } | ActionState::Answered { result, .. } => {
                self.came_to(row.held, result)?;
            }
            ActionState::Ready { .. } => {}
        }
        if (row.held.is_some() || row.operation.is_some()) && row.decided.decision == Verdict::Approve {
            let used = match row.approval {
                None => false,
                Some(approval) => match self.approval_row(approval)? {
                    Named::Is(approval) => approval.consumed_by == Some(id),
                    Named::Absent => false,
                    Named::Unreadable => true,
                },
            };
            if !used {
                self.find(code::APPROVAL_DIFFERS, "needed an approval, and ran without using one");
            }
        }
        Ok(())
    }

    /// The effect that a worker is to attempt waits for it, or nobody knows what
    /// became of the last attempt; a parked one may have been given up.
    fn waits_for_a_worker(&mut self, id: ActionId, row: &ActionRow) -> Result<(), StoreError> {
        let parked = matches!(row.state, ActionState::Parked { .. });
        let waits = match &row.operation {
            None => false,
            Some(operation) => match self.effect_row(operation.effect)? {
                Named::Is(effect) if effect.holder != id => parked,
                Named::Is(effect) => match effect.state {
                    EffectState::Queued => true,
                    EffectState::Ambiguous => !parked,
                    EffectState::Released => parked,
                    // Given up, and reserved since without an action.
                    _ => parked && row.held != Some((operation.effect, effect.fence)),
                },
                Named::Absent => false,
                Named::Unreadable => true,
            },
        };
        if !waits {
            self.find(code::ATTEMPT_DIFFERS, "is a worker's, and its effect does not wait for one");
        }
        Ok(())
    }

    /// Nothing is left to be done of what was called off.
    fn called_off(&mut self, id: ActionId, row: &ActionRow) -> Result<(), StoreError> {
        let Some(operation) = &row.operation else { return Ok(()) };
        if let Named::Is(effect) = self.effect_row(operation.effect)?
            && effect.holder == id
            && match effect.state {
                EffectState::Queued => true,
                EffectState::Released => false,
                // An attempt that it does not name was reserved since, without an action.
                _ => row.held == Some((operation.effect, effect.fence)),
            }
        {
            self.find(code::ATTEMPT_DIFFERS, "was called off, and its effect was not");
        }
        Ok(())
    }

    /// What an action came to is what its effect says, unless a newer attempt
    /// has followed.
    fn came_to(&mut self, held: Option<(StreamId, u64)>, result: Answer) -> Result<(), StoreError> {
        let Some((effect, fence)) = held else { return Ok(()) };
        let state = match result {
            Answer::Committed => EffectState::Committed,
            Answer::Failed => EffectState::Failed,
            _ => EffectState::Ambiguous,
        };
        let agrees = match self.effect_row(effect)? {
            Named::Is(effect) if effect.fence > fence => true,
            // What did not happen may be wanted again, or no longer.
            Named::Is(effect) if matches!(effect.state, EffectState::Queued | EffectState::Released) => {
                effect.fence == fence && result == Answer::Failed
            }
            Named::Is(effect) => (effect.fence, effect.state) == (fence, state),
            Named::Absent => false,
            Named::Unreadable => true,
        };
        if !agrees {
            self.find(code::ATTEMPT_DIFFERS, "came to something else than its effect says");
        }
        Ok(())
    }

    fn effect(&mut self, row: &EffectRow) -> Result<(), StoreError> {
        if row.state == EffectState::Queued
            && !matches!(self.action_row(row.holder)?, Named::Is(holder)
                if matches!(holder.state, ActionState::Queued { .. } | ActionState::Parked { .. }))
        {
            self.find(code::ATTEMPT_DIFFERS, "is queued for an action that does not wait for a worker");
        }
        if !row.held() {
            return Ok(());
        }
        // A holder that is not recorded, or not with this attempt, reserved without an action.
        if let Named::Is(holder) = self.action_row(row.holder)?
            && holder.held == Some((self.stream, row.fence))
            && !holder.runs(&self.stream, row.fence)
        {
            self.find(code::ATTEMPT_DIFFERS, "is held by an action that does not run");
        }
        Ok(())
    }

    fn approval(&mut self, row: &ApprovalRow) -> Result<(), StoreError> {
        let id = ApprovalId(self.stream.name);
        if matches!(row.status, Status::Granted | Status::Consumed)
            && yeses(row).is_some_and(|yes| (yes as u64) < u64::from(row.quorum))
        {
            self.find(code::APPROVAL_DIFFERS, "is granted by fewer people than it needs");
        }
        if matches!(self.action_row(row.action)?, Named::Absent) {
            self.find(code::APPROVAL_DIFFERS, "is about an action that is not there");
        }
        let used = match (row.status, row.consumed_by) {
            (Status::Consumed, Some(action)) => match self.action_row(action)? {
                Named::Is(action) => {
                    action.approval == Some(id) && (action.held.is_some() || action.operation.is_some())
                }
                Named::Absent => false,
                Named::Unreadable => true,
            },
            (status, by) => (status == Status::Consumed) == by.is_some(),
        };
        if !used {
            self.find(code::APPROVAL_DIFFERS, "is used, and the action that used it does not say so");
        }
        Ok(())
    }

    fn row<R>(&self, stream: StreamId, is: impl FnOnce(Row) -> Option<R>) -> Result<Named<R>, StoreError> {
        Ok(match self.snapshot.stream(&stream)? {
            Loaded::Absent => Named::Absent,
            Loaded::Unreadable => Named::Unreadable,
            Loaded::Row(stored) => {
                is(std::sync::Arc::unwrap_or_clone(stored).row).map_or(Named::Absent, Named::Is)
            }
        })
    }

    fn action_row(&self, id: ActionId) -> Result<Named<ActionRow>, StoreError> {
        self.row(StreamId::action(id), |row| if let Row::Action(row) = row { Some(row) } else { None })
    }

    fn approval_row(&self, id: ApprovalId) -> Result<Named<ApprovalRow>, StoreError> {
        self.row(StreamId::approval(id), |row| if let Row::Approval(row) = row { Some(row) } else { None })
    }

    fn run_row(&self, id: RunId) -> Result<Named<RunRow>, StoreError> {
        self.row(StreamId::run(id), |row| if let Row::Run(row) = row { Some(row) } else { None })
    }

    fn effect_row(&self, stream: StreamId) -> Result<Named<EffectRow>, StoreError> {
        self.row(stream, |row| if let Row::Effect(row) = row { Some(row) } else { None })
    }
}

/// Distinct people who said yes; `None` if who they are is no longer known.
fn yeses(row: &ApprovalRow) -> Option<usize> {
    let known = row.private.responses.iter().all(|response| response.person.is_some());
    known.then(|| row.yeses())
}

//! What a store has promised by an answer, and whether it still stands.

use std::fmt;

use onceseal_core::approval::{Said, Status};
use onceseal_core::command::Command;
use onceseal_core::effect::{EffectState, Outcome, Renew};
use onceseal_core::hash::Hash;
use onceseal_core::id::{ActionId, ApprovalId, ReceiptId};
use onceseal_core::journal::{Body, Event, Index, Key, Row, Stored};
use onceseal_core::reply::Reply;
use onceseal_core::stream::{StreamId, StreamKind};
use onceseal_core::time::Timestamp;
use onceseal_store::StoreError;
use onceseal_store::read::{Page, Snapshot, row_of};

/// One acknowledged fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Promise {
    /// An attempt holds its effect; the approval was used for it.
    Attempt {
        /// The effect.
        effect: StreamId,
        /// The attempt.
        fence: u64,
        /// Its action.
        action: ActionId,
        /// Whether its executor may run.
        begun: bool,
        /// The approval used.
        approval: Option<ApprovalId>,
    },
    /// The attempt's outcome is recorded.
    Outcome {
        /// The effect.
        effect: StreamId,
        /// The attempt.
        fence: u64,
        /// Committed, failed or ambiguous.
        state: EffectState,
    },
    /// The attempt's lease does not end before.
    Lease {
        /// The effect.
        effect: StreamId,
        /// The attempt.
        fence: u64,
        /// The end.
        until: Timestamp,
    },
    /// The approval came to this.
    Approval {
        /// The approval.
        approval: ApprovalId,
        /// Pending once asked.
        status: Status,
        /// How many have said yes.
        yes: u32,
    },
    /// It is recorded that the stream's time was over.
    Lapse(StreamId),
    /// The receipt can be rendered.
    Receipt(ReceiptId),
    /// The policy's text is kept.
    Policy(Hash),
}

impl Promise {
    /// What the answer to a command promises.
    #[must_use]
    pub fn of(command: &Command, reply: &Reply) -> Vec<Promise> {
        let receipts = |receipt: Option<ReceiptId>| receipt.map(Promise::Receipt);
        match (reply, command) {
            (Reply::Attempt(attempt), _) => vec![Promise::Attempt {
                effect: attempt.effect,
                fence: attempt.fence,
                action: attempt.action,
                begun: attempt.begun,
                approval: attempt.approval,
            }],
            (Reply::Settled { state, receipt, .. }, _) => {
                let outcome =
                    of(command).map(|(effect, fence)| Promise::Outcome { effect, fence, state: *state });
                receipts(*receipt).into_iter().chain(outcome).collect()
            }
            (Reply::Renewed { lease_until: until }, Command::Renew(Renew { attempt, .. })) => {
                vec![Promise::Lease { effect: attempt.effect, fence: attempt.fence, until: *until }]
            }
            (Reply::ApprovalNeeded { approval, .. }, _) => {
                vec![Promise::Approval { approval: *approval, status: Status::Pending, yes: 0 }]
            }
            (Reply::Approval { status, yes, .. }, Command::Answer(answer)) => {
                vec![Promise::Approval { approval: answer.approval, status: *status, yes: *yes }]
            }
            (Reply::Done { changed: true }, Command::Lapse(stream)) => vec![Promise::Lapse(*stream)],
            (Reply::Policy { active, .. }, _) => vec![Promise::Policy(*active)],
            (Reply::Ended { receipt, .. }, _) => vec![Promise::Receipt(*receipt)],
            (Reply::Refused(refusal), _) => receipts(refusal.receipt).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Whether it still stands.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn stands(&self, snapshot: &dyn Snapshot) -> Result<bool, StoreError> {
        match self {
            Promise::Attempt { effect, fence, action, begun, approval } => {
                let taken = recorded(snapshot, effect, |event| match &event.body {
                    Body::EffectAcquired(data, _) => data.fence == *fence && data.begun == *begun,
                    Body::EffectBegun(data, _) => data.fence == *fence && *begun,
                    _ => false,
                })?;
                let used = match approval {
                    None => true,
                    Some(approval) => recorded(snapshot, &StreamId::approval(*approval), |event| {
                        matches!(event.body, Body::ApprovalConsumed(..)) && event.refs.action == Some(*action)
                    })?,
                };
                Ok(taken && used)
            }
            Promise::Outcome { effect, fence, state } => recorded(snapshot, effect, |event| {
                let (of, outcome) = match &event.body {
                    Body::EffectSettled(data, _) => (data.fence, data.outcome),
                    Body::EffectReconciled(data, _) | Body::EffectResolved(data, _) => {
                        (data.fence, data.outcome)
                    }
                    Body::EffectLapsed(data, _) => (data.fence, Outcome::Ambiguous),
                    _ => return false,
                };
                of == *fence && EffectState::from(outcome) == *state
            }),
            Promise::Lease { effect, fence, until } => Ok(match row_of(snapshot.stream(effect)?) {
                Some(Stored { row: Row::Effect(row), .. }) => {
                    row.fence > *fence || row.lease_until >= Some(*until)
                }
                _ => false,
            }),
            Promise::Approval { approval, status, yes } => {
                let stream = StreamId::approval(*approval);
                let mut so_far = 0;
                recorded(snapshot, &stream, |event| match &event.body {
                    Body::ApprovalRequested(..) => *status == Status::Pending && *yes == 0,
                    Body::ApprovalAnswered(data, _) => {
                        so_far += u32::from(data.said == Said::Yes);
                        data.status == *status && so_far == *yes
                    }
                    _ => false,
                })
            }
            Promise::Lapse(stream) => recorded(snapshot, stream, |event| {
                matches!(event.body, Body::EffectLapsed(..) | Body::ApprovalExpired(..))
            }),
            Promise::Receipt(receipt) => {
                leads_to(snapshot, &Key::of(Index::Receipt, &[&receipt.0]), |event| {
                    event.refs.receipt == Some(*receipt)
                })
            }
            Promise::Policy(hash) => leads_to(
                snapshot,
                &Key::of(Index::PolicyText, &[&hash.0]),
                |event| matches!(&event.body, Body::PolicyActivated(data, _) if data.policy == *hash),
            ),
        }
    }
}

/// The attempt that a command names.
fn of(command: &Command) -> Option<(StreamId, u64)> {
    match command {
        Command::Settle(settle) => Some((settle.attempt.effect, settle.attempt.fence)),
        Command::Reconcile(reconcile) => Some((reconcile.effect, reconcile.fence)),
        Command::Resolve(resolve) => Some((resolve.effect, resolve.fence)),
        _ => None,
    }
}

/// Whether a stream has such an event.
fn recorded(
    snapshot: &dyn Snapshot,
    stream: &StreamId,
    is: impl FnMut(&Event) -> bool,
) -> Result<bool, StoreError> {
    let events = snapshot.events(stream, 1, usize::MAX)?;
    Ok(events.iter().filter_map(|stored| stored.event.as_ref()).any(is))
}

/// Whether a key leads to such an event.
fn leads_to(snapshot: &dyn Snapshot, key: &Key, is: impl Fn(&Event) -> bool) -> Result<bool, StoreError> {
    let (from, to) = (key.bytes.clone(), key.bytes.clone());
    let page = Page { index: key.index, from, to, after: None, newest_first: false, limit: 1 };
    let Some(hit) = snapshot.keys(&page)?.into_iter().next() else { return Ok(false) };
    let events = snapshot.events(&hit.stream, hit.sequence, 1)?;
    Ok(events.first().and_then(|stored| stored.event.as_ref()).is_some_and(is))
}

/// One line of words, which [`Promise::parse`] reads.
impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promise::Attempt { effect, fence, action, begun, approval } => {
                write!(f, "attempt {effect} {fence} {action} {begun}")?;
                approval.map_or(Ok(()), |approval| write!(f, " {approval}"))
            }
            Promise::Outcome { effect, fence, state } => write!(f, "outcome {effect} {fence} {state}"),
            Promise::Lease { effect, fence, until } => write!(f, "lease {effect} {fence} {}", until.micros()),
            Promise::Approval { approval, status, yes } => write!(f, "approval {approval} {status} {yes}"),
            Promise::Lapse(stream) => write!(f, "lapse {stream}"),
            Promise::Receipt(receipt) => write!(f, "receipt {receipt}"),
            Promise::Policy(hash) => write!(f, "policy {hash}"),
        }
    }
}

impl Promise {
    /// Reads the printed form.
    #[must_use]
    pub fn parse(line: &str) -> Option<Promise> {
        let words: Vec<&str> = line.split(' ').collect();
        let effect = |text: &str| StreamId::parse(text).filter(|stream| stream.kind == StreamKind::Effect);
        Some(match words[..] {
            ["attempt", stream, fence, action, begun, ref approval @ ..] => Promise::Attempt {
                effect: effect(stream)?,
                fence: fence.parse().ok()?,
                action: ActionId::parse(action)?,
                begun: begun.parse().ok()?,
                approval: match approval {
                    [] => None,
                    [approval] => Some(ApprovalId::parse(approval)?),
                    _ => return None,
                },
            },
            ["outcome", stream, fence, state] => Promise::Outcome {
                effect: effect(stream)?,
                fence: fence.parse().ok()?,
                state: EffectState::parse(state)?,
            },
            ["lease", stream, fence, until] => Promise::Lease {
                effect: effect(stream)?,
                fence: fence.parse().ok()?,
                until: Timestamp::from_micros(until.parse().ok()?)?,
            },
            ["approval", approval, status, yes] => Promise::Approval {
                approval: ApprovalId::parse(approval)?,
                status: Status::parse(status)?,
                yes: yes.parse().ok()?,
            },
            ["lapse", stream] => Promise::Lapse(StreamId::parse(stream)?),
            ["receipt", receipt] => Promise::Receipt(ReceiptId::parse(receipt)?),
            ["policy", hash] => Promise::Policy(Hash::parse(hash)?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_read_back_as_printed() {
        let effect = StreamId { kind: StreamKind::Effect, name: [7; 16] };
        let (action, approval) = (ActionId([1; 16]), ApprovalId([2; 16]));
        let attempt = |approval| Promise::Attempt { effect, fence: 3, action, begun: true, approval };
        let until = Timestamp::from_micros(5).expect("in range");
        for promise in [
            attempt(None),
            attempt(Some(approval)),
            Promise::Outcome { effect, fence: 2, state: EffectState::Ambiguous },
            Promise::Lease { effect, fence: 2, until },
            Promise::Approval { approval, status: Status::Granted, yes: 1 },
            Promise::Lapse(effect),
            Promise::Receipt(ReceiptId([3; 16])),
            Promise::Policy(Hash([4; 32])),
        ] {
            assert_eq!(Promise::parse(&promise.to_string()), Some(promise));
        }
        assert_eq!(Promise::parse("attempt"), None);
    }
}

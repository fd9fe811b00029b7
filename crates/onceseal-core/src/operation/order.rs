//! An order: what is stored when an operation is accepted.

use crate::action::{Action, Proposal, Wish, first};
use crate::case::Case;
use crate::effect;
use crate::hash::{Hash, write_hex};
use crate::id::ApprovalId;
use crate::journal::{Body, Refs};
use crate::operation::event::{Intent, Queued, QueuedSealed};
use crate::reply::{OperationNow, Reply, Standing};
use crate::stream::StreamId;
use crate::tool::Tool;
use crate::view::Halt;

/// What the business rule of a tool says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// It says yes, or there is none.
    Permits,
    /// It says no.
    Forbids,
    /// It has not been asked.
    Unasked,
}

/// What is wanted of a worker.
pub(crate) struct Order<'a> {
    pub(crate) tool: &'a Tool,
    pub(crate) scope: Hash,
    pub(crate) intent: Intent,
    pub(crate) rule: Rule,
}

impl Order<'_> {
    /// The key of its effect: the policy entry's, else one of its scope alone.
    pub(crate) fn key(&self, proposal: &Proposal) -> String {
        proposal.effect_key().map_or_else(|| own_key(self.scope), str::to_owned)
    }
}

/// The effect key of an operation whose policy entry names none.
pub(super) fn own_key(scope: Hash) -> String {
    let mut key = String::from(Action::OPERATION_KEY_PREFIX);
    write_hex(&scope.0, &mut key);
    key
}

/// Stores the intent and its place in the outbox. `fence` is the number of the
/// attempt that will be made.
pub(crate) fn queue(
    case: &mut Case<'_>,
    wish: &Wish<'_>,
    order: &Order<'_>,
    approval: Option<ApprovalId>,
    fence: u64,
) -> Result<Reply, Halt> {
    let key = order.key(wish.proposal);
    let effect = case.pinned.tenant.effect(&key);
    effect::queue(case, &key, wish.id, fence - 1)?;
    let (decided, sealed, payload) = first(case, wish);
    let due = case.now;
    let data = Queued {
        contract: order.tool.digest,
        decided,
        due,
        effect,
        scope: order.scope,
        until: case.now + order.tool.contract.deliver_within,
    };
    let sealed = QueuedSealed { intent: Some(Box::new(order.intent.clone())), proposal: sealed.proposal };
    let refs = Refs { approval, ..Refs::NONE };
    case.record_with(StreamId::action(wish.id), refs, Body::ActionQueued(data, sealed), payload);
    Ok(Reply::Operation(Box::new(OperationNow {
        action: wish.id,
        status_ref: order.intent.status_ref.clone(),
        standing: Standing::Queued { due },
        repeated: false,
    })))
}

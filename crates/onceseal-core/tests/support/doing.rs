//! Things done to a world in one line, and what to expect of the reply.

use onceseal_core::action::{Acquire, Reach, Run};
use onceseal_core::approval::{Answer, Said};
use onceseal_core::command::Command;
use onceseal_core::effect::{EffectRow, Outcome};
use onceseal_core::hash::Hash;
use onceseal_core::id::{ActionId, ApprovalId};
use onceseal_core::journal::Row;
use onceseal_core::reply::{Attempt, Reply};

use crate::calls::{Call, identity, settle};
use crate::world::World;

impl World<'_> {
    /// Proposes, and goes as far as wanted and permitted.
    pub(crate) fn call(&mut self, call: Call) -> Reply {
        let proposal = self.prepare(&call).expect("a proposal");
        let Call { action, approval, reach, lease, deadline, .. } = call;
        self.run(Command::Run(Box::new(Run { proposal, action, approval, reach, lease, deadline })))
    }

    /// Goes on with a recorded action.
    pub(crate) fn acquire(&mut self, action: ActionId, approval: Option<ApprovalId>) -> Reply {
        let reach = Reach::Executing;
        self.run(Command::Acquire(Acquire { action, approval, reach, lease: None, deadline: None }))
    }

    /// A person's answer to what they were shown.
    pub(crate) fn answer(&mut self, approval: ApprovalId, person: &str, said: Said) -> Reply {
        let shown = self.approval(approval).private.bound.binding.expect("not erased");
        self.answer_shown(approval, person, said, shown)
    }

    /// A person's answer, repeating this hash.
    pub(crate) fn answer_shown(
        &mut self,
        approval: ApprovalId,
        person: &str,
        said: Said,
        shown: Hash,
    ) -> Reply {
        self.run(Command::Answer(Answer { approval, person: identity(person), said, shown, reason: None }))
    }

    /// The holder's report.
    pub(crate) fn settle(&mut self, attempt: &Attempt, outcome: Outcome) -> Reply {
        self.run(Command::Settle(settle(attempt.into(), outcome)))
    }

    /// The row of the effect with this key.
    pub(crate) fn effect(&self, key: &str) -> Option<&EffectRow> {
        match self.row(&self.pinned.tenant.effect(key))? {
            Row::Effect(row) => Some(row),
            other => panic!("no effect {key}: {other:?}"),
        }
    }
}

/// The attempt that was handed out.
#[track_caller]
pub(crate) fn attempt(reply: Reply) -> Attempt {
    match reply {
        Reply::Attempt(attempt) => attempt,
        other => panic!("no attempt: {other:?}"),
    }
}

/// The action that waits, and the request.
#[track_caller]
pub(crate) fn asked(reply: Reply) -> (ActionId, ApprovalId) {
    match reply {
        Reply::ApprovalNeeded { action, approval, .. } => (action, approval),
        other => panic!("nobody is asked: {other:?}"),
    }
}

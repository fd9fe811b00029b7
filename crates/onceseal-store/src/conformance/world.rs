//! A store with a policy and a clock, and what cases say to it, in few words.

use std::sync::Arc;

use onceseal_core::action::{Action, ActionRow, Principal, Proposal, Reach, Run};
use onceseal_core::approval::{Answer, ApprovalRow, Identity, Proof, Said};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{Begin, EffectRow, Holding, Outcome, Renew, Reserve, Resolve, Settle};
use onceseal_core::id::{ActionId, ApprovalId};
use onceseal_core::journal::{Row, Stored};
use onceseal_core::json::{self, Limits, Object, Value};
use onceseal_core::policy::{Activate, ActivePolicy};
use onceseal_core::reply::{Attempt, Refusal, Reply};
use onceseal_core::stream::StreamId;
use onceseal_core::time::{Span, Timestamp};
use onceseal_core::view::Loaded;

use super::{Failure, Gate, Subject, take};
use crate::clock::{Clock, ManualClock, Reading};
use crate::executor::Outcome as Answered;
use crate::parts::{Options, Parts};
use crate::read::StoredEvent;
use crate::store::Store;

/// When every case begins: microseconds since 1970, and not a whole millisecond.
const START: Reading = Reading { wall_us: 1_800_000_000_123_457, boot_us: 1_000_000_000 };

/// The policy that cases begin with. `pay` up to 100 is allowed, up to 1,000 a
/// person is asked, more is denied.
pub(super) const POLICY: &str = r#"{
  "schema": "onceseal.policy/v1",
  "groups": {"finance": ["host:ann", "host:bob", "host:cy"], "ops": ["host:olga"]},
  "operators": ["ops"],
  "actions": {
    "pay": {
      "effect": "pay:{id}", "incidental": ["note"], "lease": "2m", "deadline": "10m",
      "approval": {"ttl": "15m", "approvers": ["finance"]},
      "rules": [
        {"when": {"amount_lte": 100}, "decision": "allow"},
        {"when": {"amount_lte": 1000}, "decision": "approve"},
        {"decision": "deny"}
      ]
    },
    "wire": {
      "effect": "wire:{id}", "decision": "approve",
      "approval": {"ttl": "15m", "approvers": ["finance"], "quorum": 2}
    },
    "retry": {"effect": "retry:{id}", "max_attempts": 2, "decision": "allow"},
    "sign": {"decision": "approve", "approval": {"ttl": "15m", "approvers": ["finance"]}}
  }
}"#;

/// The policy of this text.
pub(super) fn policy(text: &str) -> Result<Arc<ActivePolicy>, Failure> {
    let document = json::read(text.as_bytes(), &Limits::DATA).map_err(Failure::new)?;
    ActivePolicy::compile(&document).map(Arc::new).map_err(Failure::new)
}

/// A call of an action.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    pub(super) id: &'a str,
    pub(super) amount: i64,
    pub(super) note: Option<&'a str>,
    pub(super) agent: &'a str,
    pub(super) action: Option<ActionId>,
    pub(super) approval: Option<ApprovalId>,
    pub(super) reach: Reach,
    pub(super) lease: Option<Span>,
}

/// A payment that needs nobody.
pub(super) const fn pay(id: &str) -> Call<'_> {
    call("pay", id, 50)
}

/// A payment that a person must approve.
pub(super) const fn big(id: &str) -> Call<'_> {
    call("pay", id, 500)
}

pub(super) const fn call<'a>(name: &'a str, id: &'a str, amount: i64) -> Call<'a> {
    let (note, action, approval, lease) = (None, None, None, None);
    Call { name, id, amount, note, agent: "bot", action, approval, reach: Reach::Executing, lease }
}

/// A person that the embedding program names.
pub(super) fn host(name: &str) -> Identity {
    Identity { proof: Proof::Host, name: name.to_owned() }
}

/// An id nobody has made.
pub(super) const fn unknown_action(n: u8) -> ActionId {
    ActionId([n; 16])
}

pub(super) struct World<'a> {
    subject: &'a dyn Subject,
    pub(super) clock: Arc<ManualClock>,
    pub(super) store: Store,
    pub(super) gate: Gate,
    pub(super) policy: Arc<ActivePolicy>,
}

impl<'a> World<'a> {
    /// A store of the default tenant with the usual policy.
    pub(super) fn open(subject: &'a dyn Subject) -> Result<World<'a>, Failure> {
        World::with(subject, "default", |parts| parts)
    }

    /// A store of this tenant with the usual policy and other parts.
    pub(super) fn with(
        subject: &'a dyn Subject,
        tenant: &str,
        change: impl FnOnce(Parts) -> Parts,
    ) -> Result<World<'a>, Failure> {
        let mut world = World::bare(subject, tenant, Arc::new(ManualClock::new(START)), change)?;
        world.activate(POLICY)?;
        Ok(world)
    }

    /// A store as it is found.
    pub(super) fn bare(
        subject: &'a dyn Subject,
        tenant: &str,
        clock: Arc<ManualClock>,
        change: impl FnOnce(Parts) -> Parts,
    ) -> Result<World<'a>, Failure> {
        let options = Options {
            tenant: tenant.to_owned(),
            owner: Some("os:owner".to_owned()),
            clock: clock.clone(),
            ..Options::default()
        };
        let mut parts = change(subject.parts(&options)?);
        let gate = Gate::default();
        // What is put into one batch is not to be shared out.
        parts.helping.clear();
        parts.backend = gate.before(parts.backend);
        let store = Store::of(parts)?;
        Ok(World { subject, clock, store, gate, policy: policy(POLICY)? })
    }

    /// Closes the store and opens it again.
    pub(super) fn reopened(self) -> Result<World<'a>, Failure> {
        let World { subject, clock, store, policy, .. } = self;
        let tenant = store.tenant().name.clone();
        store.close();
        drop(store);
        let world = World::bare(subject, &tenant, clock, |parts| parts)?;
        Ok(World { policy, ..world })
    }

    /// Makes a policy the active one, whether it was so before or not.
    pub(super) fn activate(&mut self, text: &str) -> Result<(), Failure> {
        self.policy = policy(text)?;
        let command = Activate { policy: self.policy.clone(), again: true, person: None };
        take!(self.command(Command::Activate(command))?, Reply::Policy { .. } => (), "a policy is activated");
        Ok(())
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.clock.now().wall_us).unwrap_or(Timestamp::MAX)
    }

    pub(super) fn pass(&self, span: Span) {
        self.clock.advance(span.as_micros());
    }

    pub(super) fn command(&self, command: Command) -> Result<Reply, Failure> {
        Ok(self.store.run(command)?)
    }

    /// Runs these in one batch, in this order.
    pub(super) fn together(&self, commands: Vec<Command>) -> Result<Vec<Answered>, Failure> {
        self.gate.shut();
        // The writer takes what is there when it comes: one that changes nothing.
        let first = self.store.submit(Command::Lapse(self.effect_of("nothing")));
        self.gate.await_writer();
        let tickets: Vec<_> = commands.into_iter().map(|command| self.store.submit(command)).collect();
        self.gate.open();
        drop(first?.wait());
        Ok(tickets.into_iter().map(|ticket| ticket?.wait()).collect())
    }

    pub(super) fn refused(&self, command: Command) -> Result<Refusal, Failure> {
        refusal(self.command(command)?)
    }

    pub(super) fn proposal(&self, call: &Call<'_>) -> Result<Proposal, Failure> {
        let mut arguments = Object::new();
        arguments.insert("id", call.id);
        arguments.insert("amount", Value::Integer(call.amount));
        if let Some(note) = call.note {
            arguments.insert("note", note);
        }
        let action = Action {
            name: call.name.to_owned(),
            arguments,
            principal: Principal { agent: call.agent.to_owned(), user: None },
            environment: Action::DEFAULT_ENVIRONMENT.to_owned(),
            resource: None,
        };
        Proposal::prepare(self.store.tenant(), &self.policy, action).map_err(Failure::new)
    }

    pub(super) fn to_run(&self, call: &Call<'_>) -> Result<Command, Failure> {
        let Call { action, approval, reach, lease, .. } = *call;
        let proposal = self.proposal(call)?;
        Ok(Command::Run(Box::new(Run { proposal, action, approval, reach, lease, deadline: None })))
    }

    pub(super) fn run(&self, call: &Call<'_>) -> Result<Reply, Failure> {
        self.command(self.to_run(call)?)
    }

    /// Runs a call that is permitted.
    pub(super) fn attempt(&self, call: &Call<'_>) -> Result<Attempt, Failure> {
        attempt(self.run(call)?)
    }

    /// Runs a call that is not.
    pub(super) fn refusal(&self, call: &Call<'_>) -> Result<Refusal, Failure> {
        refusal(self.run(call)?)
    }

    /// Runs a call for which a person is asked.
    pub(super) fn asked(&self, call: &Call<'_>) -> Result<(ActionId, ApprovalId), Failure> {
        Ok(take!(self.run(call)?, Reply::ApprovalNeeded { action, approval, .. } => (action, approval),
            "a person is asked"))
    }

    /// Runs a call for which ann is asked and says yes.
    pub(super) fn granted(&self, call: &Call<'_>) -> Result<(ActionId, ApprovalId), Failure> {
        let (action, approval) = self.asked(call)?;
        self.answer(approval, "ann", Said::Yes)?;
        Ok((action, approval))
    }

    /// What somebody answers who was shown what is stored.
    pub(super) fn to_answer(&self, id: ApprovalId, name: &str, said: Said) -> Result<Command, Failure> {
        let bound = self.approval(id)?.private.bound;
        let shown = bound.binding.ok_or_else(|| Failure::new("a request has a binding hash"))?;
        Ok(Command::Answer(Answer { approval: id, person: host(name), said, shown, reason: None }))
    }

    pub(super) fn answer(&self, id: ApprovalId, name: &str, said: Said) -> Result<Reply, Failure> {
        self.command(self.to_answer(id, name, said)?)
    }

    pub(super) fn reserve(&self, key: &str, action: ActionId) -> Result<Reply, Failure> {
        self.command(to_reserve(key, action))
    }

    pub(super) fn resolve(&self, effect: StreamId, fence: u64, happened: bool) -> Result<Reply, Failure> {
        self.command(to_resolve(effect, fence, happened))
    }

    pub(super) fn settle(&self, holding: impl Into<Holding>, outcome: Outcome) -> Result<Reply, Failure> {
        self.command(to_settle(holding.into(), outcome))
    }

    pub(super) fn effect_of(&self, key: &str) -> StreamId {
        self.store.tenant().effect(key)
    }

    pub(super) fn stored(&self, stream: &StreamId) -> Result<Stored, Failure> {
        let loaded = self.store.read(|snapshot| snapshot.stream(stream))?;
        Ok(Arc::unwrap_or_clone(take!(loaded, Loaded::Row(stored) => stored, "{stream} has a row")))
    }

    pub(super) fn effect(&self, stream: &StreamId) -> Result<EffectRow, Failure> {
        Ok(take!(self.stored(stream)?.row, Row::Effect(row) => row, "{stream} is an effect"))
    }

    pub(super) fn action(&self, id: ActionId) -> Result<ActionRow, Failure> {
        Ok(take!(self.stored(&StreamId::action(id))?.row, Row::Action(row) => row, "{id} is an action"))
    }

    pub(super) fn approval(&self, id: ApprovalId) -> Result<ApprovalRow, Failure> {
        Ok(take!(self.stored(&StreamId::approval(id))?.row, Row::Approval(row) => row, "{id} is an approval"))
    }

    pub(super) fn text(&self, stream: &StreamId, sequence: u64) -> Result<Option<String>, Failure> {
        let payload = self.store.read(|snapshot| snapshot.payload(stream, sequence))?;
        Ok(payload.map(|payload| payload.text))
    }

    /// All events of a stream.
    pub(super) fn events(&self, stream: &StreamId) -> Result<Vec<StoredEvent>, Failure> {
        Ok(self.store.read(|snapshot| snapshot.events(stream, 1, usize::MAX))?)
    }

    /// All events of the log.
    pub(super) fn log(&self) -> Result<Vec<StoredEvent>, Failure> {
        Ok(self.store.read(|snapshot| snapshot.log(0, usize::MAX))?)
    }
}

pub(super) fn to_reserve(key: &str, action: ActionId) -> Command {
    Command::Reserve(Reserve { key: key.to_owned(), action, lease: Span::minutes(2) })
}

pub(super) fn to_begin(holding: Holding) -> Command {
    Command::Begin(Begin { attempt: holding, lease: Span::minutes(2) })
}

pub(super) fn to_renew(holding: Holding) -> Command {
    Command::Renew(Renew { attempt: holding, lease: Span::minutes(2) })
}

/// A report with a result if it happened, else with an error that names the outcome.
pub(super) fn to_settle(holding: Holding, outcome: Outcome) -> Command {
    let happened = outcome == Outcome::Committed;
    let result = happened.then(|| "{\"done\":true}".to_owned());
    let error = (!happened).then(|| format!("error of {outcome} {}", holding.fence));
    let code = (!happened).then(|| "E1".to_owned());
    Command::Settle(Settle { code, error, result, ..Settle::new(holding, outcome) })
}

pub(super) fn to_resolve(effect: StreamId, fence: u64, happened: bool) -> Command {
    let reason = "looked at the remote".to_owned();
    Command::Resolve(Resolve { effect, fence, happened, reason, evidence: None, person: host("olga") })
}

pub(super) fn attempt(reply: Reply) -> Result<Attempt, Failure> {
    Ok(take!(reply, Reply::Attempt(attempt) => attempt, "an attempt is permitted"))
}

pub(super) fn refusal(reply: Reply) -> Result<Refusal, Failure> {
    Ok(take!(reply, Reply::Refused(refusal) => *refusal, "it is refused"))
}

/// The code of a refusal; nothing for any other answer.
pub(super) fn code(reply: &Reply) -> Option<Code> {
    match reply {
        Reply::Refused(refusal) => Some(refusal.code),
        _ => None,
    }
}

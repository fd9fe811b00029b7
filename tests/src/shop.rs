//! A shop with refunds and payouts: the policy, the commands and the keeping
//! of promises that the tests of the whole use.

use std::path::Path;
use std::sync::Arc;

use onceseal_core::action::{Action, Principal, Proposal, Reach, Run};
use onceseal_core::approval::{Answer, Identity, Proof, Said};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{Holding, Outcome as Became, Settle};
use onceseal_core::id::ApprovalId;
use onceseal_core::journal::{Row, Stored};
use onceseal_core::json::{self, Limits, Object, Value};
use onceseal_core::policy::{Activate, ActivePolicy};
use onceseal_core::reply::{Attempt, Reply};
use onceseal_core::stream::StreamId;
use onceseal_core::time::Span;
use onceseal_store::clock::{ManualClock, Reading};
use onceseal_store::executor::Outcome;
use onceseal_store::read::row_of;
use onceseal_store::{Options, Store, StoreError};

use crate::promise::Promise;

const POLICY: &str = r#"{
    "schema": "onceseal.policy/v1",
    "groups": {"desk": ["host:anna", "host:ben"], "ops": ["host:olga"]},
    "operators": ["ops"],
    "actions": {
        "refund": {"effect": "refund:{payment}", "decision": "allow", "lease": "60s", "deadline": "30m"},
        "payout": {"effect": "payout:{payment}", "decision": "approve", "lease": "60s",
                   "approval": {"approvers": ["desk"], "ttl": "15m"}},
        "closure": {"effect": "closure:{payment}", "decision": "approve", "lease": "60s",
                    "approval": {"approvers": ["desk"], "quorum": 2, "ttl": "15m"}},
        "deletion": {"decision": "deny"}
    }
}"#;

/// The lease that the policy gives.
pub const LEASE: Span = Span::seconds(60);

/// An open store with the shop's policy.
pub struct Shop {
    /// The store.
    pub store: Arc<Store>,
    policy: Arc<ActivePolicy>,
    /// What has been promised so far.
    pub promises: Vec<Promise>,
    told: Told,
}

/// Who is told of everything promised, after each answer.
pub type Told = Box<dyn FnMut(&[Promise]) + Send>;

/// A clock that stands at the start of 2026 until it is moved.
#[must_use]
pub fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Reading { wall_us: 1_767_225_600_000_000, boot_us: 1_000_000 }))
}

/// Options of a store with this clock and file system.
#[must_use]
pub fn options(clock: &Arc<ManualClock>, vfs: Option<&str>) -> Options {
    Options { clock: clock.clone(), vfs: vfs.map(str::to_owned), ..Options::default() }
}

impl Shop {
    /// Opens the store in this file.
    ///
    /// # Errors
    /// The store's.
    pub fn open(path: &Path, options: &Options) -> Result<Shop, StoreError> {
        let store = Arc::new(Store::sqlite(path.to_owned(), options)?);
        let document = json::read(POLICY.as_bytes(), &Limits::DATA).expect("JSON");
        let policy = Arc::new(ActivePolicy::compile(&document).expect("a policy"));
        Ok(Shop { store, policy, promises: Vec::new(), told: Box::new(|_| ()) })
    }

    /// Has `told` told after each answer of everything promised since the start.
    #[must_use]
    pub fn telling(mut self, told: impl FnMut(&[Promise]) + Send + 'static) -> Shop {
        self.told = Box::new(told);
        self
    }

    /// Makes the shop's policy the active one.
    ///
    /// # Errors
    /// The store's.
    pub fn activate(&mut self) -> Outcome {
        self.run(Command::Activate(Activate { policy: self.policy.clone(), again: false, person: None }))
    }

    /// Runs a command and keeps what is promised.
    ///
    /// # Errors
    /// The store's.
    pub fn run(&mut self, command: Command) -> Outcome {
        let outcome = self.store.run(command.clone());
        self.keep(&command, &outcome);
        outcome
    }

    /// Submits commands together, and keeps what is promised as it is answered.
    ///
    /// # Errors
    /// The store's, if it cannot submit.
    pub fn run_all(&mut self, commands: Vec<Command>) -> Result<Vec<Outcome>, StoreError> {
        let mut tickets = Vec::new();
        for command in commands {
            tickets.push((command.clone(), self.store.submit(command)?));
        }
        let mut outcomes = Vec::new();
        for (command, ticket) in tickets {
            let outcome = ticket.wait();
            self.keep(&command, &outcome);
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }

    fn keep(&mut self, command: &Command, outcome: &Outcome) {
        let Ok(reply) = outcome else { return };
        let new = Promise::of(command, reply);
        if !new.is_empty() {
            self.promises.extend(new);
            (self.told)(&self.promises);
        }
    }

    /// The command that runs an action named `name` for a payment.
    ///
    /// # Panics
    /// Never: the proposal is well-formed.
    #[must_use]
    pub fn action(&self, name: &str, payment: &str, reach: Reach) -> Run {
        let mut arguments = Object::new();
        arguments.insert("payment", payment.to_owned());
        arguments.insert("amount", Value::Integer(2_000));
        arguments.insert("note", "x".repeat(200));
        let action = Action {
            name: name.to_owned(),
            arguments,
            principal: Principal { agent: "bot".to_owned(), user: None },
            environment: "production".to_owned(),
            resource: None,
        };
        let proposal = Proposal::prepare(self.store.tenant(), &self.policy, action).expect("well-formed");
        Run { proposal, action: None, approval: None, reach, lease: None, deadline: None }
    }

    /// A refund of a payment, at once.
    #[must_use]
    pub fn refund(&self, payment: &str) -> Command {
        Command::Run(Box::new(self.action("refund", payment, Reach::Executing)))
    }

    /// A person of the desk answers what is asked.
    ///
    /// # Errors
    /// The store's.
    pub fn answer(&mut self, approval: ApprovalId, name: &str, said: Said) -> Outcome {
        let row = self.store.read(|snapshot| Ok(row_of(snapshot.stream(&StreamId::approval(approval))?)))?;
        let Some(Stored { row: Row::Approval(row), .. }) = row else {
            return Err(StoreError::new(Code::ApprovalUnknown));
        };
        let shown = row.private.bound.binding.ok_or_else(|| StoreError::new(Code::Erased))?;
        self.run(Command::Answer(Answer { approval, person: host(name), said, shown, reason: None }))
    }
}

/// A person whom the embedding program proved.
#[must_use]
pub fn host(name: &str) -> Identity {
    Identity { proof: Proof::Host, name: name.to_owned() }
}

/// The report of an attempt's outcome.
#[must_use]
pub fn settle(attempt: &Attempt, outcome: Became) -> Command {
    let result = (outcome == Became::Committed).then(|| r#"{"ok":true}"#.to_owned());
    Command::Settle(Settle { result, ..Settle::new(Holding::from(attempt), outcome) })
}

/// The attempt that was handed out.
///
/// # Panics
/// If none was.
#[must_use]
pub fn attempt(outcome: &Outcome) -> Attempt {
    match outcome {
        Ok(Reply::Attempt(attempt)) => attempt.clone(),
        other => panic!("no attempt: {other:?}"),
    }
}

/// The code of a refusal.
///
/// # Panics
/// If it is none.
#[must_use]
pub fn refused(outcome: &Outcome) -> Code {
    match outcome {
        Ok(Reply::Refused(refusal)) => refusal.code,
        other => panic!("not refused: {other:?}"),
    }
}

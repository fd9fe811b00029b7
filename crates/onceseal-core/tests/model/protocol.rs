//! The small world: what there is, and what can happen next.

use std::fmt;
use std::sync::Arc;

use onceseal_core::action::{Action, Principal, Proposal, Reach};
use onceseal_core::approval::Said;
use onceseal_core::approval::event::RequestedSealed;
use onceseal_core::command::{Command, Nonce, Stamped};
use onceseal_core::effect::Outcome;
use onceseal_core::hash::{BlindingKey, Hash};
use onceseal_core::id::{ActionId, ApprovalId};
use onceseal_core::journal::{Payload, Row};
use onceseal_core::json::{self, Limits, Value};
use onceseal_core::policy::{ActivePolicy, Policy, PolicyRow, Verdict};
use onceseal_core::run::Definition;
use onceseal_core::stream::{StreamId, Tenant};
use onceseal_core::tool::Tool;
use onceseal_core::view::{Loaded, Pinned, Range};
use stateright::{Model, Property};

use crate::executor::{Rules, Shelf};
use crate::ghost::{AskGhost, Hold, KeyGhost, Ran};
use crate::ledger::{Ledger, now};
use crate::promises::{promised, reached};

/// Under one policy every payment is asked about, under the other only some.
const POLICIES: [&str; 2] = [
    r#"
schema: onceseal.policy/v1
groups: { bosses: ["host:ada"] }
actions:
  pay:
    effect: "pay:{id}"
    lease: 1m
    deadline: 2m
    max_attempts: 2
    approval: { ttl: 1m, approvers: [bosses] }
    decision: approve
  send: { effect: "send:{id}", lease: 1m, deadline: 2m, max_attempts: 1, decision: allow }
"#,
    r#"
schema: onceseal.policy/v1
groups: { bosses: ["host:ada"] }
actions:
  pay:
    effect: "pay:{id}"
    lease: 1m
    deadline: 2m
    max_attempts: 2
    approval: { ttl: 1m, approvers: [bosses] }
    rules: [{ when: { amount_eq: 2 }, decision: allow }, { decision: approve }]
  send: { effect: "send:{id}", lease: 1m, deadline: 2m, max_attempts: 1, decision: allow }
"#,
];

/// What is proposed: name, arguments, key, and what each policy says to it.
pub(crate) const CONTENTS: [(&str, &str, usize, [Verdict; 2]); 3] = [
    ("pay", r#"{"amount":1,"id":1}"#, 0, [Verdict::Approve, Verdict::Approve]),
    ("pay", r#"{"amount":2,"id":1}"#, 0, [Verdict::Approve, Verdict::Allow]),
    ("send", r#"{"id":1}"#, 1, [Verdict::Allow, Verdict::Allow]),
];

/// How much of everything there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Who may hold an attempt at a time.
    pub(crate) holders: usize,
    /// Requests that are made in all.
    pub(crate) asks: usize,
    /// Whether executors and the remote are looked at; else a holder may say
    /// anything.
    pub(crate) remote: bool,
    /// Whether leases are renewed, and what is sent is reserved before it begins.
    pub(crate) leases: bool,
}

pub(crate) struct Protocol {
    pub(crate) rules: &'static dyn Rules,
    pub(crate) bounds: Bounds,
    pub(crate) pinned: Pinned,
    pub(crate) policies: [Arc<ActivePolicy>; 2],
    pub(crate) keys: [StreamId; 2],
    proposals: Vec<[Proposal; 2]>,
    payloads: Vec<Payload>,
    ask_ids: Vec<ApprovalId>,
}

/// What is so, and what has been.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) struct State {
    pub(crate) ledger: Ledger,
    pub(crate) policy: usize,
    pub(crate) keys: [KeyGhost; 2],
    pub(crate) asks: Vec<AskGhost>,
    pub(crate) holds: Vec<Hold>,
    /// The first promise that was broken.
    pub(crate) broken: Option<&'static str>,
}

impl State {
    /// Whether a newer attempt, the remote or a person has answered for this one.
    pub(crate) fn fenced(&self, hold: &Hold) -> bool {
        let ghost = &self.keys[hold.key];
        ghost.fence != hold.fence || ghost.answered
    }

    pub(crate) fn breaks(&mut self, promise: &'static str) {
        self.broken = self.broken.or(Some(promise));
    }
}

/// What happens next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Step {
    Run {
        content: usize,
        approval: Option<usize>,
    },
    Resume {
        action: ActionId,
    },
    Begin(Hold),
    Renew(Hold),
    Perform(Hold, Ran),
    Settle(Hold, Outcome),
    Crash(Hold),
    /// A request that was on the way arrives at the remote.
    Land(usize),
    Tick,
    LapseEffect(usize),
    LapseApproval(usize),
    Resolve {
        key: usize,
        happened: bool,
    },
    Reconcile {
        key: usize,
        happened: bool,
    },
    Answer {
        approval: usize,
        said: Said,
        entitled: bool,
    },
    Revoke(usize),
    Activate,
}

impl Protocol {
    pub(crate) fn new(rules: &'static dyn Rules, bounds: Bounds) -> Protocol {
        let tenant = Tenant { name: "default".to_owned(), id: [7; 16], key: BlindingKey([9; 32]) };
        let policies = POLICIES.map(|text| {
            let policy = Policy::from_yaml(text.as_bytes()).expect("a sound policy");
            Arc::new(ActivePolicy::compile(policy.document()).expect("a sound policy"))
        });
        let proposals: Vec<_> = (0..CONTENTS.len())
            .map(|content| [0, 1].map(|policy: usize| propose(&tenant, &policies[policy], content)))
            .collect();
        let payloads = proposals
            .iter()
            .map(|proposal| Payload { salt: [0; 32], text: proposal[0].text().to_owned() })
            .collect();
        let keys = [tenant.effect("pay:1"), tenant.effect("send:1")];
        let mut pinned = Pinned::new(tenant, None);
        for policy in &policies {
            pinned.know(policy.hash, Some(policy.clone()));
        }
        let ask_ids = (0..=bounds.asks).map(|ask| stamp(ask, Command::Create).approval()).collect();
        Protocol { rules, bounds, pinned, policies, keys, proposals, payloads, ask_ids }
    }

    pub(crate) fn proposal(&self, content: usize, policy: usize) -> &Proposal {
        &self.proposals[content][policy]
    }

    /// Whether the remote of this key is looked at: that of payments.
    pub(crate) fn watched(&self, key: usize) -> bool {
        self.bounds.remote && key == 0
    }

    /// What the policy says, told from outside of it.
    pub(crate) fn verdict(&self, content: usize, policy: usize) -> Verdict {
        CONTENTS[content].3[policy]
    }

    pub(crate) fn key_of(&self, content: usize) -> usize {
        CONTENTS[content].2
    }

    /// Whether both policies have the same rule for this.
    pub(crate) fn same_rule(&self, content: usize, one: usize, other: usize) -> bool {
        one == other || CONTENTS[content].0 == "send"
    }

    pub(crate) fn content_of(&self, action: ActionId) -> usize {
        usize::from(action.0[0]) - 1
    }

    /// Payments begin at once, what is sent is reserved first.
    pub(crate) fn reach(&self, content: usize) -> Reach {
        let reserves = self.bounds.leases && CONTENTS[content].0 == "send";
        if reserves { Reach::Reserved } else { Reach::Executing }
    }

    /// The id of the n-th request.
    pub(crate) fn ask_id(&self, ask: usize) -> ApprovalId {
        self.ask_ids[ask]
    }

    pub(crate) fn ask_of(&self, state: &State, id: ApprovalId) -> Option<usize> {
        (0..state.asks.len()).find(|ask| self.ask_id(*ask) == id)
    }

    /// An id that no action of this content has.
    pub(crate) fn fresh(&self, state: &State, content: usize) -> ActionId {
        let content = u8::try_from(content).expect("few") + 1;
        let ids = (0..).map(|slot| {
            let mut id = [0; 16];
            (id[0], id[1]) = (content, slot);
            ActionId(id)
        });
        ids.into_iter().find(|id| state.ledger.action(*id).is_none()).expect("few")
    }

    /// What closed requests are said to have been about.
    pub(crate) fn bound(&self) -> RequestedSealed {
        let proposal = &self.proposals[0][0];
        RequestedSealed {
            action_hash: Some(proposal.action_hash()),
            approvers: None,
            ask: None,
            binding: Some(Hash([0; 32])),
            contract: None,
            effect_key: proposal.effect_key().map(str::to_owned),
            intent_hash: Some(proposal.intent_hash()),
            name: Some(proposal.name().to_owned()),
            rule: proposal.rule(),
        }
    }

    pub(crate) fn payload_of(&self, action: ActionId) -> &Payload {
        &self.payloads[self.content_of(action)]
    }
}

/// A command in a state with so many requests: so ids do not depend on the
/// order in which other things happened.
pub(crate) fn stamp(asks: usize, command: Command) -> Stamped {
    Stamped { command, made_at: 0, nonce: Nonce([u8::try_from(asks).expect("few"); 16]) }
}

fn propose(tenant: &Tenant, policy: &ActivePolicy, content: usize) -> Proposal {
    let (name, arguments, ..) = CONTENTS[content];
    let Ok(Value::Object(arguments)) = json::read(arguments.as_bytes(), &Limits::ACTION) else {
        panic!("arguments are an object")
    };
    let principal = Principal { agent: "bot".to_owned(), user: None };
    let (name, environment, resource) = (name.to_owned(), "production".to_owned(), None);
    let action = Action { name, arguments, principal, environment, resource };
    Proposal::prepare(tenant, policy, action).expect("a proposal")
}

impl Model for Protocol {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let mut ledger = Ledger::default();
        let row = PolicyRow { active: self.policies[0].hash, updated_at: now() };
        ledger.put(self.pinned.tenant.policy(), Row::Policy(row));
        let keys =
            [KeyGhost { lease: -1, ..KeyGhost::default() }, KeyGhost { lease: -1, ..KeyGhost::default() }];
        let (asks, holds) = (Vec::new(), Vec::new());
        vec![State { ledger, policy: 0, keys, asks, holds, broken: None }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.broken.is_none() {
            self.holder_steps(state, steps);
            self.proposer_steps(state, steps);
            self.other_steps(state, steps);
        }
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        self.step(state, step).filter(|next| next != state)
    }

    fn properties(&self) -> Vec<Property<Protocol>> {
        promised().into_iter().chain(reached(self.bounds)).collect()
    }
}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.bounds)
    }
}

/// The rows of a state, with the texts beside them.
pub(crate) struct Here<'a>(pub(crate) &'a Protocol, pub(crate) &'a Ledger);

impl Shelf for Here<'_> {
    fn loaded(&self, stream: &StreamId) -> Loaded {
        self.1.get(stream).map_or(Loaded::Absent, |stored| Loaded::Row(stored.clone()))
    }

    fn found(&self, range: &Range) -> Vec<(Vec<u8>, StreamId)> {
        let inside = |bytes: &[u8]| bytes >= &*range.from && bytes <= &*range.to;
        let keys = self.1.iter().flat_map(|(stream, cell)| cell.keys.iter().map(move |key| (key, stream)));
        let found = keys.filter(|(key, _)| key.index == range.index && inside(&key.bytes));
        let mut found: Vec<_> = found.map(|(key, stream)| (key.bytes.clone(), *stream)).collect();
        found.sort();
        found.truncate(range.limit);
        found
    }

    fn payload(&self, stream: &StreamId, _: u64) -> Option<Payload> {
        Some(self.0.payload_of(ActionId(stream.name)).clone())
    }

    fn policy(&self, hash: Hash) -> Option<Arc<ActivePolicy>> {
        self.0.policies.iter().find(|policy| policy.hash == hash).cloned()
    }

    fn tool(&self, _: Hash) -> Option<Arc<Tool>> {
        None
    }

    fn definition(&self, _: Hash) -> Option<Arc<Definition>> {
        None
    }
}

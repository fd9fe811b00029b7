//! The design in other words: plain lists, whole seconds, one function per
//! paragraph. It shares no code with the rules, and is slow and obvious.

#[path = "naive/attempts.rs"]
mod attempts;
#[path = "naive/calls.rs"]
mod calls;
#[path = "naive/people.rs"]
mod people;

use super::commands::{Agent, Content, Name, PEOPLE, Word};

/// What is said to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Say {
    Attempt { action: usize, fence: u64, begun: bool, approval: Option<usize>, lease: i64 },
    Ready { action: usize, until: i64 },
    Asked { action: usize, approval: usize, joined: bool, expires: i64 },
    Ended { action: usize, result: &'static str, code: Option<&'static str> },
    Settled { state: &'static str, repeated: bool },
    Renewed(i64),
    Approval { status: &'static str, yes: usize, repeated: bool },
    Policy { changed: bool },
    Done { changed: bool },
    No { code: &'static str, action: Option<usize>, repeated: bool },
}

pub(crate) fn no(code: &'static str) -> Say {
    Say::No { code, action: None, repeated: false }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stage {
    Ready { until: i64 },
    Waiting { approval: usize },
    Running,
    Ended { result: &'static str, code: Option<&'static str>, at: i64 },
    Answered { result: &'static str },
}

#[derive(Debug, Clone)]
pub(crate) struct Action {
    pub(crate) content: Content,
    pub(crate) stage: Stage,
    /// The key and the number of its attempt.
    pub(crate) held: Option<(String, u64)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Approval {
    pub(crate) content: Content,
    /// Under which policy it was asked.
    pub(crate) policy: usize,
    pub(crate) action: usize,
    pub(crate) expires: i64,
    pub(crate) quorum: usize,
    pub(crate) status: &'static str,
    pub(crate) said: Vec<(usize, bool)>,
}

impl Approval {
    pub(crate) fn open(&self) -> bool {
        matches!(self.status, "pending" | "granted")
    }
}

/// Who has answered for the newest attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Nobody,
    Holder,
    Other,
}

#[derive(Debug, Clone)]
pub(crate) struct Effect {
    pub(crate) key: String,
    pub(crate) state: &'static str,
    pub(crate) fence: u64,
    /// The holder, unless it is no recorded action.
    pub(crate) holder: Option<usize>,
    pub(crate) lease: i64,
    pub(crate) deadline: i64,
    pub(crate) by: By,
}

impl Effect {
    pub(crate) fn held(&self) -> bool {
        matches!(self.state, "reserved" | "executing")
    }
}

/// What a holder names.
#[derive(Debug, Clone)]
pub(crate) struct Handle {
    pub(crate) key: String,
    pub(crate) action: Option<usize>,
    pub(crate) fence: u64,
    pub(crate) lease: i64,
}

#[derive(Debug, Default)]
pub(crate) struct Naive {
    pub(crate) now: i64,
    pub(crate) policy: usize,
    pub(crate) actions: Vec<Action>,
    pub(crate) approvals: Vec<Approval>,
    pub(crate) effects: Vec<Effect>,
    /// Actions that this very command has ended: not refusals of before.
    pub(crate) ended_here: Vec<usize>,
}

/// Allow, approve or deny: what each of the four policies says.
pub(crate) fn verdict(policy: usize, content: &Content) -> &'static str {
    match (content.name, policy) {
        (Name::Send, _) => "allow",
        (Name::Read, _) => "approve",
        (Name::Unlisted, _) => "deny",
        (Name::Pay, 2) => "allow",
        (Name::Pay, 3) if content.amount > 10 => "approve",
        (Name::Pay, 3) => "deny",
        (Name::Pay, _) if content.amount <= 10 => "allow",
        (Name::Pay, _) if content.amount <= 100 => "approve",
        (Name::Pay, _) => "deny",
    }
}

/// The first two policies differ in who is a boss, and in no rule.
pub(crate) fn same_rule(name: Name, one: usize, other: usize) -> bool {
    one == other || name != Name::Pay || one < 2 && other < 2
}

/// Whether an answer of this person counts under a policy.
fn entitled(policy: usize, name: Name, person: &str) -> bool {
    match (name, policy) {
        (Name::Read, _) => true,
        (Name::Pay, 0 | 3) => matches!(person, "host:ada" | "host:bob" | "host:cy" | "os:cy" | "os:owner"),
        (Name::Pay, 1) => matches!(person, "host:bob" | "host:cy" | "os:cy" | "host:dan"),
        (Name::Pay, _) => person == "host:bob",
        (Name::Send | Name::Unlisted, _) => true,
    }
}

fn name_of(person: &str) -> &str {
    person.split_once(':').expect("a proof").1
}

fn agent_name(agent: Agent) -> &'static str {
    match agent {
        Agent::Bot => "bot",
        Agent::Ada => "ada",
    }
}

pub(crate) fn same_wish(one: &Content, other: &Content) -> bool {
    (one.name, one.id, one.amount) == (other.name, other.id, other.amount)
}

/// Under which key an action acts.
pub(crate) fn key_of(content: &Content, action: usize) -> String {
    match content.name {
        Name::Pay | Name::Send => format!("pay:{}", content.id),
        Name::Read | Name::Unlisted => format!("own {action}"),
    }
}

pub(crate) fn state_of(word: Word) -> &'static str {
    match word {
        Word::Committed => "committed",
        Word::Failed => "failed",
        Word::Ambiguous => "ambiguous",
    }
}

impl Naive {
    pub(crate) fn effect(&self, key: &str) -> Option<usize> {
        self.effects.iter().position(|effect| effect.key == key)
    }

    /// The end of a lease is inclusive.
    pub(crate) fn live(&self, effect: &Effect) -> bool {
        effect.held() && self.now <= effect.lease
    }

    pub(crate) fn end(&mut self, action: usize, result: &'static str, code: Option<&'static str>) {
        self.actions[action].stage = Stage::Ended { result, code, at: self.now };
        self.ended_here.push(action);
    }

    /// Nobody reported in time: the effect is unknown, and so is its action's outcome.
    pub(crate) fn lapse(&mut self, at: usize) {
        let effect = &mut self.effects[at];
        effect.state = "ambiguous";
        let holder = effect.holder;
        if let Some(holder) = holder.filter(|holder| self.runs(*holder, at)) {
            self.end(holder, "ambiguous", Some("lease_lapsed"));
        }
    }

    pub(crate) fn runs(&self, action: usize, effect: usize) -> bool {
        let Effect { key, fence, .. } = &self.effects[effect];
        self.actions[action].stage == Stage::Running
            && self.actions[action].held == Some((key.clone(), *fence))
    }

    /// An approval ends without being used; so does what waits for it, unless
    /// that is the action that goes on.
    pub(crate) fn close(&mut self, approval: usize, status: &'static str, but: Option<usize>) {
        if !self.approvals[approval].open() {
            return;
        }
        self.approvals[approval].status = status;
        let action = self.approvals[approval].action;
        let waits = self.actions[action].stage == Stage::Waiting { approval };
        if waits && Some(action) != but {
            let code = if status == "expired" { "approval_expired" } else { "approval_revoked" };
            self.end(action, "blocked", Some(code));
        }
    }

    /// Different people who said yes and are still entitled.
    pub(crate) fn yeses(&self, approval: usize) -> usize {
        let approval = &self.approvals[approval];
        let yes = approval.said.iter().filter(|(_, yes)| *yes).map(|(person, _)| PEOPLE[*person]);
        let mut names: Vec<_> =
            yes.filter(|person| entitled(self.policy, approval.content.name, person)).map(name_of).collect();
        names.sort_unstable();
        names.dedup();
        names.len()
    }
}

//! The same thing done to the rules and to the naive model, and the two held
//! against each other: what is said, and where everything stands.

use onceseal_core::action::{self, Acquire, ActionState, Run};
use onceseal_core::approval::Said;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{Begin, Finding, Holding, Outcome, Reconcile, Renew, Reserve, Resolve};
use onceseal_core::hash::Hash;
use onceseal_core::id::{ActionId, ApprovalId};
use onceseal_core::journal::Row;
use onceseal_core::reply::Reply;
use onceseal_core::stream::StreamId;
use onceseal_core::time::{Span, Timestamp};

use super::commands::{Agent, Content, Do, Name, PEOPLE, Pick, Reach, Word};
use super::naive::{Handle, Naive, Say, Stage};
use super::policies::POLICIES;
use crate::calls::{Call, call, identity, settle};
use crate::executor::Rules;
use crate::world::{World, noon};

pub(crate) struct Play<'r> {
    pub(crate) world: World<'r>,
    naive: Naive,
    approvals: Vec<ApprovalId>,
    handles: Vec<Handle>,
}

/// An action of the naive model, by its place.
fn action_id(at: usize) -> ActionId {
    let mut id = [0; 16];
    id[8..].copy_from_slice(&(at as u64 + 1).to_be_bytes());
    ActionId(id)
}

/// Whoever reserves a key by hand is no recorded action.
const STRANGER: ActionId = ActionId([0xee; 16]);

fn holder(action: Option<usize>) -> ActionId {
    action.map_or(STRANGER, action_id)
}

/// Mostly one of the newest.
fn pick(count: usize, pick: Pick) -> Option<usize> {
    let among = if pick.is_multiple_of(4) { count } else { count.min(2) };
    (count > 0).then(|| count - 1 - pick / 4 % among)
}

impl<'r> Play<'r> {
    pub(crate) fn new(rules: &'r dyn Rules) -> Play<'r> {
        let world = World::new(rules, POLICIES[0]);
        Play { world, naive: Naive::default(), approvals: Vec::new(), handles: Vec::new() }
    }

    /// Does one thing on both sides; what differs, if anything.
    pub(crate) fn step(&mut self, step: &Do) -> Result<(), String> {
        let Some((command, said)) = self.both(step) else { return Ok(()) };
        let reply = self.world.run(command);
        if let (Reply::ApprovalNeeded { approval, .. }, Say::Asked { joined: false, .. }) = (&reply, &said) {
            self.approvals.push(*approval);
        }
        let ours = self.read(&reply);
        let told = match said.clone() {
            // Of several refusals of the same moment any may be named.
            Say::No { repeated: true, code, .. } => match ours {
                Say::No { action, .. } => Say::No { repeated: true, code, action },
                _ => said.clone(),
            },
            said => said,
        };
        if ours != told {
            return Err(format!("{step:?}: the rules say {ours:?}, the model {told:?}"));
        }
        if let Say::Attempt { action, fence, lease, begun, .. } = said
            && !matches!(step, Do::Begin { .. })
        {
            let action = (action != usize::MAX).then_some(action);
            let effect = self.naive.effects.iter().find(|effect| {
                effect.fence == fence
                    && effect.holder == action
                    && effect.lease == lease
                    && (effect.state == "executing") == begun
            });
            let key = effect.expect("it is held").key.clone();
            self.handles.push(Handle { key, action, fence, lease: 60 });
        }
        self.compare().map_err(|differs| format!("after {step:?}: {differs}"))
    }

    /// The command, and what the naive model says to it.
    fn both(&mut self, step: &Do) -> Option<(Command, Say)> {
        match *step {
            Do::Wait(seconds) => {
                self.naive.now += i64::from(seconds);
                self.world.now = self.world.now + Span::seconds(seconds);
                None
            }
            Do::Activate(policy) => {
                let changed = self.naive.policy != policy;
                self.naive.policy = policy;
                Some((World::activation(POLICIES[policy]), Say::Policy { changed }))
            }
            Do::Run { content, again, approval, reach, lease } => {
                let again_ = again.and_then(|again| pick(self.naive.actions.len(), again));
                let approval_ = approval.map(|approval| self.presented(approval));
                // Mostly what was proposed or approved before.
                let known = match (again_, approval_) {
                    (Some(action), _) => self.naive.actions.get(action).map(|action| action.content),
                    (None, Some(approval)) => {
                        self.naive.approvals.get(approval).map(|approval| approval.content)
                    }
                    (None, None) => None,
                };
                let chance = again.or(approval).unwrap_or_default();
                let content = known.filter(|_| !chance.is_multiple_of(5)).unwrap_or(content);
                let (again, approval) = (again_, approval_);
                let action = Some(action_id(again.unwrap_or(self.naive.actions.len())));
                let call = Call {
                    action,
                    approval: approval.map(|approval| self.approval_id(approval)),
                    reach: far(reach),
                    lease: lease.map(Span::seconds),
                    ..asked(&content)
                };
                let proposal = self.world.prepare(&call).expect("a proposal");
                let Call { action, approval: presented, reach: far, lease: length, deadline, .. } = call;
                let run = Run { proposal, action, approval: presented, reach: far, lease: length, deadline };
                Some((Command::Run(Box::new(run)), self.naive.run(content, again, approval, reach, lease)))
            }
            Do::Acquire { action, approval, reach } => {
                let action = pick(self.naive.actions.len(), action)?;
                let approval = approval.map(|approval| self.presented(approval));
                let acquire = Acquire {
                    action: action_id(action),
                    approval: approval.map(|approval| self.approval_id(approval)),
                    reach: far(reach),
                    lease: None,
                    deadline: None,
                };
                Some((Command::Acquire(acquire), self.naive.acquire(action, approval, reach)))
            }
            Do::Answer { approval, person, yes, shown } => {
                let at = pick(self.approvals.len(), approval)?;
                let approval = self.approvals[at];
                let bound = self.world.approval(approval).private.bound.binding.expect("not erased");
                let (person_, said) = (identity(PEOPLE[person]), if yes { Said::Yes } else { Said::No });
                let shown_ = if shown { bound } else { Hash([1; 32]) };
                let answer = onceseal_core::approval::Answer {
                    approval,
                    person: person_,
                    said,
                    shown: shown_,
                    reason: None,
                };
                Some((Command::Answer(answer), self.naive.answer(at, person, yes, shown)))
            }
            Do::Revoke { approval, person } => {
                let at = pick(self.approvals.len(), approval)?;
                let (approval, who) = (self.approvals[at], identity(PEOPLE[person]));
                let revocation = onceseal_core::approval::Revocation { approval, person: who };
                Some((Command::Revoke(revocation), self.naive.revoke(at, person)))
            }
            Do::LapseAction(action) => {
                let action = pick(self.naive.actions.len(), action)?;
                let stream = StreamId::action(action_id(action));
                Some((Command::Lapse(stream), self.naive.lapse_action(action)))
            }
            Do::LapseApproval(approval) => {
                let at = pick(self.approvals.len(), approval)?;
                let stream = StreamId::approval(self.approvals[at]);
                Some((Command::Lapse(stream), self.naive.lapse_approval(at)))
            }
            Do::Reserve { id } => {
                let (key, lease) = (format!("pay:{id}"), Span::seconds(60));
                Some((Command::Reserve(Reserve { key, action: STRANGER, lease }), self.naive.reserve(id)))
            }
            _ => self.with_attempt(step),
        }
    }

    fn with_attempt(&mut self, step: &Do) -> Option<(Command, Say)> {
        let (Do::Begin { attempt, .. }
        | Do::Renew { attempt, .. }
        | Do::Settle { attempt, .. }
        | Do::Resolve { attempt, .. }
        | Do::Reconcile { attempt, .. }
        | Do::LapseEffect(attempt)) = *step
        else {
            unreachable!("all others are done")
        };
        let mut handle = self.handles[pick(self.handles.len(), attempt)?].clone();
        if let Do::Begin { fence, .. }
        | Do::Renew { fence, .. }
        | Do::Settle { fence, .. }
        | Do::Resolve { fence, .. }
        | Do::Reconcile { fence, .. } = *step
        {
            handle.fence = handle.fence.saturating_add_signed(i64::from(fence));
        }
        let effect = self.effect_of(&handle.key);
        let Handle { action, fence, lease, .. } = handle;
        let attempt = Holding { effect, action: holder(action), fence };
        let naive = &mut self.naive;
        Some(match *step {
            Do::Begin { .. } => {
                let lease = Span::seconds(u32::try_from(lease).expect("short"));
                (Command::Begin(Begin { attempt, lease }), naive.begin(&handle))
            }
            Do::Renew { lease, .. } => {
                let renew = Renew { attempt, lease: Span::seconds(lease) };
                (Command::Renew(renew), naive.renew(&handle, i64::from(lease)))
            }
            Do::Settle { word, .. } => {
                (Command::Settle(settle(attempt, outcome(word))), naive.settle(&handle, word))
            }
            Do::Resolve { happened, person, .. } => {
                let (reason, evidence, who) = ("seen".to_owned(), None, identity(PEOPLE[person]));
                let resolve = Resolve { effect, fence, happened, reason, evidence, person: who };
                (Command::Resolve(resolve), naive.resolve(&handle, happened, person))
            }
            Do::Reconcile { happened, .. } => {
                let finding = if happened { Finding::Committed(None) } else { Finding::Absent };
                let settle = Span::seconds(30);
                let reconcile = Reconcile { effect, fence, finding, evidence: None, remote: None, settle };
                (Command::Reconcile(reconcile), naive.reconcile(&handle, happened))
            }
            _ => (Command::Lapse(effect), naive.lapse_effect(&handle.key)),
        })
    }

    /// One of the requests, or one that there is not.
    fn presented(&self, chance: Pick) -> usize {
        let known = if chance.is_multiple_of(7) { None } else { pick(self.approvals.len(), chance) };
        known.unwrap_or(self.approvals.len())
    }

    fn approval_id(&self, at: usize) -> ApprovalId {
        self.approvals.get(at).copied().unwrap_or(ApprovalId([0xaa; 16]))
    }

    /// The stream of a key; the model calls an action's own key by its place.
    fn effect_of(&self, key: &str) -> StreamId {
        let clear =
            key.strip_prefix("own ").map(|at| format!("act:{}", action_id(at.parse().expect("a place"))));
        self.world.pinned.tenant.effect(&clear.unwrap_or_else(|| key.to_owned()))
    }

    fn place(&self, id: ActionId) -> usize {
        (0..=self.naive.actions.len()).find(|at| action_id(*at) == id).unwrap_or(usize::MAX)
    }

    fn approval_at(&self, id: ApprovalId) -> usize {
        self.approvals.iter().position(|known| *known == id).unwrap_or(usize::MAX)
    }

    /// A reply in the model's words.
    fn read(&self, reply: &Reply) -> Say {
        match reply {
            Reply::Attempt(attempt) => Say::Attempt {
                action: self.place(attempt.action),
                fence: attempt.fence,
                begun: attempt.begun,
                approval: attempt.approval.map(|id| self.approval_at(id)),
                lease: seconds(attempt.lease_until),
            },
            Reply::Ready { action, until } => {
                Say::Ready { action: self.place(*action), until: seconds(*until) }
            }
            Reply::ApprovalNeeded { action, approval, expires_at, joined } => {
                let (action, approval) = (self.place(*action), self.approval_at(*approval));
                Say::Asked { action, approval, joined: *joined, expires: seconds(*expires_at) }
            }
            Reply::Ended { action, result, code, .. } => Say::Ended {
                action: self.place(*action),
                result: result.as_str(),
                code: code.map(Code::as_str),
            },
            Reply::Settled { state, repeated, .. } => {
                Say::Settled { state: state.as_str(), repeated: *repeated }
            }
            Reply::Renewed { lease_until } => Say::Renewed(seconds(*lease_until)),
            Reply::Approval { status, yes, repeated, .. } => {
                Say::Approval { status: status.as_str(), yes: *yes as usize, repeated: *repeated }
            }
            Reply::Policy { changed, .. } => Say::Policy { changed: *changed },
            Reply::PolicyStale { .. } => unreachable!("prepared under the active policy"),
            Reply::Operation(_)
            | Reply::Claimed(..)
            | Reply::Ask(_)
            | Reply::Run(_)
            | Reply::Lease(_)
            | Reply::Task(_) => {
                unreachable!("no operation or run is asked for")
            }
            Reply::Done { changed } => Say::Done { changed: *changed },
            Reply::Refused(refusal) => {
                let action = refusal.action.map(|id| self.place(id));
                Say::No { code: refusal.code.as_str(), action, repeated: refusal.repeated }
            }
        }
    }

    /// Where everything stands, on both sides.
    fn compare(&self) -> Result<(), String> {
        for (at, action) in self.naive.actions.iter().enumerate() {
            let Some(Row::Action(row)) = self.world.row(&StreamId::action(action_id(at))) else {
                return Err(format!("action {at} is not recorded"));
            };
            let same = match (&row.state, &action.stage) {
                (ActionState::Ready { until }, Stage::Ready { until: told }) => seconds(*until) == *told,
                (ActionState::Waiting { approval }, Stage::Waiting { approval: told }) => {
                    self.approval_at(*approval) == *told
                }
                (ActionState::Running { .. }, Stage::Running) => true,
                (ActionState::Ended { result, code, .. }, Stage::Ended { result: told, code: why, .. }) => {
                    result.as_str() == *told && code.map(Code::as_str) == *why
                }
                (ActionState::Answered { result, .. }, Stage::Answered { result: told }) => {
                    result.as_str() == *told
                }
                _ => false,
            };
            if !same {
                return Err(format!("action {at} is {:?}, the model says {:?}", row.state, action.stage));
            }
        }
        for (at, approval) in self.naive.approvals.iter().enumerate() {
            let status = self.world.approval(self.approvals[at]).status.as_str();
            if status != approval.status {
                return Err(format!("approval {at} is {status}, the model says {}", approval.status));
            }
        }
        for effect in &self.naive.effects {
            let Some(Row::Effect(row)) = self.world.row(&self.effect_of(&effect.key)) else {
                return Err(format!("effect {} is not recorded", effect.key));
            };
            let ours = (row.state.as_str(), row.fence, row.holder, row.lease_until.map(seconds));
            let told = (effect.state, effect.fence, holder(effect.holder), Some(effect.lease));
            if ours != told {
                return Err(format!("effect {} is {ours:?}, the model says {told:?}", effect.key));
            }
        }
        Ok(())
    }
}

fn seconds(at: Timestamp) -> i64 {
    (at.micros() - noon().micros()) / 1_000_000
}

const fn far(reach: Reach) -> action::Reach {
    match reach {
        Reach::Ready => action::Reach::Ready,
        Reach::Reserved => action::Reach::Reserved,
        Reach::Executing => action::Reach::Executing,
    }
}

const fn outcome(word: Word) -> Outcome {
    match word {
        Word::Committed => Outcome::Committed,
        Word::Failed => Outcome::Failed,
        Word::Ambiguous => Outcome::Ambiguous,
    }
}

fn asked(content: &Content) -> Call {
    let name = match content.name {
        Name::Pay => "pay",
        Name::Send => "send",
        Name::Read => "read",
        Name::Unlisted => "unlisted",
    };
    let note = if content.note { r#","note":"please""# } else { "" };
    let (agent, user) = match content.agent {
        Agent::Bot => ("bot", None),
        Agent::Ada => ("ada", Some("uma")),
    };
    let arguments = format!(r#"{{"amount":{},"id":"{}"{note}}}"#, content.amount, content.id);
    Call { agent, user, ..call(name, &arguments) }
}

//! What each step does: the command that is submitted, and what everybody
//! hears of it.

use std::collections::BTreeSet;

use onceseal_core::action::{Acquire, Reach, Run};
use onceseal_core::approval::{Answer, Identity, Revocation, Said};
use onceseal_core::command::Command;
use onceseal_core::decide::renew;
use onceseal_core::effect::{Begin, Finding, Holding, Outcome, Reconcile, Renew, Resolve, Settle};
use onceseal_core::journal::{Body, Row};
use onceseal_core::policy::{Activate, Verdict};
use onceseal_core::reply::{Attempt, Reply};
use onceseal_core::stream::StreamId;

use crate::executor::{Decided, settle_on};
use crate::ghost::{
    ANSWERS, AskGhost, DEADLINE, FOLDS, Hold, P01_EXACT, P02_ONCE, P03_KNOWN, P03_LIVE, P03_REMOTE,
    P04_FENCED, P12_RECEIPT, Ran,
};
use crate::ledger::{TICK, now, ticks};
use crate::protocol::{Here, Protocol, State, Step, stamp};

/// Most rounds of reads that a verdict may need.
const ROUNDS: usize = 5;

impl Protocol {
    pub(crate) fn step(&self, before: &State, step: Step) -> Option<State> {
        let mut after = before.clone();
        let state = &mut after;
        match step {
            Step::Run { content, approval } => self.run(state, content, approval)?,
            Step::Resume { action } => {
                let (approval, reach) = (None, Reach::Executing);
                let acquire = Acquire { action, approval, reach, lease: None, deadline: None };
                let content = self.content_of(action);
                let reply = self.submit(state, Command::Acquire(acquire));
                self.hears(state, content, &reply)?;
            }
            Step::Begin(hold) => self.begin(state, hold),
            Step::Renew(hold) => self.renew(state, hold),
            Step::Perform(hold, ran) => perform(state, hold, ran),
            Step::Settle(hold, outcome) => self.settle(state, hold, outcome),
            Step::Crash(hold) => drop(take(state, hold)),
            Step::Land(key) => {
                state.keys[key].in_flight = false;
                happens(state, key);
            }
            Step::Tick => tick(state),
            Step::LapseEffect(key) => drop(self.submit(state, Command::Lapse(self.keys[key]))),
            Step::LapseApproval(ask) => {
                self.submit(state, Command::Lapse(StreamId::approval(self.ask_id(ask))));
            }
            Step::Resolve { key, happened } => self.resolve(state, key, happened),
            Step::Reconcile { key, happened } => self.reconcile(state, key, happened),
            Step::Answer { approval, said, entitled } => self.answer(state, approval, said, entitled),
            Step::Revoke(ask) => self.revoke(state, ask),
            Step::Activate => {
                state.policy = 1 - state.policy;
                let policy = self.policies[state.policy].clone();
                self.submit(state, Command::Activate(Activate { policy, again: true, person: None }));
            }
        }
        self.judge(before, &step, state);
        self.normalise(state);
        Some(after)
    }

    /// Decides a command on the rows, and folds what it causes into them.
    pub(crate) fn submit(&self, state: &mut State, command: Command) -> Reply {
        let stamped = stamp(state.asks.len(), command);
        let mut pinned = self.pinned.clone();
        let here = Here(self, &state.ledger);
        let Decided { verdict, rounds } = settle_on(self.rules, &mut pinned, &here, &stamped, now());
        if rounds > ROUNDS {
            state.breaks(FOLDS);
        }
        let mut receipts = BTreeSet::new();
        for draft in verdict.drafts {
            let (stream, event) = (draft.stream, draft.event);
            let ends = matches!(event.body, Body::ActionEnded(..) | Body::ActionAnswered(..));
            if ends && !event.refs.receipt.is_some_and(|receipt| receipts.insert(receipt)) {
                state.breaks(P12_RECEIPT);
            }
            let row = state.ledger.get(&stream).map(|stored| stored.row.clone());
            let Ok(mut row) = self.rules.evolve(&stream, row, 1, now(), &event) else {
                state.breaks(FOLDS);
                continue;
            };
            if let Row::Action(row) = &mut row
                && let Some(proposal) = &mut row.private.proposal
            {
                proposal.arguments = self.payload_of(onceseal_core::id::ActionId(stream.name)).hash();
            }
            state.ledger.put(stream, row);
        }
        for renewal in verdict.renewals {
            match state.ledger.get(&renewal.stream).and_then(|stored| renew(stored, &renewal)) {
                Some(stored) => state.ledger.put(renewal.stream, stored.row),
                None => state.breaks(FOLDS),
            }
        }
        verdict.reply
    }

    fn run(&self, state: &mut State, content: usize, ask: Option<usize>) -> Option<()> {
        let reach = self.reach(content);
        let proposal = self.proposal(content, state.policy).clone();
        let action = Some(self.fresh(state, content));
        let approval = ask.map(|ask| self.ask_id(ask));
        let run = Run { proposal, action, approval, reach, lease: None, deadline: None };
        let reply = self.submit(state, Command::Run(Box::new(run)));
        self.hears(state, content, &reply)
    }

    /// What a caller learns; `None` if there would be more requests than bound.
    fn hears(&self, state: &mut State, content: usize, reply: &Reply) -> Option<()> {
        match reply {
            Reply::Attempt(attempt) => self.handed_out(state, attempt),
            Reply::ApprovalNeeded { approval, expires_at, joined: false, .. } => {
                if state.asks.len() == self.bounds.asks {
                    return None;
                }
                let again = |ask: &AskGhost| ask.content == content && ask.denied && ask.expires >= 0;
                if state.asks.iter().any(again) || *approval != self.ask_id(state.asks.len()) {
                    state.breaks(ANSWERS);
                }
                let (policy, expires) = (state.policy, ticks(*expires_at));
                let (yes, denied, revoked, used) = (false, false, false, false);
                state.asks.push(AskGhost { content, policy, expires, yes, denied, revoked, used });
            }
            _ => {}
        }
        Some(())
    }

    /// Somebody is handed an attempt: was that right?
    fn handed_out(&self, state: &mut State, attempt: &Attempt) {
        let content = self.content_of(attempt.action);
        let key = self.key_of(content);
        let ghost = &state.keys[key];
        let live = ghost.lease >= 0 && !ghost.reported;
        if attempt.fence != ghost.fence + 1 || ghost.fence > 0 && !ghost.said_failed {
            state.breaks(P03_KNOWN);
        } else if live {
            state.breaks(P03_LIVE);
        }
        self.permitted(state, content, attempt);
        if attempt.lease_until > attempt.deadline {
            state.breaks(DEADLINE);
        }
        let (lease, deadline) = (ticks(attempt.lease_until), ticks(attempt.deadline));
        state.keys[key].next(attempt.fence, lease);
        let Attempt { action, fence, begun, .. } = *attempt;
        state.holds.push(Hold { key, action, fence, begun, lease, deadline, ran: Ran::No });
    }

    fn permitted(&self, state: &mut State, content: usize, attempt: &Attempt) {
        let ask = attempt.approval.and_then(|id| self.ask_of(state, id));
        let Some(ask) = ask else {
            if attempt.approval.is_some() || self.verdict(content, state.policy) != Verdict::Allow {
                state.breaks(P01_EXACT);
            }
            return;
        };
        let ghost = state.asks[ask].clone();
        let exact = ghost.content == content && self.same_rule(content, ghost.policy, state.policy);
        let stands = ghost.yes && !ghost.denied && !ghost.revoked && ghost.expires >= 0;
        if ghost.used {
            state.breaks(P02_ONCE);
        } else if !exact || !stands {
            state.breaks(P01_EXACT);
        }
        state.asks[ask].used = true;
    }

    fn begin(&self, state: &mut State, hold: Hold) {
        let fenced = state.fenced(&hold);
        let command = Command::Begin(Begin { attempt: self.holding(&hold), lease: TICK });
        let reply = self.submit(state, command);
        let at = take(state, hold);
        if let Reply::Attempt(_) = reply {
            if hold.lease < 0 {
                state.breaks(P03_LIVE);
            }
            if fenced {
                state.breaks(P04_FENCED);
            }
            state.holds.insert(at, Hold { begun: true, ..hold });
        }
    }

    fn renew(&self, state: &mut State, hold: Hold) {
        let fenced = state.fenced(&hold);
        let command = Command::Renew(Renew { attempt: self.holding(&hold), lease: TICK });
        let Reply::Renewed { lease_until } = self.submit(state, command) else { return };
        let lease = ticks(lease_until);
        if fenced {
            state.breaks(P04_FENCED);
        }
        if hold.lease < 0 {
            state.breaks(P03_LIVE);
        }
        if lease > hold.deadline {
            state.breaks(DEADLINE);
        }
        let at = take(state, hold);
        state.holds.insert(at, Hold { lease, ..hold });
        if state.keys[hold.key].fence == hold.fence {
            state.keys[hold.key].lease = lease;
        }
    }

    fn settle(&self, state: &mut State, hold: Hold, outcome: Outcome) {
        let fenced = state.fenced(&hold);
        let attempt = self.holding(&hold);
        let effect = |state: &State| {
            let row = state.ledger.effect(&attempt.effect).expect("it is held");
            (row.state, row.fence, row.holder, row.lease_until, row.answered_by)
        };
        let action = |state: &State| state.ledger.action(hold.action).map(|row| row.state.clone());
        let (before, ended) = (effect(state), action(state));
        let report = Settle::new(attempt, outcome);
        let reply = self.submit(state, Command::Settle(report));
        if fenced && (effect(state) != before || action(state) != ended) {
            state.breaks(P04_FENCED);
        }
        take(state, hold);
        let ghost = &mut state.keys[hold.key];
        if ghost.fence == hold.fence {
            ghost.reported |= matches!(reply, Reply::Settled { .. });
            ghost.said_failed |= outcome == Outcome::Failed && !fenced;
            ghost.said_committed |= outcome == Outcome::Committed && !fenced;
        }
    }

    fn resolve(&self, state: &mut State, key: usize, happened: bool) {
        let (effect, fence) = (self.keys[key], state.keys[key].fence);
        let (reason, evidence, person) = ("seen".to_owned(), None, ada());
        let command = Resolve { effect, fence, happened, reason, evidence, person };
        let reply = self.submit(state, Command::Resolve(command));
        if let Reply::Settled { repeated: false, .. } = reply {
            let ghost = &mut state.keys[key];
            ghost.answered = true;
            ghost.said_committed |= happened;
            ghost.said_failed |= !happened;
            // A person may be wrong; what follows from that is not ours.
            ghost.happened &= happened;
            ghost.in_flight &= happened;
        }
    }

    fn reconcile(&self, state: &mut State, key: usize, happened: bool) {
        let (effect, fence) = (self.keys[key], state.keys[key].fence);
        let finding = if happened { Finding::Committed(None) } else { Finding::Absent };
        let command = Reconcile { effect, fence, finding, evidence: None, remote: None, settle: TICK };
        let reply = self.submit(state, Command::Reconcile(command));
        if let Reply::Settled { repeated: false, .. } = reply {
            let ghost = &mut state.keys[key];
            ghost.answered = true;
            ghost.said_committed |= happened;
            ghost.said_failed |= !happened;
        }
    }

    fn answer(&self, state: &mut State, ask: usize, said: Said, entitled: bool) {
        let approval = self.ask_id(ask);
        let person = if entitled { ada() } else { Identity::parse("host:eve").expect("a person") };
        let shown =
            state.ledger.approval(approval).and_then(|row| row.private.bound.binding).expect("a hash");
        let reply =
            self.submit(state, Command::Answer(Answer { approval, person, said, shown, reason: None }));
        let Reply::Approval { repeated: false, .. } = reply else { return };
        let ghost = &mut state.asks[ask];
        let in_time = ghost.expires >= 0;
        match said {
            Said::Yes => ghost.yes = true,
            Said::No if ghost.yes => ghost.revoked = true,
            Said::No => ghost.denied = true,
        }
        if !entitled || !in_time {
            state.breaks(ANSWERS);
        }
    }

    fn revoke(&self, state: &mut State, ask: usize) {
        let approval = self.ask_id(ask);
        let reply = self.submit(state, Command::Revoke(Revocation { approval, person: ada() }));
        if let Reply::Approval { repeated: false, .. } = reply {
            state.asks[ask].revoked = true;
        }
    }

    fn holding(&self, hold: &Hold) -> Holding {
        Holding { effect: self.keys[hold.key], action: hold.action, fence: hold.fence }
    }
}

fn ada() -> Identity {
    Identity::parse("host:ada").expect("a person")
}

/// Takes a hold out; returns where it was.
fn take(state: &mut State, hold: Hold) -> usize {
    let at = state.holds.iter().position(|held| *held == hold).expect("it is held");
    state.holds.remove(at);
    at
}

fn perform(state: &mut State, hold: Hold, ran: Ran) {
    let at = take(state, hold);
    state.holds.insert(at, Hold { ran, ..hold });
    match ran {
        Ran::Done => happens(state, hold.key),
        Ran::Lost => state.keys[hold.key].in_flight = true,
        Ran::No => {}
    }
}

/// The effect takes place at the remote.
fn happens(state: &mut State, key: usize) {
    if std::mem::replace(&mut state.keys[key].happened, true) {
        state.breaks(P03_REMOTE);
    }
}

fn tick(state: &mut State) {
    let passes = |left: &mut i8| *left = (*left - 1).max(-1);
    state.ledger.tick();
    for hold in &mut state.holds {
        passes(&mut hold.lease);
        passes(&mut hold.deadline);
    }
    for ask in &mut state.asks {
        passes(&mut ask.expires);
    }
    for key in &mut state.keys {
        passes(&mut key.lease);
    }
}

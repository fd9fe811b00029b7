//! What each step does: the command that is submitted, and what everybody
//! hears of it.

use onceseal_core::action::Principal;
use onceseal_core::approval::{Identity, Proof};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::decide::renew;
use onceseal_core::journal::Body;
use onceseal_core::lease::{AcquireLease, CommitLease, InterruptLease, Lease, Preempt, RenewLease};
use onceseal_core::reply::{LeaseNow, Reply};
use onceseal_core::run::{Towards, Transition};
use onceseal_core::stream::StreamKind;

use crate::executor::settle_on;
use crate::ghost::{
    ALONE, FENCED, FENCES, FINAL, FOLDS, FREE, Grant, KEPT, OUTCOME, OWN, Over, RunGhost, TOKEN, VALID,
};
use crate::ledger::{TICK, now, ticks};
use crate::protocol::{Protocol, State, Step, Use, holder, stamp};

/// Most rounds of reads that a verdict may need.
const ROUNDS: usize = 5;

/// The outcomes that there are.
pub(crate) const OUTCOMES: [&str; 2] = [r#"{"done":false}"#, r#"{"done":true}"#];

impl Protocol {
    pub(crate) fn step(&self, before: &State, step: Step) -> Option<State> {
        let mut after = before.clone();
        let state = &mut after;
        match step {
            Step::Take { resource, holder, shared, preempt } => {
                self.take(state, resource, holder, shared, preempt)?;
            }
            Step::Use { resource, grant, what } => self.put_to_use(state, resource, grant, what),
            Step::Guess { resource, what } => self.guess(state, resource, what),
            Step::Crash(holder) => {
                let all = state.grants.iter_mut().flatten();
                all.filter(|grant| grant.holder == holder).for_each(|grant| grant.known = false);
            }
            Step::Hand(hand) => self.hand(state, hand)?,
            Step::Lapse(resource) => self.sweep(state, resource),
            Step::Tick => self.move_clock(state, 1),
            Step::Back => {
                state.back -= 1;
                self.move_clock(state, -1);
            }
        }
        self.judge(state);
        normalise(state);
        Some(after)
    }

    /// Decides a command on the rows as a store does, and folds what it causes
    /// into them. Also the moment at which it was decided.
    pub(crate) fn submit(&self, state: &mut State, command: Command) -> (Reply, i8) {
        let stamped = stamp(command);
        let mut at = now();
        let verdict = loop {
            let mut pinned = self.pinned.clone();
            let decided = settle_on(self.rules, &mut pinned, &state.ledger, &stamped, at);
            if decided.rounds > ROUNDS {
                state.breaks(FOLDS);
            }
            // Time never goes back within a stream.
            let written = decided.verdict.drafts.iter().filter_map(|draft| state.ledger.get(&draft.stream));
            match written.map(|stored| stored.row.updated_at()).max() {
                Some(newest) if newest > at => at = newest,
                _ => break decided.verdict,
            }
        };
        for draft in verdict.drafts {
            let (stream, event) = (draft.stream, draft.event);
            // A text is kept by the fence of its lease, so that histories are alike.
            let sequence = match &event.body {
                Body::LeaseCommitted(data, _) => data.fence,
                _ => 1,
            };
            let row = state.ledger.get(&stream).map(|stored| stored.row.clone());
            match self.rules.evolve(&stream, row, sequence, at, &event) {
                Ok(row)
                    if matches!(stream.kind, StreamKind::Lease | StreamKind::Run | StreamKind::Handoff) =>
                {
                    state.ledger.put(stream, row);
                }
                // No request is repeated here.
                Ok(_) => {}
                Err(_) => state.breaks(FOLDS),
            }
            if let (Some(payload), StreamKind::Lease | StreamKind::Handoff) = (draft.payload, stream.kind) {
                state.ledger.keep(stream, sequence, payload.text);
            }
        }
        for renewal in verdict.renewals {
            match state.ledger.get(&renewal.stream).and_then(|stored| renew(stored, &renewal)) {
                Some(stored) => state.ledger.put(renewal.stream, stored.row),
                None => state.breaks(FOLDS),
            }
        }
        (verdict.reply, ticks(at))
    }

    /// `None` if there would be more leases than bound.
    fn take(&self, state: &mut State, resource: usize, who: u8, shared: bool, preempt: bool) -> Option<()> {
        let person = Identity { proof: Proof::Os, name: "owner".to_owned() };
        let acquire = AcquireLease {
            resource: self.resources[resource].clone(),
            holder: holder(who),
            length: TICK,
            shared,
            preempt: preempt.then(|| Preempt { person, reason: "stuck".to_owned() }),
        };
        let (reply, at) = self.submit(state, Command::AcquireLease(Box::new(acquire)));
        let ended = self.run_id().is_some() && state.run.ended();
        // What it shares is less than to have it alone.
        let is_own = |grant: &&Grant| grant.live(at) && grant.holder == who && (shared || !grant.shared);
        let own = state.grants[resource].iter().find(is_own).cloned();
        let mut others = self.touched(resource).flat_map(|other| &state.grants[other]);
        let is_held = others.any(|other| other.live(at) && !(other.shared && shared));
        match reply {
            Reply::Lease(_) if ended => state.breaks(FINAL),
            Reply::Lease(now) => match own.filter(|_| !preempt) {
                Some(own) => {
                    let told = (now.lease.fence, now.lease.token(), now.shared, ticks(now.until));
                    if told != (own.fence, own.token, own.shared, own.until) {
                        state.breaks(OWN);
                    }
                    let mine = state.grants[resource].iter_mut().find(|grant| grant.fence == own.fence);
                    mine.expect("it is there").known = true;
                }
                None if state.grants[resource].len() == self.bounds.leases => return None,
                None => {
                    if is_held && !preempt {
                        state.breaks(ALONE);
                    }
                    self.handed_out(state, resource, who, &now, at, preempt);
                }
            },
            Reply::Refused(refusal) => match refusal.code {
                Code::RunEnded if ended => {}
                Code::LeaseHeld if own.is_some() && !preempt => state.breaks(OWN),
                Code::LeaseHeld if is_held && !preempt => {}
                _ => state.breaks(FREE),
            },
            _ => state.breaks(FREE),
        }
        Some(())
    }

    /// One more lease. What it took the place of is over.
    pub(crate) fn handed_out(
        &self,
        state: &mut State,
        resource: usize,
        who: u8,
        now: &LeaseNow,
        at: i8,
        preempt: bool,
    ) {
        if state.grants[resource].iter().any(|grant| grant.fence >= now.lease.fence) {
            state.breaks(FENCES);
        }
        self.lapse(state, resource, at);
        for other in self.touched(resource) {
            for grant in &mut state.grants[other] {
                if grant.lapses(at) || preempt && grant.live(at) {
                    grant.over = Over::Gone;
                }
            }
        }
        state.grants[resource].push(Grant {
            fence: now.lease.fence,
            holder: who,
            shared: now.shared,
            until: ticks(now.until),
            token: now.lease.token(),
            known: true,
            over: Over::No,
        });
    }

    /// Whatever is over is recorded. `false`: nothing is.
    pub(crate) fn lapse(&self, state: &mut State, resource: usize, at: i8) -> bool {
        let grants = &mut state.grants[resource];
        let over = grants.iter().any(|grant| grant.lapses(at));
        let left = grants.iter().any(|grant| grant.live(at));
        grants.iter_mut().filter(|grant| grant.lapses(at)).for_each(|grant| grant.over = Over::Gone);
        if over && !left && self.resources[resource].of_run().is_some() {
            state.run.interrupt();
        }
        over
    }

    fn sweep(&self, state: &mut State, resource: usize) {
        let (reply, at) = self.submit(state, Command::Lapse(self.streams[resource]));
        let over = self.lapse(state, resource, at);
        if reply != (Reply::Done { changed: over }) {
            state.breaks(KEPT);
        }
    }

    fn to_use(&self, lease: Lease, what: Use) -> Command {
        match what {
            Use::Renew(ticks) => {
                Command::RenewLease(RenewLease { lease, length: TICK.times(u32::from(ticks)) })
            }
            Use::Commit(outcome) => {
                Command::CommitLease(CommitLease { lease, outcome: OUTCOMES[outcome].to_owned() })
            }
            Use::GiveUp => Command::InterruptLease(InterruptLease { lease }),
            Use::Move(to) => Command::Transition(Transition {
                run: self.run_id().expect("a run is held"),
                to: Towards::State(to.to_owned()),
                code: None,
                request: "move".to_owned(),
                principal: Principal::agent("bot"),
                under: Some(lease),
            }),
        }
    }

    fn put_to_use(&self, state: &mut State, resource: usize, grant: usize, what: Use) {
        let lease = self.lease(resource, &state.grants[resource][grant]);
        let (reply, at) = self.submit(state, self.to_use(lease, what));
        let mine = &mut state.grants[resource][grant];
        let live = mine.live(at);
        let moved = matches!(reply, Reply::Run(_));
        let accepted = match (reply, what) {
            (Reply::Lease(now), Use::Renew(_)) => {
                mine.until = ticks(now.until);
                true
            }
            (Reply::Done { changed: true }, Use::Commit(outcome)) => {
                if matches!(mine.over, Over::With(_)) {
                    return state.breaks(OUTCOME);
                }
                mine.over = Over::With(outcome);
                true
            }
            (Reply::Done { changed: true }, Use::GiveUp) => {
                mine.over = Over::Gone;
                true
            }
            (Reply::Done { changed: false }, Use::Commit(outcome)) if mine.over == Over::With(outcome) => {
                self.lapse(state, resource, at);
                return;
            }
            (Reply::Run(_), Use::Move(to)) => {
                if state.run.ended() {
                    state.breaks(FINAL);
                }
                state.run = RunGhost { state: to, interrupted: false };
                true
            }
            (Reply::Refused(refusal), _) => match (refusal.code, what) {
                (Code::LeaseFenced, _) => false,
                (Code::OutcomeFinal, Use::Commit(other)) => {
                    if !matches!(mine.over, Over::With(outcome) if outcome != other) {
                        state.breaks(OUTCOME);
                    }
                    self.lapse(state, resource, at);
                    return;
                }
                // The lease was looked at; the move is not legal.
                (Code::TransitionForbidden | Code::RunEnded, Use::Move(_)) => true,
                _ => return state.breaks(VALID),
            },
            _ => return state.breaks(OUTCOME),
        };
        if !accepted || matches!(what, Use::Move(_)) {
            // Whatever is over is recorded by whoever meets it.
            self.lapse(state, resource, at);
        }
        if accepted && moved && state.run.ended() {
            // Nobody else has anything left to do.
            let others = state.grants[resource].iter_mut().enumerate().filter(|(other, _)| *other != grant);
            others.filter(|(_, other)| other.live(at)).for_each(|(_, other)| other.over = Over::Gone);
        }
        match (accepted, live) {
            (true, false) => state.breaks(FENCED),
            (false, true) => state.breaks(VALID),
            _ => {}
        }
    }

    fn guess(&self, state: &mut State, resource: usize, what: Use) {
        let Some(newest) = state.grants[resource].last() else { return };
        let guessed = Grant { token: [0; 16], ..newest.clone() };
        let lease = self.lease(resource, &guessed);
        let (reply, _) = self.submit(state, self.to_use(lease, what));
        let refused = matches!(&reply, Reply::Refused(refusal) if refusal.code == Code::LeaseFenced);
        if !refused {
            state.breaks(TOKEN);
        }
    }

    fn move_clock(&self, state: &mut State, by: i8) {
        state.ledger.move_clock(by, state.back);
        for grant in state.grants.iter_mut().flatten() {
            grant.until = (grant.until - by).max(-i8::try_from(state.back).expect("few") - 1);
        }
    }
}

/// What makes no difference any more is made equal.
fn normalise(state: &mut State) {
    for grant in state.grants.iter_mut().flatten() {
        if grant.over != Over::No {
            (grant.shared, grant.until) = (false, 0);
        }
    }
}

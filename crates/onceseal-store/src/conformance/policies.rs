//! The active policy is state, and its limits hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use onceseal_core::action::{ActionState, Answer, Reach};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::Outcome;
use onceseal_core::hash::Hash;
use onceseal_core::journal::Payload;
use onceseal_core::policy::Activate;
use onceseal_core::reply::Reply;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Span;

use super::tamper::{self, Distort, Tamper};
use super::world::{POLICY, World, call, code, pay};
use super::{Subject, Verdict, ensure_eq, suite, take};
use crate::clock::{ManualClock, Reading};
use crate::error::StoreError;
use crate::parts::Parts;

suite! { "policies":
    the_policy_that_was_activated_last_decides
    a_policy_is_found_by_its_hash_for_ever
    an_old_policy_does_not_come_back_by_itself
    a_proposal_under_another_policy_is_told_the_active_one
    nothing_is_decided_without_a_policy
    a_policy_whose_text_is_not_what_its_hash_says_decides_nothing
    what_the_policy_does_not_permit_is_denied_with_its_reason
    attempts_are_limited
    a_call_may_shorten_its_lease_and_never_lengthen_it
    a_proposal_waits_to_be_started_for_a_while
}

fn stricter() -> String {
    POLICY.replace("\"amount_lte\": 100}", "\"amount_lte\": 10}")
}

fn the_policy_that_was_activated_last_decides(subject: &dyn Subject) -> Verdict {
    let mut world = World::open(subject)?;
    world.attempt(&pay("a"))?;
    world.activate(&stricter())?;
    let active = world.store.active_policy()?.map(|policy| policy.hash);
    ensure_eq!(active, Some(world.policy.hash), "the store says which is active");
    world.asked(&pay("b"))?;
    Ok(())
}

fn a_policy_is_found_by_its_hash_for_ever(subject: &dyn Subject) -> Verdict {
    let mut world = World::open(subject)?;
    let first = world.policy.clone();
    world.activate(&stricter())?;
    for policy in [&first, &world.policy] {
        let found = world.store.policy(policy.hash)?.map(|found| (found.hash, found.text.clone()));
        ensure_eq!(found, Some((policy.hash, policy.text.clone())), "its text is kept");
    }
    let unknown = world.store.policy(Hash([7; 32]))?.map(|policy| policy.hash);
    ensure_eq!(unknown, None, "one that never was active");
    Ok(())
}

fn an_old_policy_does_not_come_back_by_itself(subject: &dyn Subject) -> Verdict {
    let mut world = World::open(subject)?;
    let first = world.policy.clone();
    let activate = |again| Command::Activate(Activate { policy: first.clone(), again, person: None });
    let unchanged = Reply::Policy { active: first.hash, changed: false };
    let events = world.log()?.len();
    ensure_eq!(world.command(activate(false))?, unchanged, "it is active already");
    ensure_eq!(world.log()?.len(), events, "nothing is recorded of it");
    world.activate(&stricter())?;
    ensure_eq!(
        world.refused(activate(false))?.code,
        Code::PolicyFileOld,
        "it was active before, and is not now"
    );
    let active = world.store.active_policy()?.map(|policy| policy.hash);
    ensure_eq!(active, Some(world.policy.hash), "the newer one stays");
    ensure_eq!(
        world.command(activate(true))?,
        Reply::Policy { active: first.hash, changed: true },
        "unless somebody wants it so"
    );
    let active = world.store.active_policy()?.map(|policy| policy.hash);
    ensure_eq!(active, Some(first.hash), "then it decides again");
    Ok(())
}

fn a_proposal_under_another_policy_is_told_the_active_one(subject: &dyn Subject) -> Verdict {
    let mut world = World::open(subject)?;
    let prepared = world.to_run(&pay("k"))?;
    world.activate(&stricter())?;
    let events = world.log()?.len();
    ensure_eq!(
        world.command(prepared)?,
        Reply::PolicyStale { active: world.policy.hash },
        "it was prepared under the policy before"
    );
    ensure_eq!(world.log()?.len(), events, "nothing is recorded of it");
    Ok(())
}

fn nothing_is_decided_without_a_policy(subject: &dyn Subject) -> Verdict {
    let clock = ManualClock::new(Reading { wall_us: 1_800_000_000_000_000, boot_us: 0 });
    let world = World::bare(subject, "default", Arc::new(clock), |parts| parts)?;
    ensure_eq!(world.store.active_policy()?.map(|policy| policy.hash), None, "none was activated");
    ensure_eq!(code(&world.run(&pay("k"))?), Some(Code::PolicyMissing), "so nothing runs");
    Ok(())
}

/// Once somebody has been there, every policy that is read permits more.
struct Tampered(Arc<AtomicBool>);

impl Tampered {
    fn change(&self, text: Option<Payload>) -> Option<Payload> {
        let was_there = self.0.load(Ordering::SeqCst);
        text.map(|payload| match was_there {
            true => Payload { text: payload.text.replace("1000}", "9999}"), ..payload },
            false => payload,
        })
    }
}

impl Tamper for Tampered {
    fn text(&mut self, _: &StreamId, _: u64, text: Option<Payload>) -> Option<Payload> {
        self.change(text)
    }
}

impl Distort for Tampered {
    fn text(&self, text: Option<Payload>) -> Result<Option<Payload>, StoreError> {
        Ok(self.change(text))
    }
}

fn a_policy_whose_text_is_not_what_its_hash_says_decides_nothing(subject: &dyn Subject) -> Verdict {
    let somebody = Arc::new(AtomicBool::new(false));
    let change = |mut parts: Parts| {
        parts.backend = tamper::backend(parts.backend, Tampered(somebody.clone()));
        parts.readers = tamper::readers(parts.readers, Tampered(somebody.clone()));
        parts
    };
    let mut world = World::with(subject, "default", change)?;
    let first = world.policy.clone();
    world.activate(&stricter())?;
    world.asked(&pay("k"))?;
    somebody.store(true, Ordering::SeqCst);
    for read in [world.store.active_policy(), world.store.policy(world.policy.hash)] {
        let code = read.err().map(|error| error.code());
        ensure_eq!(code, Some(Code::Corrupt), "it is not what was activated");
    }
    // The writer has the text of the active one, and must look for another's.
    let again = Activate { policy: first, again: false, person: None };
    let answer = world.store.run(Command::Activate(again));
    ensure_eq!(answer.err().map(|error| error.code()), Some(Code::Corrupt), "nor can it be compared with it");
    Ok(())
}

fn what_the_policy_does_not_permit_is_denied_with_its_reason(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    for (denied, reason) in [(call("pay", "k", 1001), "rule[2]"), (call("burn", "k", 1), "unknown_action")] {
        let refusal = world.refusal(&denied)?;
        ensure_eq!(
            (refusal.code, refusal.reason.as_deref()),
            (Code::PolicyDenied, Some(reason)),
            "{} is denied",
            denied.name
        );
        let Some(id) = refusal.action else { return Err(super::Failure::new("a denial is recorded")) };
        let row = world.action(id)?;
        take!(row.state, ActionState::Ended { result: Answer::Denied, code: Some(Code::PolicyDenied), receipt }
            if Some(receipt) == refusal.receipt => (), "it has ended with a receipt");
        ensure_eq!(
            (row.decided.policy, row.decided.reason.as_str()),
            (world.policy.hash, reason),
            "the row says by which policy and rule"
        );
    }
    Ok(())
}

fn attempts_are_limited(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    for fence in 1..=2 {
        let taken = world.attempt(&call("retry", "k", 1))?;
        ensure_eq!(taken.fence, fence, "attempt {fence} of two");
        world.settle(&taken, Outcome::Failed)?;
    }
    ensure_eq!(
        code(&world.run(&call("retry", "k", 1))?),
        Some(Code::AttemptLimit),
        "a third is not permitted"
    );
    ensure_eq!(world.effect(&world.effect_of("retry:k"))?.fence, 2, "nor made");
    ensure_eq!(world.attempt(&call("retry", "other", 1))?.fence, 1, "another key has its own");
    Ok(())
}

fn a_call_may_shorten_its_lease_and_never_lengthen_it(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let mut leased = pay("k");
    for wrong in [Span::minutes(3), Span::millis(999)] {
        leased.lease = Some(wrong);
        ensure_eq!(
            code(&world.run(&leased)?),
            Some(Code::OutOfBounds),
            "{wrong} is outside the policy's bounds"
        );
    }
    leased.lease = Some(Span::seconds(1));
    let taken = world.attempt(&leased)?;
    ensure_eq!(taken.lease_until, world.now() + Span::seconds(1), "a shorter one is given");
    Ok(())
}

fn a_proposal_waits_to_be_started_for_a_while(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let mut ready = pay("k");
    ready.reach = Reach::Ready;
    let ended = take!(world.run(&ready)?, Reply::Ready { action, .. } => action, "it is permitted");
    ready.id = "l";
    let started = take!(world.run(&ready)?, Reply::Ready { action, .. } => action, "it is permitted");
    world.pass(Span::minutes(15));
    let mut go = pay("l");
    go.action = Some(started);
    ensure_eq!(world.attempt(&go)?.action, started, "the end of its time is inclusive");
    world.pass(Span::micros(1));
    go.id = "k";
    go.action = Some(ended);
    ensure_eq!(code(&world.run(&go)?), Some(Code::NotStarted), "then it is over");
    take!(world.action(ended)?.state, ActionState::Ended { code: Some(Code::NotStarted), .. } => (),
        "and stays so");
    ensure_eq!(world.attempt(&pay("k"))?.fence, 1, "its key was never taken");
    Ok(())
}

//! A day in the shop: every kind of command, each answered before the next, so
//! that at any moment at most one is under way (or one batch).

use std::sync::Arc;

use onceseal_core::action::Reach;
use onceseal_core::approval::Said;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{Begin, Holding, Outcome, Renew, Resolve};
use onceseal_core::id::ApprovalId;
use onceseal_core::reply::{Attempt, Reply};
use onceseal_core::stream::StreamId;
use onceseal_core::time::Span;
use onceseal_store::clock::ManualClock;

use crate::shop::{LEASE, Shop, attempt, host, refused, settle};

/// Kinds of customers.
pub const KINDS: usize = 8;

/// Serves the `n`-th customer. Answers the payments whose effects were
/// attempted, with the name of the action.
///
/// # Panics
/// If the store answers anything but what the rules say.
pub fn serve(shop: &mut Shop, clock: &Arc<ManualClock>, n: usize) -> Vec<(&'static str, String)> {
    clock.advance(1_000_000);
    let payment = format!("p{n}");
    let name = match n % KINDS {
        0 => return refunds_together(shop, n),
        1 => refund(shop, &payment),
        2 => payout(shop, &payment),
        3 => second_try(shop, &payment),
        4 => lapse(shop, clock, &payment, n.is_multiple_of(16)),
        5 => closure(shop, &payment),
        6 => return denied(shop, clock, &payment),
        _ => refused_by_policy(shop, &payment),
    };
    vec![(name, payment)]
}

fn run(shop: &mut Shop, command: Command) -> Attempt {
    let outcome = shop.run(command);
    attempt(&outcome)
}

fn settled(shop: &mut Shop, attempt: &Attempt, outcome: Outcome) {
    let reply = shop.run(settle(attempt, outcome));
    assert!(matches!(reply, Ok(Reply::Settled { repeated: false, .. })), "{reply:?}");
}

fn asked(shop: &mut Shop, name: &str, payment: &str) -> ApprovalId {
    let run = shop.action(name, payment, Reach::Executing);
    match shop.run(Command::Run(Box::new(run))) {
        Ok(Reply::ApprovalNeeded { approval, joined: false, .. }) => approval,
        other => panic!("not asked: {other:?}"),
    }
}

fn approved(shop: &mut Shop, name: &str, payment: &str, approval: ApprovalId) -> Attempt {
    let mut again = shop.action(name, payment, Reach::Executing);
    again.approval = Some(approval);
    let attempt = run(shop, Command::Run(Box::new(again)));
    assert_eq!(attempt.approval, Some(approval));
    attempt
}

/// Commands that share a commit, and a duplicate among them.
fn refunds_together(shop: &mut Shop, n: usize) -> Vec<(&'static str, String)> {
    let payments: Vec<String> = (0..4).map(|i| format!("p{n}-{i}")).collect();
    let commands = payments.iter().chain([&payments[0]]).map(|payment| shop.refund(payment)).collect();
    let outcomes = shop.run_all(commands).expect("submitted");
    let attempts: Vec<Attempt> = outcomes[..4].iter().map(attempt).collect();
    assert_eq!(refused(&outcomes[4]), Code::InProgress);
    let reports = attempts[..3].iter().map(|attempt| settle(attempt, Outcome::Committed)).collect();
    let outcomes = shop.run_all(reports).expect("submitted");
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    payments.into_iter().map(|payment| ("refund", payment)).collect()
}

fn refund(shop: &mut Shop, payment: &str) -> &'static str {
    let command = shop.refund(payment);
    let attempt = run(shop, command);
    settled(shop, &attempt, Outcome::Committed);
    "refund"
}

/// Asked, answered, used.
fn payout(shop: &mut Shop, payment: &str) -> &'static str {
    let approval = asked(shop, "payout", payment);
    shop.answer(approval, "anna", Said::Yes).expect("answered");
    let attempt = approved(shop, "payout", payment, approval);
    settled(shop, &attempt, Outcome::Committed);
    "payout"
}

/// Reserved, begun, renewed, failed; then tried again.
fn second_try(shop: &mut Shop, payment: &str) -> &'static str {
    let first = shop.action("refund", payment, Reach::Reserved);
    let reserved = run(shop, Command::Run(Box::new(first)));
    let holding = Holding::from(&reserved);
    let begun = run(shop, Command::Begin(Begin { attempt: holding, lease: reserved.lease }));
    shop.run(Command::Renew(Renew { attempt: holding, lease: Span::minutes(5) })).expect("renewed");
    settled(shop, &begun, Outcome::Failed);
    let again = shop.refund(payment);
    let second = run(shop, again);
    assert_eq!(second.fence, 2);
    settled(shop, &second, Outcome::Committed);
    "refund"
}

/// Never reported: unknown, until a person says.
fn lapse(shop: &mut Shop, clock: &Arc<ManualClock>, payment: &str, happened: bool) -> &'static str {
    let command = shop.refund(payment);
    let first = run(shop, command);
    clock.advance(LEASE.as_micros() + 1);
    let lapsed = shop.run(Command::Lapse(first.effect));
    assert!(matches!(lapsed, Ok(Reply::Done { changed: true })), "{lapsed:?}");
    let again = shop.refund(payment);
    assert_eq!(refused(&shop.run(again)), Code::Ambiguous);
    let resolve = Resolve {
        effect: first.effect,
        fence: first.fence,
        happened,
        reason: "looked at the bank".to_owned(),
        evidence: None,
        person: host("olga"),
    };
    shop.run(Command::Resolve(resolve)).expect("resolved");
    if !happened {
        let again = shop.refund(payment);
        let second = run(shop, again);
        settled(shop, &second, Outcome::Ambiguous);
    }
    "refund"
}

/// Two people must say yes; the effect is taken and left running.
fn closure(shop: &mut Shop, payment: &str) -> &'static str {
    let approval = asked(shop, "closure", payment);
    shop.answer(approval, "anna", Said::Yes).expect("answered");
    shop.answer(approval, "ben", Said::Yes).expect("answered");
    approved(shop, "closure", payment, approval);
    "closure"
}

/// One request denied, another never answered: no effect is taken.
fn denied(shop: &mut Shop, clock: &Arc<ManualClock>, payment: &str) -> Vec<(&'static str, String)> {
    let no = asked(shop, "payout", payment);
    shop.answer(no, "ben", Said::No).expect("answered");
    let again = Command::Run(Box::new(shop.action("payout", payment, Reach::Executing)));
    assert_eq!(refused(&shop.run(again)), Code::ApprovalDenied);
    let unanswered = asked(shop, "payout", &format!("{payment}-late"));
    clock.advance(Span::minutes(16).as_micros());
    let lapsed = shop.run(Command::Lapse(StreamId::approval(unanswered)));
    assert!(matches!(lapsed, Ok(Reply::Done { changed: true })), "{lapsed:?}");
    Vec::new()
}

/// Denied by the policy; and a duplicate of what has happened.
fn refused_by_policy(shop: &mut Shop, payment: &str) -> &'static str {
    let deletion = Command::Run(Box::new(shop.action("deletion", payment, Reach::Executing)));
    assert_eq!(refused(&shop.run(deletion)), Code::PolicyDenied);
    refund(shop, payment);
    let again = shop.refund(payment);
    assert_eq!(refused(&shop.run(again)), Code::Duplicate);
    "refund"
}

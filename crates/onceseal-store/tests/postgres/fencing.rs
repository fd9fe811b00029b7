//! Whoever was taken over is fenced, also where who takes over locks other
//! keys than who is taken over.

use std::sync::{Arc, Barrier};
use std::thread;

use onceseal_core::approval::{Identity, Proof};
use onceseal_core::code::Code;
use onceseal_core::command::{Command, Stamped};
use onceseal_core::id::{HolderKey, RootId};
use onceseal_core::journal::Kind;
use onceseal_core::lease::{AcquireLease, CommitLease, Lease, Preempt, RenewLease, Resource};
use onceseal_core::reply::Reply;
use onceseal_core::time::Span;
use onceseal_servers::{server, until};
use onceseal_store::clock::{ManualClock, Reading};
use onceseal_store::{Parts, Store, StoreError};

use crate::base::*;

const ROUNDS: usize = 25;
const LENGTH: Span = Span::minutes(1);

fn path(text: &str) -> Resource {
    Resource::parse(&format!("root/{}/path/{text}", RootId([1; 16]))).expect("a resource")
}

fn taking(resource: &Resource, by: u8, preempt: Option<Preempt>) -> Command {
    let (resource, holder) = (resource.clone(), HolderKey([by; 16]));
    Command::AcquireLease(Box::new(AcquireLease { resource, holder, length: LENGTH, shared: false, preempt }))
}

fn renewing(lease: &Lease) -> Command {
    Command::RenewLease(RenewLease { lease: lease.clone(), length: Span::minutes(2) })
}

fn committing(lease: &Lease) -> Command {
    Command::CommitLease(CommitLease { lease: lease.clone(), outcome: "done".to_owned() })
}

fn lease(answer: Result<Reply, StoreError>) -> Lease {
    match answer {
        Ok(Reply::Lease(now)) => now.lease,
        other => panic!("no lease: {other:?}"),
    }
}

/// What two processes say at the same moment.
fn at_once(
    (one, first): (&Store, Command),
    (two, second): (&Store, Command),
    meanwhile: impl FnOnce() + Send,
) -> [Result<Reply, StoreError>; 2] {
    let together = Barrier::new(3);
    let run = |store: &Store, command| {
        together.wait();
        store.run(command)
    };
    thread::scope(|scope| {
        let threads = [scope.spawn(|| run(one, first)), scope.spawn(|| run(two, second))];
        together.wait();
        meanwhile();
        threads.map(|thread| thread.join().expect("no panic"))
    })
}

#[test]
fn of_who_renews_a_lease_that_ends_and_who_takes_what_it_is_a_part_of_one_has_it() {
    let database = server().new_database();
    let start = Reading { wall_us: 1_800_000_000_000_000, boot_us: 1_000_000_000 };
    let clock = Arc::new(ManualClock::new(start));
    let one = open_with(&database, "one", clock.clone());
    let two = open_with(&database, "two", clock.clone());
    for round in 0..ROUNDS {
        let (part, whole) = (path(&format!("{round}/part")), path(&round.to_string()));
        let held = lease(one.run(taking(&part, 1, None)));
        let ends = || clock.advance(LENGTH.as_micros() + 1);
        let [renewed, taken] = at_once((&one, renewing(&held)), (&two, taking(&whole, 2, None)), ends);
        match (code(&renewed), code(&taken)) {
            (None, Some(Code::LeaseHeld)) => assert_eq!(code(&one.run(renewing(&held))), None),
            // Too late for one, too early for the other.
            (Some(_), Some(Code::LeaseHeld)) => {
                assert!(code(&one.run(committing(&held))).is_some(), "it is over");
            }
            (Some(_), None) => {
                for late in [renewing(&held), committing(&held)] {
                    assert!(code(&one.run(late)).is_some(), "it was taken over");
                }
                assert_eq!(code(&two.run(renewing(&lease(taken)))), None);
            }
            other => panic!("both have it in round {round}: {other:?}"),
        }
    }
    assert_sound(&one);
}

/// Has this done whenever a command is decided, with all that it needed looked at.
pub(crate) fn decided(mut parts: Parts, then: impl Fn(&Stamped) + Send + Sync + 'static) -> Parts {
    let decide = parts.decide;
    parts.decide = Arc::new(move |pinned, view, command, now| {
        let verdict = decide(pinned, view, command, now)?;
        then(command);
        Ok(verdict)
    });
    parts
}

/// How many of two that take what overlaps at the same moment have it.
pub(crate) fn both_take_what_overlaps(change: fn(Parts) -> Parts) -> usize {
    let database = server().new_database();
    let latch = Latch::default();
    let (_opens, inside) = (Opens(latch.clone()), latch.clone());
    let two = decided(change(parts(&database, "two")), move |command| {
        if matches!(command.command, Command::AcquireLease(_)) {
            inside.pass();
        }
    });
    let one = Store::of(change(parts(&database, "one"))).expect("opened");
    let two = Store::of(two).expect("opened");
    let whole = two.submit(taking(&path("whole"), 2, None)).expect("submitted");
    latch.reached();
    let mut part = one.submit(taking(&path("whole/part"), 1, None)).expect("submitted");
    let answered = until("the other is answered or waits", || match answer_of(&mut part) {
        None => is_waiting(&database, "one", 1).then_some(None),
        answer => Some(answer),
    });
    latch.open();
    let answers = [whole.wait(), answered.unwrap_or_else(|| part.wait())];
    answers.iter().filter(|answer| matches!(answer, Ok(Reply::Lease(_)))).count()
}

#[test]
fn nothing_is_recorded_of_a_holder_after_an_operator_took_what_it_is_a_part_of() {
    let database = server().new_database();
    let (one, two) = (open(&database, "one"), open(&database, "two"));
    assert_eq!(code(&one.run(activate(&policy("allow"), false))), None);
    for round in 0..ROUNDS {
        let (part, whole) = (path(&format!("{round}/part")), path(&round.to_string()));
        let held = lease(one.run(taking(&part, 1, None)));
        let person = Identity { proof: Proof::Host, name: "olga".to_owned() };
        let preempt = Some(Preempt { person, reason: "stuck".to_owned() });
        let command = if round % 2 == 0 { committing(&held) } else { renewing(&held) };
        let [said, taken] = at_once((&one, command), (&two, taking(&whole, 2, preempt)), || ());
        let taken = lease(taken);
        let is_committed = round % 2 == 0 && code(&said).is_none();
        assert!(code(&one.run(renewing(&held))).is_some(), "it has it no more");
        assert_eq!(code(&one.run(committing(&held))).is_none(), is_committed, "said again, or never");
        assert_eq!(code(&two.run(renewing(&taken))), None);
        let stream = one.tenant().lease(&part.to_string());
        let kinds: Vec<Kind> = events(&one, &stream)
            .into_iter()
            .map(|event| event.event.expect("it decodes").body.kind())
            .collect();
        assert_eq!(kinds.len(), 2, "{kinds:?}");
        assert_eq!(kinds[1] == Kind::LeasePreempted, !is_committed, "{kinds:?}");
    }
    assert_sound(&one);
}

//! Waiting for locks: what is decided afterwards rests on what was committed
//! meanwhile, and nobody waits who need not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use onceseal_core::code::Code;
use onceseal_core::command::{Command, Nonce, Stamped};
use onceseal_core::journal::Kind;
use onceseal_core::json::Object;
use onceseal_core::reply::Reply;
use onceseal_core::time::Span;
use onceseal_core::view::{Halt, Read};
use onceseal_servers::{server, until};
use onceseal_store::{Parts, Store, Ticket};

use crate::base::*;

#[test]
fn who_waited_for_a_lock_decides_on_what_was_committed_meanwhile() {
    let database = server().new_database();
    let (two, latch) = stopping(&database, "two", "k");
    let _opens = Opens(latch.clone());
    let one = open(&database, "one");
    let first = two.submit(reserve("k", 2)).expect("submitted");
    latch.reached();
    let second = one.submit(reserve("k", 1)).expect("submitted");
    until_waiting(&database, "one", 1);
    latch.open();
    assert_eq!(attempt(first.wait()).fence, 1);
    refused(second.wait(), Code::InProgress);
    assert_eq!(events_of(&one, "k").len(), 1);
    assert_sound(&one);
}

/// What somebody is told who waited for a lock while the key came free.
pub(crate) fn refusal_after_a_wait(change: impl Fn(Parts) -> Parts) -> Option<Code> {
    let database = server().new_database();
    let latch = Latch::default();
    let (_opens, inside) = (Opens(latch.clone()), latch.clone());
    let two = watched(&database, "two", move |_, command| {
        if matches!(command.command, Command::Settle(_)) {
            inside.pass();
        }
        Ok(())
    });
    let one = Store::of(change(parts(&database, "one"))).expect("opened");
    let taken = started(&two, "k", 2);
    let settles = two.submit(failed(&taken)).expect("submitted");
    latch.reached();
    let wants = one.submit(reserve("k", 1)).expect("submitted");
    until_waiting(&database, "one", 1);
    latch.open();
    assert_eq!(code(&settles.wait()), None);
    let told = code(&wants.wait());
    assert_sound(&one);
    told
}

#[test]
fn a_refusal_rests_on_what_was_committed_while_its_lock_was_waited_for() {
    // Whoever saw it as it was would refuse, save nothing, and so never learn of it.
    assert_eq!(refusal_after_a_wait(|parts| parts), None);
}

#[test]
fn who_shares_what_another_changes_decides_on_what_it_was_changed_to() {
    let database = server().new_database();
    let latch = Latch::default();
    let (_opens, inside) = (Opens(latch.clone()), latch.clone());
    let two = watched(&database, "two", move |_, command| {
        if matches!(&command.command, Command::Activate(activate) if activate.again) {
            inside.pass();
        }
        Ok(())
    });
    let one = open(&database, "one");
    let (before, after) = (policy("allow"), policy("deny"));
    assert_eq!(code(&one.run(activate(&before, false))), None);
    let activated = two.submit(activate(&after, true)).expect("submitted");
    latch.reached();
    let run =
        one.submit(run(proposal(&one, &before, "pay", Object::new()).expect("one"))).expect("submitted");
    until_waiting(&database, "one", 1);
    latch.open();
    assert_eq!(code(&activated.wait()), None);
    let answer = run.wait();
    assert!(matches!(answer, Ok(Reply::PolicyStale { active }) if active == after.hash), "{answer:?}");
    assert_sound(&one);
}

#[test]
fn who_waited_for_a_lock_decides_with_a_time_after_it_was_had() {
    let database = server().new_database();
    let (one, numbers) = (open(&database, "one"), Numbers::of(&database));
    let (key, mut holder) = (numbers.key("k"), Session::open(&database));
    holder.lock(key);
    let waiting = one.submit(reserve("k", 1)).expect("submitted");
    until_waiting(&database, "one", 1);
    let before = now(&database);
    holder.unlock(key);
    attempt(waiting.wait());
    let at = events_of(&one, "k")[0].stamp.at.micros();
    assert!(at >= before, "{at} is before {before}, when the lock was not yet free");
}

/// What somebody is told of a key whose lease ended while he waited for its lock.
pub(crate) fn told_once_the_lease_is_over(change: impl Fn(Parts) -> Parts) -> Option<Code> {
    let database = server().new_database();
    let (one, two) = (Store::of(change(parts(&database, "one"))).expect("opened"), open(&database, "two"));
    let (key, mut holder) = (Numbers::of(&database).key("k"), Session::open(&database));
    let first = attempt(two.run(reserve_for("k", 2, Span::seconds(1))));
    holder.lock(key);
    let waiting = one.submit(reserve("k", 1)).expect("submitted");
    until_waiting(&database, "one", 1);
    let end = first.lease_until.micros();
    until("the lease ends", || (now(&database) > end).then_some(()));
    holder.unlock(key);
    let told = code(&waiting.wait());
    let kinds = events_of(&one, "k").into_iter().map(|event| event.event.expect("it decodes").body.kind());
    if told == Some(Code::Ambiguous) {
        let expected = [Kind::EffectAcquired, Kind::EffectLapsed];
        assert_eq!(kinds.collect::<Vec<_>>(), expected, "it is recorded that the lease is over");
    }
    assert_sound(&one);
    told
}

#[test]
fn a_lease_that_ends_while_somebody_waits_for_its_lock_is_over_for_him() {
    assert_eq!(told_once_the_lease_is_over(|parts| parts), Some(Code::Ambiguous));
}

#[test]
fn a_key_that_is_held_long_delays_only_who_needs_it() {
    let database = server().new_database();
    let (one, numbers) = (open(&database, "one"), Numbers::of(&database));
    let (key, mut holder) = (numbers.key("held"), Session::open(&database));
    holder.lock(key);
    let mut waiting: Vec<Ticket> =
        (0..3).map(|n| one.submit(reserve("held", n)).expect("submitted")).collect();
    until_waiting(&database, "one", 1);
    // More than fit into one batch, together with more of those that must wait.
    let mixed: Vec<Ticket> =
        (0..300).map(|n| one.submit(reserve(&format!("free {n}"), 1)).expect("submitted")).collect();
    waiting.extend((3..6).map(|n| one.submit(reserve("held", n)).expect("submitted")));
    let later = one.submit(reserve("free too", 1)).expect("submitted");
    for ticket in mixed.into_iter().chain([later]) {
        assert_eq!(attempt(ticket.wait()).fence, 1);
    }
    assert_eq!(waiting.iter_mut().filter_map(answer_of).count(), 0);
    holder.unlock(key);
    let answers: Vec<_> = waiting.into_iter().map(Ticket::wait).collect();
    let taken = answers.iter().filter(|answer| code(answer).is_none()).count();
    let others = answers.iter().filter(|answer| code(answer) == Some(Code::InProgress)).count();
    assert_eq!((taken, others), (1, 5), "{answers:?}");
    assert_sound(&one);
}

#[test]
fn who_needs_another_key_is_answered_while_somebody_waits() {
    let database = server().new_database();
    let (one, numbers) = (open(&database, "one"), Numbers::of(&database));
    let (key, mut holder) = (numbers.key("held"), Session::open(&database));
    holder.lock(key);
    let waiting = "SELECT xact_start FROM pg_stat_activity WHERE application_name = 'one' \
                   AND datname = current_database() AND wait_event = 'advisory'";
    // A wait ends by itself after a while, on a busy machine perhaps just then.
    let is_beside = (0..5).any(|n| {
        let held = one.submit(reserve("held", n)).expect("submitted");
        until_waiting(&database, "one", 1);
        let since = database.sql(waiting);
        attempt(one.run(reserve(&format!("free {n}"), 1)));
        let is_beside = !since.is_empty() && database.sql(waiting) == since;
        refused(held.wait(), Code::StoreBusy);
        is_beside
    });
    assert!(is_beside, "each was answered only when the other's wait was over");
}

#[test]
fn who_waits_in_vain_is_told_that_the_store_is_busy_or_withdraws() {
    let database = server().new_database();
    let (one, numbers) = (open(&database, "one"), Numbers::of(&database));
    let keys = ["a", "b", "c", "d", "e"];
    let mut holder = Session::open(&database);
    keys.iter().for_each(|key| holder.lock(numbers.key(key)));
    let waiting: Vec<Ticket> =
        keys.iter().take(3).map(|key| one.submit(reserve(key, 1)).expect("submitted")).collect();
    // Each lane waits for one of them.
    until_waiting(&database, "one", 3);
    let withdrawn = one.submit(reserve("d", 1)).expect("submitted");
    until("it is put aside", || withdrawn.withdraw().then_some(()));
    refused(withdrawn.wait(), Code::StoreBusy);
    let beside = one.submit(reserve("e", 1)).expect("submitted");
    attempt(one.run(reserve("free", 1)));
    for ticket in waiting.into_iter().chain([beside]) {
        refused(ticket.wait(), Code::StoreBusy);
    }
    drop(holder);
    for key in keys {
        until("the locks are free", || match one.run(reserve(key, 2)) {
            Ok(reply) => Some(attempt(Ok(reply))),
            Err(_) => None,
        });
        assert_eq!(events_of(&one, key).len(), 1, "nobody who was told that it is busy has it");
    }
    assert_sound(&one);
}

#[test]
fn two_that_take_the_same_keys_in_opposite_orders_do_not_block_each_other() {
    let database = server().new_database();
    let (one, two) = (open(&database, "one"), open(&database, "two"));
    let (keys, both) = (["a", "b", "c", "d"], Barrier::new(2));
    let taken: usize = thread::scope(|scope| {
        let (keys, both) = (&keys, &both);
        let threads = [(&one, 1_u8), (&two, 2)].map(|(store, by)| {
            scope.spawn(move || {
                let mut taken = 0;
                for round in 0..20 {
                    both.wait();
                    let mut order: Vec<String> = keys.iter().map(|key| format!("{key} {round}")).collect();
                    if by == 2 {
                        order.reverse();
                    }
                    let tickets: Vec<Ticket> =
                        order.iter().map(|key| store.submit(reserve(key, by)).expect("submitted")).collect();
                    for ticket in tickets {
                        match code(&ticket.wait()) {
                            None => taken += 1,
                            other => assert_eq!(other, Some(Code::InProgress)),
                        }
                    }
                }
                taken
            })
        });
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    assert_eq!(taken, 80, "each key is somebody's");
    assert_sound(&one);
}

#[test]
fn two_that_find_only_while_they_decide_that_they_need_what_the_other_has_are_both_answered() {
    let database = server().new_database();
    let meet = Arc::new(Barrier::new(2));
    let crossing = |name: &'static str, first: &'static str, then: &'static str| {
        let effect = open(&database, "names").tenant().effect(then);
        let (meet, has_met) = (Arc::clone(&meet), AtomicBool::new(false));
        watched(&database, name, move |view, command| {
            if !is_about(command, first) || view.has(&Read::Stream(effect)) {
                return Ok(());
            }
            // Each has its own by now, and asks for the other's.
            if !has_met.swap(true, Ordering::SeqCst) {
                meet.wait();
            }
            Err(Halt::Need(vec![Read::Stream(effect)]))
        })
    };
    let (one, two) = (crossing("one", "a", "b"), crossing("two", "b", "a"));
    let tickets = [one.submit(reserve("a", 1)), two.submit(reserve("b", 2))];
    for ticket in tickets {
        assert_eq!(attempt(ticket.expect("submitted").wait()).fence, 1);
    }
    assert_eq!(
        database.sql("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"),
        "0"
    );
    assert_sound(&one);
}

#[test]
fn commands_of_a_batch_that_is_let_go_again_keep_their_order() {
    let database = server().new_database();
    let (one, gate) = gated(parts(&database, "one"));
    let first = started(&one, "k", 1);
    let numbers = Numbers::of(&database);
    let (key, mut holder) = (numbers.key("k"), Session::open(&database));
    holder.lock(key);
    gate.shut();
    let begun = one.submit(note("first")).expect("submitted");
    gate.await_writer();
    let settles = one.submit(failed(&first)).expect("submitted");
    let takes = one.submit(reserve("k", 2)).expect("submitted");
    let beside = one.submit(reserve("free", 2)).expect("submitted");
    gate.open();
    begun.wait().expect("noted");
    assert_eq!(attempt(beside.wait()).fence, 1);
    until_waiting(&database, "one", 1);
    holder.unlock(key);
    assert_eq!(code(&settles.wait()), None);
    assert_eq!(attempt(takes.wait()).fence, 2, "what was asked for first is done first");
    refused(one.run(failed(&first)), Code::InProgress);
    assert_sound(&one);
}

#[test]
fn those_that_waited_for_one_lock_are_decided_together() {
    let database = server().new_database();
    let (one, numbers) = (open(&database, "one"), Numbers::of(&database));
    let taken = started(&one, "k", 1);
    let (key, mut holder) = (numbers.key("k"), Session::open(&database));
    holder.lock(key);
    let commands = [failed(&taken), reserve("k", 2)].into_iter().zip(1..);
    let stamped = |(command, n)| Stamped { command, made_at: 0, nonce: Nonce([n; 16]) };
    let waiting = one.submit_all(commands.map(stamped).collect());
    // For longer than a batch may decide.
    let long = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'one' AND wait_event = 'advisory' \
                AND datname = current_database() AND clock_timestamp() - query_start > interval '100 ms'";
    until("it has waited", || (database.sql(long) == "1").then_some(()));
    holder.unlock(key);
    for ticket in waiting {
        assert_eq!(code(&ticket.wait()), None);
    }
    let moments: Vec<_> = events_of(&one, "k").iter().map(|event| event.stamp.at).collect();
    assert_eq!(moments.len(), 4);
    assert_eq!(moments[2], moments[3], "one transaction has one moment");
    assert_sound(&one);
}

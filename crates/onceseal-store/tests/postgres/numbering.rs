//! What whoever meets wrong rows is told: that something stored is wrong, which an
//! audit names, and not that the program is.

use onceseal_core::code::Code;
use onceseal_servers::{Database, server};
use onceseal_store::clock::SystemClock;
use onceseal_store::{Options, ServerState, Store};

use crate::base::*;

fn faults(store: &Store) -> Vec<String> {
    store.read(|snapshot| snapshot.integrity()).expect("looked")
}

/// Does what the only fault says after "then".
fn put_right(database: &Database, store: &Store) {
    let faults = faults(store);
    let [fault] = &faults[..] else { panic!("{faults:?}") };
    let (_, cure) = fault.split_once(", then ").expect(fault);
    database.sql(cure);
}

#[test]
fn an_event_that_waits_for_a_place_it_has_is_told_as_corrupt_until_it_is_taken_out() {
    let database = server().new_database();
    let store = open(&database, "one");
    assert_eq!(code(&store.run(note("first"))), None);
    let stuck = || {
        let state = ServerState::of(named(&database, "doctor"), "default", &SystemClock);
        state.expect("it answers").stuck
    };
    for (events, expected) in [
        ("(SELECT int8send(stream) || int8send(sequence) FROM onceseal.log WHERE position = 2)", 1),
        // Half of a place, which no constraint keeps out any more.
        ("int8send(1)", 0),
    ] {
        database.sql("ALTER TABLE onceseal.unsequenced DROP CONSTRAINT IF EXISTS unsequenced_events_check");
        database.sql(&format!("INSERT INTO onceseal.unsequenced (tenant, events) SELECT 1, {events}"));
        let before = log(&store);
        assert_eq!(stuck(), Some(expected), "the doctor says so too");
        refused(store.run(note("not")), Code::Corrupt);
        refused(store.run(reserve("not", 1)), Code::Corrupt);
        assert_eq!(log(&store), before, "what is there can be read, and nothing was lost or added");
        assert!(faults(&store).iter().any(|fault| fault.contains("unsequenced")), "{:?}", faults(&store));
        database.sql("DELETE FROM onceseal.unsequenced");
        assert_eq!(stuck(), Some(0));
        assert_eq!(code(&store.run(note("again"))), None);
        assert_sound(&store);
    }
}

#[test]
fn numbers_of_streams_that_are_taken_or_spent_are_told_as_corrupt_and_the_audit_says_what_cures_it() {
    let database = server().new_database();
    assert_eq!(code(&open(&database, "first").run(note("first"))), None);
    // From the beginning, where the block in use begins, and behind what a number can be.
    for set in ["1, false", "1", "9223372036854775806", "9223372036854775807"] {
        let store = open(&database, "one");
        assert_eq!(code(&store.run(note("before"))), None);
        database.sql(&format!("SELECT setval('onceseal.stream_blocks', {set})"));
        let fresh = open(&database, "two");
        for _ in 0..2 {
            refused(fresh.run(note("not")), Code::Corrupt);
        }
        // Whoever has numbers left goes on.
        assert_eq!(code(&store.run(note("with numbers"))), None);
        database.sql(&format!("SELECT setval('onceseal.stream_blocks', {set})"));
        drop(store);
        put_right(&database, &fresh);
        assert_eq!(code(&fresh.run(note("after"))), None, "{set}");
        assert_eq!(faults(&fresh), Vec::<String>::new());
        assert_sound(&fresh);
    }
}

#[test]
fn a_tenant_that_would_get_the_number_of_another_is_not_made() {
    let database = server().new_database();
    let store = open(&database, "one");
    database.sql("SELECT setval('onceseal.tenants_id_seq', 1, false)");
    let other = || {
        let options = Options { tenant: "other".to_owned(), ..Options::default() };
        Store::postgres(named(&database, "two"), &options)
    };
    assert_eq!(other().err().expect("refused").code(), Code::Corrupt);
    // The number was given, and is behind no more.
    database.sql("SELECT setval('onceseal.tenants_id_seq', 1, false)");
    put_right(&database, &store);
    assert_eq!(code(&other().expect("opened").run(note("x"))), None);
}

#[test]
fn what_would_wait_for_the_log_under_a_number_that_is_taken_is_told_as_corrupt() {
    let database = server().new_database();
    let (store, sequencer) = (open(&database, "one"), Numbers::of(&database).sequencer());
    let mut holder = Session::open(&database);
    holder.lock(sequencer);
    for n in 0..3 {
        assert_eq!(code(&store.run(note(&n.to_string()))), None);
    }
    let first = database.sql("SELECT min(id) FROM onceseal.unsequenced");
    database.sql(&format!("SELECT setval('onceseal.unsequenced_id_seq', {first}, false)"));
    refused(store.run(note("not")), Code::Corrupt);
    database.sql(&format!("SELECT setval('onceseal.unsequenced_id_seq', {first})"));
    put_right(&database, &store);
    assert_eq!(code(&store.run(note("after"))), None);
    holder.unlock(sequencer);
    assert_sound(&store);
}

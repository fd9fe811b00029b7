//! A server with little room for locks: everybody is answered, and what does
//! not fit at once is done bit by bit.

use onceseal_core::stream::StreamId;
use onceseal_core::view::{Halt, Read};
use onceseal_servers::{Postgres, until};

use crate::base::*;

/// A server that has room for some hundreds of locks in all.
fn small() -> (Postgres, String) {
    let server = Postgres::with(&[("max_locks_per_transaction", "10"), ("max_connections", "10")]).start();
    let address = server.new_database();
    (server, address)
}

/// Takes locks until there is room for only so many more.
fn leave_room(session: &mut Session, locks: usize) {
    session.sql(
        "DO $$ DECLARE n bigint := 0; BEGIN LOOP BEGIN PERFORM pg_advisory_lock(-1000000 + n); n := n + 1; \
         EXCEPTION WHEN out_of_memory THEN EXIT; END; END LOOP; END $$",
    );
    let free =
        format!("SELECT count(pg_advisory_unlock(-1000000 + n)) FROM generate_series(0, {locks} - 1) AS n");
    assert_eq!(session.sql(&free), locks.to_string());
}

fn refusals(server: &Postgres) -> usize {
    server.log().matches("out of shared memory").count()
}

#[test]
fn a_batch_for_whose_locks_there_is_no_room_is_done_bit_by_bit() {
    let (server, address) = small();
    let (one, gate) = gated(parts(&address, "one"));
    // Some commands beforehand, so that what the server looks up is locked already.
    attempt(one.run(reserve("before", 1)));
    let mut session = Session::open(&address);
    leave_room(&mut session, 40);
    let before = refusals(&server);
    let commands = (0..200).map(|n| reserve(&format!("key {n}"), 1)).collect();
    for answer in together(&one, &gate, commands) {
        assert_eq!(attempt(answer).fence, 1);
    }
    assert!(refusals(&server) > before, "there was no room for all at once");
    drop(session);
    for n in 0..200 {
        assert_eq!(events_of(&one, &format!("key {n}")).len(), 1);
    }
    assert_sound(&one);
}

#[test]
fn a_command_that_needs_more_locks_than_there_is_room_for_waits_for_it() {
    let (server, address) = small();
    let names = open(&address, "names");
    let wanted: Vec<StreamId> = (0..80).map(|n| names.tenant().effect(&format!("part {n}"))).collect();
    names.close();
    let needs_many = watching(parts(&address, "one"), move |view, command| {
        let unseen = wanted.iter().map(|stream| Read::Stream(*stream)).filter(|read| !view.has(read));
        match (is_about(command, "wide"), unseen.collect::<Vec<_>>()) {
            (true, unseen) if !unseen.is_empty() => Err(Halt::Need(unseen)),
            _ => Ok(()),
        }
    });
    let (one, gate) = gated(needs_many);
    attempt(one.run(reserve("before", 1)));
    let mut session = Session::open(&address);
    leave_room(&mut session, 40);
    let before = refusals(&server);
    let together = std::thread::scope(|scope| {
        let answers = scope.spawn(|| {
            together(&one, &gate, vec![reserve("first", 1), reserve("wide", 1), reserve("last", 1)])
        });
        until("there is no room", || (refusals(&server) >= before + 10).then_some(()));
        drop(session);
        answers.join().expect("no panic")
    });
    for answer in together {
        assert_eq!(attempt(answer).fence, 1);
    }
    assert_sound(&one);
}

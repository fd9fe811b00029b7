//! The order of the log and of lists: the same for everybody, whoever commits
//! first and however the server orders texts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use onceseal_core::journal::Index;
use onceseal_servers::{Database, Postgres, server, until};
use onceseal_store::read::{Page, StoredEvent};
use onceseal_store::{Options, Store};

use crate::base::*;
use crate::texts::{kinds_of_stores, refuse_named};

/// Follows the log as one who never wrote, until the writers are done and no more
/// comes.
fn follow(reader: &Store, done: &AtomicBool) -> Vec<StoredEvent> {
    let mut seen: Vec<StoredEvent> = Vec::new();
    loop {
        let is_last = done.load(Ordering::SeqCst);
        let after = seen.last().map_or(0, |event| event.position);
        let page = reader.read(|snapshot| snapshot.log(after, 7)).expect("read");
        if page.is_empty() && is_last {
            return seen;
        }
        seen.extend(page);
    }
}

fn reader(database: &Database) -> Store {
    let reader = Store::postgres_reader(named(database, "reader"), &Options::default());
    reader.expect("opened").expect("there is one")
}

fn unsequenced(database: &Database) -> usize {
    database.sql("SELECT count(*) FROM onceseal.unsequenced").parse().expect("a number")
}

#[test]
fn ua_095_a_reader_misses_nothing_where_the_second_commits_first() {
    let database = server().new_database();
    let (one, latch) = stopping(&database, "one", "first");
    let _opens = Opens(latch.clone());
    let (two, reader, done) = (open(&database, "two"), reader(&database), AtomicBool::new(false));
    let (first, seen) = thread::scope(|scope| {
        let follower = scope.spawn(|| follow(&reader, &done));
        let first = one.submit(reserve("first", 1)).expect("submitted");
        // It has the sequencer's lock, and what it will append is decided.
        latch.reached();
        attempt(two.run(reserve("second", 2)));
        assert_eq!(unsequenced(&database), 1, "it is committed and has no place yet");
        latch.open();
        let first = attempt(first.wait());
        attempt(two.run(reserve("third", 2)));
        done.store(true, Ordering::SeqCst);
        (first, follower.join().expect("no panic"))
    });
    assert_eq!(seen, log(&one));
    let order: Vec<_> = seen.iter().map(|event| event.stamp.stream).collect();
    let place = |key: &str| order.iter().position(|stream| *stream == one.tenant().effect(key));
    assert_eq!(one.tenant().effect("first"), first.effect);
    assert!(place("first") < place("second") && place("second") < place("third"), "{order:?}");
    assert_eq!(unsequenced(&database), 0);
    assert_sound(&one);
}

#[test]
fn ua_095_a_reader_misses_nothing_of_what_piled_up_while_nobody_could_give_the_log_its_order() {
    // More than is appended at once.
    const COMMITS: usize = 1_100;
    let database = server().new_database();
    let (one, two) = (open(&database, "one"), open(&database, "two"));
    let (reader, done) = (reader(&database), AtomicBool::new(false));
    let (sequencer, mut holder) = (Numbers::of(&database).sequencer(), Session::open(&database));
    let before = log(&one).len();
    holder.lock(sequencer);
    let seen = thread::scope(|scope| {
        let follower = scope.spawn(|| follow(&reader, &done));
        let writers = [(&one, 1), (&two, 2)].map(|(store, by)| {
            scope.spawn(move || {
                let taken = started(store, &format!("of {by}"), by);
                for n in 0..COMMITS / 2 {
                    assert_eq!(code(&store.run(note(&n.to_string()))), None);
                }
                assert_eq!(code(&store.run(failed(&taken))), None);
            })
        });
        writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
        assert!(unsequenced(&database) > COMMITS);
        assert_eq!(reader.read(|snapshot| snapshot.newest()).expect("read"), before as u64);
        // Rows are read though the log cannot go on.
        assert_eq!(events_of(&one, "of 1").len(), 3);
        holder.unlock(sequencer);
        until("all have their places", || {
            assert_eq!(code(&one.run(note("more"))), None);
            (unsequenced(&database) == 0).then_some(())
        });
        done.store(true, Ordering::SeqCst);
        follower.join().expect("no panic")
    });
    assert!(seen.len() > before + COMMITS);
    assert_eq!(seen, log(&two));
    assert_sound(&one);
}

#[test]
fn what_a_process_left_without_a_place_in_the_log_has_one_for_the_next() {
    let database = server().new_database();
    let one = open(&database, "one");
    let (sequencer, mut holder) = (Numbers::of(&database).sequencer(), Session::open(&database));
    holder.lock(sequencer);
    attempt(one.run(reserve("k", 1)));
    one.close();
    holder.unlock(sequencer);
    assert_eq!(unsequenced(&database), 1);
    let two = open(&database, "two");
    let streams: Vec<_> = log(&two).into_iter().map(|event| event.stamp.stream).collect();
    assert_eq!(streams.last(), Some(&two.tenant().effect("k")));
    assert_sound(&two);
}

#[test]
fn names_are_listed_in_the_order_of_their_bytes_whatever_the_servers_locale() {
    const NAMES: [&str; 18] = [
        "b",
        "B",
        "a",
        "A",
        "ä",
        "Ä",
        "z",
        "é",
        "e\u{301}",
        "ss",
        "ß",
        "_",
        "-a",
        "a b",
        "ab",
        "10",
        "9",
        "\u{10000}",
    ];
    let server = Postgres::start();
    let by_locale = server.new_database();
    assert_eq!(psql(&by_locale, "SELECT 'a' < 'B' AND 'B' < 'c'"), "t", "it is not that of bytes");
    psql(
        &by_locale,
        "CREATE DATABASE by_icu TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en-u-kn-true'",
    );
    let by_icu = server.url("by_icu");
    assert_eq!(psql(&by_icu, "SELECT '9' < '10' AND 'a' < 'B'"), "t", "it is not that of bytes");
    let mut expected: Vec<&[u8]> = NAMES.iter().map(|name| name.as_bytes()).collect();
    expected.sort_unstable();
    kinds_of_stores(&[by_locale, by_icu], |kind, store| {
        NAMES.iter().for_each(|name| refuse_named(store, name));
        let mut page = Page {
            index: Index::Name,
            from: vec![],
            to: vec![0xff; 64],
            after: None,
            newest_first: false,
            limit: 2,
        };
        for newest_first in [false, true] {
            (page.newest_first, page.after) = (newest_first, None);
            let mut found: Vec<Vec<u8>> = Vec::new();
            loop {
                let hits = store.read(|snapshot| snapshot.keys(&page)).expect("read");
                let Some(last) = hits.last() else { break };
                page.after = Some((last.key.clone(), last.stream));
                found.extend(
                    hits.into_iter().map(|hit| hit.key.split(|b| *b == 0).next().expect("one").to_vec()),
                );
            }
            if newest_first {
                found.reverse();
            }
            assert_eq!(found, expected, "{kind}");
        }
    });
}

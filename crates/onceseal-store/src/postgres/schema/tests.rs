use std::sync::{Arc, Barrier, mpsc};
use std::thread;

use onceseal_core::command::Command;
use onceseal_core::reply::Reply;
use onceseal_core::store::Note;
use onceseal_servers::{Database, server, until};

use super::*;
use crate::parts::{Options, Parts, ReadingParts};
use crate::store::Store;

const FIRST: (&str, &str) = MIGRATIONS[0];
const SECOND: (&str, &str) = ("second", "CREATE TABLE @.second (n integer); INSERT INTO @.second VALUES (2)");
const THIRD: (&str, &str) = ("third", "ALTER TABLE @.second ADD more text; INSERT INTO @.second VALUES (3)");

const OLD: Migrations = &[FIRST];
const NEW: Migrations = &[FIRST, SECOND, THIRD];

/// What a program with these migrations connects with.
fn program(database: &Database, migrations: Migrations) -> Connector {
    let mut connector = Connector::new(database.url().parse().expect("an address")).expect("a connector");
    connector.migrations = migrations;
    connector
}

fn parts(database: &Database, migrations: Migrations) -> Result<Parts, StoreError> {
    Parts::on(program(database, migrations), &Options::default())
}

fn open(database: &Database, migrations: Migrations) -> Store {
    Store::of(parts(database, migrations).expect("opened")).expect("opened")
}

fn note(store: &Store) -> Result<Reply, StoreError> {
    store.run(Command::Note(Note { body: "\"x\"".to_owned(), source: "a test".to_owned() }))
}

fn newest(store: &Store) -> Result<u64, StoreError> {
    store.read(|snapshot| snapshot.newest())
}

fn applied(database: &Database) -> String {
    database.sql("SELECT string_agg(id || ' ' || name, ', ' ORDER BY id) FROM onceseal.schema_migrations")
}

fn refused<T>(answer: Result<T, StoreError>, expected: Code) {
    assert_eq!(answer.err().map(|error| error.code()), Some(expected));
}

#[test]
fn an_older_schema_is_left_alone_until_it_is_migrated_and_then_by_the_older_program() {
    let database = server().new_database();
    let old = open(&database, OLD);
    note(&old).expect("noted");
    refused(parts(&database, NEW), Code::SchemaOld);
    let reader = ReadingParts::on(program(&database, NEW), &Options::default());
    let reader = Store::reading(reader.expect("looked").expect("it is there")).expect("a reader");
    refused(newest(&reader), Code::SchemaOld);
    assert_eq!(applied(&database), "1 first");
    note(&old).expect("it is as it was for whoever made it");

    assert_eq!(program(&database, NEW).migrate().expect("migrated"), (1, 3));
    assert_eq!(applied(&database), "1 first, 2 second, 3 third");
    assert_eq!(program(&database, NEW).migrate().expect("nothing to do"), (3, 3));
    assert_eq!(database.sql("SELECT string_agg(n::text, ',') FROM onceseal.second"), "2,3");

    // Its connections are open: one that has written, one that has not, one that reads.
    refused(note(&old), Code::StoreForeign);
    refused(newest(&old), Code::StoreForeign);
    refused(parts(&database, OLD), Code::StoreForeign);
    refused(program(&database, OLD).migrate(), Code::StoreForeign);
    assert_eq!(newest(&reader).expect("read"), 3, "one made the store, two were noted");
    note(&open(&database, NEW)).expect("noted");
}

#[test]
fn a_migration_waits_for_what_is_under_way_and_what_comes_after_it_is_refused() {
    let database = server().new_database();
    let (inside, reached) = mpsc::channel::<()>();
    let (go_on, waits) = mpsc::channel::<()>();
    let mut parts = parts(&database, OLD).expect("opened");
    let decide = parts.decide;
    let both = std::sync::Mutex::new((inside, waits));
    parts.decide = Arc::new(move |pinned, view, command, now| {
        if matches!(command.command, Command::Note(_)) {
            let (inside, waits) = &*both.lock().expect("unharmed");
            // Who is not waited for any more has nothing to wait for either.
            if inside.send(()).is_ok() {
                let _ = waits.recv();
            }
        }
        decide(pinned, view, command, now)
    });
    let old = Store::of(parts).expect("opened");
    thread::scope(|scope| {
        let noted = scope.spawn(|| note(&old));
        reached.recv().expect("it decides");
        let migrated = scope.spawn(|| program(&database, NEW).migrate());
        until("the migration waits", || {
            let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                           AND wait_event = 'advisory'";
            (database.sql(waiting) == "1").then_some(())
        });
        assert_eq!(applied(&database), "1 first");
        drop(go_on);
        noted.join().expect("no panic").expect("it was first");
        assert_eq!(migrated.join().expect("no panic").expect("migrated"), (1, 3));
    });
    drop(reached);
    refused(note(&old), Code::StoreForeign);
    assert_eq!(newest(&open(&database, NEW)).expect("read"), 2);
}

#[test]
fn many_that_migrate_at_once_are_as_good_as_one() {
    const MANY: usize = 5;
    let database = server().new_database();
    assert_eq!(program(&database, OLD).migrate().expect("made"), (0, 1));
    let together = Barrier::new(MANY);
    thread::scope(|scope| {
        for _ in 0..MANY {
            scope.spawn(|| {
                let program = program(&database, NEW);
                together.wait();
                let (from, to) = program.migrate().expect("migrated");
                assert!((1..=3).contains(&from) && to == 3, "from {from} to {to}");
            });
        }
    });
    assert_eq!(applied(&database), "1 first, 2 second, 3 third");
    assert_eq!(database.sql("SELECT string_agg(n::text, ',') FROM onceseal.second"), "2,3");
}

#[test]
fn a_migration_that_fails_changes_nothing_and_the_ones_before_it_stay() {
    const BROKEN: Migrations = &[FIRST, SECOND, ("third", "DELETE FROM @.second; SELECT 1 / 0")];
    let database = server().new_database();
    refused(program(&database, BROKEN).migrate(), Code::StoreFailed);
    assert_eq!(applied(&database), "1 first, 2 second");
    assert_eq!(database.sql("SELECT n FROM onceseal.second"), "2");
    assert_eq!(program(&database, NEW).migrate().expect("migrated"), (2, 3));
    assert_eq!(applied(&database), "1 first, 2 second, 3 third");
}

//! Batches that lose: against somebody who goes round the locks, or for a
//! statement that fails. Nothing of them is saved, and nobody is told so.

use std::sync::atomic::{AtomicUsize, Ordering};

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_servers::{Database, server};

use crate::base::*;

/// Keeps what the tables hold now under a name.
fn keep(database: &Database, name: &str) {
    let tables = tables(|table| format!("CREATE TABLE {name}.{table} AS TABLE onceseal.{table};"));
    psql(database, &format!("CREATE SCHEMA {name}; {tables}"));
}

/// Puts into the tables what was kept.
fn put_back(database: &Database, name: &str) {
    let tables = tables(|table| {
        format!(
            "DELETE FROM onceseal.{table}; \
             INSERT INTO onceseal.{table} OVERRIDING SYSTEM VALUE SELECT * FROM {name}.{table};"
        )
    });
    psql(database, &format!("BEGIN; {tables} COMMIT"));
}

/// Commits what came to be between `earlier` and `later`, and asks for no lock.
const OVERTAKE: &str = "BEGIN; \
    DELETE FROM onceseal.keys AS k USING (TABLE earlier.keys EXCEPT TABLE later.keys) AS old \
        WHERE (k.index, k.key, k.stream) = (old.index, old.key, old.stream); \
    INSERT INTO onceseal.keys (TABLE later.keys EXCEPT TABLE earlier.keys); \
    INSERT INTO onceseal.events (TABLE later.events EXCEPT TABLE earlier.events); \
    INSERT INTO onceseal.payloads (TABLE later.payloads EXCEPT TABLE earlier.payloads); \
    INSERT INTO onceseal.streams (TABLE later.streams EXCEPT TABLE earlier.streams) \
        ON CONFLICT (id) DO UPDATE SET sequence = excluded.sequence, head = excluded.head, \
        open = excluded.open, private = excluded.private; \
    INSERT INTO onceseal.unsequenced (tenant, events) \
        SELECT 1, string_agg(int8send(stream) || int8send(sequence), '' ORDER BY sequence) \
        FROM (TABLE later.events EXCEPT TABLE earlier.events) AS new; \
    COMMIT";

fn tables(sql: impl Fn(&str) -> String) -> String {
    ["streams", "events", "log", "unsequenced", "payloads", "keys"].map(sql).concat()
}

/// Does this when a command is decided for the first time.
fn once(times: &AtomicUsize, then: impl FnOnce()) {
    if times.fetch_add(1, Ordering::SeqCst) == 0 {
        then();
    }
}

#[test]
fn who_was_second_for_a_new_key_decides_again_though_no_lock_told_him() {
    let database = server().new_database();
    let (address, times) = (database.url(), AtomicUsize::new(0));
    let one = watching(parts(&database, "one"), move |_, command| {
        if is_about(command, "k") {
            once(&times, || drop(psql(&address, OVERTAKE)));
        }
        Ok(())
    });
    let (one, gate) = gated(one);
    keep(&database, "earlier");
    let two = open(&database, "two");
    attempt(two.run(reserve("k", 2)));
    two.close();
    keep(&database, "later");
    put_back(&database, "earlier");
    let answers = together(&one, &gate, vec![reserve("before", 1), reserve("k", 1), reserve("after", 1)]);
    let codes: Vec<_> = answers.iter().map(code).collect();
    assert_eq!(codes, [None, Some(Code::InProgress), None]);
    for key in ["before", "k", "after"] {
        assert_eq!(events_of(&one, key).len(), 1, "{key} is there once");
    }
    assert_sound(&one);
}

#[test]
fn who_was_second_for_a_known_key_decides_again_though_no_lock_told_him() {
    for is_renewal in [false, true] {
        let database = server().new_database();
        let (address, times) = (database.url(), AtomicUsize::new(0));
        let one = watched(&database, "one", move |_, command| {
            if matches!(command.command, Command::Settle(_) | Command::Renew(_)) {
                once(&times, || drop(psql(&address, OVERTAKE)));
            }
            Ok(())
        });
        let taken = started(&one, "k", 1);
        keep(&database, "earlier");
        let two = open(&database, "two");
        assert_eq!(code(&two.run(failed(&taken))), None);
        two.close();
        keep(&database, "later");
        put_back(&database, "earlier");
        let answer = one.run(if is_renewal { renew(&taken) } else { failed(&taken) });
        if is_renewal {
            assert!(code(&answer).is_some(), "there is nothing to renew: {answer:?}");
        } else {
            assert_eq!(code(&answer), None, "it has been reported so: {answer:?}");
        }
        assert_eq!(events_of(&one, "k").len(), 3);
        assert_sound(&open(&database, "three"));
    }
}

#[test]
fn a_row_that_is_not_as_it_was_read_keeps_its_events_from_being_saved() {
    let database = server().new_database();
    let (address, times) = (database.url(), AtomicUsize::new(0));
    let one = watched(&database, "one", move |_, command| {
        if matches!(command.command, Command::Settle(_)) {
            // There, and back: no attempt finds the row as it was read.
            let by = if times.fetch_add(1, Ordering::SeqCst) % 2 == 0 { "+" } else { "-" };
            psql(
                &address,
                &format!("UPDATE onceseal.streams SET sequence = sequence {by} 1000 WHERE kind = 3"),
            );
        }
        Ok(())
    });
    let taken = started(&one, "k", 1);
    let before = log(&one);
    refused(one.run(failed(&taken)), Code::Internal);
    assert_eq!(log(&one), before);
    assert_eq!(database.sql("SELECT count(*) FROM onceseal.events"), before.len().to_string());
    assert_sound(&one);
}

#[test]
fn a_statement_that_fails_undoes_its_command_alone() {
    // COMMIT is on its way behind each of them.
    for table in ["events", "payloads", "log"] {
        let database = server().new_database();
        let (one, gate) = gated(parts(&database, "one"));
        let before = log(&one).len();
        psql(
            &database,
            &format!(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                 IF EXISTS (SELECT FROM onceseal.streams s WHERE s.id = NEW.stream AND s.kind = 6) \
                 THEN RAISE 'no'; END IF; RETURN NEW; END $$; \
                 CREATE TRIGGER refuse BEFORE INSERT ON onceseal.{table} FOR EACH ROW EXECUTE FUNCTION refuse()"
            ),
        );
        let answers = together(&one, &gate, vec![reserve("a", 1), note("x"), reserve("b", 1)]);
        let codes: Vec<_> = answers.iter().map(code).collect();
        assert_eq!(codes, [None, Some(Code::StoreFailed), None], "{table}");
        assert_eq!(log(&one).len(), before + 2, "{table}");
        psql(&database, &format!("DROP TRIGGER refuse ON onceseal.{table}"));
        assert_eq!(code(&one.run(note("y"))), None);
        assert_sound(&one);
    }
}

#[test]
fn a_transaction_that_fails_once_is_made_again_and_acknowledged_once() {
    let database = server().new_database();
    let (one, gate) = gated(parts(&database, "one"));
    let before = log(&one).len();
    psql(
        &database,
        "CREATE SEQUENCE public.times; CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         IF nextval('public.times') = 1 THEN RAISE 'once' USING ERRCODE = '40001'; END IF; RETURN NEW; END $$; \
         CREATE TRIGGER refuse BEFORE INSERT ON onceseal.payloads FOR EACH ROW EXECUTE FUNCTION refuse()",
    );
    let answers = together(&one, &gate, vec![reserve("a", 1), note("x"), reserve("b", 1)]);
    assert_eq!(answers.iter().map(code).collect::<Vec<_>>(), [None; 3]);
    assert_eq!(log(&one).len(), before + 3);
    assert_eq!(database.sql("SELECT last_value FROM public.times"), "2");
    assert_sound(&one);
}

#[test]
fn a_commit_that_is_refused_is_told_at_once_and_nothing_is_there() {
    let database = server().new_database();
    let one = open(&database, "one");
    let before = log(&one);
    psql(
        &database,
        "CREATE SEQUENCE public.times; CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         PERFORM nextval('public.times'); RAISE 'late'; END $$; \
         CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON onceseal.payloads \
         DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()",
    );
    refused(one.run(note("x")), Code::StoreFailed);
    assert_eq!(database.sql("SELECT last_value FROM public.times"), "1", "it was not tried for long");
    assert_eq!(log(&one), before);
    attempt(one.run(reserve("k", 1)));
    assert_sound(&one);
}

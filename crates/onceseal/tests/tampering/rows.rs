//! Rows removed, added and swapped; the log cut.

use std::sync::Arc;

use onceseal::core::approval::Revocation;
use onceseal::core::command::Command;
use onceseal::core::decide::decide;
use onceseal::core::effect::{Holding, Outcome, Settle};
use onceseal::core::journal::{Body, Kind};
use onceseal::core::stream::StreamId;
use onceseal::store::{Options, Parts, Store};
use onceseal::{AuditOptions, Error, Principal, audit};
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::columns::{Table, streams};
use crate::ground::{Ground, Places, audited, codes};
use crate::sample::{attempt, host, sample, wait};

#[test]
fn ua_145_every_row_removed_is_found_and_named() {
    let ground = sample();
    let control = ground.open().expect("opens");
    let intruder = ground.intruder();
    let streams = streams(&intruder);
    for name in ["events", "streams", "keys", "payloads"] {
        let table = Table::read(&intruder, name);
        for row in &table.rows {
            let places = table.places(row, &streams);
            table.delete(&intruder, row);
            places.found(&format!("a row of {name} removed"), &audited(&control));
            table.insert(&intruder, row);
        }
    }
    assert_eq!(audited(&control).findings, []);
}

#[test]
fn ua_145_an_event_removed_with_its_text_leaves_a_gap_in_log_stream_and_command() {
    let ground = sample();
    let control = ground.open().expect("opens");
    let intruder = ground.intruder();
    let streams = streams(&intruder);
    let (events, texts) = (Table::read(&intruder, "events"), Table::read(&intruder, "payloads"));
    let newest = events.rows.last().map(|event| event[0].clone());
    for event in &events.rows {
        let text = texts.rows.iter().find(|text| text[0] == event[0]);
        text.iter().for_each(|text| texts.delete(&intruder, text));
        events.delete(&intruder, event);
        let report = audited(&control);
        let found = codes(&report);
        events.places(event, &streams).found("an event removed", &report);
        assert!(found.contains(&"event_missing") || found.contains(&"stream_empty"), "{report:#?}");
        // The end of the log is missed by its stream alone.
        assert!(Some(&event[0]) == newest.as_ref() || found.contains(&"position_missing"), "{report:#?}");
        let parts = &event[events.place("of")];
        assert!(*parts == Value::Integer(1) || found.contains(&"command_broken"), "{report:#?}");
        events.insert(&intruder, event);
        text.iter().for_each(|text| texts.insert(&intruder, text));
    }
    assert_eq!(audited(&control).findings, []);
}

/// Applies a change to a copy of the sample, and audits it.
fn changed(ground: &Ground, sql: &str) -> onceseal::AuditReport {
    let copy = ground.copy();
    copy.intruder().execute_batch(sql).expect(sql);
    audited(&copy.open().expect("opens"))
}

/// The number of the first stream with an event of this kind, its positions
/// there, and its name.
fn stream_with(intruder: &Connection, kind: u8) -> (i64, Vec<i64>, StreamId) {
    let sql = "SELECT stream FROM events WHERE kind = ?1 ORDER BY position LIMIT 1";
    let number = intruder.query_row(sql, [kind], |row| row.get(0)).expect("a stream");
    let sql = "SELECT position FROM events WHERE stream = ?1 ORDER BY sequence";
    let mut statement = intruder.prepare(sql).expect("positions");
    let found = statement.query_map([number], |row| row.get(0)).expect("positions");
    let positions = found.collect::<Result<_, _>>().expect("positions");
    let named = streams(intruder).into_iter().find(|(other, _)| *other == number);
    (number, positions, named.expect("a name").1)
}

#[test]
fn a_stream_removed_with_all_that_belongs_to_it_is_missed_by_the_log() {
    let ground = sample();
    for kind in [1, 10, 20] {
        let (number, positions, _) = stream_with(&ground.intruder(), kind);
        let report = changed(
            &ground,
            &format!(
                "DELETE FROM payloads WHERE event IN (SELECT position FROM events WHERE stream = {number});
                 DELETE FROM events WHERE stream = {number}; DELETE FROM keys WHERE stream = {number};
                 DELETE FROM streams WHERE id = {number};"
            ),
        );
        Places { positions, ..Places::default() }.found("a stream removed", &report);
        assert!(codes(&report).contains(&"position_missing") && codes(&report).contains(&"command_broken"));
    }
}

#[test]
fn what_was_added_is_found_and_named() {
    let ground = sample();
    for (what, sql, code, says) in [
        ("a key of a row", "INSERT INTO keys VALUES (1, 3, x'0301ff', 4, 0)", "key_extra", "whose row"),
        ("a key of an event", "INSERT INTO keys VALUES (1, 1, x'03', 4, 1)", "key_extra", "event 1 of"),
        ("a key of no event", "INSERT INTO keys VALUES (1, 1, x'03', 4, 9)", "key_extra", "event 9 of"),
        ("a key of no index", "INSERT INTO keys VALUES (1, 99, x'03', 4, 0)", "key_extra", "index 99"),
        ("a key of no stream", "INSERT INTO keys VALUES (1, 3, x'03', 999, 0)", "key_extra", "number 999"),
        (
            "a second receipt of that id",
            "INSERT INTO keys SELECT tenant, \"index\", key, stream - 1, 1 FROM keys WHERE \"index\" = 1 LIMIT 1",
            "key_repeated",
            "one receipt key",
        ),
        (
            "a text of an event without one",
            "INSERT INTO payloads SELECT position, zeroblob(32), '{}' FROM events WHERE kind = 5",
            "payload_extra",
            "event",
        ),
        (
            "a text of no event",
            "INSERT INTO payloads VALUES (9999, zeroblob(32), '{}')",
            "integrity",
            "row 9999 of payloads names a row of events",
        ),
        (
            "a stream without events",
            "INSERT INTO streams SELECT 99, tenant, kind, zeroblob(16), sequence, head, open, private
             FROM streams WHERE id = 4",
            "stream_empty",
            "has a row and no event",
        ),
        (
            "an event of no stream",
            "INSERT INTO events SELECT 9999, 999, 1, kind, at, command, 1, 1, refs, data, sealed, salt, seal, hash
             FROM events WHERE position = 5",
            "event_stray",
            "position 9999",
        ),
        (
            "an event after the last one",
            "INSERT INTO events SELECT position + 1, stream, sequence + 1, kind, at, command, 1, 1, refs, data,
             sealed, salt, seal, hash FROM events ORDER BY position DESC LIMIT 1",
            "hash_differs",
            "event 3 of task/",
        ),
    ] {
        let report = changed(&ground, sql);
        let named = report.findings.iter().any(|f| f.code == code && f.sentence.contains(says));
        assert!(named, "{what}: {:#?}", report.findings);
    }
}

#[test]
fn ua_145_what_was_swapped_is_found_and_named() {
    let ground = sample();
    let intruder = ground.intruder();
    let (one, ones, first) = stream_with(&intruder, 12);
    let (two, twos, second) = stream_with(&intruder, 15);
    assert_ne!(first, second);
    let swap = |table: &str, key: &str, columns: &[&str], one: i64, two: i64| {
        let sets: Vec<_> = columns
            .iter()
            .map(|column| format!("{column} = (SELECT other.{column} FROM {table} other WHERE other.{key} = {one} + {two} - {table}.{key})"))
            .collect();
        format!("UPDATE {table} SET {} WHERE {key} IN ({one}, {two})", sets.join(", "))
    };
    let events =
        Places { positions: [&ones[..], &twos].concat(), streams: vec![first, second], ..Places::default() };
    let moved = |one: i64, two: i64| {
        format!(
            "UPDATE events SET position = -1 WHERE position = {one};
             UPDATE events SET position = {one} WHERE position = {two};
             UPDATE events SET position = {two} WHERE position = -1;"
        )
    };
    for (what, sql) in [
        (
            "what two events say",
            swap("events", "position", &["kind", "refs", "data", "sealed"], ones[1], twos[1]),
        ),
        ("private parts", swap("events", "position", &["sealed", "salt", "seal"], ones[0], twos[0])),
        ("hashes", swap("events", "position", &["hash"], ones[1], twos[1])),
        ("times", swap("events", "position", &["at"], ones[0], twos[0])),
        ("commands", swap("events", "position", &["command"], ones[0], twos[0])),
        ("texts", swap("payloads", "event", &["salt", "text"], payload(&intruder, 0), payload(&intruder, 3))),
        ("rows", swap("streams", "id", &["open", "private"], one, two)),
        ("whole streams", swap("streams", "id", &["open", "private", "sequence", "head"], one, two)),
        ("places in the log", moved(ones[0], twos[0])),
        ("places of one stream", moved(ones[0], ones[1])),
        ("places of one command", moved(ones[0], ones[0] + 1)),
    ] {
        let report = changed(&ground, &sql);
        match what {
            "texts" => assert!(codes(&report).contains(&"payload_differs"), "{report:#?}"),
            _ => events.found(what, &report),
        }
    }
}

/// The event of the n-th text.
fn payload(intruder: &Connection, n: i64) -> i64 {
    let sql = "SELECT event FROM payloads ORDER BY event LIMIT 1 OFFSET ?1";
    intruder.query_row(sql, [n], |row| row.get(0)).expect("a text")
}

#[test]
fn ua_145_a_cut_of_the_log_is_found_by_the_rows_that_knew_more() {
    let ground = sample();
    let events = Table::read(&ground.intruder(), "events").rows.len();
    for last in [1, 2, 5, events - 3, events - 2, events - 1] {
        let report = changed(
            &ground,
            &format!("DELETE FROM payloads WHERE event > {last}; DELETE FROM events WHERE position > {last}"),
        );
        assert!(
            codes(&report).contains(&"event_missing") || codes(&report).contains(&"stream_empty"),
            "{last}: {report:#?}"
        );
    }
}

/// A whole older state is a sound store: only what was kept outside it tells.
#[test]
fn ua_145_an_older_copy_is_noticed_by_the_mark_and_by_what_a_report_said() {
    let ground = sample();
    let older = std::fs::read(ground.database()).expect("the file");
    let control = ground.open().expect("opens");
    attempt(&control, "after the copy");
    let newest = audited(&control).newest.expect("events").0;
    control.close();
    drop(control);
    ground.settle();
    std::fs::write(ground.database(), older).expect("put back");
    assert_eq!(ground.open().err().expect("refused").code(), "store_went_back");
    assert_eq!(codes(&audited(&ground.read())), ["went_back"]);
    std::fs::remove_dir_all(ground.marks()).expect("no mark");
    let control = ground.read();
    assert_eq!(audited(&control).findings, [], "the older state is sound in itself");
    let options = AuditOptions { since: Some(newest), progress: None };
    assert_eq!(codes(&audit(&control, &options).expect("a report")), ["log_short"]);
}

/// A rule that leaves something out of what it records, whole and well chained.
fn broken(ground: &Ground, leaves_out: fn(&Body) -> bool) -> Store {
    drop(ground.open().expect("a store"));
    let options = Options { clock: ground.clock.clone(), ..Options::default() };
    let mut parts = Parts::sqlite(ground.database(), &options).expect("the parts");
    parts.decide = Arc::new(move |pinned, view, command, now| {
        let mut verdict = decide(pinned, view, command, now)?;
        verdict.drafts.retain(|draft| !leaves_out(&draft.event.body));
        Ok(verdict)
    });
    Store::of(parts).expect("a store")
}

#[test]
fn an_action_that_came_to_something_else_than_its_effect_is_found() {
    let ground = sample();
    let control = ground.open().expect("opens");
    let held = Holding::from(&attempt(&control, "torn"));
    control.close();
    let store = broken(&ground, |body| matches!(body, Body::EffectSettled(..)));
    let settle = Settle::new(held, Outcome::Committed);
    store.run(Command::Settle(settle)).expect("settled");
    store.close();
    assert_eq!(codes(&audited(&ground.read())), ["attempt_differs", "attempt_differs"]);
}

#[test]
fn an_action_that_waits_for_a_closed_request_is_found() {
    let ground = sample();
    let control = ground.open().expect("opens");
    let asked = wait(control.action("ship").arg("id", "torn").by(Principal::agent("bot")).propose());
    let Err(Error::ApprovalNeeded { approval, .. }) = asked.map(drop) else { panic!("nobody is asked") };
    control.close();
    let store = broken(&ground, |body| matches!(body, Body::ActionEnded(..)));
    store.run(Command::Revoke(Revocation { approval, person: host("ann") })).expect("revoked");
    store.close();
    assert_eq!(codes(&audited(&ground.read())), ["approval_differs"]);
}

#[test]
fn a_run_that_went_where_its_definition_does_not_let_it_is_found() {
    let ground = sample();
    let control = ground.open().expect("opens");
    let intruder = ground.intruder();
    let sql = "SELECT position, data, sealed FROM events WHERE kind = 101 AND instr(data, CAST('discarded' AS BLOB)) > 0";
    let moved = intruder.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    let (position, data, sealed): (i64, Vec<u8>, Vec<u8>) = moved.expect("a run was discarded");
    let Ok(Body::RunMoved(mut moved, by)) = Body::unpack(Kind::RunMoved, &data, &sealed) else {
        panic!("event {position} does not decode")
    };
    moved.to = "applying".to_owned();
    let mut data = Vec::new();
    Body::RunMoved(moved, by).pack_data(&mut data);
    intruder.execute("UPDATE events SET data = ?2 WHERE position = ?1", (position, data)).expect("changed");
    let report = audited(&control);
    let told = "went from created to applying in event 2 against its definition";
    assert!(
        report.findings.iter().any(|it| it.code == "run_differs" && it.sentence.ends_with(told)),
        "{report:#?}"
    );
}

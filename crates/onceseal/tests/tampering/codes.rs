//! Every code of a finding, with something that brings it about.

use std::collections::BTreeSet;

use onceseal::audit::CODES;
use onceseal::core::effect::EffectRow;
use onceseal::core::journal::{Index, Row};
use onceseal::core::stream::{StreamId, StreamKind};
use onceseal::core::time::Span;
use onceseal::store::read::row_of;
use onceseal::{AuditOptions, Control, audit};
use rusqlite::Connection;

use crate::columns::streams;
use crate::damage::overwrite;
use crate::ground::{Ground, audited, codes};
use crate::sample::sample;

/// Changes the row of the first stream that `change` takes.
fn change_row(control: &Control, intruder: &Connection, change: impl Fn(StreamId, &mut Row) -> bool) {
    for (number, stream) in streams(intruder) {
        let loaded = control.store().read(|snapshot| snapshot.stream(&stream)).expect("readable");
        let mut row = row_of(loaded).expect("a row").row;
        if change(stream, &mut row) {
            let (open, private) = row.packed();
            let sql = "UPDATE streams SET open = ?2, private = ?3 WHERE id = ?1";
            assert_eq!(intruder.execute(sql, (number, open, private)), Ok(1));
            return;
        }
    }
    panic!("no such row");
}

fn effect(change: impl Fn(&mut EffectRow)) -> impl Fn(StreamId, &mut Row) -> bool {
    move |_, row| match row {
        Row::Effect(row) if row.held() => {
            change(row);
            true
        }
        _ => false,
    }
}

/// What brings a code about, by SQL.
const BY_SQL: [(&str, &str); 23] = [
    ("integrity", "INSERT INTO payloads VALUES (9999, zeroblob(32), '{}')"),
    (
        "position_missing",
        "UPDATE events SET position = position + 1 WHERE position = (SELECT max(position) FROM events)",
    ),
    ("position_invalid", "UPDATE events SET position = 0 WHERE position = 7"),
    ("event_stray", "UPDATE events SET stream = 999 WHERE position = 7"),
    ("command_broken", "UPDATE events SET part = 1 WHERE part = 2 AND position < 9"),
    ("stream_misshapen", "UPDATE streams SET kind = 99 WHERE id = 4"),
    (
        "stream_empty",
        "INSERT INTO streams SELECT 99, 1, 6, zeroblob(16), 1, head, open, x'' FROM streams WHERE kind = 5",
    ),
    ("event_misshapen", "UPDATE events SET command = x'00' WHERE position = 7"),
    ("event_unreadable", "UPDATE events SET data = x'ffff' WHERE position = 7"),
    ("event_missing", "UPDATE events SET sequence = 9 WHERE position = 7"),
    (
        "event_order",
        "UPDATE events SET position = 999 WHERE position = (SELECT min(position) FROM events WHERE kind = 10)",
    ),
    // Neither of them says anything but what it is.
    ("event_foreign", "UPDATE events SET kind = 171 WHERE kind = 153"),
    (
        "event_refused",
        "UPDATE events SET kind = 13 WHERE kind = 11; UPDATE events SET kind = 11 WHERE kind = 13",
    ),
    ("hash_differs", "UPDATE events SET at = at + 1 WHERE position = 7"),
    ("seal_differs", "UPDATE events SET salt = zeroblob(32) WHERE kind = 10"),
    ("receipt_differs", "UPDATE events SET refs = (SELECT refs FROM events WHERE kind = 13) WHERE kind = 16"),
    ("payload_missing", "DELETE FROM payloads"),
    ("payload_extra", "INSERT INTO payloads SELECT position, zeroblob(32), '{}' FROM events WHERE kind = 5"),
    ("payload_differs", "UPDATE payloads SET text = '{\"id\":\"another\"}'"),
    ("payload_unreadable", "UPDATE payloads SET text = CAST(x'ff' AS TEXT)"),
    ("row_unreadable", "UPDATE streams SET open = x'' WHERE id = 4"),
    ("head_differs", "UPDATE streams SET head = zeroblob(32) WHERE id = 4"),
    (
        "key_repeated",
        "INSERT INTO keys SELECT tenant, \"index\", key, stream - 1, 1 FROM keys WHERE \"index\" = 1",
    ),
];

/// What brings a code about, by somebody who knows what rows say.
fn by_row(code: &str, control: &Control, intruder: &Connection) {
    match code {
        "row_differs" => change_row(control, intruder, effect(|row| row.code = Some("other".to_owned()))),
        "lease_differs" => {
            change_row(
                control,
                intruder,
                effect(|row| row.lease_until = Some(row.deadline + Span::seconds(1))),
            );
        }
        "attempt_differs" => change_row(control, intruder, effect(|row| row.fence += 1)),
        "stream_misnamed" => {
            change_row(control, intruder, effect(|row| row.private.key = Some("pay:x".to_owned())))
        }
        "approval_differs" => change_row(control, intruder, |_, row| match row {
            Row::Approval(row) if row.consumed_by.is_some() => {
                row.quorum += 1;
                true
            }
            _ => false,
        }),
        "run_differs" => change_row(control, intruder, |_, row| match row {
            Row::Run(row) if row.terminal => {
                row.state = "sleeping".to_owned();
                true
            }
            _ => false,
        }),
        "task_differs" => change_row(control, intruder, |_, row| match row {
            Row::Task(row) => {
                row.number += 9;
                true
            }
            _ => false,
        }),
        "key_missing" => change_key(intruder, Index::State, "DELETE FROM keys WHERE"),
        "key_extra" => {
            change_key(intruder, Index::State, "UPDATE keys SET key = CAST(key || x'00' AS BLOB) WHERE")
        }
        "key_differs" => {
            change_key(intruder, Index::Receipt, "UPDATE keys SET sequence = sequence + 1 WHERE")
        }
        "unreadable" => intruder
            .execute_batch(
                "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET rootpage = 1 WHERE name = 'keys'",
            )
            .expect("another page"),
        code => panic!("nothing is known to bring {code} about"),
    }
}

fn change_key(intruder: &Connection, index: Index, change: &str) {
    let changed = intruder.execute(&format!("{change} \"index\" = {}", index.number()), []).expect("keys");
    assert!(changed > 0);
}

#[test]
fn every_code_of_a_finding_comes_about() {
    let ground = sample();
    let notes = ["late_contradicts", "not_covered", "setting"];
    let mut missing: BTreeSet<&str> = CODES.iter().map(|(code, _)| *code).collect();
    notes.iter().for_each(|note| assert!(missing.remove(note), "{note} is a code"));
    // Nothing has to be wrong for this one but where it was to begin.
    let options = AuditOptions { since: Some(9_999), progress: None };
    let report = audit(&ground.open().expect("opens"), &options).expect("a report");
    assert_eq!(codes(&report), ["log_short"]);
    missing.remove("log_short");
    for code in missing.iter().filter(|code| **code != "went_back").copied() {
        let copy: Ground = ground.copy();
        let intruder = copy.intruder();
        match BY_SQL.iter().find(|(by, _)| *by == code) {
            Some((_, sql)) => intruder.execute_batch(sql).expect(sql),
            None if code == "unreadable" => overwrite(&copy, "keys"),
            None => {
                let control = copy.open().expect("opens");
                by_row(code, &control, &intruder);
                control.close();
            }
        }
        drop(intruder);
        let report = audited(&copy.open().expect("opens"));
        assert!(codes(&report).contains(&code), "{code}: {:#?}", report.findings);
    }
    assert!(missing.contains("went_back"));
    let newest = "(SELECT max(position) FROM events)";
    let sql = format!("UPDATE events SET command = x'00' WHERE position = {newest}");
    ground.intruder().execute_batch(&sql).expect("edits");
    let found = codes(&audited(&ground.read()));
    assert!(found.contains(&"went_back") && found.contains(&"event_misshapen"), "{found:?}");
}

#[test]
fn a_renewed_lease_is_the_one_thing_in_a_row_that_no_event_tells() {
    let ground = sample();
    let control = ground.open().expect("opens");
    let intruder = ground.intruder();
    change_row(&control, &intruder, effect(|row| row.lease_until = Some(row.deadline)));
    // It is due at another moment now, and is found there.
    let found = codes(&audited(&control));
    assert!(found.iter().all(|code| code.starts_with("key_")), "{found:?}");
    assert!(streams(&intruder).iter().any(|(_, stream)| stream.kind == StreamKind::Effect));
}

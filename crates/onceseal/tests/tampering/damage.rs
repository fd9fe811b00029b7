//! Values of wrong types and sizes, and pages that are no pages: each is a
//! finding, never an error, and the rest is looked at.

use std::os::unix::fs::FileExt;

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::columns::{Table, streams};
use crate::ground::{Ground, audited, codes};
use crate::sample::sample;

/// Lets every column take anything, or no longer.
fn set_strict(intruder: &Connection, strict: bool) {
    let (from, to) = if strict { (") /**/", ") STRICT") } else { (") STRICT", ") /**/") };
    let version: i64 = intruder.query_row("PRAGMA schema_version", [], |row| row.get(0)).expect("a version");
    intruder
        .execute_batch(&format!(
            "PRAGMA writable_schema=ON;
             UPDATE sqlite_schema SET sql = replace(sql, '{from}', '{to}') WHERE type = 'table';
             PRAGMA schema_version = {}; PRAGMA writable_schema=RESET;",
            version + 1
        ))
        .expect("another schema");
}

fn wrong(value: &Value) -> Vec<Value> {
    let text = Value::Text("\u{1}two".to_owned());
    match value {
        Value::Integer(_) => vec![text, Value::Blob(vec![1, 2]), Value::Real(0.5), Value::Integer(i64::MIN)],
        Value::Blob(_) => vec![text, Value::Integer(7), Value::Blob(Vec::new()), Value::Blob(vec![9; 300])],
        _ => vec![Value::Blob(vec![0xff]), Value::Integer(7), Value::Real(0.5)],
    }
}

#[test]
fn a_value_of_a_wrong_type_or_size_is_a_finding_and_the_rest_is_looked_at() {
    let ground = sample();
    let control = ground.open().expect("opens");
    let intruder = ground.intruder();
    let clean = audited(&control);
    set_strict(&intruder, false);
    let streams = streams(&intruder);
    for name in ["events", "streams", "keys", "payloads"] {
        let table = Table::read(&intruder, name);
        for column in 0..table.columns.len() {
            for row in table.rows.iter().step_by(11) {
                for value in wrong(&row[column]) {
                    if value == row[column] || !table.set(&intruder, row, column, &value) {
                        continue;
                    }
                    let report = audited(&control);
                    let what = format!("{name}.{} set to {value:?}", table.columns[column]);
                    table.places(row, &streams).found(&what, &report);
                    assert!(
                        report.events + 4 >= clean.events && report.streams + 1 >= clean.streams,
                        "{what}"
                    );
                    let mut changed = row.clone();
                    changed[column] = value;
                    assert!(table.set(&intruder, &changed, column, &row[column]), "{what}: put back");
                }
            }
        }
    }
    set_strict(&intruder, true);
    assert_eq!(audited(&control).findings, []);
}

/// Overwrites the first page of a table or an index of a closed store.
pub(crate) fn overwrite(ground: &Ground, name: &str) {
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    let page = ground.intruder().query_row(sql, [name], |row| row.get(0));
    overwrite_page(ground, page.expect("a page"));
}

fn overwrite_page(ground: &Ground, page: i64) {
    let file = std::fs::File::options().write(true).open(ground.database()).expect("the file");
    file.write_all_at(&[0x5a; 4096], (page as u64 - 1) * 4096).expect("overwritten");
}

#[test]
fn a_page_that_cannot_be_read_is_a_finding_and_the_rest_is_looked_at() {
    let ground = sample();
    let clean = audited(&ground.open().expect("opens"));
    for (table, looked_at) in [
        ("events", (false, false)),
        ("sqlite_autoindex_events_1", (true, false)),
        ("payloads", (false, false)),
        ("keys", (true, true)),
    ] {
        let copy = ground.copy();
        overwrite(&copy, table);
        let control = copy.open().expect("opens");
        let report = audited(&control);
        let found = codes(&report);
        assert!(found.contains(&"unreadable") || found.contains(&"integrity"), "{table}: {report:#?}");
        let (log, events) = looked_at;
        assert!(!log || report.newest == clean.newest, "{table}: the log is whole");
        assert!(!events || report.events == clean.events, "{table}: the events are whole");
    }
}

#[test]
fn one_page_of_events_lost_costs_only_the_streams_on_it() {
    let ground = sample();
    let clean = audited(&ground.open().expect("opens"));
    let copy = ground.copy();
    // The last leaf of the table: its newest events.
    let sql =
        "SELECT pageno FROM dbstat WHERE name = 'events' AND pagetype = 'leaf' ORDER BY path DESC LIMIT 1";
    let page = copy.intruder().query_row(sql, [], |row| row.get(0));
    let Ok(page) = page else { panic!("{page:?}") };
    overwrite_page(&copy, page);
    let report = audited(&copy.open().expect("opens"));
    let unread = report.findings.iter().filter(|finding| finding.code == "unreadable").count();
    assert!(unread > 1, "{report:#?}");
    assert!(report.streams > clean.streams / 2 && report.streams < clean.streams, "{}", report.streams);
}

#[test]
fn a_schema_that_is_not_ours_is_found() {
    let ground = sample();
    for (sql, says) in [
        (
            "CREATE TRIGGER quiet AFTER INSERT ON events BEGIN DELETE FROM keys; END",
            "the trigger quiet is none",
        ),
        (
            "PRAGMA writable_schema=ON;
             CREATE TRIGGER quiet AFTER INSERT ON events BEGIN DELETE FROM keys; END;
             UPDATE sqlite_schema SET name = 'sqlite_quiet',
                sql = replace(sql, 'quiet', 'sqlite_quiet') WHERE name = 'quiet'",
            "the trigger sqlite_quiet is none",
        ),
        ("CREATE TABLE \"\u{202e}more\" (a)", "202e}more is none"),
        ("CREATE INDEX another ON events (at)", "the index another is none"),
        ("ALTER TABLE events ADD COLUMN more TEXT", "the table events is not as this program makes it"),
    ] {
        let copy = ground.copy();
        copy.intruder().execute_batch(sql).expect(sql);
        let report = audited(&copy.open().expect("opens"));
        let named = report.findings.iter().any(|f| f.code == "integrity" && f.sentence.contains(says));
        assert!(named, "{sql}: {:#?}", report.findings);
    }
}

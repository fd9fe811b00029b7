//! What is found in a store that nobody touched: nothing.

use std::cell::RefCell;

use onceseal::audit::CODES;
use onceseal::core::command::Command;
use onceseal::core::effect::{Begin, Holding, Outcome, Reserve, Settle};
use onceseal::core::id::ActionId;
use onceseal::core::json::Value;
use onceseal::core::reply::Reply;
use onceseal::core::time::Span;
use onceseal::{AuditOptions, Control, audit};

use crate::ground::{Ground, audited};
use crate::sample::{attempt, policy, sample, wait};

#[test]
fn p10_a_store_in_which_everything_happened_once_is_found_clean() {
    let ground = sample();
    let control = ground.open().expect("opens");
    let report = audited(&control);
    assert_eq!(report.findings, []);
    let counts = control.store().read(|snapshot| snapshot.counts()).expect("counts");
    assert_eq!((report.events, report.streams, report.keys), (counts.events, counts.streams, counts.keys));
    assert_eq!(report.newest.map(|(position, _)| position), Some(counts.events));
}

#[test]
fn p15_a_late_word_that_contradicts_is_a_note_and_no_finding() {
    let ground = sample();
    let report = audited(&ground.open().expect("opens"));
    let contradiction = report.notes.iter().find(|note| note.code == "late_contradicts").expect("a note");
    assert!(contradiction.position.is_some() && contradiction.sequence == Some(4), "{contradiction:?}");
    assert!(contradiction.sentence.contains("attempt 1 reported failed late"), "{contradiction:?}");
}

#[test]
fn an_audit_writes_nothing() {
    let ground = sample();
    let before = std::fs::read(ground.database()).expect("the file");
    let control = ground.read();
    assert!(audited(&control).is_clean());
    control.close();
    assert!(std::fs::read(ground.database()).expect("the file") == before);
}

fn settled(control: &Control, id: &str) -> Reply {
    let attempt = Holding::from(&attempt(control, id));
    let result = Some("{\"micros\":1767268800000001}".to_owned());
    let settle = Settle { result, ..Settle::new(attempt, Outcome::Committed) };
    control.store().run(Command::Settle(settle)).expect("settled")
}

#[test]
fn ua_143_what_was_written_by_many_at_once_is_read_back_and_verifies_in_every_store() {
    let ground = Ground::new();
    for control in [ground.memory(), ground.open().expect("a store")] {
        wait(control.activate(policy(""), false, None)).expect("active");
        std::thread::scope(|scope| {
            for writer in 0..16 {
                let control = control.clone();
                scope.spawn(move || {
                    (0..8).for_each(|round| drop(settled(&control, &format!("{writer}-{round}"))));
                });
            }
        });
        let report = audited(&control);
        assert_eq!(report.findings, []);
        assert_eq!(report.events, 2 + 16 * 8 * 4);
    }
}

#[test]
fn an_audit_beside_writers_finds_no_fault_that_is_not_there() {
    let ground = Ground::new();
    for control in [ground.memory(), ground.open().expect("a store")] {
        wait(control.activate(policy(""), false, None)).expect("active");
        std::thread::scope(|scope| {
            let control = &control;
            let writer = scope.spawn(|| (0..64).for_each(|round| drop(settled(control, &round.to_string()))));
            while !writer.is_finished() {
                assert_eq!(audited(control).findings, []);
            }
        });
    }
}

#[test]
fn p13_another_tenant_in_the_file_is_neither_a_gap_nor_looked_at() {
    let ground = Ground::new();
    let open = |tenant: &str| {
        let mut opening = ground.opening();
        opening.settings.tenant = tenant.to_owned();
        let control = Control::found(&opening).expect("a store");
        wait(control.activate(policy(""), false, None)).expect("active");
        control
    };
    let (one, other) = (open("default"), open("other"));
    for round in 0..5 {
        for control in [&one, &other] {
            settled(control, &round.to_string());
        }
    }
    for control in [&one, &other] {
        let report = audited(control);
        assert_eq!((report.findings, report.events), (vec![], 2 + 5 * 4));
    }
    // What is wrong in one is no matter of the other.
    let sql = "UPDATE events SET at = at + 1 WHERE stream IN (SELECT id FROM streams WHERE tenant = 2)";
    ground.intruder().execute(sql, []).expect("edits");
    assert!(audited(&one).is_clean() && !audited(&other).is_clean());
}

#[test]
fn a_stream_longer_than_a_page_is_followed_over_its_pages() {
    let ground = Ground::new();
    for control in [ground.memory(), ground.open().expect("a store")] {
        let key = "long".to_owned();
        for _ in 0..1_200 {
            let reserve = Reserve { key: key.clone(), action: ActionId([7; 16]), lease: Span::minutes(1) };
            let Ok(Reply::Attempt(attempt)) = control.store().run(Command::Reserve(reserve)) else {
                panic!("an attempt")
            };
            let begin = Begin { attempt: Holding::from(&attempt), lease: Span::minutes(1) };
            control.store().run(Command::Begin(begin)).expect("begun");
            let attempt = Holding::from(&attempt);
            let (code, error) = (None, None);
            let settle = Settle { code, error, ..Settle::new(attempt, Outcome::Failed) };
            control.store().run(Command::Settle(settle)).expect("settled");
        }
        // More text than one page holds.
        for _ in 0..80 {
            let body = format!("\"{}\"", "x".repeat(60_000));
            wait(control.note("a test".to_owned(), body)).expect("a note");
        }
        let report = audited(&control);
        assert_eq!((report.findings, report.events, report.streams), (vec![], 1 + 3_600 + 80, 82));
    }
    let sql = "UPDATE events SET at = at + 1 WHERE sequence IN (2048, 2049, 3600)";
    assert_eq!(ground.intruder().execute(sql, []), Ok(3));
    let report = audited(&ground.open().expect("opens"));
    let named: Vec<_> =
        report.findings.iter().filter(|f| f.code == "hash_differs").map(|f| f.sequence).collect();
    assert_eq!(named, [Some(2048), Some(2049), Some(3600)]);
}

#[test]
fn since_looks_only_at_what_was_touched_and_says_what_it_left_out() {
    let ground = sample();
    let control = ground.open().expect("opens");
    let whole = audited(&control);
    let (position, _) = whole.newest.expect("events");
    attempt(&control, "after");
    let options = AuditOptions { since: Some(position), progress: None };
    let report = audit(&control, &options).expect("a report");
    assert_eq!((report.findings.len(), report.streams, report.events), (0, 2, 2));
    assert_eq!(report.since, Some(position));
    let left_out = format!("streams without an event after position {position}");
    assert!(
        report.notes.iter().any(|note| note.code == "not_covered" && note.sentence.starts_with(&left_out))
    );
    // From anywhere, also from within a command.
    for since in 0..=position + 2 {
        let report = audit(&control, &AuditOptions { since: Some(since), progress: None }).expect("a report");
        assert_eq!(report.findings, [], "since {since}");
    }
}

#[test]
fn progress_is_told_and_ends_at_all_events() {
    let ground = sample();
    let control = ground.open().expect("opens");
    let told = RefCell::new(Vec::new());
    let progress = |seen, of| told.borrow_mut().push((seen, of));
    let report = audit(&control, &AuditOptions { since: None, progress: Some(&progress) }).expect("a report");
    let told = told.into_inner();
    assert!(told.iter().all(|(seen, of)| seen <= of && *of == report.events), "{told:?}");
}

#[test]
fn ua_148_a_report_says_how_far_it_looked_and_what_it_cannot_say() {
    let ground = sample();
    let control = ground.open().expect("opens");
    let report = audited(&control);
    let (position, hash) = report.newest.expect("events");
    let newest = control.log(position - 1, 9).expect("the log");
    assert_eq!(newest.iter().map(|event| event.hash).collect::<Vec<_>>(), [hash]);
    let anchor = format!("compare position {position}, hash {hash} with what was kept elsewhere");
    assert!(report.notes.iter().any(|note| note.code == "not_covered" && note.sentence.ends_with(&anchor)));
}

#[test]
fn a_report_as_json_has_every_finding_and_no_private_value() {
    let ground = sample();
    ground.intruder().execute("UPDATE events SET at = at + 1 WHERE kind = 12", []).expect("edits");
    let control = ground.open().expect("opens");
    let report = audited(&control);
    let Value::Object(document) = report.to_json() else { panic!("an object") };
    assert_eq!(document.get("schema").and_then(Value::as_text), Some("onceseal.audit/v1"));
    assert_eq!(document.get("clean"), Some(&Value::Bool(false)));
    let Some(Value::List(findings)) = document.get("findings") else { panic!("findings") };
    assert_eq!(findings.len(), report.findings.len());
    let text = onceseal::core::json::canonical(&Value::Object(document));
    for private in
        ["pay:", "ship:", "bot", "mallory", "acct", "host:ann", "no such", "cut off", "seen\"", "remote 5"]
    {
        assert!(!text.contains(private), "{private} stands in {text}");
    }
    assert!(report.findings.iter().all(|found| CODES.iter().any(|(code, _)| *code == found.code)));
}

#[test]
fn ua_149_a_store_that_cannot_be_read_is_neither_clean_nor_broken() {
    let ground = sample();
    let control = ground.open().expect("opens");
    assert!(audited(&control).is_clean());
    let path = ground.database();
    ground.intruder().execute("DELETE FROM keys", []).expect("edits");
    assert!(!audited(&control).is_clean());
    control.close();
    drop(control);
    std::fs::write(&path, b"another program's file, longer than a header of SQLite, and of no use to us")
        .expect("written");
    let error = ground.open().err().expect("refused");
    assert_eq!(error.code(), "store_foreign");
}

#[test]
fn a_store_in_memory_is_audited_like_any_other() {
    let ground = Ground::new();
    let control = ground.memory();
    wait(control.activate(policy(""), false, None)).expect("active");
    attempt(&control, "one");
    let report = audited(&control);
    assert_eq!((report.findings.len(), report.events), (0, 4));
    assert!(report.notes.iter().any(|note| note.code == "setting"));
}

//! The store: changed behind its back, used by several at once, and as it is made.

use onceseal::core::json::Value as Json;
use serde_json::json;

use super::{acted, stored};
use crate::scene::plain;
use crate::story::{NOW, call, dispatch, query, story, work};

/// What stands where their table would be is changed: the audit finds it, and
/// nothing is carried out on its word.
fn tampered(table: &str, column: &str) {
    story(async |scene| {
        scene.says(stored()).await;
        scene.says(json!({ "op": "tamper", "now": NOW, "table": table, "set": { column: "x" } })).await;
        assert_eq!(scene.says(json!({ "op": "audit", "now": NOW })).await, "found", "{table}.{column}");
        scene.says(work(NOW)).await;
        scene.once().expect("nothing is done twice");
    });
}

#[test]
fn t01_t02_t03_a_changed_intent_or_approval_is_found() {
    for column in ["approval_digest", "first_provider", "request_sha256"] {
        tampered("operations", column);
    }
}

#[test]
fn t04_t05_t06_t07_a_changed_place_in_the_outbox_is_found() {
    tampered("outbox", "payload_json");
}

#[test]
fn t08_t09_a_remote_that_answers_for_other_arguments_is_not_shown() {
    story(async |scene| {
        scene.says(acted()).await;
        for (draft, _) in scene.world.outside().drafts.values_mut() {
            let Json::Object(data) = &mut draft.value else { panic!("no object") };
            data.insert("reason", "other");
        }
        let asked = query(scene, json!({}));
        assert_eq!(scene.says(asked).await, "OUTPUT_CONTRACT_VIOLATION");
    });
}

#[test]
fn t10_a_changed_result_is_not_replayed_unseen() {
    story(async |scene| {
        scene.says(dispatch(json!({}))).await;
        let set = json!({ "result_json": "x" });
        scene.says(json!({ "op": "tamper", "now": NOW, "table": "local_receipts", "set": set })).await;
        assert_eq!(scene.says(json!({ "op": "audit", "now": NOW })).await, "found");
    });
}

#[test]
fn m01_eight_dispatches_at_once_of_one_intent_are_one_operation() {
    story(async |scene| {
        scene.says(stored()).await;
        let programs = [scene.another().await.expect("a program"), scene.another().await.expect("a program")];
        let step = dispatch(json!({}));
        let sent: Vec<_> =
            (0..8).map(|n| tokio::spawn(scene.sending_of(&programs[n % 2], &step).send())).collect();
        let mut actions = Vec::new();
        for sent in sent {
            actions.push(sent.await.expect("no panic").expect("accepted").action);
        }
        actions.dedup();
        assert_eq!((actions.len(), scene.operation_rows().len()), (1, 1));
    });
}

#[test]
fn m02_of_two_intents_at_once_under_one_key_one_is_accepted() {
    story(async |scene| {
        // Whatever is approved, the key is one.
        let reasons = ["duplicate", "damaged"];
        let steps = reasons.map(|reason| {
            let arguments = json!({ "order_ref": "ORDER-7", "reason": reason });
            dispatch(json!({ "call": call(json!({ "call_id": reason, "arguments": arguments })) }))
        });
        let mut approvals = Vec::new();
        for step in &steps {
            approvals.push(scene.approved(step).await);
        }
        let sent: Vec<_> = steps
            .iter()
            .zip(&approvals)
            .map(|(step, approval)| {
                tokio::spawn(scene.sending_of(scene.tools(), step).approval(*approval).send())
            })
            .collect();
        let mut told = Vec::new();
        for sent in sent {
            told.push(sent.await.expect("no panic").map_or_else(|error| error.code(), |_| "accepted"));
        }
        told.sort_unstable();
        assert_eq!((told, scene.operation_rows().len()), (vec!["accepted", "idempotency_conflict"], 1));
    });
}

#[test]
fn m03_eight_workers_on_one_operation_do_it_once() {
    story(async |scene| {
        scene.says(stored()).await;
        let workers: Vec<_> =
            (0..8).map(|_| tokio::spawn(scene.worker().run_dry(std::future::pending()))).collect();
        for worker in workers {
            assert_eq!(worker.await.expect("no panic").expect("it works").failed, 0);
        }
        let (_, row, _) = scene.operation_rows().pop().expect("an operation");
        assert_eq!((row.receipt().is_some(), scene.drafts()), (true, 1));
    });
}

#[test]
fn m04_d09_a_second_program_replays_and_a_foreign_file_is_refused() {
    story(async |scene| {
        assert_eq!(scene.says(dispatch(json!({}))).await, "fresh");
        let other = scene.another().await.expect("another program");
        let told = scene.sending_of(&other, &dispatch(json!({}))).tell().await.expect("told");
        assert_eq!(plain(&told)["model_result"]["execution"]["delivery"], "local_replay");
        let intruder = rusqlite::Connection::open(scene.database()).expect("a database");
        intruder.execute_batch("PRAGMA application_id = 7").expect("changed");
        let refused = scene.another().await.err().expect("refused");
        assert_eq!(refused.code(), "store_foreign");
    });
}

#[test]
fn d01_d02_d04_d12_a_new_store_is_whole_strict_and_empty() {
    story(async |scene| {
        assert_eq!(scene.says(json!({ "op": "audit", "now": NOW })).await, "clean");
        assert_eq!((scene.operation_rows().len(), scene.call_bindings(), scene.drafts()), (0, 0, 0));
        let database = rusqlite::Connection::open(scene.database()).expect("a database");
        let journal: String =
            database.query_row("PRAGMA journal_mode", [], |row| row.get(0)).expect("a mode");
        assert_eq!(journal, "wal");
        let whole: String =
            database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("checked");
        assert_eq!(whole, "ok");
        let lax = "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite_%' AND NOT strict";
        let lax: i64 = database.query_row(lax, [], |row| row.get(0)).expect("counted");
        assert_eq!(lax, 0);
    });
}

#[test]
fn d10_what_the_tables_forbid_cannot_be_written_at_all() {
    story(async |scene| {
        scene.says(stored()).await;
        let database = rusqlite::Connection::open(scene.database()).expect("a database");
        for sql in [
            "UPDATE events SET hash = x'00'",
            "UPDATE streams SET sequence = 0",
            "UPDATE events SET part = of + 1",
        ] {
            assert!(database.execute(sql, []).is_err(), "{sql}");
        }
    });
}

#[test]
fn d11_an_intent_that_cannot_be_stored_leaves_no_half_of_it() {
    story(async |scene| {
        scene.says(json!({ "op": "fail_on", "now": NOW, "event": "outbox_insert" })).await;
        assert_eq!(scene.says(stored()).await, "store_failed");
        assert_eq!(scene.operation_rows().len(), 0);
        scene.says(json!({ "op": "stop_failing", "now": NOW })).await;
        assert_eq!(scene.says(stored()).await, "OUTCOME_UNKNOWN");
        assert_eq!(scene.operation_rows().len(), 1);
    });
}

//! The behaviours that the persistent tool runtime's own tests hold, by their
//! ids. Those of its case file and command line stand in the tests of the
//! program; where Onceseal departs, the test says what holds instead.

use onceseal::core::json::Value as Json;
use onceseal::core::operation::{Revisions, Scope};
use serde_json::{Value, json};

use crate::drafts::{TENANT, TOOL};
use crate::scene::plain;
use crate::story::{NOW, call, dispatch, query, story, work};
use crate::vectors::vectors;

fn second_call(more: Value) -> Value {
    let mut call = call(json!({ "call_id": "call-2", "response_id": "resp-2" }));
    more.as_object().expect("changes").iter().for_each(|(name, value)| call[name] = value.clone());
    call
}

/// Stops a dispatch once its intent is stored.
fn stored() -> Value {
    dispatch(json!({ "failure": "after_intent_commit" }))
}

/// Stops a dispatch once the remote has acted.
fn acted() -> Value {
    dispatch(json!({ "failure": "after_downstream_commit" }))
}

#[test]
fn v01_v02_a_request_is_named_by_what_is_asked_for_and_not_by_its_key() {
    story(async |scene| {
        let revisions = Revisions {
            input: "refund-draft-input-v1",
            output: "refund-draft-output-v2",
            effect: "create-refund-draft-v1",
        };
        let scope = Scope { tenant: TENANT, subject: "user-1", tool: TOOL, key: "any" };
        let arguments = r#"{"order_ref":"ORDER-7","reason":"duplicate"}"#;
        let own = scope.request(arguments, revisions).to_string();
        let first = plain(&scene.package(dispatch(json!({}))).await);
        let other = dispatch(json!({ "call": second_call(json!({ "idempotency_key": "key-2" })) }));
        let second = plain(&scene.package(other).await);
        for package in [first, second] {
            let digest = &package["protected_audit"]["binding"]["request_sha256"];
            assert_eq!(own.strip_prefix("sha256:"), digest.as_str());
        }
    });
}

#[test]
fn v04_v05_what_is_told_of_success_and_of_the_unknown_holds() {
    story(async |scene| {
        assert_eq!(scene.package(stored()).await.problems(), Vec::<String>::new());
        scene.says(work(NOW)).await;
        assert_eq!(scene.package(dispatch(json!({}))).await.problems(), Vec::<String>::new());
    });
}

#[test]
fn i02_i03_a_dispatch_is_done_once_and_replayed_without_an_approval() {
    story(async |scene| {
        assert_eq!(scene.says(dispatch(json!({}))).await, "fresh");
        assert_eq!(scene.says(dispatch(json!({ "approval": "none" }))).await, "local_replay");
        assert_eq!(scene.drafts(), 1);
    });
}

#[test]
fn i04_another_intent_under_the_same_key_is_a_conflict() {
    story(async |scene| {
        scene.says(stored()).await;
        let other = json!({ "arguments": { "order_ref": "ORDER-7", "reason": "damaged" } });
        let other = dispatch(json!({ "call": second_call(other) }));
        assert_eq!(scene.says(other).await, "IDEMPOTENCY_CONFLICT");
        assert_eq!(scene.drafts(), 0);
    });
}

#[test]
fn i05_two_keys_are_two_wishes() {
    story(async |scene| {
        assert_eq!(scene.says(dispatch(json!({}))).await, "fresh");
        let other = dispatch(json!({ "call": second_call(json!({ "idempotency_key": "key-2" })) }));
        assert_eq!(scene.says(other).await, "fresh");
        assert_eq!(scene.drafts(), 2);
    });
}

#[test]
fn i06_i07_i08_i13_i14_what_is_refused_stores_no_operation() {
    story(async |scene| {
        let with = |call: Value| dispatch(json!({ "call": call }));
        let keyless = with(second_call(json!({ "idempotency_key": null })));
        let senseless =
            json!({ "call_id": "c3", "arguments": { "order_ref": "ORDER-7", "reason": "because" } });
        for (step, told) in [
            (keyless, "IDEMPOTENCY_KEY_REQUIRED"),
            (dispatch(json!({ "approval": "none" })), "APPROVAL_REQUIRED"),
            (with(second_call(senseless)), "INVALID_ARGUMENTS"),
        ] {
            assert_eq!(scene.says(step).await, told);
        }
        assert_eq!(
            scene.says(dispatch(json!({ "approval": "expired", "now": NOW + 200 }))).await,
            "APPROVAL_INVALID"
        );
        scene
            .says(json!({ "op": "set_order", "now": NOW, "order_ref": "ORDER-7", "status": "refunded" }))
            .await;
        assert_eq!(scene.says(dispatch(json!({ "now": NOW + 300 }))).await, "BUSINESS_RULE_VIOLATION");
        assert_eq!((scene.operation_rows().len(), scene.drafts()), (0, 0));
    });
}

#[test]
fn i10_the_approval_that_was_used_stands_with_the_operation_and_names_its_approver() {
    story(async |scene| {
        scene.says(dispatch(json!({}))).await;
        let (_, row, _) = scene.operation_rows().pop().expect("an operation");
        let approval = scene.control.approval(row.approval.expect("an approval")).expect("readable");
        let approval = approval.expect("there");
        let people: Vec<_> =
            approval.private.responses.iter().filter_map(|said| said.person.as_deref()).collect();
        assert_eq!(people, ["host:human-reviewer-1"]);
        let proposal = row.private.proposal.expect("a proposal");
        assert_eq!(approval.private.bound.action_hash, Some(proposal.action_hash));
        let intent = row.private.intent.expect("an intent");
        assert_eq!((&*intent.provider, &*intent.api_family), ("openai", "responses"));
    });
}

#[test]
fn i11_an_approval_counts_for_one_key() {
    story(async |scene| {
        let other = json!([{ "for_call": { "key": "key-9" } }]);
        assert_eq!(scene.says(dispatch(json!({ "approval": other }))).await, "APPROVAL_INVALID");
        assert_eq!(scene.operation_rows().len(), 0);
    });
}

#[test]
fn i12_what_belongs_to_somebody_else_does_not_exist_and_binds_nothing() {
    story(async |scene| {
        let other = json!({ "arguments": { "order_ref": "ORDER-8", "reason": "duplicate" } });
        assert_eq!(scene.says(dispatch(json!({ "call": call(other) }))).await, "NOT_FOUND");
        assert_eq!(scene.call_bindings(), 0);
    });
}

#[test]
fn i15_i17_a_call_and_a_key_count_for_one_thing() {
    story(async |scene| {
        scene.says(stored()).await;
        let other_key = dispatch(json!({ "call": call(json!({ "idempotency_key": "key-2" })) }));
        assert_eq!(scene.says(other_key).await, "CALL_ID_CONFLICT");
        let profile = json!({
            "provider": "anthropic", "api_family": "messages", "adapter_revision": "anthropic-messages-v1",
        });
        let other_profile = dispatch(json!({ "call": call(profile) }));
        assert_eq!(scene.says(other_profile).await, "IDEMPOTENCY_CONFLICT");
        assert_eq!(scene.drafts(), 0);
    });
}

#[test]
fn i16_i18_a_replay_is_what_is_stored_also_in_another_process() {
    story(async |scene| {
        let first = plain(&scene.package(dispatch(json!({}))).await)["model_result"]["data"].clone();
        scene.says(json!({ "op": "reopen", "now": NOW })).await;
        let again = dispatch(json!({ "approval": "none", "now": NOW + 100 }));
        let replay = plain(&scene.package(again).await);
        assert_eq!(replay["model_result"]["data"], first);
        assert_eq!(replay["model_result"]["execution"]["delivery"], "local_replay");
    });
}

#[test]
fn i19_c25_who_may_no_longer_touch_it_is_told_nothing_of_it() {
    story(async |scene| {
        scene.says(dispatch(json!({}))).await;
        scene.says(json!({ "op": "allow_orders", "now": NOW, "orders": [] })).await;
        assert_eq!(scene.says(dispatch(json!({}))).await, "NOT_FOUND");
        let asked = query(scene, json!({}));
        assert_eq!(scene.says(asked).await, "NOT_FOUND");
    });
}

#[test]
fn c01_a_call_under_another_profile_is_carried_out_by_a_worker() {
    story(async |scene| {
        let profile = json!({
            "provider": "anthropic", "api_family": "messages", "adapter_revision": "anthropic-messages-v1",
        });
        let step = dispatch(json!({ "call": call(profile), "failure": "after_intent_commit" }));
        assert_eq!(scene.says(step).await, "OUTCOME_UNKNOWN");
        assert_eq!(scene.says(work(NOW)).await, "committed");
        let (_, row, _) = scene.operation_rows().pop().expect("an operation");
        assert_eq!(row.private.intent.expect("an intent").provider, "anthropic");
    });
}

#[test]
fn c02_c03_roles_are_looked_up_and_never_taken_from_a_call() {
    story(async |scene| {
        let other = call(json!({ "arguments": { "order_ref": "ORDER-8", "reason": "duplicate" } }));
        let admin = json!({ "tenant_id": "tenant-a", "subject_id": "admin-1", "roles": ["support_admin"] });
        let step = dispatch(json!({ "call": other, "principal": admin }));
        assert_eq!(scene.says(step.clone()).await, "NOT_FOUND");
        scene.says(json!({ "op": "set_people", "now": NOW, "people": [admin] })).await;
        assert_eq!(scene.says(step).await, "fresh");
    });
}

#[test]
fn c04_a_role_that_is_gone_at_the_second_look_up_permits_nothing() {
    story(async |scene| {
        let other = call(json!({ "arguments": { "order_ref": "ORDER-8", "reason": "duplicate" } }));
        let answers = json!([["support_admin"], []]);
        scene.says(json!({ "op": "resolver_answers", "now": NOW, "roles_by_lookup": answers })).await;
        let admin = json!({ "tenant_id": "tenant-a", "subject_id": "admin-1", "roles": [] });
        let step = dispatch(json!({ "call": other, "principal": admin, "approval": "none" }));
        assert_eq!(scene.says(step).await, "NOT_FOUND");
        assert_eq!((scene.world.outside().lookups, scene.operation_rows().len()), (2, 0));
    });
}

#[test]
fn c05_c14_access_withdrawn_before_the_worker_parks_and_goes_on_once_a_person_says_so() {
    story(async |scene| {
        scene.says(stored()).await;
        scene.says(json!({ "op": "allow_orders", "now": NOW, "orders": [] })).await;
        assert_eq!(scene.says(work(NOW)).await, "parked: authorization_denied");
        assert_eq!(scene.drafts(), 0);
        scene.says(json!({ "op": "allow_orders", "now": NOW, "orders": ["ORDER-7"] })).await;
        let (action, ..) = scene.operation_rows().pop().expect("an operation");
        let person = crate::support::host("ann");
        scene.control.retry(action, person, "restored".to_owned()).await.expect("retried");
        assert_eq!(scene.says(work(NOW + 1)).await, "committed");
        assert_eq!(scene.drafts(), 1);
    });
}

#[test]
fn c06_c07_c08_what_is_stored_and_not_done_is_unknown_however_often_it_is_asked() {
    story(async |scene| {
        assert_eq!(scene.says(stored()).await, "OUTCOME_UNKNOWN");
        assert_eq!(scene.says(dispatch(json!({ "approval": "none" }))).await, "OUTCOME_UNKNOWN");
        let asked = query(scene, json!({}));
        assert_eq!(scene.says(asked).await, "OUTCOME_UNKNOWN");
        assert_eq!((scene.operation_rows().len(), scene.drafts()), (1, 0));
    });
}

#[test]
fn c09_a_call_that_asked_dispatches_nothing() {
    story(async |scene| {
        scene.says(stored()).await;
        let asked = query(scene, json!({}));
        scene.says(asked.clone()).await;
        let dispatches = dispatch(json!({ "call": asked["call"] }));
        assert_eq!(scene.says(dispatches).await, "CALL_ID_CONFLICT");
    });
}

#[test]
fn c10_what_a_worker_did_is_told_to_whoever_asks() {
    story(async |scene| {
        scene.says(stored()).await;
        assert_eq!(scene.says(work(NOW)).await, "committed");
        let asked = query(scene, json!({}));
        assert_eq!(scene.says(asked).await, "receipt_reconciled");
    });
}

#[test]
fn c11_c12_c13_a_worker_that_died_after_its_claim_leaves_it_to_the_next_once_its_lease_is_over() {
    story(async |scene| {
        scene.says(dispatch(json!({ "failure": "after_claim" }))).await;
        assert_eq!(scene.says(work(NOW + 30)).await, "nothing", "the end of a lease is inclusive");
        assert_eq!(scene.says(work(NOW + 31)).await, "committed");
        let (_, _, effect) = scene.operation_rows().pop().expect("an operation");
        assert_eq!((effect.expect("an effect").fence, scene.drafts()), (2, 1));
    });
}

#[test]
fn c15_a_rule_that_has_come_to_forbid_it_parks_it() {
    story(async |scene| {
        scene.says(stored()).await;
        scene
            .says(json!({ "op": "set_order", "now": NOW, "order_ref": "ORDER-7", "status": "refunded" }))
            .await;
        assert_eq!(scene.says(work(NOW)).await, "parked: business_rule_violation");
        assert_eq!(scene.drafts(), 0);
    });
}

#[test]
fn c16_a_changed_contract_neither_strands_what_was_accepted_nor_fails_it() {
    story(async |scene| {
        scene.says(stored()).await;
        scene
            .says(json!({ "op": "set_revision", "now": NOW, "field": "effect_revision", "value": "next" }))
            .await;
        assert_eq!(scene.says(work(NOW)).await, "committed");
    });
}

#[test]
fn c17_c18_c20_what_the_remote_did_and_nobody_heard_is_found_by_asking_and_replayed() {
    story(async |scene| {
        assert_eq!(scene.says(acted()).await, "OUTCOME_UNKNOWN");
        assert_eq!(scene.says(dispatch(json!({ "approval": "none" }))).await, "OUTCOME_UNKNOWN");
        let asked = query(scene, json!({}));
        assert_eq!(scene.says(asked).await, "receipt_reconciled");
        assert_eq!(scene.says(dispatch(json!({ "approval": "none" }))).await, "local_replay");
        assert_eq!(scene.drafts(), 1);
    });
}

#[test]
fn c19_what_cannot_be_recorded_is_no_answer_and_leaves_nothing_half() {
    story(async |scene| {
        scene.says(acted()).await;
        scene.says(json!({ "op": "fail_on", "now": NOW, "event": "outbox_delivered" })).await;
        let asked = query(scene, json!({}));
        assert_eq!(scene.says(asked.clone()).await, "store_failed");
        let (_, row, effect) = scene.operation_rows().pop().expect("an operation");
        assert!(row.receipt().is_none() && effect.expect("an effect").result_at.is_none());
        scene.says(json!({ "op": "stop_failing", "now": NOW })).await;
        assert_eq!(scene.says(asked).await, "receipt_reconciled");
    });
}

#[test]
fn c21_c22_c23_c24_a_query_that_does_not_match_is_refused() {
    story(async |scene| {
        scene.says(stored()).await;
        let with = |n: u32, more: Value| {
            let mut call = call(json!({ "call_id": format!("status-{n}"), "response_id": "status" }));
            more.as_object().expect("changes").iter().for_each(|(name, value)| call[name] = value.clone());
            call
        };
        let zeros = json!({ "expected_request_sha256": "0".repeat(64), "call": with(1, json!({})) });
        let nobody =
            json!({ "status_ref": format!("status_{}", "0".repeat(32)), "call": with(2, json!({})) });
        let key = json!({ "call": with(3, json!({ "idempotency_key": "key-2" })) });
        let profile = json!({
            "provider": "anthropic", "api_family": "messages", "adapter_revision": "anthropic-messages-v1",
        });
        let profile = json!({ "call": with(4, profile) });
        for (changes, told) in [
            (zeros, "STATUS_CONFLICT"),
            (nobody, "NOT_FOUND"),
            (key, "STATUS_CONFLICT"),
            (profile, "STATUS_CONFLICT"),
        ] {
            let asked = query(scene, changes);
            assert_eq!(scene.says(asked).await, told);
        }
    });
}

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

#[test]
fn every_behaviour_of_the_reference_has_a_test_by_its_id_or_a_reason() {
    // What there is nothing of here: a moment beyond the last (I01, I09 are held
    // at it), a database in memory by its name, a directory that is made, a
    // timeout that is set (D06 to D08), foreign keys of a connection that is not
    // given out (D05), and findings without secrets, which `p13_…` of the audit
    // holds (D03). V03 is one of the vectors of results.
    const WITHOUT: [&str; 8] = ["I01", "I09", "D03", "D05", "D06", "D07", "D08", "V03"];
    let here = include_str!("behaviours.rs");
    let program = include_str!("../../../onceseal-cli/tests/cli/cases.rs");
    let named = |id: &str| {
        let id = id.to_lowercase();
        let in_a_name = |text: &str| {
            text.lines()
                .filter_map(|line| line.trim().strip_prefix("fn "))
                .any(|name| name.split(['(', '_']).any(|part| part == id))
        };
        in_a_name(here) || in_a_name(program)
    };
    let groups = [("F", 13), ("D", 12), ("V", 5), ("I", 19), ("C", 25), ("T", 10), ("M", 4), ("L", 6)];
    let ids = groups.iter().flat_map(|(group, n)| (1..=*n).map(move |n| format!("{group}{n:02}")));
    let missing: Vec<String> = ids.filter(|id| !WITHOUT.contains(&&**id) && !named(id)).collect();
    assert_eq!(missing, Vec::<String>::new());
    assert!(vectors()["scenarios"].is_array());
}

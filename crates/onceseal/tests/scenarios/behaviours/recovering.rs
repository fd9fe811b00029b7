//! Crashes, workers, and what becomes known later.

use serde_json::{Value, json};

use super::{acted, stored};
use crate::story::{NOW, call, dispatch, query, story, work};

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

//! What is asked for, and how often it is done.

use onceseal::core::operation::{Revisions, Scope};
use serde_json::{Value, json};

use super::{second_call, stored};
use crate::drafts::{TENANT, TOOL};
use crate::scene::plain;
use crate::story::{NOW, call, dispatch, query, story, work};

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

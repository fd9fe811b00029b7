//! Lists: pages, filters, and how they read.

use onceseal::{Error, Principal};
use serde_json::json;

use crate::base::{Project, refund, snapshot};

#[test]
fn pages_follow_each_other_without_gap_or_repeat_in_both_orders() {
    let project = Project::new();
    for n in 0..7 {
        project.refund(&format!("txn_{n}"), 1, &[]);
    }
    for (list, id) in [("effects", "effect_key"), ("actions", "action"), ("receipts", "receipt")] {
        let all: Vec<_> = project.items(&[list, "list"]).into_iter().map(|item| item[id].clone()).collect();
        assert_eq!(all.len(), 7, "{list}");
        for newest in [false, true] {
            let mut found = Vec::new();
            let mut after: Option<String> = None;
            loop {
                let mut args = vec![list, "list", "--limit", "3"];
                args.extend(newest.then_some("--newest"));
                args.extend(after.iter().flat_map(|cursor| ["--after", cursor.as_str()]));
                let page = project.json(&args);
                let items = page["items"].as_array().expect("items");
                assert!(items.len() <= 3);
                found.extend(items.iter().map(|item| item[id].clone()));
                match page["next"].as_str() {
                    Some(next) => after = Some(next.to_owned()),
                    None => break,
                }
            }
            if newest {
                found.reverse();
            }
            assert_eq!(found, all, "{list} {newest}");
        }
    }
}

#[test]
fn filters_select_by_state_name_and_age() {
    let project = Project::new();
    project.refund("txn_1", 1, &[]);
    project.unknown("txn_2");
    project.asked("txn_3");
    project.ok(&["exec", "customer.read", "--", "true"]);
    let count = |args: &[&str]| project.items(args).len();
    assert_eq!(count(&["effects", "list", "--state", "ambiguous"]), 1);
    assert_eq!(count(&["effects", "list", "--state", "failed"]), 0);
    assert_eq!(count(&["actions", "list", "--state", "waiting"]), 1);
    assert_eq!(count(&["actions", "list", "--name", "customer.read"]), 1);
    assert_eq!(count(&["actions", "list", "--name", "stripe.refund", "--state", "committed"]), 1);
    assert_eq!(count(&["actions", "list", "--name", "stripe"]), 0);
    assert_eq!(count(&["approvals", "list", "--state", "pending", "--older-than", "1h"]), 0);
    assert_eq!(count(&["approvals", "list", "--state", "pending", "--older-than", "0s"]), 1);
    assert_eq!(count(&["effects", "list", "--older-than", "1d"]), 0);
}

/// Asks 16 minutes ago for what a person may approve for 15; the request's id.
fn asked_long_ago(project: &Project, payment: &str) -> String {
    let control = project.embedded(16);
    let call = control.action("stripe.refund").arg("payment_id", payment).arg("amount", 500_000);
    match call.by(Principal::agent("bot")).propose() {
        Err(Error::ApprovalNeeded { approval, .. }) => approval.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_whose_time_is_over_is_expired_before_anybody_has_recorded_it() {
    let project = Project::new();
    for payment in ["txn_1", "txn_2", "txn_3"] {
        asked_long_ago(&project, payment);
    }
    let over = asked_long_ago(&project, "txn_4");
    let waits = project.asked("txn_5");
    let before = project.items(&["events"]);

    for list in [&["pending"][..], &["approvals", "list", "--state", "pending"]] {
        let limited: Vec<_> = list.iter().copied().chain(["--limit", "1"]).collect();
        let found = project.items(&limited);
        assert_eq!(found.len(), 1, "a page is filled past what is over");
        assert_eq!(found[0]["approval"], json!(waits));
    }
    assert_eq!(project.items(&["approvals", "list", "--state", "expired"]).len(), 4);
    assert_eq!(project.items(&["approvals", "list"]).len(), 5);
    assert_eq!(project.ok(&["approvals", "list"]).stdout.matches("expired").count(), 4);
    assert_eq!(project.json(&["approvals", "show", &over])["status"], "expired");
    assert!(project.ok(&["approvals", "show", &over]).stdout.contains("expired, 0 of 1 yes"));
    let actions = project.ok(&["actions", "list", "--state", "waiting"]).stdout;
    assert_eq!((actions.matches("waiting").count(), actions.matches("waiting (over)").count()), (5, 4));
    let waiting = project.items(&["actions", "list", "--state", "waiting"]);
    assert_eq!(waiting.iter().filter(|action| action["over"] == true).count(), 4);
    assert!(project.ok(&["doctor"]).stdout.contains("1 wait for an answer"));

    assert_eq!(project.items(&["events"]), before, "nothing was written");
    assert_eq!(project.refused(&["approve", &over, "--json"]).error()["code"], "approval_expired");
}

#[test]
fn an_attempt_whose_lease_is_over_is_marked_before_anybody_has_met_it() {
    let project = Project::new();
    let control = project.embedded(10);
    let call = control.action("stripe.refund").arg("payment_id", "txn_1").arg("amount", 1);
    let lost = call.by(Principal::agent("bot")).execute(|_| {
        let listed = project.ok(&["effects", "list"]).stdout;
        assert!(listed.contains("executing (over)"), "{listed}");
        let shown = project.ok(&["effects", "show", "refund:txn_1"]).stdout;
        assert!(shown.contains("(over: nobody has reported)"), "{shown}");
        assert_eq!(project.json(&["effects", "show", "refund:txn_1"])["over"], true);
        Ok::<_, Error>(())
    });
    lost.expect("its own clock has not moved");
    assert!(project.ok(&["effects", "list"]).stdout.contains("committed "));
}

#[test]
fn a_cursor_that_no_list_printed_is_a_usage_error() {
    let project = Project::new();
    project.refund("txn_1", 1, &[]);
    for list in ["effects", "actions", "approvals", "receipts"] {
        assert_eq!(project.run(&[list, "list", "--after", "x"]).code, 2, "{list}");
    }
}

#[test]
fn what_is_not_there_is_named_and_exits_1() {
    let project = Project::new();
    for store in [false, true] {
        if store {
            project.refund("txn_1", 1, &[]);
        }
        for (args, code) in [
            (&["effects", "show", "refund:txn_9"][..], "effect_unknown"),
            (&["resolve", "refund:txn_9", "--failed", "--reason", "x"], "effect_unknown"),
            (&["actions", "show", "act_00000000000070008000000000000000"], "action_unknown"),
            (&["approvals", "show", "apr_00000000000070008000000000000000"], "approval_unknown"),
            (&["approve", "apr_00000000000070008000000000000000"], "approval_unknown"),
            (&["deny", "apr_00000000000070008000000000000000"], "approval_unknown"),
            (&["receipts", "show", "rcp_00000000000070008000000000000000"], "receipt_unknown"),
        ] {
            let args: Vec<_> = args.iter().copied().chain(["--json"]).collect();
            assert_eq!(project.refused(&args).error()["code"], code, "{args:?}");
        }
    }
}

#[test]
fn lists_and_single_things_for_people() {
    let project = Project::new();
    project.refund("txn_1", 50_000, &[]);
    let approval = project.asked("txn_2");
    project.unknown("txn_3");
    let action = project.items(&["actions", "list"])[1]["action"].as_str().expect("an id").to_owned();
    let receipt = project.items(&["receipts", "list"])[1]["receipt"].as_str().expect("an id").to_owned();
    let mut text = String::new();
    for args in [
        &["effects", "list"][..],
        &["effects", "show", "refund:txn_3"],
        &["actions", "list"],
        &["actions", "show", &action],
        &["approvals", "list"],
        &["approvals", "show", &approval],
        &["receipts", "list"],
        &["receipts", "show", &receipt],
        &["events", "--after", "2", "--limit", "2"],
        &["doctor"],
    ] {
        let shown =
            args.iter().map(|word| if word.len() > 30 { "ID" } else { word }).collect::<Vec<_>>().join(" ");
        text.push_str(&format!("$ onceseal {shown}\n{}\n", project.ok(args).all()));
    }
    snapshot("for_people", &text);
}

#[test]
fn a_receipt_says_for_ever_what_it_said_first() {
    let project = Project::new();
    project.unknown("txn_1");
    let approval = project.asked("txn_2");
    project.ok(&["approve", &approval]);
    assert_eq!(project.refund("txn_2", 500_001, &["--approval", &approval]).code, 1);
    let receipts = || -> Vec<_> {
        let ids = project.items(&["receipts", "list"]).into_iter().map(|r| r["receipt"].clone());
        ids.map(|id| project.json(&["receipts", "show", id.as_str().expect("an id")])).collect()
    };
    let before = receipts();
    assert_eq!(before[0]["error"], "the program was ended by signal 9");
    assert_eq!(before[1]["approval"], json!(null), "what was given for another amount");
    project.ok(&["resolve", "refund:txn_1", "--failed", "--reason", "looked"]);
    project.ok(&refund("txn_2", 500_000, &[], "true").each());
    let after = receipts();
    assert_eq!(after[..2], before[..], "resolving and using came later");
    assert_eq!((&after[2]["answered"]["reason"], &after[2]["result"]), (&json!("looked"), &json!("failed")));
    assert_eq!(after[3]["approval"]["status"], "consumed");
}

#[test]
fn colour_is_there_when_asked_for_and_only_then() {
    let project = Project::new();
    project.refund("txn_1", 1, &[]);
    let plain = project.ok(&["effects", "list"]).stdout;
    assert!(!plain.contains('\u{1b}'));
    let coloured = project.ok(&["effects", "list", "--color", "always"]).stdout;
    assert!(coloured.contains("\u{1b}[32mcommitted"));
    assert!(!project.ok(&["effects", "list", "--color", "always", "--json"]).stdout.contains('\u{1b}'));
}

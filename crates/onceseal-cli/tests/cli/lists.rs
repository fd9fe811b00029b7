//! Lists: pages, filters, and how they read.

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
    assert_eq!(before[1]["approval"]["status"], "granted");
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

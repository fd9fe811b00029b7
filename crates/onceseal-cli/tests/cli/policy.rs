//! `policy`: check, explain, apply; and what follows from a change.

use serde_json::json;

use crate::base::{Project, refund, snapshot};

const RULES: &str = r#"actions:
  stripe.refund:
    effect: "refund:{payment_id}"
    redact: [card_number]
    rules:
      - when: { card_number_prefix: "4111", amount_lte: 100 }
        decision: allow
      - when: { amount_lte: 50000 }
        decision: approve
"#;

#[test]
fn ua_160_an_explanation_names_the_rule_the_condition_and_what_it_saw() {
    let project = Project::with_policy(RULES);
    std::fs::write(project.path("card"), "4111111111111111").expect("written");
    let call = ["policy", "explain", "stripe.refund", "--arg", "payment_id=txn_1", "--arg", "amount:=700"];
    let line: Vec<_> = call.iter().copied().chain(["--arg-file", "card_number=card"]).collect();
    let ran = project.ok(&line);
    assert!(!ran.all().contains("4111111111111111"));
    snapshot("policy_explain", &ran.stdout);
    let absent = project.ok(&["policy", "explain", "stripe.refund", "--arg", "payment_id=txn_1"]);
    snapshot("policy_explain_unjudged", &absent.stdout);
    let unfit = project.json(&["policy", "explain", "stripe.refund", "--arg", "amount:=1"]);
    assert_eq!((&unfit["decision"], &unfit["reason"]), (&json!("deny"), &json!("effect_key_error")));
}

#[test]
fn a_template_that_cannot_be_filled_is_told_with_what_it_lacks_and_no_value() {
    let project = Project::with_policy(
        "actions:\n  pay: { effect: \"pay:{order.id}\", resource: \"shop:{shop}\", decision: allow }\n  move: { effect: \"move:{resource}\", decision: allow }\n",
    );
    for (call, code, says) in [
        (&["pay"][..], "resource_error", "the argument `shop` is missing; the resource needs it"),
        (
            &["pay", "--arg", "shop=s", "--arg", r#"order:={"id":[]}"#],
            "effect_key_error",
            "the argument `order.id` is list; the effect key needs text or an integer",
        ),
        (
            &["pay", "--arg", "shop="],
            "resource_error",
            "`shop` is empty; the resource needs text that is not",
        ),
        (&["move"], "effect_key_error", "the action has no resource; the effect key needs it"),
    ] {
        let line = |command: &[&'static str], rest: &[&'static str]| -> Vec<_> {
            command.iter().chain(call).chain(rest).copied().collect()
        };
        let exec = project.refused(&line(&["exec"], &["--json", "--", "true"])).error();
        assert_eq!((&exec["code"], &exec["why"]), (&json!(code), &json!(says)));
        let submit = project.refused(&line(&["actions", "submit"], &["--json"])).error();
        assert_eq!((&submit["code"], &submit["why"]), (&json!(code), &json!(says)));
        let explain = project.json(&line(&["policy", "explain"], &[]));
        assert_eq!((&explain["reason"], &explain["unfit"]), (&json!(code), &json!(says)));
        assert!(project.ok(&line(&["policy", "explain"], &[])).stdout.contains(says));
    }
}

#[test]
fn ua_161_an_action_that_is_not_listed_is_denied_with_the_line_to_add() {
    let project = Project::new();
    let ran = project.refused(&["exec", "stripe.refnud", "--", "sh", "-c", "echo x >> calls"]);
    assert_eq!(project.read("calls"), "");
    snapshot("unlisted", &ran.stderr);
    let explained = project.ok(&["policy", "explain", "stripe.refnud"]);
    snapshot("unlisted_explained", &explained.stdout);
    let submitted = project.refused(&["actions", "submit", "stripe.refnud"]);
    assert_eq!(submitted.stderr, ran.stderr);
    // The line does what it says.
    let line = explained.stdout.lines().last().expect("the line").to_owned();
    let policy = project.read("onceseal.yaml").replace("actions:\n", &format!("actions:\n{line}\n"));
    std::fs::write(project.path("onceseal.yaml"), policy).expect("written");
    let asked = project.refused(&["exec", "stripe.refnud", "--json", "--", "true"]);
    assert_eq!(asked.error()["code"], "approval_needed");
}

#[test]
fn a_check_names_what_its_author_should_know_and_where() {
    let project = Project::with_policy(
        "actions:\n  a:\n    rules:\n      - decision: deny\n      - when: { x_eq: 1 }\n        decision: allow\n  b:\n    approval: { quorum: 2, proof: [os] }\n    decision: approve\n",
    );
    let ran = project.refused(&["policy", "check"]);
    snapshot("policy_check_findings", &ran.stdout);
    let sound = Project::new().ok(&["policy", "check"]).stdout;
    assert_eq!(sound.lines().last(), Some("4 actions, 0 errors, 0 warnings"));
    let elsewhere = project.base().join("other.yaml");
    std::fs::write(&elsewhere, "schema: onceseal.policy/v1\nactions: { a: { decison: allow } }\n")
        .expect("written");
    let malformed = project.run(&["policy", "check", elsewhere.to_str().expect("UTF-8")]);
    assert_eq!(malformed.code, 2);
    assert!(malformed.stderr.contains("did you mean `decision`"), "{malformed:?}");
}

#[test]
fn a_check_says_how_many_people_must_answer_elsewhere_than_at_a_command_line() {
    let project = Project::with_policy(
        "groups: { boss: [\"host:boss\"] }\nactions:\n  alone: { decision: approve }\n  two: { decision: approve, approval: { quorum: 2 } }\n  boss: { decision: approve, approval: { approvers: [boss] } }\n  never: { decision: deny, approval: { quorum: 2 } }\n",
    );
    let findings = project.json(&["policy", "check"])["findings"].as_array().expect("findings").clone();
    let told = |action: &str| {
        let path = format!("actions.{action}.approval");
        let found = findings.iter().find(|f| f["code"] == "people_elsewhere" && f["path"] == json!(path))?;
        Some((found["severity"].clone(), found["message"].as_str().expect("a sentence").to_owned()))
    };
    let (severity, sentence) = told("two").expect("told");
    assert_eq!(severity, "note");
    assert!(sentence.contains("1 of 2 yes must come from `host` people"), "{sentence}");
    assert!(told("boss").expect("told").1.starts_with("nobody can answer at a command line"));
    assert_eq!((told("alone"), told("never")), (None, None));
    assert!(project.ok(&["policy", "check"]).stdout.contains("a program that embeds Onceseal proves"));
}

#[test]
fn a_check_names_the_tools_that_no_rule_permits() {
    let project = Project::with_policy(
        "actions:\n  listed: { decision: allow }\ntools:\n  listed: { command: { run: [\"true\"] }, recovery: never }\n  other: { command: { run: [\"true\"] }, recovery: never }\n",
    );
    let findings = project.json(&["policy", "check"])["findings"].as_array().expect("findings").clone();
    let found: Vec<_> = findings.iter().filter(|found| found["code"] == "tool_not_listed").collect();
    assert_eq!(found.len(), 1, "{findings:?}");
    assert_eq!((&found[0]["severity"], &found[0]["path"]), (&json!("warning"), &json!("tools.other")));
}

#[test]
fn ua_019_check_and_doctor_warn_of_a_key_that_the_remote_forgets_before_it_may_be_used_again() {
    let project = Project::with_policy(
        "actions:\n  pay: { decision: allow, effect: \"pay:{id}\" }\ntools:\n  pay: { command: { run: [\"true\"] }, recovery: same_key, key_ttl: 24h, deliver_within: 48h }\n",
    );
    let findings = project.json(&["policy", "check"])["findings"].clone();
    assert_eq!(
        (&findings[0]["code"], &findings[0]["path"]),
        (&json!("key_ttl_short"), &json!("tools.pay.key_ttl"))
    );
    let told = project.ok(&["doctor"]).stdout;
    assert!(told.contains("tools.pay.key_ttl: is shorter than deliver_within"), "{told}");
}

#[test]
fn a_store_in_memory_is_warned_of_wherever_something_is_expected_of_it() {
    let project = Project::with_policy("actions:\n  a: { decision: allow }\nsettings: { memory: true }\n");
    for args in [
        &["exec", "a", "--", "true"][..],
        &["exec", "a", "--json", "--", "true"],
        &["actions", "submit", "a"],
        &["policy", "check"],
        &["policy", "apply"],
        &["doctor"],
        &["effects", "list"],
    ] {
        let ran = project.ok(args);
        assert!(ran.all().contains("`memory: true` keeps nothing from one command to the next"), "{ran:?}");
    }
    assert!(!project.state().join("onceseal.db").metadata().is_ok_and(|found| found.len() > 0));
}

#[test]
fn a_policy_that_was_active_before_comes_back_only_when_it_is_applied() {
    let project = Project::new();
    let first = project.read("onceseal.yaml");
    project.refund("txn_1", 1, &[]);
    project.set_policy("actions:\n  stripe.refund: { decision: deny }\n");
    assert_eq!(project.refund("txn_2", 1, &[]).code, 1, "a new policy is active at once");
    std::fs::write(project.path("onceseal.yaml"), &first).expect("written");
    let old = project.refund("txn_3", 1, &["--json"]);
    assert_eq!((old.code, old.error()["code"].clone()), (2, json!("policy_file_old")));
    assert_eq!(old.error()["next"], json!(["onceseal policy apply"]));
    assert!(project.ok(&["policy", "apply"]).stdout.contains("is active now"));
    assert!(project.ok(&["policy", "apply"]).stdout.contains("was active already"));
    assert_eq!(project.refund("txn_3", 1, &[]).code, 0);
    let activations =
        project.items(&["events"]).into_iter().filter(|e| e["open"]["kind"] == "policy.activated");
    let people: Vec<_> = activations.map(|event| event["sealed"]["person"].clone()).collect();
    assert_eq!(people.len(), 3);
    assert!(people[2].as_str().is_some_and(|person| person.starts_with("os:")), "{people:?}");
}

#[test]
fn a_policy_that_changed_is_not_activated_in_silence() {
    let project = Project::new();
    assert!(!project.refund("txn_1", 1, &[]).stderr.contains("policy"), "the first one replaces none");
    let edit = |from: &str, to: &str| {
        let policy = project.read("onceseal.yaml").replace(from, to);
        std::fs::write(project.path("onceseal.yaml"), policy).expect("written");
        project.json(&["policy", "check"])["policy"].as_str().expect("a hash").to_owned()
    };
    let first = project.json(&["policy", "check"])["policy"].as_str().expect("a hash").to_owned();
    let second = edit("50000", "50001");
    let note =
        format!("note: the policy changed: {} is active now instead of {}\n", &second[..19], &first[..19]);
    assert!(project.refund("txn_2", 1, &[]).stderr.starts_with(&note));
    assert!(!project.refund("txn_3", 1, &[]).stderr.contains("policy"));

    let third = edit("50001", "50002");
    let refused = project.refund("txn_4", 5_000_000, &["--json"]);
    assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
    assert_eq!(refused.error()["policy_activated"], json!({ "from": second, "to": third }));
    let again = project.refund("txn_5", 1, &["--json"]);
    assert_eq!(again.document()["policy_activated"], json!(null));
    let fourth = edit("50002", "50003");
    let submit = ["actions", "submit", "customer.read"];
    assert_eq!(project.json(&submit)["policy_activated"], json!({ "from": third, "to": fourth }));
}

#[test]
fn answering_and_reading_need_no_file_and_no_sound_policy() {
    let project = Project::new();
    let id = project.asked("txn_1");
    std::fs::write(project.path("onceseal.yaml"), "schema: onceseal.policy/v1\nactions: 7\n")
        .expect("written");
    project.ok(&["approve", &id]);
    std::fs::remove_file(project.path("onceseal.yaml")).expect("removed");
    assert_eq!(project.items(&["approvals", "list", "--state", "granted"]).len(), 1);
}

#[test]
fn a_rule_that_changes_voids_what_was_approved_under_it() {
    let project = Project::new();
    let id = project.asked("txn_1");
    project.ok(&["approve", &id]);
    let policy = project.read("onceseal.yaml").replace("amount_lte: 50000", "amount_lte: 40000");
    std::fs::write(project.path("onceseal.yaml"), policy).expect("written");
    let line = refund("txn_1", 500_000, &["--json", "--approval", &id], "echo x >> calls");
    let again = project.refused(&line.each()).error();
    assert_eq!(again["code"], "approval_needed");
    assert_ne!(again["approval"], json!(id), "asked anew");
    assert_eq!(project.json(&["approvals", "show", &id])["revoked"], "policy_changed");
    assert_eq!(project.read("calls"), "");
}

#[test]
fn a_proposal_is_recorded_without_being_run_and_started_later_by_its_id() {
    let project = Project::new();
    let submit = ["actions", "submit", "stripe.refund", "--arg", "payment_id=txn_1", "--arg", "amount:=1"];
    let ready = project.json(&submit);
    assert_eq!((&ready["state"], &ready["decision"]), (&json!("ready"), &json!("allow")));
    let id = ready["action"].as_str().expect("an id");
    project.ok(&refund("txn_1", 1, &["--id", id], "echo x >> calls").each());
    assert_eq!(project.read("calls"), "x\n");
    let waiting =
        ["actions", "submit", "stripe.refund", "--arg", "payment_id=txn_2", "--arg", "amount:=500000"];
    let waiting = project.json(&waiting);
    assert_eq!(waiting["state"], "waiting");
    assert!(waiting["approval"].as_str().is_some_and(|id| id.starts_with("apr_")));
    let denied = project.refused(&[
        "actions",
        "submit",
        "stripe.refund",
        "--arg",
        "payment_id=x",
        "--arg",
        "amount:=-1",
    ]);
    assert!(denied.stderr.contains("error[policy_denied]"), "{denied:?}");
}

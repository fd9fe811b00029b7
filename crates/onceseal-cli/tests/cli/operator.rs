//! What an operator does: resolving, revoking, looking after the store.

use std::fs;

use serde_json::json;

use crate::base::{Project, refund};

#[test]
fn an_answer_for_an_unknown_outcome_needs_a_reason_and_is_given_once() {
    let project = Project::new();
    project.unknown("txn_1");
    let resolve = |more: &[&str]| {
        let line: Vec<_> =
            ["resolve", "refund:txn_1"].iter().chain(more).chain(&["--json"]).copied().collect();
        project.run(&line)
    };
    assert_eq!(resolve(&["--committed"]).code, 2, "no reason");
    assert_eq!(resolve(&["--committed", "--failed", "--reason", "x"]).code, 2, "both");
    assert_eq!(resolve(&["--reason", "x"]).code, 2, "neither");
    let blank = resolve(&["--committed", "--reason", " "]);
    assert_eq!((blank.code, blank.error()["why"].clone()), (2, json!("--reason is blank")));
    let long = "x".repeat(1025);
    let wordy = resolve(&["--committed", "--reason", "seen", "--evidence", &long]);
    assert_eq!(wordy.error()["why"], "--evidence has more than 1024 characters");
    let stale = resolve(&["--committed", "--reason", "seen", "--fence", "7"]);
    let error = stale.error();
    assert_eq!((stale.code, &error["code"], &error["attempt"]), (1, &json!("fence_differs"), &json!(1)));
    assert_eq!(error["message"], "the word is about attempt 7, and the newest attempt is 1");
    let done =
        resolve(&["--committed", "--reason", "re_1 is there", "--evidence", "https://example.test/re_1"]);
    assert_eq!((done.code, done.document()["state"].clone()), (0, json!("committed")));
    let twice = resolve(&["--failed", "--reason", "changed my mind"]);
    assert_eq!((twice.code, twice.error()["code"].clone()), (1, json!("not_ambiguous")));
    let receipt = project.json(&["receipts", "list", "--newest", "--limit", "1"])["items"][0].clone();
    assert_eq!(
        (&receipt["result"], &receipt["answered"]["reason"]),
        (&json!("committed"), &json!("re_1 is there"))
    );
    assert!(receipt["first_receipt"].as_str().is_some_and(|id| id.starts_with("rcp_")));
    assert_eq!(project.refund("txn_1", 1, &[]).code, 1, "it happened");
}

#[test]
fn an_action_without_effect_key_is_resolved_by_the_key_that_is_shown() {
    let project = Project::new();
    let ran = project.refused(&["exec", "customer.read", "--json", "--", "sh", "-c", "exit 9"]);
    let key = ran.error()["effect_key"].as_str().expect("a key").to_owned();
    assert!(key.starts_with("act:act_"), "{key}");
    project.ok(&["resolve", &key, "--failed", "--reason", "only a read"]);
}

#[test]
fn whoever_may_not_resolve_or_revoke_is_refused() {
    let project = Project::with_policy(
        "groups: { boss: [\"os:somebody-else\"] }\noperators: [boss]\nactions:\n  stripe.refund:\n    effect: \"refund:{payment_id}\"\n    rules:\n      - when: { amount_lte: 50000 }\n        decision: allow\n      - decision: approve\n",
    );
    project.unknown("txn_1");
    let ran = project.refused(&["resolve", "refund:txn_1", "--failed", "--reason", "x", "--json"]);
    assert_eq!(ran.error()["code"], "not_operator");
    let id = project.asked("txn_2");
    assert_eq!(project.refused(&["approvals", "revoke", &id, "--json"]).error()["code"], "not_operator");
}

#[test]
fn an_approval_can_be_taken_back_before_it_is_used_and_not_after() {
    let project = Project::new();
    let id = project.asked("txn_1");
    project.ok(&["approve", &id]);
    assert!(project.ok(&["approvals", "revoke", &id]).stdout.contains("revoked"));
    let again = project.asked("txn_1");
    assert_ne!(again, id, "asked anew");
    project.ok(&["approve", &again]);
    project.ok(&refund("txn_1", 500_000, &[], "true").each());
    let late = project.refused(&["approvals", "revoke", &again, "--json"]).error();
    assert_eq!((&late["code"], &late["status"]), (&json!("approval_decided"), &json!("consumed")));
}

#[test]
fn doctor_names_what_waits_and_exits_1_only_for_faults() {
    let project = Project::new();
    project.refund("txn_0", 1, &[]);
    project.asked("txn_1");
    project.unknown("txn_2");
    let doctor = project.json(&["doctor"]);
    let find = |name: &str| {
        let checks = doctor["checks"].as_array().expect("checks");
        checks.iter().find(|check| check["name"] == name).cloned().expect(name)
    };
    for (name, status, part) in [
        ("state", "ok", "/state/onceseal/"),
        ("store", "ok", "tenant default"),
        ("history", "ok", "up to entry"),
        ("approvals", "warn", "1 wait for an answer"),
        ("unknown effects", "warn", "1 have an unknown outcome"),
        ("who answers", "warn", "cannot tell an agent from the person"),
    ] {
        let check = find(name);
        assert_eq!(check["status"], status, "{check}");
        assert!(check["detail"].as_str().is_some_and(|detail| detail.contains(part)), "{check}");
    }
    fs::write(project.path("onceseal.yaml"), "schema: wrong").expect("written");
    assert_eq!(project.run(&["doctor"]).code, 1);
}

#[test]
fn doctor_names_the_settings_that_protect_less() {
    let project = Project::new();
    project.refund("txn_0", 1, &[]);
    let policy = project.read("onceseal.yaml");
    let settings = "settings: { force_filesystem: true, trust_group: 1 }\n";
    fs::write(project.path("onceseal.yaml"), format!("{policy}{settings}")).expect("written");
    let doctor = project.ok(&["doctor"]).stdout;
    assert!(doctor.contains("; less safe by force_filesystem, trust_group\n"), "{doctor}");
}

#[test]
fn p05_a_store_that_went_back_is_noticed_before_anything_runs_until_a_person_accepts_it() {
    let project = Project::new();
    project.refund("txn_1", 1, &[]);
    let backup = fs::read(project.database()).expect("a backup");
    project.refund("txn_2", 1, &[]);
    assert_eq!(project.read("calls"), "x\nx\n");
    fs::write(project.database(), backup).expect("restored");

    let again = project.refund("txn_2", 1, &["--json"]);
    assert_eq!((again.code, again.error()["code"].clone()), (2, json!("store_went_back")));
    assert_eq!(project.read("calls"), "x\nx\n", "what was forgotten is not repeated");
    let listed = project.ok(&["effects", "list"]);
    assert!(
        listed.stderr.contains("older than what was seen before: entries 7 to 10 of the log"),
        "{listed:?}"
    );
    let doctor = project.refused(&["doctor"]);
    assert!(
        doctor.stdout.contains("entries 7 to 10 of the log, at least, were seen and are gone"),
        "{}",
        doctor.stdout
    );

    assert_eq!(project.run(&["doctor", "--accept-went-back"]).code, 2, "a reason is needed");
    let blank = project.run(&["doctor", "--accept-went-back", "--reason", " ", "--json"]);
    assert_eq!((blank.code, &blank.error()["why"]), (2, &json!("--reason is blank")));
    let accepted = project.ok(&["doctor", "--accept-went-back", "--reason", "restored after a disk failure"]);
    assert!(accepted.stdout.contains("entries 7 to 10"), "{accepted:?}");
    project.ok(&["doctor"]);
    let event = project.items(&["events"]).pop().expect("an event");
    assert_eq!(event["open"]["kind"], "store.accepted");
    assert_eq!(event["open"]["data"], json!({"found": 6, "seen": 10}));
    assert_eq!(event["sealed"]["reason"], "restored after a disk failure");
    let nothing = project.ok(&["doctor", "--accept-went-back", "--reason", "again"]);
    assert!(nothing.stdout.contains("nothing to accept"), "{nothing:?}");
    assert_eq!(project.refund("txn_2", 1, &[]).code, 0, "accepted: it may happen again");
}

#[test]
fn p05_an_emptied_database_is_refused_by_every_command_until_a_person_accepts_it() {
    let project = Project::new();
    project.refund("txn_1", 1, &[]);
    fs::write(project.database(), "").expect("emptied");
    let again = project.refund("txn_1", 1, &["--json"]);
    assert_eq!((again.code, again.error()["code"].clone()), (2, json!("store_went_back")));
    for command in [&["effects", "list"][..], &["audit"], &["approvals", "list"]] {
        let told = project.run(&[command, &["--json"]].concat());
        assert_eq!(told.error()["code"], json!("store_went_back"), "{command:?}: {told:?}");
    }
    let doctor = project.refused(&["doctor"]);
    assert!(doctor.stdout.contains("store_went_back"), "{doctor:?}");
    assert!(doctor.stdout.contains("next: look at the remotes, then onceseal doctor --acc"), "{doctor:?}");
    assert_eq!(project.read("calls"), "x\n", "what was forgotten is not repeated");
    let accepted = project.ok(&["doctor", "--accept-went-back", "--reason", "the disk was lost"]);
    assert!(accepted.stdout.contains("all 6 entries of the log that were seen are gone"), "{accepted:?}");
    project.ok(&["doctor"]);
    project.refund("txn_1", 1, &[]);
    assert_eq!(project.read("calls"), "x\nx\n");
}

/// The file that keeps what was seen of the store.
fn mark(project: &Project) -> std::path::PathBuf {
    let marks = fs::read_dir(project.base().join("state/onceseal/marks")).expect("marks");
    let paths = marks.map(|entry| entry.expect("an entry").path());
    paths.into_iter().find(|path| path.extension().is_none()).expect("a mark")
}

#[test]
fn doctor_warns_of_a_mark_that_stays_behind_the_log() {
    let project = Project::new();
    project.refund("txn_1", 1, &[]);
    let mark = mark(&project);
    let behind = fs::read(&mark).expect("a mark");
    project.refund("txn_2", 1, &[]);
    fs::write(&mark, behind).expect("as if it could not be written");
    let doctor = project.json(&["doctor"]);
    let checks = doctor["checks"].as_array().expect("checks");
    let history = checks.iter().find(|check| check["name"] == "history").expect("one");
    assert_eq!(history["status"], "warn");
    let detail = history["detail"].as_str().expect("a sentence");
    assert!(detail.starts_with("the mark of what was seen is at entry 6 and the log at 10"), "{detail}");
    assert!(history["next"].as_str().is_some_and(|next| next.contains("look again")), "{history}");
    project.refund("txn_3", 1, &[]);
    assert!(project.ok(&["doctor"]).stdout.contains("the log has all that was seen, up to entry 14"));
    // Where its lock should be stands something else.
    let lock = mark.with_extension("lock");
    let _ = fs::remove_file(&lock);
    fs::create_dir(&lock).expect("a directory");
    project.refund("txn_4", 1, &[]);
    let doctor = project.ok(&["doctor"]).stdout;
    assert!(doctor.contains("cannot be written, it is at entry 14 and the log at 18"), "{doctor}");
}

#[test]
fn a_mark_that_cannot_be_read_stops_whoever_acts_and_can_be_accepted() {
    let project = Project::new();
    project.refund("txn_1", 1, &[]);
    let mark = mark(&project);
    fs::write(&mark, "{}").expect("written");
    let ran = project.refund("txn_2", 1, &["--json"]);
    assert_eq!((ran.code, ran.error()["code"].clone()), (2, json!("mark_corrupt")));
    assert_eq!(project.run(&["doctor"]).code, 3, "it could not be checked");
    project.ok(&["doctor", "--accept-went-back", "--reason", "an editor wrote to it"]);
    assert_eq!(project.refund("txn_2", 1, &[]).code, 0);
}

#[test]
fn without_a_mark_doctor_says_that_nothing_is_known() {
    let project = Project::new();
    project.refund("txn_1", 1, &[]);
    fs::remove_dir_all(project.base().join("state/onceseal/marks")).expect("removed");
    let doctor = project.ok(&["doctor"]).stdout;
    assert!(doctor.contains("there is no mark of what was seen"), "{doctor}");
}

#[test]
fn a_store_that_fails_is_named_and_what_to_type_too() {
    let project = Project::new();
    project.refund("txn_1", 1, &[]);
    let gate = project.state().join("onceseal.db.gate");
    fs::remove_file(&gate).expect("removed");
    fs::create_dir(&gate).expect("a directory in its place");
    let ran = project.refund("txn_2", 1, &["--json"]);
    let (error, database) = (ran.error(), project.database());
    let database = database.to_str().expect("UTF-8");
    assert_eq!((ran.code, &error["code"], &error["file"]), (2, &json!("store_failed"), &json!(database)));
    assert_eq!(error["why"], format!("the store is {database}"));
    assert_eq!(error["next"], json!(["onceseal doctor", "then the same command again"]));
    fs::write(database, "no store ".repeat(1000)).expect("written");
    let foreign = project.run(&["effects", "list", "--json"]).error();
    assert_eq!((&foreign["code"], &foreign["file"]), (&json!("store_foreign"), &json!(database)));
    let elsewhere = project.run(&["demo", "--json"]);
    assert_eq!(elsewhere.code, 0, "what has a store of its own is not concerned: {elsewhere:?}");
}

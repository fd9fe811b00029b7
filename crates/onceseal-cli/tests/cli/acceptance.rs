//! What a developer sees on the first day, from an empty directory on.

use std::fs;

use crate::base::{Project, ran, refund};

#[test]
fn an_effect_happens_once_is_approved_exactly_and_stays_unknown_until_somebody_knows() {
    let project = Project::empty();
    project.ok(&["init"]);

    let first = project.refund("txn_1", 50_000, &[]);
    assert_eq!((first.code, project.read("calls").as_str()), (0, "x\n"), "{first:?}");
    let again = project.refund("txn_1", 50_000, &[]);
    assert_eq!(again.code, 1);
    assert!(again.stderr.contains("error[duplicate]"), "{again:?}");
    assert_eq!(project.read("calls"), "x\n", "the command ran once");

    let asked = project.refund("txn_2", 500_000, &[]);
    assert_eq!(asked.code, 1);
    let id = asked.stderr.split("onceseal approve ").nth(1).expect("the command to type");
    let id = id.lines().next().expect("an id").to_owned();
    assert!(id.starts_with("apr_"), "{asked:?}");

    let approved = project.ok(&["approve", &id]);
    for part in
        ["\"stripe.refund\"", "\"amount\": 500000", "\"payment_id\": \"txn_2\"", "refund:txn_2", "granted"]
    {
        assert!(approved.stdout.contains(part), "{part}: {}", approved.stdout);
    }

    let changed = project.refund("txn_2", 500_001, &["--approval", &id]);
    assert_eq!(changed.code, 1);
    assert!(changed.stderr.contains("error[approval_mismatch]"), "{changed:?}");
    assert_eq!(project.read("calls"), "x\n", "what was not approved did not run");

    let resumed = project.refund("txn_2", 500_000, &[]);
    assert_eq!((resumed.code, project.read("calls").as_str()), (0, "x\nx\n"), "{resumed:?}");

    let killed = project.run(&refund("txn_3", 5, &[], "echo x >> calls; kill -9 $$").each());
    assert_eq!(killed.code, 1);
    assert!(killed.stderr.contains("error[outcome_unknown]"), "{killed:?}");
    let blind = project.refund("txn_3", 5, &[]);
    assert_eq!(blind.code, 1);
    assert!(blind.stderr.contains("error[ambiguous]"), "{blind:?}");
    assert_eq!(project.read("calls"), "x\nx\nx\n", "the unknown was not repeated");
    let resolve = ["resolve", "refund:txn_3", "--failed", "--reason", "the provider has no such refund"];
    project.ok(&resolve);
    let retried = project.refund("txn_3", 5, &[]);
    assert_eq!((retried.code, project.read("calls").as_str()), (0, "x\nx\nx\nx\n"), "{retried:?}");

    evidence(&project);
}

/// Lists show all of it.
fn evidence(project: &Project) {
    let effects = project.items(&["effects", "list"]);
    let states: Vec<_> = effects.iter().map(|e| (e["effect_key"].as_str(), e["state"].as_str())).collect();
    let committed = Some("committed");
    assert_eq!(
        states,
        [
            (Some("refund:txn_1"), committed),
            (Some("refund:txn_2"), committed),
            (Some("refund:txn_3"), committed)
        ]
    );
    assert_eq!(effects[2]["attempt"], 2);

    let receipts = project.items(&["receipts", "list"]);
    let answers: Vec<_> = receipts
        .iter()
        .map(|r| (r["result"].as_str().unwrap_or("-"), r["code"].as_str().unwrap_or("-")))
        .collect();
    assert_eq!(
        answers,
        [
            ("committed", "-"),
            ("blocked", "duplicate"),
            ("blocked", "approval_mismatch"),
            ("committed", "-"),
            ("ambiguous", "ambiguous"),
            ("blocked", "ambiguous"),
            ("failed", "-"),
            ("committed", "-"),
        ]
    );

    let events = project.items(&["events"]);
    let kinds: Vec<_> = events.iter().map(|e| e["open"]["kind"].as_str().expect("a kind")).collect();
    for kind in
        ["approval.requested", "approval.answered", "approval.consumed", "effect.resolved", "action.answered"]
    {
        assert_eq!(kinds.iter().filter(|found| **found == kind).count(), 1, "{kind}");
    }
    let positions: Vec<_> = events.iter().map(|e| e["position"].as_u64().expect("a position")).collect();
    assert_eq!(positions, (1..=events.len() as u64).collect::<Vec<_>>(), "nothing is missing");
}

#[test]
fn p03_of_eight_shells_at_once_on_one_key_one_runs() {
    let project = Project::new();
    // Opened once, so that all eight meet in a store and not in its making.
    project.refund("txn_0", 1, &[]);
    let line = refund("txn_1", 50_000, &[], "echo x >> once; cat");
    let mut shells: Vec<_> = (0..8)
        .map(|_| {
            let mut command = project.command(&line.each());
            command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
            command.stderr(std::process::Stdio::piped()).spawn().expect("a shell")
        })
        .collect();
    // Whoever runs waits for this, so that the others meet it running or done.
    let inputs: Vec<_> = shells.iter_mut().map(|shell| shell.stdin.take()).collect();
    drop(inputs);
    let codes: Vec<i32> =
        shells.into_iter().map(|shell| ran(shell.wait_with_output().expect("its end")).code).collect();
    assert_eq!(project.read("once"), "x\n", "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 1).count(), 7, "{codes:?}");
    let effects = project.items(&["effects", "list"]);
    assert_eq!(effects.len(), 2);
    assert_eq!(effects[1]["attempt"], 1);
}

#[test]
fn a_store_that_was_never_written_to_reads_empty_and_stays_so() {
    let project = Project::new();
    for args in [
        &["effects", "list"][..],
        &["actions", "list"],
        &["approvals", "list"],
        &["pending"],
        &["receipts", "list"],
        &["events"],
        &["export", "events"],
        &["export", "receipts"],
    ] {
        let ran = project.ok(args);
        assert_eq!(ran.stdout, "", "{args:?}");
    }
    project.ok(&["doctor"]);
    for args in [&["effects", "list"][..], &["pending"], &["receipts", "list"], &["events"]] {
        assert_eq!(project.items(args), Vec::<serde_json::Value>::new());
    }
    assert_eq!(fs::metadata(project.database()).expect("made by init").len(), 0, "and is not written to");
}

//! Seeing operations through: what goes on by itself, what waits for a person,
//! and what each of them is told.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::Signal;

use crate::base::Project;
use crate::operating::{Working, begun, reference};
use crate::operations::{POLICY, dispatch, scripted, state};

#[test]
fn p03_a_program_that_still_runs_keeps_its_effect_whatever_a_person_says_of_it() {
    let (project, _, mut killed) = begun("recovery: never");
    killed.child.kill().expect("killed");
    killed.child.wait().expect("gone");
    let unknown = || project.items(&["effects", "list", "--state", "ambiguous"]).len();
    let mut next = Working::start(&project, &["--at-once", "1"]);
    // Somebody sweeps once the lease has ended.
    while unknown() == 0 {
        assert!(next.child.try_wait().expect("it runs").is_none());
    }
    project.ok(&["resolve", "refund:p1", "--failed", "--reason", "nothing is there yet"]);
    let again = reference(&project.json(&dispatch("payment=p1", "amount:=1", "k2")));
    next.says("still_running");
    assert_eq!(project.read("keys").lines().count(), 1);
    std::fs::write(project.path("go"), "go\n").expect("it goes on");
    next.says("committed");
    next.told(Signal::TERM);
    assert_eq!((next.ends(), state(&project, &again)), (0, "committed".to_owned()));
    assert_eq!(project.json(&["audit"])["clean"], true);
}

#[test]
fn what_says_that_it_may_be_tried_again_is_and_a_worker_may_be_told_to_see_it_through() {
    let project = Project::new();
    project.set_policy(&format!(
        "{POLICY}tools: {{ refund: {{ command: {{ run: [sh, ./refund.sh], not_executed_on: [75], retry_on: [76] }} }} }}\n"
    ));
    std::fs::write(project.path("refund.sh"), "mkdir tried 2>/dev/null && exit 76\n:\n").expect("a script");
    let found = reference(&project.json(&dispatch("payment=p1", "amount:=1", "k1")));
    let worked = project.ok(&["worker", "--until-empty"]);
    assert!(worked.stderr.contains("not_executed (exit_76)"), "{worked:?}");
    let waited = project.json(&["operations", "wait", &found]);
    assert_eq!((&waited["state"], &waited["attempt"]), (&"committed".into(), &2.into()));
}

#[test]
fn what_was_last_said_of_an_operation_is_told_to_programs_too() {
    let project = scripted("exit 75\n", "recovery: never");
    let found = reference(&project.json(&dispatch("payment=p1", "amount:=1", "k1")));
    project.ok(&["worker", "--until-dry"]);
    let shown = project.json(&["operations", "show", &found]);
    let listed = project.items(&["operations", "list", "--tool", "refund"]);
    for last in [&shown["last"], &listed[0]["last"]] {
        assert_eq!(
            (&last["code"], &last["note"]),
            (&"exit_75".into(), &"the program exited with status 75".into())
        );
    }
    assert!(project.items(&["operations", "list", "--tool", "other"]).is_empty());
    let waited = project.run(&["operations", "wait", &found, "--json"]);
    assert_eq!(waited.code, 1, "{waited:?}");
    let word = project.refused(&["operations", "wait", "status_0", "--json"]).error();
    assert_eq!(word["code"], "operation_unknown");
}

#[test]
fn a_page_of_operations_is_as_long_as_was_asked_for() {
    let project = scripted("true\n", "recovery: never");
    for n in 0..4 {
        project.ok(&dispatch(&format!("payment=p{n}"), "amount:=1", &format!("k{n}")));
        project.run(&["exec", "none", "--", "true"]);
    }
    for (limit, expected) in [("3", 3), ("4", 4), ("9", 4)] {
        assert_eq!(project.items(&["operations", "list", "--newest", "--limit", limit]).len(), expected);
    }
    for more in [&[][..], &["--tool", "refund"], &["--state", "queued"], &["--newest"]] {
        let (mut keys, mut after) = (Vec::new(), None::<String>);
        loop {
            let line = [&["operations", "list", "--limit", "3"][..], more].concat();
            let next = after.as_deref().map(|after| ["--after", after]);
            let page = project.json(&[&line[..], next.as_ref().map_or(&[], |next| &next[..])].concat());
            let items = page["items"].as_array().expect("items").clone();
            keys.extend(items.iter().map(|item| item["operation"]["idempotency_key"].to_string()));
            after = page["next"].as_str().map(str::to_owned);
            if after.is_none() {
                break;
            }
        }
        keys.sort();
        assert_eq!(keys, ["\"k0\"", "\"k1\"", "\"k2\"", "\"k3\""], "{more:?}");
    }
}

#[test]
fn what_its_contract_settles_by_itself_is_no_work_for_a_person() {
    let script = "mkdir tried 2>/dev/null && kill -9 $$\n:\n";
    let project = scripted(script, "recovery: same_key\n    key_ttl: 1h");
    let found = reference(&project.json(&dispatch("payment=p1", "amount:=1", "k1")));
    project.ok(&["worker", "--until-dry"]);
    let shown = project.ok(&["operations", "show", &found]);
    assert!(shown.stderr.contains("next: nothing"), "{shown:?}");
    assert!(project.ok(&["doctor"]).stdout.contains("no outcome is unknown that a person"));
    // It is hastened, and nothing else.
    project.ok(&["operations", "retry", &found, "--reason", "the power is back"]);
    project.ok(&["worker", "--until-dry"]);
    assert_eq!(state(&project, &found), "committed");
}

#[test]
fn a_worker_says_which_secrets_it_has_not() {
    let project = Project::new();
    project.set_policy(&format!(
        "{POLICY}tools: {{ refund: {{ http: {{ url: \"https://pay.example/\", headers: {{ a: \"{{secret:NO_KEY}}\" }} }} }} }}\n"
    ));
    let worked = project.ok(&["worker", "--until-dry"]);
    assert!(worked.stderr.contains("warning: NO_KEY is not set, which refund needs"), "{worked:?}");
}

#[test]
fn a_dispatch_that_waits_waits_for_the_person_too() {
    let project = scripted("true\n", "recovery: never");
    let line = [&dispatch("payment=p1", "amount:=5000", "k1")[..], &["--wait", "60s"]].concat();
    let mut asking = project.command(&line).stderr(Stdio::piped()).spawn().expect("a dispatch");
    let mut said = String::new();
    let mut stderr = BufReader::new(asking.stderr.take().expect("its errors"));
    while !said.contains("onceseal approve ") {
        assert!(stderr.read_line(&mut said).expect("a line") > 0, "{said}");
    }
    let approval = said.split("onceseal approve ").nth(1).expect("an id").trim();
    project.ok(&["approve", approval]);
    while !said.contains("for a worker") {
        assert!(stderr.read_line(&mut said).expect("a line") > 0, "{said}");
    }
    project.ok(&["worker", "--until-empty"]);
    assert!(asking.wait().expect("it ends").success());
}

#[test]
fn a_program_runs_beside_its_configuration_however_that_is_named() {
    let project = scripted("echo done >> done\n", "recovery: never");
    std::fs::rename(project.path("onceseal.yaml"), project.path("other.yaml")).expect("renamed");
    for (n, config) in ["other.yaml", "./other.yaml", project.path("other.yaml").to_str().expect("UTF-8")]
        .into_iter()
        .enumerate()
    {
        let (payment, key) = (format!("payment=p{n}"), format!("k{n}"));
        project.ok(&[&["--config", config][..], &dispatch(&payment, "amount:=1", &key)].concat());
        project.ok(&["--config", config, "worker", "--until-dry"]);
        assert_eq!(project.read("done").lines().count(), n + 1, "{config}");
    }
}

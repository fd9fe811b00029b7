//! `init` and `project`.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::base::{Project, refund, snapshot};

#[test]
fn init_says_where_everything_is_and_who_can_be_told_apart() {
    let project = Project::empty();
    let ran = project.ok(&["init"]);
    snapshot("init", &ran.all());
    assert!(project.read("onceseal.yaml").contains("stripe.refund"));
    assert!(project.read(".onceseal/project.json").contains("onceseal.project/v1"));
    assert!(!project.base().join("state/onceseal").join("onceseal.db").exists());
}

#[test]
fn a_second_project_inside_another_is_not_made_in_silence() {
    let project = Project::new();
    let run = |directory: &str, args: &[&str]| {
        let directory = project.path(directory);
        fs::create_dir_all(&directory).expect("a directory");
        crate::base::ran(project.command(args).current_dir(directory).output().expect("a run"))
    };
    let outer = fs::canonicalize(project.path("")).expect("its real path");
    let outer = outer.to_str().expect("UTF-8");
    let inner = run("sub/inner", &["init"]);
    let warning = format!("warning: this directory lies in another project, {outer}; they share nothing");
    assert!(inner.code == 0 && inner.stderr.contains(&warning), "{inner:?}");
    let told = run("sub/told", &["init", "--json"]);
    assert_eq!((told.stderr.as_str(), &told.document()["outer_project"]), ("", &json!(outer)));
    assert_eq!(Project::empty().json(&["init"])["outer_project"], json!(null));
}

#[test]
fn init_never_overwrites_a_policy_and_a_clone_gets_an_id_of_its_own() {
    let project = Project::empty();
    fs::write(project.path("onceseal.yaml"), "schema: onceseal.policy/v1\nactions: {}\n").expect("written");
    let first = project.json(&["init"]);
    assert_eq!(first["policy_written"], json!(false));
    assert!(project.read("onceseal.yaml").ends_with("actions: {}\n"));
    assert_eq!(project.refused(&["init", "--json"]).error()["code"], "already_initialised");

    fs::remove_dir_all(project.path(".onceseal")).expect("removed");
    assert_eq!(project.json(&["init"])["project"], first["project"], "the state remembers the directory");
}

#[test]
fn state_inside_the_project_is_refused_unless_permitted_and_then_warned_of() {
    let project = Project::empty();
    let init = || {
        let state = project.path("state");
        crate::base::ran(project.command(&["init"]).env("ONCESEAL_STATE", state).output().expect("a run"))
    };
    let refused = init();
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("state_inside_project"), "{refused:?}");
    let policy = format!("{}\nsettings: {{ state_in_project: true }}\n", onceseal::config::STARTER);
    fs::write(project.path("onceseal.yaml"), policy).expect("written");
    assert!(!project.path(".onceseal").exists(), "nothing was made");
    let permitted = init();
    assert_eq!(permitted.code, 0, "{permitted:?}");
    assert!(permitted.stderr.contains("`git clean`"), "{permitted:?}");
}

#[test]
fn init_keeps_its_directory_out_of_git() {
    let project = Project::empty();
    let made = Command::new("git").args(["init", "-q"]).current_dir(project.path("")).status();
    // Without git there is no repository to keep it out of.
    if !made.is_ok_and(|status| status.success()) {
        return;
    }
    project.ok(&["init"]);
    assert!(project.read(".git/info/exclude").lines().any(|line| line == ".onceseal/"));
}

#[test]
fn of_two_copies_one_is_adopted_or_made_new() {
    let project = Project::new();
    project.refund("txn_1", 1, &[]);
    let copy = project.base().join("copy");
    let copied = Command::new("cp").arg("-a").arg(project.path("")).arg(&copy).status().expect("a copy");
    assert!(copied.success());
    let run =
        |args: &[&str]| crate::base::ran(project.command(args).current_dir(&copy).output().expect("a run"));
    let refused = run(&["effects", "list", "--json"]);
    assert_eq!((refused.code, refused.error()["code"].clone()), (2, json!("project_copied")));
    assert_eq!(refused.error()["next"], json!(["onceseal project new", "onceseal project adopt"]));

    assert_eq!(run(&["project", "new"]).code, 0);
    assert_eq!(run(&["effects", "list"]).stdout, "", "a state of its own");
    assert_eq!(project.items(&["effects", "list"]).len(), 1, "the other one keeps its");

    fs::copy(project.path(".onceseal/project.json"), copy.join(".onceseal/project.json")).expect("copied");
    assert_eq!(run(&["project", "adopt"]).code, 0);
    assert!(run(&["effects", "list"]).stdout.contains("refund:txn_1"), "it goes on here");
    assert_eq!(project.run(&["effects", "list"]).code, 2, "and not there");
}

#[test]
fn p03_a_project_whose_state_is_gone_does_not_begin_again_by_itself() {
    let elsewhere = tempfile::tempdir().expect("a directory");
    let elsewhere = elsewhere.path().to_str().expect("a path");
    for lost in ["removed", "HOME", "ONCESEAL_STATE"] {
        let project = Project::new();
        project.refund("txn_1", 1, &[]);
        if lost == "removed" {
            fs::remove_dir_all(project.state()).expect("removed");
        }
        let run = |args: &[&str]| {
            let mut command = project.command(args);
            match lost {
                "HOME" => drop(command.env_remove("XDG_STATE_HOME").env("HOME", elsewhere)),
                "ONCESEAL_STATE" => drop(command.env("ONCESEAL_STATE", format!("{elsewhere}/state"))),
                _ => {}
            }
            crate::base::ran(command.output().expect("a run"))
        };
        let acts = refund("txn_1", 1, &["--json"], "echo x >> again");
        let acts = acts.each();
        for args in [&acts[..], &["effects", "list", "--json"], &["audit", "--json"], &["init", "--json"]] {
            let ran = run(args);
            let exit = if args[0] == "audit" { 3 } else { 2 };
            assert_eq!(
                (ran.code, ran.error()["code"].clone()),
                (exit, json!("state_missing")),
                "{lost} {args:?}"
            );
            assert_eq!(ran.error()["next"], json!(["onceseal project new"]));
        }
        assert_eq!(run(&["doctor"]).code, 1, "{lost}: doctor finds it");
        assert_eq!(project.read("again"), "", "{lost}: nothing ran");
        assert_eq!(run(&["project", "new"]).code, 0);
        assert_eq!(run(&acts).code, 0, "{lost}: it begins again because somebody said so");
    }
}

#[test]
fn the_only_place_of_a_project_is_forgotten_only_on_request() {
    let project = Project::new();
    project.refund("txn_1", 1, &[]);
    let refused = project.run(&["project", "new", "--json"]);
    assert_eq!((refused.code, refused.error()["code"].clone()), (2, json!("project_in_use")));
    assert_eq!(project.items(&["effects", "list"]).len(), 1, "it remembers");
    project.ok(&["project", "new", "--forget"]);
    assert_eq!(project.items(&["effects", "list"]).len(), 0);
}

#[test]
fn without_a_project_nothing_is_read_and_acting_says_what_to_type() {
    let project = Project::empty();
    let ran = project.run(&["exec", "a", "--json", "--", "true"]);
    assert_eq!((ran.code, ran.error()["code"].clone()), (2, json!("config_missing")));
    for args in [&["audit", "--json"][..], &["pending", "--json"], &["effects", "list", "--json"]] {
        let ran = project.run(args);
        let exit = if args[0] == "audit" { 3 } else { 2 };
        assert_eq!((ran.code, ran.error()["code"].clone()), (exit, json!("project_missing")), "{args:?}");
    }
    fs::write(project.path("onceseal.yaml"), onceseal::config::STARTER).expect("written");
    let ran = project.run(&["exec", "customer.read", "--json", "--", "true"]);
    assert_eq!((ran.code, ran.error()["code"].clone()), (2, json!("project_missing")));
    assert_eq!(ran.error()["next"], json!(["onceseal init"]));
}

#[test]
fn p03_one_configuration_means_one_store_wherever_the_program_is_started() {
    let (project, other) = (Project::new(), Project::new());
    project.refund("txn_1", 1, &[]);
    let file = project.path("onceseal.yaml");
    let file = file.to_str().expect("a path");
    let elsewhere = |args: &[&str]| {
        let mut command = other.command(args);
        command.env("XDG_STATE_HOME", project.base().join("state"));
        crate::base::ran(command.output().expect("a run"))
    };
    let again = refund("txn_1", 1, &["--json", "--config", file], "echo x >> again");
    assert_eq!(elsewhere(&again.each()).error()["code"], "duplicate");
    assert_eq!(other.read("again"), "", "nothing ran");
    let listed = elsewhere(&["effects", "list", "--config", file]);
    assert!(listed.stdout.contains("refund:txn_1"), "{listed:?}");
}

#[test]
fn the_configuration_is_found_by_flag_then_variable_then_directory() {
    let project = Project::new();
    let deny = "schema: onceseal.policy/v1\nactions:\n  customer.read: { decision: deny }\n";
    fs::write(project.base().join("deny.yaml"), deny).expect("written");
    let explain = |more: &[&str], variable: Option<&str>| {
        let args: Vec<_> =
            ["policy", "explain", "customer.read", "--json"].iter().chain(more).copied().collect();
        let mut command = project.command(&args);
        command.envs(variable.map(|value| ("ONCESEAL_CONFIG", value)));
        let ran = crate::base::ran(command.output().expect("a run"));
        if ran.code == 0 { ran.document()["decision"].to_string() } else { ran.error()["code"].to_string() }
    };
    let (file, other) = (project.path("onceseal.yaml"), project.base().join("deny.yaml"));
    let (file, other) = (file.to_str().expect("UTF-8"), other.to_str().expect("UTF-8"));
    assert_eq!(explain(&[], None), "\"allow\"");
    assert_eq!(explain(&[], Some(other)), "\"deny\"");
    assert_eq!(explain(&["--config", file], Some(other)), "\"allow\"");
    assert_eq!(explain(&[], Some(" ")), "\"config_blank\"");
    assert_eq!(explain(&["--config", "/nonexistent"], None), "\"config_unreadable\"");
}

/// Makes a pipe that nobody will ever write to.
fn pipe(path: &std::path::Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("run").success());
}

#[test]
fn a_named_configuration_that_is_no_file_is_named_and_never_waited_for() {
    let project = Project::new();
    pipe(&project.path("pipe"));
    fs::write(project.path("large.yaml"), " ".repeat((1 << 20) + 1)).expect("written");
    for (name, code, says) in [
        ("nope.yaml", "config_unreadable", "nope.yaml cannot be read: there is no such file"),
        ("/dev/zero", "config_unreadable", "/dev/zero cannot be read: it is a device"),
        ("pipe", "config_unreadable", "pipe cannot be read: it is a pipe"),
        ("large.yaml", "config_too_large", "large.yaml is larger than 1 MiB"),
    ] {
        for args in [
            &["exec", "customer.read", "--config", name, "--json", "--", "true"][..],
            &["effects", "list", "--config", name, "--json"],
            &["policy", "check", name, "--json"],
            &["policy", "apply", name, "--json"],
            &["init", "--config", name, "--json"],
        ] {
            if (args[0], name) == ("init", "nope.yaml") {
                continue;
            }
            let ran = project.run(args);
            let error = ran.error();
            assert_eq!((ran.code, &error["code"]), (2, &json!(code)), "{args:?} {ran:?}");
            assert!(error["message"].as_str().is_some_and(|text| text.starts_with(says)), "{error}");
            assert_eq!(error["file"], json!(name));
        }
    }
    fs::write(project.path("other.yaml"), "schema: wrong\n").expect("written");
    let other = project.run(&["exec", "a", "--config", "other.yaml", "--", "true"]);
    assert!(other.stderr.contains("why:  it stands in other.yaml"), "{other:?}");
}

#[test]
fn what_stands_at_the_files_name_is_the_file_and_no_policy_from_above_decides() {
    let project = Project::new();
    let inner = project.path("inner");
    fs::create_dir(&inner).expect("a directory");
    let file = inner.join("onceseal.yaml");
    let run = || {
        let mut command = project.command(&["exec", "customer.read", "--json", "--", "true"]);
        crate::base::ran(command.current_dir(&inner).output().expect("a run"))
    };
    assert_eq!(run().code, 0, "the policy above");
    let refused = |what: &str| {
        let ran = run();
        assert_eq!((ran.code, &ran.error()["code"]), (2, &json!("config_unreadable")), "{what}: {ran:?}");
    };
    pipe(&file);
    refused("a pipe");
    fs::remove_file(&file).expect("removed");
    std::os::unix::fs::symlink("nothing", &file).expect("a link");
    refused("a link to nothing");
    let init = crate::base::ran(project.command(&["init"]).current_dir(&inner).output().expect("a run"));
    assert!(init.code == 2 && init.stderr.contains("a symbolic link that leads nowhere"), "{init:?}");
    fs::remove_file(&file).expect("removed");
    std::os::unix::fs::symlink("../onceseal.yaml", &file).expect("a link");
    assert_eq!(run().code, 0, "a link to a file is that file");
}

//! One store on a server, in the hands of several hosts: each a home and a
//! project of its own.

use std::collections::BTreeMap;
use std::process::{Command as Program, Stdio};

use onceseal::Moving;
use onceseal::config::{Settings, StoreAddress};
use onceseal::core::command::Command;
use onceseal::core::store::Note;
use onceseal::store::fault;
use onceseal_servers::{Database, Postgres, Shutdown, server, until};
use serde_json::{Value, json};

use crate::base::{Project, Ran, ran, refund};
use crate::bench;

/// A server's database, and the hosts that share it.
struct Hosts {
    database: Database,
    hosts: [Project; 2],
}

impl Hosts {
    fn new() -> Hosts {
        Hosts { database: server().new_database(), hosts: [Project::new(), Project::new()] }
    }

    fn run(&self, host: usize, args: &[&str]) -> Ran {
        let mut command = self.hosts[host].command(args);
        ran(command.env("ONCESEAL_STORE", self.database.url()).output().expect("a run"))
    }

    fn refund(&self, host: usize, payment: &str, amount: i64) -> Ran {
        self.run(host, &refund(payment, amount, &["--json"], "echo x >> calls").each())
    }
}

#[test]
fn p03_what_one_host_has_done_another_does_not_do_again() {
    let all = Hosts::new();
    assert_eq!(all.refund(0, "p1", 1).code, 0);
    let again = all.refund(1, "p1", 1);
    assert_eq!((again.code, &again.error()["code"]), (1, &json!("duplicate")), "{again:?}");
    assert_eq!(all.hosts[1].read("calls"), "", "it ran on the first host alone");
    let doctor = all.run(0, &["doctor", "--json"]).document();
    let history =
        doctor["checks"].as_array().expect("checks").iter().find(|check| check["name"] == "history");
    assert_eq!(history.expect("the mark")["status"], "ok", "that others went on is no fault: {doctor}");
    let audit = all.run(1, &["audit"]);
    assert!(audit.code == 0 && audit.stdout.contains("intact"), "{audit:?}");
}

#[test]
fn p03_a_host_that_forgets_its_server_begins_no_store_of_its_own() {
    let all = Hosts::new();
    let host = &all.hosts[0];
    assert_eq!(all.refund(0, "p1", 1).code, 0);
    let state = host.state();
    let forgot = host.refund("p1", 1, &["--json"]);
    assert_eq!((forgot.code, &forgot.error()["code"]), (2, &json!("state_moved")), "{forgot:?}");
    assert_eq!(host.read("calls"), "x\n", "it ran once");
    let kept = std::fs::read_dir(state).expect("the state").count();
    assert!(kept > 0 && !host.database().exists(), "nothing is kept here");
    // A file in which something was done is the store of its project until it moves.
    let other = &all.hosts[1];
    assert_eq!(other.refund("p2", 1, &[]).code, 0);
    assert_eq!(all.refund(1, "p2", 1).error()["code"], "store_went_back");
    assert_eq!(other.refund("p2", 1, &["--json"]).error()["code"], "duplicate");
}

#[test]
fn p03_an_address_that_leads_to_another_store_begins_nothing_anew() {
    let all = Hosts::new();
    let host = &all.hosts[0];
    let first = all.refund(0, "p1", 1);
    assert!(first.code == 0, "{first:?}");
    let mistyped = format!("{}?schema=one_seal", all.database.url());
    let there = |args: &[&str]| {
        let mut command = host.command(args);
        ran(command.env("ONCESEAL_STORE", &mistyped).output().expect("a run"))
    };
    let again = || there(&refund("p1", 1, &["--json"], "echo x >> calls").each());
    let refused = again();
    assert_eq!((refused.code, &refused.error()["code"]), (2, &json!("store_went_back")), "{refused:?}");
    assert!(
        refused.all().contains("schema one_seal") && refused.all().contains("correct `store`"),
        "{refused:?}"
    );
    assert_eq!(host.read("calls"), "x\n", "it ran once");
    for args in [&["audit", "--json"][..], &["effects", "list", "--json"], &["approve", "apr_x", "--json"]] {
        assert_ne!(there(args).code, 0, "{args:?}");
    }
    let (doctor, checks) = doctor(host, "", &mistyped);
    assert_eq!((doctor.code, &checks["history"]["status"]), (1, &json!("fail")), "{checks:?}");
    assert!(checks["schema"]["detail"].as_str().expect("text").starts_with("nothing is there"), "{checks:?}");
    // Another spelling of the same is the same.
    let spelled = all.database.url().replace("127.0.0.1", "localhost");
    let mut command = host.command(&refund("p1", 1, &["--json"], "echo x >> calls").each());
    let spelled = ran(command.env("ONCESEAL_STORE", &spelled).output().expect("a run"));
    assert_eq!(spelled.error()["code"], "duplicate", "{spelled:?}");
    // Whoever means it says so.
    let accepted = there(&["doctor", "--accept-went-back", "--reason", "a store of its own"]);
    assert_eq!(accepted.code, 0, "{accepted:?}");
    assert_eq!(again().code, 0);
    assert_eq!(all.refund(0, "p1", 1).error()["code"], "store_went_back", "it has this one now");
}

#[test]
fn whoever_begins_a_store_on_a_server_is_told_so_once() {
    let all = Hosts::new();
    let acted = all.run(0, &refund("p1", 1, &[], "echo x >> calls").each());
    assert!(acted.stderr.contains("nothing was recorded before in postgres://127.0.0.1:"), "{acted:?}");
    let others = all.run(1, &refund("p2", 1, &[], "echo x >> calls").each());
    assert!(!others.stderr.contains("nothing was recorded"), "{others:?}");
}

#[test]
fn copies_of_a_project_share_its_store_on_a_server() {
    let all = Hosts::new();
    let host = &all.hosts[0];
    assert_eq!(all.refund(0, "p1", 1).code, 0);
    let copy = host.base().join("copy");
    let copied = Program::new("cp").arg("-a").arg(host.path(".")).arg(&copy).status();
    assert!(copied.expect("cp").success());
    let mut command = host.command(&refund("p1", 1, &["--json"], "echo x >> calls").each());
    let again = command.current_dir(&copy).env("ONCESEAL_STORE", all.database.url()).output();
    assert_eq!(ran(again.expect("a run")).error()["code"], "duplicate");
    let mut command = host.command(&["effects", "list", "--json"]);
    let alone = ran(command.current_dir(&copy).output().expect("a run"));
    assert_eq!(alone.error()["code"], "project_copied", "without the server they are two: {alone:?}");
}

#[test]
fn who_is_not_let_in_is_told_why_and_that_waiting_does_not_help() {
    let all = Hosts::new();
    let host = &all.hosts[0];
    let url = all.database.url();
    let (before, database) = url.rsplit_once('/').expect("a database");
    let (_, at) = before.rsplit_once('@').expect("a host");
    for (address, why) in [
        (format!("postgres://onceseal:secret@{at}/{database}"), "password"),
        (format!("postgres://nobody:secret@{at}/{database}"), "role"),
        (format!("{before}/nowhere"), "no such database"),
        (format!("{url}?sslmode=require"), "offers no encryption"),
    ] {
        let mut command = host.command(&refund("p1", 1, &["--json"], "echo x >> calls").each());
        let refused = ran(command.env("ONCESEAL_STORE", &address).output().expect("a run"));
        let error = refused.error();
        assert_eq!(
            (refused.code, &error["code"], &error["retry"]),
            (2, &json!("store_refused"), &json!("later"))
        );
        assert!(refused.all().contains(why) && !refused.all().contains("secret"), "{refused:?}");
        let (_, checks) = doctor(host, "", &address);
        assert_eq!(checks["server"]["status"], "fail", "{checks:?}");
    }
    // Of several hosts the reason of each is told.
    let both = format!("postgres://onceseal:secret@127.0.0.1:1,{at}/{database}");
    let mut command = host.command(&["effects", "list", "--json"]);
    let refused = ran(command.env("ONCESEAL_STORE", &both).output().expect("a run"));
    assert_eq!(refused.error()["code"], "store_unreachable", "{refused:?}");
    assert!(
        refused.all().contains("host 1: ") && refused.all().contains("host 2: it does not take"),
        "{refused:?}"
    );
}

#[test]
fn doctor_says_that_nobody_listens_and_that_a_role_may_not_make_the_schema() {
    let all = Hosts::new();
    let host = &all.hosts[0];
    let (_, checks) = doctor(host, "", &format!("{}?listen=127.0.0.1:1", all.database.url()));
    assert_eq!(checks["listening"]["status"], "warn", "{checks:?}");
    let (_, checks) = doctor(host, "", &format!("{}?listen=yes", all.database.url()));
    assert_eq!(checks["listening"]["status"], "ok", "{checks:?}");
    let (_, checks) = doctor(host, "", &format!("{}?schema=information_schema", all.database.url()));
    assert_eq!(checks["schema"]["status"], "fail", "{checks:?}");
}

#[test]
fn who_follows_the_journal_outlives_its_server() {
    let server = Postgres::start();
    let address = server.new_database();
    let project = Project::new();
    let command = |args: &[&str]| at(&project, &address, args);
    let act =
        |payment: &str| ran(command(&refund(payment, 1, &[], "true").each()).output().expect("a run")).code;
    assert_eq!(act("p1"), 0);
    let (told, said) = (project.path("told"), project.path("said"));
    let file = |path: &std::path::Path| std::fs::File::create(path).expect("a file");
    let mut follower = command(&["events", "--follow"]);
    let mut follower = follower.stdout(file(&told)).stderr(file(&said)).spawn().expect("a follower");
    let has = |path: &std::path::Path, text: &str| {
        until(text, || std::fs::read_to_string(path).expect("text").contains(text).then_some(()));
    };
    has(&told, "policy.activated");
    server.stop(Shutdown::Immediate);
    has(&said, "store_unreachable");
    server.start_again();
    has(&said, "the store answers again");
    let before = std::fs::read_to_string(&told).expect("text");
    assert_eq!(act("p2"), 0);
    until("the rest", || (std::fs::read_to_string(&told).expect("text").len() > before.len()).then_some(()));
    let positions = std::fs::read_to_string(&told).expect("text");
    let positions: Vec<u64> =
        positions.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect();
    assert!(positions.iter().copied().eq(1..=positions.len() as u64), "each once, in order: {positions:?}");
    follower.kill().and_then(|()| follower.wait()).expect("it ends");
}

#[test]
fn p01_what_is_asked_on_one_host_is_approved_on_another() {
    let all = Hosts::new();
    let asked = all.refund(0, "p1", 500_000);
    let approval = asked.error()["approval"].as_str().expect("a request").to_owned();
    let approved = all.run(1, &["approve", &approval]);
    assert_eq!(approved.code, 0, "{approved:?}");
    assert_eq!(all.refund(0, "p1", 500_000).code, 0, "it goes on where it was asked");
    assert_eq!(all.hosts[0].read("calls"), "x\n");
}

#[test]
fn the_address_may_stand_in_the_file_and_its_password_is_never_shown() {
    let all = Hosts::new();
    let host = &all.hosts[0];
    let file = host.read("onceseal.yaml");
    let with = |address: &str| {
        let text = format!("{file}\nsettings:\n  store: \"{address}\"\n");
        std::fs::write(host.path("onceseal.yaml"), text).expect("written");
    };
    with(&all.database.url());
    assert_eq!(host.refund("p1", 1, &[]).code, 0);
    let doctor = host.ok(&["doctor"]);
    assert!(doctor.stdout.contains("ok       server            postgres://127.0.0.1:"), "{doctor:?}");
    assert!(!doctor.all().contains("onceseal:"), "{doctor:?}");

    with("postgres://me:secret@127.0.0.1:1/nowhere");
    let nobody = host.run(&["effects", "list", "--json"]);
    assert_eq!(nobody.error()["code"], "store_unreachable", "{nobody:?}");
    with("postgres://me:secret@127.0.0.1:1/nowhere?sslmode=prefer");
    let wrong = host.run(&["effects", "list", "--json"]);
    assert_eq!((wrong.code, &wrong.error()["code"]), (2, &json!("setting_invalid")), "{wrong:?}");
    for told in [nobody, wrong] {
        assert!(!told.all().contains("secret"), "{told:?}");
    }
}

#[test]
fn a_store_moves_to_a_server_and_nothing_is_done_again() {
    let all = Hosts::new();
    let host = &all.hosts[0];
    assert_eq!(host.refund("p1", 1, &[]).code, 0);
    host.unknown("p2");
    let asked = host.asked("p3");
    let before = host.json(&["audit"]);

    let moved = host.json(&["migrate", "--from", "sqlite:", "--to", &all.database.url()]);
    assert_eq!((&moved["tenants"], &moved["events"]), (&json!(1), &before["events"]), "{moved}");
    let refused = host.refund("p4", 1, &["--json"]);
    assert_eq!(refused.error()["code"], "state_moved", "{refused:?}");
    let again = host.run(&["migrate", "--from", "sqlite:", "--to", &all.database.url(), "--json"]);
    assert_eq!(again.error()["code"], "state_moved", "{again:?}");

    let after = all.run(0, &["audit", "--json"]).document();
    for same in ["events", "streams", "keys", "position", "hash", "clean"] {
        assert_eq!(after[same], before[same], "{same}: {after}");
    }
    assert_eq!(all.refund(1, "p1", 1).error()["code"], "duplicate");
    assert_eq!(all.refund(1, "p2", 1).error()["code"], "ambiguous");
    assert_eq!(all.run(0, &["approve", &asked]).code, 0);
    assert_eq!(all.refund(0, "p3", 500_000).code, 0);

    let twice = all.hosts[1].run(&["migrate", "--from", "sqlite:", "--to", &all.database.url(), "--json"]);
    assert_ne!(twice.code, 0, "a project without a store has nothing to move: {twice:?}");
    let nothing = all.run(0, &["migrate"]);
    assert!(nothing.code == 0 && nothing.stdout.contains("nothing to do"), "{nothing:?}");
}

#[test]
fn a_store_moves_to_the_server_of_the_settings_which_need_not_stand_on_the_command_line() {
    let all = Hosts::new();
    let host = &all.hosts[0];
    assert_eq!(host.refund("p1", 1, &[]).code, 0);
    let nowhere = host.run(&["migrate", "--from", "sqlite:", "--json"]);
    assert_eq!((nowhere.code, &nowhere.error()["code"]), (2, &json!("usage")), "{nowhere:?}");
    let moved = all.run(0, &["migrate", "--from", "sqlite:"]);
    assert_eq!(moved.code, 0, "{moved:?}");
    assert_eq!(all.refund(0, "p1", 1).error()["code"], "duplicate");
}

#[test]
fn p03_a_move_that_is_ended_at_any_moment_leaves_one_store_and_goes_on() {
    let all = Hosts::new();
    let host = &all.hosts[0];
    assert_eq!(host.refund("p1", 1, &[]).code, 0);
    let store = Some(StoreAddress::parse(&all.database.url()).expect("an address"));
    let opening = host.opening(Settings { store, ..Settings::default() });
    let begin = || Moving::begin(&host.database(), &opening).expect("copied");
    let elsewhere = |payment: &str| all.refund(1, payment, 1).error()["code"].clone();

    // Ended once all was copied: the file is the store.
    drop(begin());
    assert_eq!(elsewhere("p1"), "store_arriving");
    let doctor = all.run(1, &["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains("store_arriving"), "{doctor:?}");
    assert_eq!(host.refund("p2", 1, &[]).code, 0);

    // Ended once the file was put aside: nothing is, until somebody goes on.
    fault::arm("after_put_aside", 1, fault::Action::Fail);
    begin().end().expect_err("ended");
    assert_eq!(elsewhere("p1"), "store_arriving");
    assert_eq!(host.refund("p3", 1, &["--json"]).error()["code"], "state_moved");
    let migrate = || host.run(&["migrate", "--from", "sqlite:", "--to", &all.database.url(), "--json"]);
    let ended = migrate();
    assert_eq!((ended.code, &ended.document()["tenants"]), (0, &json!(1)), "{ended:?}");
    for payment in ["p1", "p2"] {
        assert_eq!(elsewhere(payment), "duplicate");
    }
    assert_eq!(all.run(0, &["audit", "--json"]).document()["clean"], true);
    assert_eq!(migrate().error()["code"], "state_moved");
}

/// From the copy to the end of the audit, which may be long.
#[test]
fn p05_what_was_waiting_for_a_file_that_moves_is_not_acknowledged() {
    let all = Hosts::new();
    let host = &all.hosts[0];
    assert_eq!(host.refund("p1", 1, &[]).code, 0);
    let control = onceseal::Control::found(&host.opening(Settings::default())).expect("its store");
    let store = Some(StoreAddress::parse(&all.database.url()).expect("an address"));
    let moving = Moving::begin(&host.database(), &host.opening(Settings { store, ..Settings::default() }));
    let moving = moving.expect("copied");
    let note = || Command::Note(Note { body: "1".to_owned(), source: "a test".to_owned() });
    let ticket = control.store().submit(note()).expect("submitted");
    moving.end().expect("put aside");
    let told = ticket.wait();
    assert!(told.is_err(), "the server has nothing of it: {told:?}");
    assert!(control.store().run(note()).is_err(), "nor of what comes after");
}

#[test]
fn a_server_is_measured_as_a_file_is() {
    let database = server().new_database();
    let project = Project::empty();
    for way in bench::WAYS {
        bench::check(way, &project.json(&[bench::SHORT, way.0, &["--server", &database.url()]].concat()));
    }
    let args = [bench::SHORT, &["--operations", "--callers", "3", "--json"]].concat();
    let mut command = project.command(&args);
    let told = ran(command.env("ONCESEAL_BENCH_SERVER", database.url()).output().expect("a run"));
    assert_eq!((told.code, &told.document()["callers"]), (0, &json!(3)), "{told:?}");
}

/// The program, to be run in the project with its store at this address.
fn at(project: &Project, address: &str, args: &[&str]) -> Program {
    let mut command = project.command(args);
    command.env("ONCESEAL_STORE", address);
    command
}

/// What `doctor` says of a server, by the names of its checks.
pub(crate) fn doctor(project: &Project, settings: &str, address: &str) -> (Ran, BTreeMap<String, Value>) {
    let file = format!("{}\nsettings: {{ {settings} }}\n", onceseal::config::STARTER);
    std::fs::write(project.path("onceseal.yaml"), file).expect("written");
    let mut command = project.command(&["doctor", "--json"]);
    let ran = ran(command.env("ONCESEAL_STORE", address).output().expect("a run"));
    let checks = ran.document()["checks"].as_array().expect("checks").clone();
    let named = checks.into_iter().map(|check| (check["name"].as_str().expect("a name").to_owned(), check));
    (ran, named.collect())
}

#[test]
fn ua_101_doctor_looks_at_the_server_and_its_clock_before_and_after_anything_is_there() {
    let all = Hosts::new();
    let host = &all.hosts[0];
    let names = ["server", "settings", "failover", "clock", "unsequenced", "locks", "connections"];
    let look = || {
        let (ran, checks) = doctor(host, "", &all.database.url());
        assert_eq!(ran.code, 0, "{ran:?}");
        for name in names {
            assert_eq!(checks[name]["status"], "ok", "{name}: {checks:?}");
        }
        let said = |name: &str| checks[name]["detail"].as_str().expect("text").to_owned();
        assert!(said("server").contains(", PostgreSQL "), "{checks:?}");
        let clock = said("clock");
        assert!(clock.contains(" s ") && clock.ends_with("; the server's decides"), "{checks:?}");
        assert_eq!(said("failover"), "no standby follows; 1 host in the address");
        checks
    };
    assert!(!look().contains_key("history"));
    assert_eq!(all.refund(0, "p1", 1).code, 0);
    assert!(look().contains_key("history"));
}

#[test]
fn a_standby_that_may_lose_commits_is_accepted_in_the_settings_or_nothing_is_done() {
    let primary = Postgres::start();
    let _standby = primary.standby(false);
    let address = primary.new_database();
    let project = Project::new();
    let (refused, checks) = doctor(&project, "", &address);
    assert_eq!((refused.code, &checks["failover"]["status"]), (1, &json!("fail")), "{checks:?}");
    let act = |project: &Project| {
        let mut command = project.command(&refund("p1", 1, &["--json"], "echo x >> calls").each());
        ran(command.env("ONCESEAL_STORE", &address).output().expect("a run"))
    };
    let acted = act(&project);
    assert_eq!((acted.code, &acted.error()["code"]), (2, &json!("standby_may_lose")), "{acted:?}");
    assert!(acted.all().contains("asynchronous_standby: true"), "{acted:?}");
    let mut command = project.command(&["effects", "list", "--json"]);
    let read = ran(command.env("ONCESEAL_STORE", &address).output().expect("a run"));
    assert_eq!(read.code, 0, "reading is not refused: {read:?}");

    let (told, checks) = doctor(&project, "asynchronous_standby: true", &address);
    assert_eq!((told.code, &checks["failover"]["status"]), (0, &json!("warn")), "{checks:?}");
    assert!(checks["failover"]["next"].is_string(), "{checks:?}");
    assert!(checks["replication"]["detail"].as_str().expect("text").contains(" bytes"), "{checks:?}");
    assert_eq!(act(&project).code, 0);
    let mut command = project.command(&["audit"]);
    let audit = ran(command.env("ONCESEAL_STORE", &address).output().expect("a run"));
    assert!(audit.code == 0 && audit.stdout.contains("commits do not wait for a standby"), "{audit:?}");
}

#[test]
fn ua_091_ua_110_a_worker_outlives_its_server_and_says_once_that_it_is_gone_and_once_that_it_is_back() {
    let server = Postgres::start();
    let address = server.new_database();
    let project = Project::empty();
    let config = "schema: onceseal.policy/v1\nactions:\n  letter: { effect: 'letter:{to}', decision: allow }\n\
                  tools:\n  letter: { command: { run: ['true'] }, recovery: never }\n";
    std::fs::write(project.path("onceseal.yaml"), config).expect("written");
    let command = |args: &[&str]| at(&project, &address, args);
    let said = project.path("said");
    let file = std::fs::File::create(&said).expect("a file");
    let mut worker = command(&["worker"]).stdout(Stdio::null()).stderr(file).spawn().expect("a worker");
    let says = |text: &str| {
        until(text, || std::fs::read_to_string(&said).expect("text").contains(text).then_some(()));
    };
    says("carrying out: letter");
    server.stop(Shutdown::Immediate);
    says("store_unreachable");
    server.start_again();
    says("the store answers again");
    let sent = command(&[
        "operations",
        "dispatch",
        "letter",
        "--arg",
        "to=ann",
        "--wait",
        "--agent",
        "bot",
        "--idempotency-key",
        "1",
    ]);
    let sent = ran({ sent }.output().expect("a run"));
    assert_eq!(sent.code, 0, "{sent:?}");
    let ended = Program::new("kill").args(["-TERM", &worker.id().to_string()]).status();
    assert!(ended.expect("kill").success() && worker.wait().expect("it ends").success());
    let said = std::fs::read_to_string(&said).expect("text");
    let lines = |text: &str| said.lines().filter(|line| line.contains(text)).count();
    assert_eq!((lines("store_unreachable"), lines("answers again"), lines("")), (1, 1, 5), "{said}");
}

#[test]
fn whoever_waits_for_a_person_is_answered_though_the_server_was_gone_meanwhile() {
    let server = Postgres::with(&[("log_connections", "on")]).start();
    let address = server.new_database();
    let project = Project::new();
    let command = |args: &[&str]| at(&project, &address, args);
    let waiting = refund("p1", 500_000, &["--wait", "10m", "--json"], "echo x >> calls");
    let mut waiting = command(&waiting.each());
    let waiting = waiting.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it waits");
    let asked = until("it is asked", || {
        let listed = ran(command(&["approvals", "list", "--json"]).output().expect("a run")).document();
        Some(listed["items"].get(0)?["approval"].as_str()?.to_owned())
    });
    server.stop(Shutdown::Immediate);
    let before = server.log().len();
    server.start_again();
    until("it comes back", || server.log()[before..].contains("connection authorized").then_some(()));
    let approved = ran(command(&["approve", &asked]).output().expect("a run"));
    assert_eq!(approved.code, 0, "{approved:?}");
    let done = ran(waiting.wait_with_output().expect("it ends"));
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(project.read("calls"), "x\n");
}

//! The suite over every store.

use std::fs::File;
use std::sync::OnceLock;

use onceseal_servers::{Bouncer, server};
use onceseal_store::PostgresUrl;
use onceseal_store::conformance::{InFile, InMemory, OnServer, Subject, cases};

/// Runs the cases of a group, each on a new and empty subject.
fn run(group: &str, mut subject: impl FnMut(&str) -> Box<dyn Subject>) {
    let all = cases();
    let group: Vec<_> = all.iter().filter(|case| case.group == group).collect();
    assert!(!group.is_empty(), "the group has cases");
    let failures: Vec<String> = group
        .iter()
        .filter_map(|case| {
            case.run(subject(case.name).as_ref()).err().map(|why| format!("{}: {why}", case.name))
        })
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {} cases failed:\n{}",
        failures.len(),
        group.len(),
        failures.join("\n")
    );
}

fn in_memory(group: &str) {
    run(group, |_| Box::new(InMemory));
}

fn in_file(group: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    run(group, |name| {
        let path = dir.path().join(format!("{name}.db"));
        File::create_new(&path).expect("an empty file");
        Box::new(InFile(path))
    });
}

fn on_server(group: &str) {
    let database = server().new_database();
    at(&database.url(), group);
}

/// Where no transaction is in the session of the one before, and whatever that one
/// left in its session is thrown away.
fn through_bouncer(group: &str) {
    static BOUNCER: OnceLock<Bouncer> = OnceLock::new();
    let forgetful = [("server_reset_query", "DISCARD ALL"), ("server_reset_query_always", "1")];
    let bouncer = BOUNCER.get_or_init(|| Bouncer::before(&server().url("postgres"), &forgetful));
    let database = server().new_database();
    at(&bouncer.url(database.name()), group);
    let sessions = database.sql(
        "SELECT count(*) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
    assert!(["1", "2", "3"].contains(&&*sessions), "{sessions} sessions: it was not between");
}

fn at(url: &str, group: &str) {
    let url: PostgresUrl = url.parse().expect("an address");
    let mut schemas = (1..).map(|n| format!("s{n}"));
    run(group, |_| {
        let schema = schemas.next().expect("endless");
        Box::new(OnServer(url.clone().with_schema(&schema).expect("a name")))
    });
}

macro_rules! groups {
    ($($test:ident = $group:literal;)*) => {
        mod memory {
            $(#[test]
            fn $test() {
                super::in_memory($group);
            })*
        }

        mod sqlite {
            $(#[test]
            fn $test() {
                super::in_file($group);
            })*
        }

        mod postgres {
            $(#[test]
            fn $test() {
                super::on_server($group);
            })*
        }

        mod bouncer {
            $(#[test]
            fn $test() {
                super::through_bouncer($group);
            })*
        }

        #[test]
        fn every_group_is_run() {
            let groups = [$($group),*];
            for case in cases() {
                assert!(groups.contains(&case.group), "{} belongs to a group that is not run", case.name);
            }
        }
    };
}

groups! {
    retry_table = "retry table";
    attempts = "attempts";
    outcomes = "outcomes";
    operations = "operations";
    routes = "routes";
    runs = "runs";
    leases = "leases";
    deliveries = "deliveries";
    tasks = "tasks";
    handoffs = "handoffs";
    approvals = "approvals";
    consuming = "consuming";
    policies = "policies";
    receipts = "receipts";
    reading = "reading";
    lists = "lists";
    journal = "journal";
    batches = "batches";
    lifecycle = "lifecycle";
    own_rows = "own rows";
    contention = "contention";
}

#[test]
fn no_two_cases_have_one_name() {
    let mut names: Vec<_> = cases().iter().map(|case| case.name).collect();
    names.sort_unstable();
    let n = names.len();
    names.dedup();
    assert_eq!(names.len(), n);
}

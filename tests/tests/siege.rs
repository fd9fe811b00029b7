//! Servers that fail under load: every answer that clients of several processes got
//! fits into one order of each effect, nothing acknowledged is lost, and the audit is
//! clean (P03, P05). The same at length: `cargo run --release -p onceseal-tests
//! --bin siege`.

use std::path::Path;

use onceseal_tests::nemesis::{Fault, Report, Size, run};

fn besieged(fault: Fault) -> Option<Report> {
    if !fault.available() {
        eprintln!("not run: it needs root, and network namespaces");
        return None;
    }
    let size = Size { operations: 2_000, processes: 2, clients: 8, strikes: 2 };
    let report = run(fault, Path::new(env!("CARGO_BIN_EXE_siege")), 1, &size);
    println!("{report}");
    Some(report)
}

fn assert_kept(fault: Fault) {
    let Some(report) = besieged(fault) else { return };
    assert!(report.broken.is_empty(), "{report}");
    assert!(report.given_after > 0, "nobody acted after the fault: {report}");
}

#[test]
fn p05_a_server_that_crashes_and_recovers_keeps_what_was_answered() {
    assert_kept(Fault::Restart);
}

#[test]
fn p05_sessions_that_are_ended_lose_nothing_that_was_answered() {
    assert_kept(Fault::Terminate);
}

#[test]
fn p05_a_standby_that_commits_waited_for_has_what_was_answered_when_it_takes_over() {
    assert_kept(Fault::Failover);
}

#[test]
fn p05_a_server_that_is_there_and_answers_nothing_is_left_for_its_standby() {
    assert_kept(Fault::Freeze);
}

#[test]
fn p03_a_host_that_is_cut_off_and_clocks_that_are_apart_give_nobody_an_effect_twice() {
    assert_kept(Fault::Partition);
}

#[test]
fn p05_a_pooler_that_starts_again_loses_nothing_that_was_answered() {
    assert_kept(Fault::Pooler);
}

/// What the histories of the others would show if something were lost.
#[test]
fn a_standby_that_lacks_what_was_answered_is_noticed_before_anybody_acts() {
    let report = besieged(Fault::Lost).expect("it needs nothing");
    let without_order = |broken: &&String| broken.contains("NoOrder");
    assert!(report.broken.iter().any(|broken| without_order(&broken)), "nothing was lost: {report}");
    assert!(report.broken.iter().all(|broken| without_order(&broken)), "something else is wrong: {report}");
    assert_eq!((report.noticed, report.given_after), (2, 0), "{report}");
}

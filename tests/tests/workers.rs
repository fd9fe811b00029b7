//! Workers that are killed at random and a remote that loses answers: the
//! remote's own ledger has each wish once (P03, P04, P06, P12).

use std::sync::atomic::{AtomicU64, Ordering};

use onceseal_tests::program::build;
use onceseal_tests::workers::{Size, run};

const SEEDS: u64 = 50;
/// Trials beside each other: mostly they wait for leases to end.
const BESIDE: usize = 16;

#[test]
fn p03_p06_what_workers_that_are_killed_leave_is_done_once_for_fifty_seeds() {
    let program = build("onceseal-cli");
    let next = AtomicU64::new(1);
    let reports = std::thread::scope(|scope| {
        let trials = || {
            let mut reports = Vec::new();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed > SEEDS {
                    return reports;
                }
                reports.push(run(&program, seed, &Size::small()));
            }
        };
        let threads: Vec<_> = (0..BESIDE).map(|_| scope.spawn(trials)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
    });
    for report in &reports {
        println!("{report}");
    }
    assert_eq!(reports.len() as u64, SEEDS);
    let broken: Vec<_> = reports.iter().filter(|report| !report.broken.is_empty()).collect();
    assert!(broken.is_empty(), "{}", broken.iter().map(|r| format!("{r}\n")).collect::<String>());
    let kills: usize = reports.iter().map(|report| report.kills).sum();
    let lost: u64 = reports.iter().map(|report| report.counts.lost).sum();
    assert!(kills >= 50 && lost >= 50, "{kills} kills, {lost} answers lost: it was too easy");
}

#[test]
fn a_remote_that_does_not_keep_its_word_about_keys_is_noticed() {
    let size = Size { operations: 40, keeps_keys: false, ..Size::small() };
    let report = run(&build("onceseal-cli"), 1, &size);
    println!("{report}");
    assert!(report.duplicates > 0, "{report}");
    let paid_twice = report.broken.iter().filter(|broken| broken.contains("several times")).count();
    assert_eq!(paid_twice, report.broken.len(), "nothing else is wrong: {report}");
}

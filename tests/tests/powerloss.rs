//! The power goes at any moment: whatever the disk kept of what was not
//! synced, the store comes back, nothing acknowledged is missing, and nothing
//! runs a second time (P03, P05, P07, P10, P12).

use std::time::Instant;

use onceseal_tests::outage::{Case, Day, Findings};
use onceseal_tests::place;
use onceseal_tests::shop::{self, Shop};
use onceseal_tests::vfs::{Call, Fault, File, Loss, Op, Plan, Recorder};
use onceseal_tests::workload;

/// A day of so many customers in the first process and until so many in the
/// second, with syncs that lie if wanted.
fn day(name: &str, first: usize, all: usize, lies: bool) -> Day {
    let directory = place::fast();
    let path = place::database(directory.path(), name);
    let recorder = Recorder::register(name);
    if lies {
        recorder.arm(Plan::from(Call::Sync, Fault::Lie, 1));
    }
    let clock = shop::clock();
    let (mut promises, mut keys) = (Vec::new(), Vec::new());
    for customers in [0..first, first..all] {
        let mut shop = Shop::open(&path, &shop::options(&clock, Some(recorder.name()))).expect("opened");
        shop.promises = promises;
        let mut shop = shop.telling(move |promises| recorder.told(promises.len()));
        shop.activate().expect("active");
        for n in customers {
            keys.extend(workload::serve(&mut shop, &clock, n));
        }
        shop.store.close();
        promises = shop.promises.clone();
    }
    Day { log: recorder.take_log(), promises, keys, clock }
}

fn report(day: &Day, found: &Findings, began: Instant) {
    println!(
        "{} operations, {} writes, {} promises: {} disks, {} contents, {} faults; {:.1?}",
        day.log.len(),
        writes(day),
        day.promises.len(),
        found.images,
        found.contents,
        found.faults.len(),
        began.elapsed(),
    );
}

fn writes(day: &Day) -> usize {
    day.log.iter().filter(|op| matches!(op, Op::Write { .. })).count()
}

#[test]
fn p05_p07_p12_every_prefix_of_the_writes_leaves_a_store_that_keeps_its_promises() {
    let day = day("honest", 12, 56, false);
    let restarts = day.log.iter().filter(|op| matches!(op, Op::Write { file: File::Wal, offset: 0, .. }));
    assert!(writes(&day) >= 2_000, "{} writes", writes(&day));
    assert!(restarts.count() >= 3, "the log begins in each process, and again after a checkpoint");

    let began = Instant::now();
    let found = day.examine(&day.cases(3));
    report(&day, &found, began);
    let first = &found.faults[..found.faults.len().min(5)];
    assert!(first.is_empty(), "{} faults, first: {first:#?}", found.faults.len());
}

#[test]
fn a_disk_that_says_synced_and_is_not_is_found_out() {
    let day = day("lying", 1, 5, true);
    let began = Instant::now();
    let found = day.examine(&day.cases(3));
    report(&day, &found, began);
    assert!(found.faults.iter().any(|(_, fault)| fault.starts_with("lost: ")), "nothing was missed");
}

#[test]
fn each_sync_of_a_commit_is_needed() {
    let day = day("needed", 2, 8, false);
    let commits = day.log.windows(2).enumerate().filter_map(|(at, pair)| match pair {
        [Op::Sync(File::Wal), Op::Told(told)] => Some((at, *told)),
        _ => None,
    });
    let mut dropped = 0;
    for (at, told) in commits {
        let mut without = day.clone();
        without.log.remove(at);
        let found = without.examine(&[Case { at: at + 1, loss: Loss::Lost, told }]);
        assert!(!found.faults.is_empty(), "operation {at} was left out and nobody noticed");
        dropped += 1;
    }
    println!("{dropped} syncs left out, each noticed");
    assert!(dropped > 20);
}

#[test]
fn a_checkpoint_that_does_not_sync_the_database_is_found_out() {
    let mut day = day("checkpoints", 4, 8, false);
    day.log.retain(|op| *op != Op::Sync(File::Main));
    let began = Instant::now();
    let found = day.examine(&day.cases(1));
    report(&day, &found, began);
    assert!(!found.faults.is_empty());
}

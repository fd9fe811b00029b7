//! The power goes at any moment: whatever the disk kept of what was not
//! synced, the store comes back, nothing acknowledged is missing, and nothing
//! runs a second time (P03, P05, P07, P10, P12).

use std::time::Instant;

use onceseal_tests::outage::{Case, Day};
use onceseal_tests::place;
use onceseal_tests::shop::{self, Shop};
use onceseal_tests::vfs::{Call, Disk, Fault, File, Loss, Op, Plan, Recorder};
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

fn writes(day: &Day) -> usize {
    day.log.iter().filter(|op| matches!(op, Op::Write { .. })).count()
}

#[test]
fn p05_p07_p12_every_prefix_of_the_writes_leaves_a_store_that_keeps_its_promises() {
    let day = day("honest", 12, 56, false);
    let restarts = day.log.iter().filter(|op| matches!(op, Op::Write { file: File::Wal, offset: 0, .. }));
    assert!(writes(&day) >= 2_000, "{} writes", writes(&day));
    assert!(restarts.count() >= 3, "the log begins anew in the first process, the second, and after a checkpoint");

    let cases = day.cases(3);
    let began = Instant::now();
    let found = day.examine(&cases);
    println!(
        "{} operations, {} writes, {} promises; {} prefixes, {} disks, {} contents; {:.1?}",
        day.log.len(),
        writes(&day),
        day.promises.len(),
        day.log.len() + 1,
        found.images,
        found.contents,
        began.elapsed(),
    );
    assert!(found.faults.is_empty(), "{} faults: {:#?}", found.faults.len(), &found.faults[..found.faults.len().min(5)]);
}

//! A disk that is full, or reads badly: the store says so, tells no lies,
//! loses nothing, and goes on by itself when the disk does (P05, P07, P08).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::Outcome as Became;
use onceseal_core::reply::Reply;
use onceseal_store::executor::Outcome;
use onceseal_tests::bench::Bench;
use onceseal_tests::shop::{Shop, attempt, clock, options, refused, settle};
use onceseal_tests::vfs::{Call, Fault, File, Plan, Recorder};
use onceseal_tests::{place, refold};

/// Repeats a command that the disk refuses; whatever else is answered stands.
fn until_answered(shop: &mut Shop, command: &Command) -> Outcome {
    for _ in 0..50 {
        match shop.run(command.clone()) {
            Err(error) if matches!(error.code(), Code::StoreFailed | Code::CommitUnknown) => {}
            outcome => return outcome,
        }
    }
    panic!("the disk works again and the store does not");
}

#[test]
fn p05_a_disk_that_is_full_for_a_while_delays_and_loses_nothing() {
    let recorder = Recorder::register("full");
    let mut times_full = 0;
    for first in 1.. {
        let mut bench = Bench::new(recorder);
        recorder.arm(Plan { times: 5, ..Plan::once(Call::Write, Fault::Full, first) });
        for payment in ["a", "b", "c"] {
            let command = bench.refund(payment);
            let attempt = attempt(&until_answered(&mut bench.shop, &command));
            assert_eq!(attempt.fence, 1);
            let report = settle(&attempt, Became::Committed);
            let reply = until_answered(&mut bench.shop, &report);
            assert!(matches!(reply, Ok(Reply::Settled { repeated: false, .. })), "{reply:?}");
            assert_eq!(refused(&until_answered(&mut bench.shop, &command)), Code::Duplicate);
        }
        if recorder.disarm() == 0 {
            break;
        }
        bench.settle_up(&format!("full from write {first}"));
        times_full += 1;
    }
    println!("the disk was full from each of {times_full} writes on");
    assert!(times_full > 60);
}

/// Reads that SQLite reports as failed.
const READS: [(File, Fault); 3] =
    [(File::Main, Fault::Broken), (File::Wal, Fault::Broken), (File::Wal, Fault::Short)];

#[test]
fn p08_a_read_that_fails_is_never_an_answer_and_never_lasts() {
    let recorder = Recorder::register("reads");
    for (file, fault) in READS {
        let mut reads = 0;
        for first in 1.. {
            let what = format!("{fault:?} read {first} of {file:?}");
            let mut bench = Bench::new(recorder);
            let command = bench.refund("p");
            let attempt = attempt(&bench.shop.run(command.clone()));
            // What comes before is in the database now, the report in the log.
            bench.reopen().expect("opened");
            bench.shop.run(settle(&attempt, Became::Committed)).expect("settled");
            bench.touch();

            recorder.arm(Plan::once(Call::Read, fault, first).of(file));
            let written = bench.shop.run(command.clone());
            let read = bench.shop.store.read(|snapshot| {
                let stand = bench.shop.promises.iter().map(|promise| promise.stands(snapshot));
                stand.collect::<Result<Vec<_>, _>>()
            });
            let failed = recorder.disarm();

            assert!(written.is_err() || refused(&written) == Code::Duplicate, "{what}: {written:?}");
            assert!(read.as_ref().map_or(true, |stand| !stand.contains(&false)), "{what}: {read:?}");
            let second = bench.shop.run(command);
            assert!(second.is_ok() && refused(&second) == Code::Duplicate, "{what}: lasts: {second:?}");
            bench.settle_up(&what);
            if failed == 0 {
                break;
            }
            reads = first;
        }
        println!("{fault:?}: each of {reads} reads of {file:?}");
        assert!(reads >= 3);
    }
}

#[test]
fn p08_a_store_that_cannot_be_read_is_not_opened_and_opens_later() {
    let recorder = Recorder::register("opening");
    for (file, fault) in READS {
        for first in 1.. {
            let what = format!("opening, {fault:?} read {first} of {file:?}");
            let mut bench = Bench::new(recorder);
            bench.checkpoint();
            let command = bench.refund("p");
            let _attempt = attempt(&bench.shop.run(command.clone()));
            // As a process leaves it that is killed: the log is still to be read.
            let path = place::database(bench.path.parent().expect("a directory"), "left");
            for suffix in ["", "-wal"] {
                let of = |path: &Path| format!("{}{suffix}", path.display());
                fs::copy(of(&bench.path), of(&path)).expect("copied");
            }
            let options = options(&bench.clock, Some(recorder.name()));
            recorder.arm(Plan::once(Call::Read, fault, first).of(file));
            let opened = Shop::open(&path, &options);
            let failed = recorder.disarm();
            if let Err(error) = &opened {
                assert!(matches!(error.code(), Code::StoreFailed), "{what}: {error}");
            }
            let shop = opened.or_else(|_| Shop::open(&path, &options));
            let mut shop = shop.unwrap_or_else(|error| panic!("{what}: lasts: {error}"));
            assert_eq!(refused(&shop.run(command)), Code::InProgress, "{what}");
            sound(&shop);
            if failed == 0 {
                assert!(first > 5);
                break;
            }
        }
    }
}

const FULL: &str = "ONCESEAL_TEST_FULL_DISK";

#[test]
fn p05_a_disk_that_is_really_full_loses_nothing() {
    let directory = place::fast();
    let mount = |then: &str| {
        let script = format!("mount -t tmpfs -o size=1m,mode=0700 none \"$0\" && {then}");
        let mut process = Process::new("unshare");
        process.args(["-m", "sh", "-c", &script]).arg(directory.path());
        process
    };
    if !mount("true").status().is_ok_and(|status| status.success()) {
        println!("skipped: this account may not mount a small disk");
        return;
    }
    let own = std::env::current_exe().expect("its own path");
    let mut child = mount("exec \"$1\" --exact on_a_small_disk --ignored --nocapture");
    let status = child.arg(own).env(FULL, directory.path()).status();
    assert!(status.is_ok_and(|status| status.success()));
}

#[test]
#[ignore = "run on a small disk by p05_a_disk_that_is_really_full_loses_nothing"]
fn on_a_small_disk() {
    let Some(directory) = std::env::var_os(FULL).map(PathBuf::from) else {
        println!("skipped: not on a small disk");
        return;
    };
    let ballast = directory.join("ballast");
    fs::write(&ballast, vec![1; 300_000]).expect("room for it");
    let path = place::database(&directory, "store");
    let clock = clock();
    let mut shop = Shop::open(&path, &options(&clock, None)).expect("opened");
    shop.activate().expect("active");
    let (command, error) = fill(&mut shop, "before");
    println!("full after {} promises: {error}", shop.promises.len());
    assert!(matches!(error.code(), Code::StoreFailed | Code::CommitUnknown), "{error}");
    sound(&shop);
    fs::remove_file(&ballast).expect("removed");
    let _attempt = attempt(&until_answered(&mut shop, &command));
    let (_, error) = fill(&mut shop, "after");
    println!("full again after {} promises: {error}", shop.promises.len());
    sound(&shop);
    shop.store.close();
    let promises = shop.promises;

    // There is no room even to bring the log into the database.
    let refused = Shop::open(&path, &options(&clock, None));
    assert!(refused.is_err_and(|error| error.code() == Code::StoreFailed));
    let grown = Process::new("mount").args(["-o", "remount,size=4m"]).arg(&directory).status();
    assert!(grown.is_ok_and(|status| status.success()));
    let mut shop = Shop::open(&path, &options(&clock, None)).expect("there is room now");
    shop.promises = promises;
    sound(&shop);
}

/// Refunds until the disk is full; answers the command that met it.
fn fill(shop: &mut Shop, name: &str) -> (Command, onceseal_store::StoreError) {
    for n in 0..10_000 {
        let command = shop.refund(&format!("{name}{n}"));
        if let Err(error) = shop.run(command.clone()) {
            return (command, error);
        }
    }
    panic!("the disk is not small");
}

fn sound(shop: &Shop) {
    let faults = refold::faults(&shop.store);
    assert!(faults.is_empty(), "{faults:#?}");
    for promise in &shop.promises {
        assert!(shop.store.read(|snapshot| promise.stands(snapshot)).expect("readable"), "lost {promise}");
    }
}

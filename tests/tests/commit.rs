//! A COMMIT that fails, whose answer is lost, or that finds the disk full:
//! every answer is true, nothing acknowledged is lost, nothing stays half
//! done, and the store goes on by itself (P03, P05, P07; "Unknown commit").

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use onceseal_core::action::Reach;
use onceseal_core::approval::Said;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::decide::decide;
use onceseal_core::effect::Outcome as Became;
use onceseal_core::reply::Reply;
use onceseal_core::store::Note;
use onceseal_store::executor::Outcome;
use onceseal_store::fault::{Action, arm};
use onceseal_store::turnstile::Turnstile;
use onceseal_store::{Options, Parts, SCHEMA_VERSION, Store};
use onceseal_tests::bench::{Bench, is_true};
use onceseal_tests::shop::{Shop, attempt, options, refused, settle};
use onceseal_tests::vfs::{Call, Fault, File, Plan, Recorder};

/// What can go wrong with the calls of a commit.
const FAULTS: [(Call, Fault); 3] =
    [(Call::Write, Fault::Broken), (Call::Write, Fault::Full), (Call::Sync, Fault::Broken)];

/// Named points are the process's, so tests of this file take turns.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets the calls of the commit of `scene`'s command fail from each of them
/// on, so many times; a bench for each.
fn at_each_call(name: &str, scene: fn(&mut Bench) -> Command) {
    let _turn = alone();
    let recorder = Recorder::register(name);
    let (mut benches, mut unknown) = (0, 0);
    for (times, (call, fault)) in [1, 2, u64::MAX].into_iter().flat_map(|times| FAULTS.map(|f| (times, f))) {
        for first in 1.. {
            let mut bench = Bench::new(recorder);
            let command = scene(&mut bench);
            let before = bench.counts();
            recorder.arm(Plan { times, ..Plan::once(call, fault, first) });
            let outcome = bench.shop.run(command.clone());
            let what = format!("{name}: {fault:?} {call:?} {first}, {times} times");
            if recorder.disarm() == 0 {
                assert!(outcome.is_ok(), "{what}: {outcome:?}");
                break;
            }
            is_true(&bench, &outcome, before, &what);
            let second = bench.shop.run(command);
            second_is_right(&outcome, &second, &what);
            bench.settle_up(&what);
            unknown += usize::from(outcome.is_err_and(|error| error.code() == Code::CommitUnknown));
            benches += 1;
        }
    }
    println!("{name}: {benches} failing commits, {unknown} of them answered commit_unknown");
    assert!(benches > 60);
}

/// The command once more: as if for the first time if nothing was recorded, as
/// a repetition if it was.
fn second_is_right(first: &Outcome, second: &Outcome, what: &str) {
    let repeated = match second {
        Ok(Reply::Attempt(_) | Reply::Settled { repeated: false, .. }) => false,
        Ok(Reply::Settled { repeated: true, .. }) => true,
        Ok(Reply::Refused(refusal)) => {
            assert!(matches!(refusal.code, Code::InProgress), "{what}: {second:?}");
            true
        }
        other => panic!("{what}: {other:?}"),
    };
    match first {
        Ok(_) => assert!(repeated, "{what}: {second:?}"),
        Err(error) if error.code() == Code::CommitUnknown => {}
        Err(_) => assert!(!repeated, "{what}: {second:?}"),
    }
}

#[test]
fn p05_a_reservation_whose_commit_fails_is_told_truly() {
    at_each_call("reservation", |bench| bench.refund("p"));
}

#[test]
fn p12_an_outcome_whose_commit_fails_is_told_truly() {
    at_each_call("outcome", |bench| {
        let command = bench.refund("p");
        let attempt = attempt(&bench.shop.run(command));
        settle(&attempt, Became::Committed)
    });
}

#[test]
fn p02_an_approval_whose_use_fails_to_commit_is_told_truly() {
    at_each_call("approval", |bench| {
        let command = bench.payout("p");
        let asked = bench.shop.run(command);
        let Ok(Reply::ApprovalNeeded { approval, .. }) = asked else { panic!("{asked:?}") };
        bench.shop.answer(approval, "anna", Said::Yes).expect("answered");
        let mut run = bench.shop.action("payout", "p", Reach::Executing);
        run.approval = Some(approval);
        Command::Run(Box::new(run))
    });
}

#[test]
fn p05_a_commit_that_begins_the_log_anew_and_fails_is_told_truly() {
    at_each_call("restart", |bench| {
        bench.checkpoint();
        bench.refund("p")
    });
}

#[test]
fn p07_a_batch_that_fails_is_decided_again_command_by_command() {
    let _turn = alone();
    let recorder = Recorder::register("batch");
    for (call, fault) in FAULTS {
        for first in 1.. {
            let what = format!("batch: {fault:?} {call:?} {first}");
            let mut bench = Bench::new(recorder);
            let commands: Vec<_> = (0..6).map(|n| bench.refund(&format!("p{n}"))).collect();
            let turnstile = Turnstile::open(&bench.path).expect("opened");
            let pass = turnstile.enter().expect("entered");
            recorder.arm(Plan::once(call, fault, first));
            let tickets: Vec<_> = commands
                .iter()
                .map(|command| bench.shop.store.submit(command.clone()).expect("taken"))
                .collect();
            drop(pass);
            let outcomes: Vec<_> = tickets.into_iter().map(onceseal_store::Ticket::wait).collect();
            if recorder.disarm() == 0 {
                assert!(outcomes.iter().all(Result::is_ok));
                break;
            }
            let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
            assert!(failed <= 1, "{what}: one call failed and {failed} commands did: {outcomes:?}");
            for (command, outcome) in commands.into_iter().zip(&outcomes) {
                let second = bench.shop.run(command);
                second_is_right(outcome, &second, &what);
            }
            bench.settle_up(&what);
        }
    }
}

#[test]
fn p05_a_failing_commit_is_told_truly_while_somebody_reads() {
    let _turn = alone();
    let recorder = Recorder::register("reading");
    for (times, (call, fault)) in [1, 2, u64::MAX].into_iter().flat_map(|times| FAULTS.map(|f| (times, f))) {
        let what = format!("reading: {fault:?} {call:?}, {times} times");
        let mut bench = Bench::new(recorder);
        let command = bench.refund("p");
        let before = bench.counts();
        let store = bench.shop.store.clone();
        let ((begun, begins), (end, ends)) = (mpsc::channel(), mpsc::channel::<()>());
        let outcome = std::thread::scope(|scope| {
            scope.spawn(move || {
                store.read(|snapshot| {
                    snapshot.newest()?;
                    begun.send(()).expect("awaited");
                    // Until the sender is dropped.
                    let _ended = ends.recv();
                    Ok(())
                })
            });
            begins.recv().expect("reading");
            recorder.arm(Plan { times, ..Plan::once(call, fault, 1) });
            let outcome = bench.shop.run(command.clone());
            assert!(recorder.disarm() > 0);
            drop(end);
            outcome
        });
        is_true(&bench, &outcome, before, &what);
        second_is_right(&outcome, &bench.shop.run(command), &what);
        bench.settle_up(&what);
    }
}

#[test]
fn p05_a_store_opened_while_its_disk_fails_trusts_nothing_that_was_not_synced() {
    let _turn = alone();
    let recorder = Recorder::register("reopened");
    for heals_before_reopening in [true, false] {
        let what = format!("reopened, healed {heals_before_reopening}");
        let mut bench = Bench::new(recorder);
        let command = bench.refund("p");
        recorder.arm(Plan::from(Call::Sync, Fault::Broken, 1));
        let outcome = bench.shop.run(command);
        assert!(outcome.is_err_and(|error| error.code() == Code::CommitUnknown));
        bench.shop.store.close();
        if heals_before_reopening {
            recorder.disarm();
        } else {
            let refused = bench.reopen();
            assert!(refused.is_err_and(|error| error.code() == Code::StoreFailed));
            recorder.disarm();
        }
        bench.reopen().expect("the disk works again");
        bench.settle_up(&what);
    }
}

#[test]
fn p07_an_answer_lost_after_the_commit_is_given_from_what_the_store_holds() {
    let _turn = alone();
    let recorder = Recorder::register("lost answer");
    let mut bench = Bench::new(recorder);
    let command = bench.refund("p");
    arm("after_commit", 1, Action::Fail);
    let attempt = attempt(&bench.shop.run(command));
    arm("after_commit", 1, Action::Fail);
    let reply = bench.shop.run(settle(&attempt, Became::Committed));
    assert!(matches!(reply, Ok(Reply::Settled { repeated: false, .. })), "{reply:?}");
    bench.settle_up("lost answer");
}

#[test]
fn p05_a_commit_that_nobody_can_look_for_is_unknown_and_its_report_can_be_repeated() {
    let _turn = alone();
    let recorder = Recorder::register("unknown");
    let mut bench = Bench::new(recorder);
    let command = bench.refund("p");
    let attempt = attempt(&bench.shop.run(command));
    // The commit itself syncs once; looking for it fails.
    arm("after_commit", 1, Action::Fail);
    recorder.arm(Plan::from(Call::Sync, Fault::Broken, 2));
    let reply = bench.shop.run(settle(&attempt, Became::Committed));
    assert!(reply.is_err_and(|error| error.code() == Code::CommitUnknown));
    assert!(recorder.disarm() > 0);
    let reply = bench.shop.run(settle(&attempt, Became::Committed));
    assert!(matches!(reply, Ok(Reply::Settled { repeated: true, .. })), "{reply:?}");
    bench.settle_up("unknown");
}

#[test]
fn a_newer_schema_is_not_written_after_a_commit_that_nobody_could_look_for() {
    let _turn = alone();
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    std::fs::File::create_new(&path).expect("an empty file");
    let mut parts = Parts::sqlite(path.clone(), &Options::default()).expect("the parts");
    let path = Mutex::new(Some(path));
    let (send, receive) = mpsc::channel();
    parts.decide = Arc::new(move |pinned, view, command, now| {
        let is_note = matches!(command.command, Command::Note(_));
        if let Some(path) =
            is_note.then(|| path.lock().unwrap_or_else(PoisonError::into_inner).take()).flatten()
        {
            // Next after this batch, a newer program brings the file further.
            let gate = std::fs::File::open(format!("{}.gate", path.display())).expect("the gate");
            let newer = std::thread::spawn(move || {
                let turnstile = Turnstile::open(&path).expect("opened");
                let _pass = turnstile.enter().expect("entered");
                let newer = rusqlite::Connection::open(path).expect("opened");
                newer.pragma_update(None, "user_version", SCHEMA_VERSION + 1).expect("migrated");
            });
            while gate.try_lock().is_ok() {
                gate.unlock().expect("unlocked");
                std::thread::yield_now();
            }
            send.send(newer).expect("sent");
        }
        decide(pinned, view, command, now)
    });
    let store = Store::of(parts).expect("opened");
    let note = || store.run(Command::Note(Note { body: "1".to_owned(), source: "a test".to_owned() }));
    arm("after_commit", 1, Action::Fail);
    let first = note().map_err(|error| error.code());
    receive.recv().expect("started").join().expect("migrated");
    assert_eq!(first, Err(Code::CommitUnknown), "the file is another program's now");
    assert_eq!(note().map_err(|error| error.code()), Err(Code::StoreForeign));
}

#[test]
fn p05_a_checkpoint_that_fails_costs_nothing() {
    let _turn = alone();
    let recorder = Recorder::register("checkpoint");
    for (call, fault, first, times) in [
        (Call::Write, Fault::Full, 1, u64::MAX),
        (Call::Write, Fault::Broken, 20, 1),
        (Call::Sync, Fault::Broken, 1, 1),
        (Call::Sync, Fault::Broken, 1, 3),
    ] {
        let what = format!("checkpoint: {fault:?} {call:?} {first}, {times} times");
        let mut bench = Bench::new(recorder);
        recorder.arm(Plan { times, ..Plan::once(call, fault, first).of(File::Main) });
        // More than the thousand pages after which SQLite makes a checkpoint.
        bench.serve(0..48);
        assert!(recorder.disarm() > 0, "{what}: none was made");
        bench.settle_up(&what);
    }
}

#[test]
fn p08_a_writer_that_panics_leaves_nobody_waiting() {
    let _turn = alone();
    let recorder = Recorder::register("panic");
    let mut bench = Bench::new(recorder);
    let commands: Vec<_> = (0..3).map(|n| bench.refund(&format!("p{n}"))).collect();
    arm("after_begin", 1, Action::Panic);
    let outcomes = bench.shop.run_all(commands).expect("submitted");
    for outcome in &outcomes {
        // Begun with the first, or still waiting behind it.
        let code = outcome.as_ref().expect_err("no writer answers").code();
        assert!(matches!(code, Code::CommitUnknown | Code::StoreClosed), "{outcome:?}");
    }
    let later = bench.refund("later");
    assert!(bench.shop.run(later).is_err_and(|error| error.code() == Code::StoreClosed));
    bench.reopen().expect("opened");
    bench.settle_up("panic");
}

#[test]
fn a_store_opens_at_once_beside_one_that_reads_and_writes() {
    let _turn = alone();
    let recorder = Recorder::register("beside");
    let mut bench = Bench::new(recorder);
    let command = bench.refund("p");
    let _attempt = attempt(&bench.shop.run(command.clone()));
    let store = bench.shop.store.clone();
    let began = Instant::now();
    let beside = store.read(|snapshot| {
        snapshot.newest()?;
        let mut beside = Shop::open(&bench.path, &options(&bench.clock, Some(recorder.name())))?;
        Ok(beside.run(command))
    });
    assert_eq!(refused(&beside.expect("opened")), Code::InProgress);
    assert!(began.elapsed() < Duration::from_secs(5), "it waited for the reader");
    bench.settle_up("beside");
}

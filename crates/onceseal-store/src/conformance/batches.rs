//! Batches: commands that share a transaction are decided as if each were
//! alone, and fail alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use onceseal_core::action::{Acquire, Reach};
use onceseal_core::approval::Status;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{EffectState, Holding, Outcome};
use onceseal_core::policy::Activate;
use onceseal_core::reply::Reply;
use onceseal_core::stream::StreamId;
use onceseal_core::view::Loaded;

use super::tamper::{self, Tamper};
use super::world::{
    POLICY, World, attempt, big, code, pay, policy, to_begin, to_reserve, to_settle, unknown_action,
};
use super::{Failure, Subject, Verdict, ensure, ensure_eq, suite, take};
use crate::backend::{Backend, Changes, Fault, Work};
use crate::error::StoreError;
use crate::executor::Outcome as Answered;
use crate::queue::QUEUE_MAX;

suite! { "batches":
    a_batch_decides_its_commands_one_after_another
    a_batch_shows_what_its_own_commands_have_recorded
    a_policy_activated_in_a_batch_decides_what_follows_in_it
    an_unreadable_row_refuses_its_command_alone
    a_panic_refuses_its_command_alone
    a_failed_save_is_repeated_one_command_at_a_time
    a_failed_save_leaves_nothing_behind
    a_batch_ends_when_its_time_is_over
    a_full_queue_is_busy
    a_withdrawn_command_never_runs
    a_command_runs_although_nobody_waits_for_its_answer
    a_writer_that_is_gone_leaves_nobody_waiting
}

fn refused(answer: &Answered) -> Option<Code> {
    match answer {
        Ok(reply) => code(reply),
        Err(error) => Some(error.code()),
    }
}

fn absent(world: &World<'_>, stream: &StreamId) -> Verdict {
    let found = world.store.read(|snapshot| snapshot.stream(stream))?;
    ensure_eq!(found, Loaded::Absent, "{stream} was never written");
    Ok(())
}

fn taken(world: &World<'_>, keys: &[&str]) -> Verdict {
    for key in keys {
        ensure_eq!(world.effect(&world.effect_of(key))?.fence, 1, "{key} was taken once");
    }
    Ok(())
}

fn a_batch_decides_its_commands_one_after_another(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (effect, action) = (world.effect_of("k"), unknown_action(1));
    let holding = Holding { effect, action, fence: 1 };
    let answers = world.together(vec![
        to_reserve("k", action),
        to_reserve("k", unknown_action(2)),
        to_begin(holding),
        to_settle(holding, Outcome::Failed),
        to_reserve("k", unknown_action(3)),
        to_settle(holding, Outcome::Committed),
        world.to_run(&pay("p"))?,
        world.to_run(&pay("p"))?,
    ])?;
    let codes: Vec<_> = answers.iter().map(refused).collect();
    let fenced = Some(Code::InProgress);
    ensure_eq!(
        codes,
        [None, Some(Code::InProgress), None, None, None, fenced, None, Some(Code::InProgress)],
        "each sees what those before it have done"
    );
    let row = world.effect(&effect)?;
    ensure_eq!(
        (row.state, row.fence, row.holder),
        (EffectState::Reserved, 2, unknown_action(3)),
        "as if alone"
    );
    super::journal::chained(&world.store)
}

fn a_batch_shows_what_its_own_commands_have_recorded(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let action = unknown_action(5);
    let mut ready = pay("k");
    ready.action = Some(action);
    ready.reach = Reach::Ready;
    let (reach, lease, deadline) = (Reach::Executing, None, None);
    let acquire = || Command::Acquire(Acquire { action, approval: None, reach, lease, deadline });
    let answers = world.together(vec![acquire(), world.to_run(&ready)?, acquire()])?;
    let [early, proposed, acquired] = &answers[..] else { return Err(Failure::new("three answers")) };
    ensure_eq!(refused(early), Some(Code::ActionUnknown), "before it was proposed");
    take!(proposed, Ok(Reply::Ready { .. }) => (), "proposed");
    take!(acquired, Ok(Reply::Attempt(attempt)) if attempt.action == action => (), "its text is there in the same batch");
    let row = world.action(action)?;
    ensure_eq!(row.held.map(|(_, fence)| fence), Some(1), "and it runs");
    let mut unseen = pay("l");
    unseen.action = Some(unknown_action(6));
    unseen.reach = Reach::Ready;
    let acquire = Acquire { action: unknown_action(6), approval: None, reach, lease, deadline };
    let answers = world.together(vec![world.to_run(&unseen)?, Command::Acquire(acquire)])?;
    take!(&answers[1], Ok(Reply::Attempt(_)) => (), "whether somebody has looked for it before or not");
    super::journal::chained(&world.store)
}

fn a_policy_activated_in_a_batch_decides_what_follows_in_it(subject: &dyn Subject) -> Verdict {
    let mut world = World::open(subject)?;
    let before = world.to_run(&pay("k"))?;
    let strict = policy(&POLICY.replace("\"amount_lte\": 100}", "\"amount_lte\": 10}"))?;
    world.policy = strict.clone();
    let after = || world.to_run(&pay("k"));
    let activate = Command::Activate(Activate { policy: strict.clone(), again: false, person: None });
    let answers = world.together(vec![after()?, activate, before, after()?])?;
    let [early, activated, stale, decided] = &answers[..] else { return Err(Failure::new("four answers")) };
    take!(early, Ok(Reply::PolicyStale { .. }) => (), "it is not active yet");
    take!(activated, Ok(Reply::Policy { changed: true, .. }) => (), "activated");
    take!(stale, Ok(Reply::PolicyStale { active }) if *active == strict.hash => (), "the one before is active no more");
    take!(decided, Ok(Reply::ApprovalNeeded { .. }) => (), "the new one decides");
    Ok(())
}

/// One stream's row does not decode.
struct Unreadable(StreamId);

impl Tamper for Unreadable {
    fn loaded(&mut self, stream: &StreamId, loaded: Loaded) -> Loaded {
        if *stream == self.0 { Loaded::Unreadable } else { loaded }
    }
}

fn an_unreadable_row_refuses_its_command_alone(subject: &dyn Subject) -> Verdict {
    let world = World::with(subject, "default", |mut parts| {
        let damaged = parts.tenant.effect("damaged");
        parts.backend = tamper::backend(parts.backend, Unreadable(damaged));
        parts
    })?;
    let damaged = world.effect_of("damaged");
    let holding = Holding { effect: damaged, action: unknown_action(1), fence: 1 };
    let answers = world.together(vec![
        to_reserve("a", unknown_action(1)),
        to_reserve("damaged", unknown_action(1)),
        to_settle(holding, Outcome::Committed),
        to_reserve("b", unknown_action(1)),
    ])?;
    let codes: Vec<_> = answers.iter().map(refused).collect();
    ensure_eq!(codes, [None, Some(Code::Corrupt), Some(Code::Corrupt), None], "the others are not harmed");
    taken(&world, &["a", "b"])?;
    absent(&world, &damaged)
}

fn a_panic_refuses_its_command_alone(subject: &dyn Subject) -> Verdict {
    let world = World::with(subject, "default", |mut parts| {
        let decide = parts.decide;
        parts.decide = Arc::new(move |pinned, view, command, now| {
            if matches!(&command.command, Command::Reserve(reserve) if reserve.key == "panic") {
                std::panic::panic_any("a rule that fails, on purpose");
            }
            decide(pinned, view, command, now)
        });
        parts
    })?;
    let keys = ["a", "panic", "b"];
    let answers = world.together(keys.map(|key| to_reserve(key, unknown_action(1))).to_vec())?;
    let codes: Vec<_> = answers.iter().map(refused).collect();
    ensure_eq!(codes, [None, Some(Code::Internal), None], "the others are not harmed");
    attempt(world.reserve("c", unknown_action(1))?)?;
    taken(&world, &["a", "b", "c"])?;
    absent(&world, &world.effect_of("panic"))
}

/// While this is set, an event comes twice in changes that touch this stream:
/// no backend can save that, and it notices only after it has begun.
struct Poison(StreamId, Arc<AtomicBool>);

impl Tamper for Poison {
    fn saving(&mut self, mut changes: Changes) -> Result<Option<Changes>, StoreError> {
        let touched = changes.rows.iter().any(|change| change.stream == self.0);
        if touched && self.1.load(Ordering::SeqCst) {
            let twice = changes.events.last().cloned();
            changes.events.extend(twice);
        }
        Ok(Some(changes))
    }
}

fn poisoned<'a>(subject: &'a dyn Subject, key: &str, now: &Arc<AtomicBool>) -> Result<World<'a>, Failure> {
    World::with(subject, "default", |mut parts| {
        let stream = parts.tenant.effect(key);
        parts.backend = tamper::backend(parts.backend, Poison(stream, now.clone()));
        parts
    })
}

fn a_failed_save_is_repeated_one_command_at_a_time(subject: &dyn Subject) -> Verdict {
    let world = poisoned(subject, "poison", &Arc::new(AtomicBool::new(true)))?;
    let keys = ["a", "poison", "b", "a"];
    let answers = world.together(keys.map(|key| to_reserve(key, unknown_action(1))).to_vec())?;
    let [first, poison, second, again] = &answers[..] else { return Err(Failure::new("four answers")) };
    ensure!(poison.is_err(), "what cannot be saved is refused: {poison:?}");
    let codes = [first, second, again].map(refused);
    ensure_eq!(codes, [None, None, Some(Code::InProgress)], "what can be saved alone is saved, in order");
    taken(&world, &["a", "b"])?;
    absent(&world, &world.effect_of("poison"))?;
    super::journal::chained(&world.store)
}

fn a_failed_save_leaves_nothing_behind(subject: &dyn Subject) -> Verdict {
    let poison = Arc::new(AtomicBool::new(false));
    let world = poisoned(subject, "pay:k", &poison)?;
    let (action, approval) = world.granted(&big("k"))?;
    let (row, log) = (world.action(action)?, world.log()?);
    poison.store(true, Ordering::SeqCst);
    let answer = world.store.run(world.to_run(&big("k"))?);
    ensure!(answer.is_err(), "it could not be saved: {answer:?}");
    ensure_eq!(world.approval(approval)?.status, Status::Granted, "the approval is not used");
    ensure_eq!(world.action(action)?, row, "the action waits still");
    ensure_eq!(world.log()?, log, "nothing is recorded of it");
    absent(&world, &world.effect_of("pay:k"))?;
    poison.store(false, Ordering::SeqCst);
    ensure_eq!(world.attempt(&big("k"))?.approval, Some(approval), "and it can be done again");
    Ok(())
}

/// A rule that takes longer than a batch may.
fn a_batch_ends_when_its_time_is_over(subject: &dyn Subject) -> Verdict {
    let batches = Arc::new(AtomicUsize::new(0));
    let world = World::with(subject, "default", |mut parts| {
        parts.backend = tamper::backend(parts.backend, Counted(batches.clone()));
        let decide = parts.decide;
        parts.decide = Arc::new(move |pinned, view, command, now| {
            let begun = Instant::now();
            while matches!(command.command, Command::Reserve(_))
                && begun.elapsed() < Duration::from_millis(21)
            {}
            decide(pinned, view, command, now)
        });
        parts
    })?;
    let before = batches.load(Ordering::SeqCst);
    let keys = ["a", "b", "c"];
    let answers = world.together(keys.map(|key| to_reserve(key, unknown_action(1))).to_vec())?;
    ensure_eq!(answers.iter().map(refused).collect::<Vec<_>>(), [None; 3], "all are answered");
    ensure_eq!(batches.load(Ordering::SeqCst) - before, 3, "each in a transaction of its own");
    Ok(())
}

/// Counts the batches that save something.
struct Counted(Arc<AtomicUsize>);

impl Tamper for Counted {
    fn saving(&mut self, changes: Changes) -> Result<Option<Changes>, StoreError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(Some(changes))
    }
}

fn a_full_queue_is_busy(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let nothing = || world.store.submit(Command::Lapse(world.effect_of("nothing")));
    world.gate.shut();
    let first = nothing();
    world.gate.await_writer();
    let waiting: Vec<_> = (0..QUEUE_MAX).map(|_| nothing()).collect();
    let beyond = nothing().and_then(|ticket| ticket.wait());
    world.gate.open();
    ensure_eq!(refused(&beyond), Some(Code::StoreBusy), "the caller is told at once");
    for ticket in waiting.into_iter().chain([first]) {
        ensure_eq!(ticket?.wait()?, Reply::Done { changed: false }, "what was in the queue is run");
    }
    Ok(())
}

fn a_withdrawn_command_never_runs(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let reserve = |key| world.store.submit(to_reserve(key, unknown_action(1)));
    world.gate.shut();
    let begun = reserve("begun");
    world.gate.await_writer();
    let (withdrawn, impatient, patient) = (reserve("withdrawn")?, reserve("impatient")?, reserve("patient")?);
    let taken_back = (begun.as_ref().is_ok_and(|ticket| ticket.withdraw()), withdrawn.withdraw());
    let impatient = impatient.wait_until(Instant::now());
    world.gate.open();
    ensure_eq!(taken_back, (false, true), "only what has not begun can be withdrawn");
    ensure_eq!(refused(&impatient), Some(Code::StoreBusy), "whoever waits no longer has it withdrawn");
    ensure_eq!(refused(&withdrawn.wait()), Some(Code::StoreBusy), "and is told that it was not begun");
    ensure_eq!(refused(&begun?.wait()), None, "what has begun is run");
    ensure_eq!(refused(&patient.wait()), None, "and what still waits");
    taken(&world, &["begun", "patient"])?;
    for key in ["withdrawn", "impatient"] {
        absent(&world, &world.effect_of(key))?;
    }
    Ok(())
}

fn a_command_runs_although_nobody_waits_for_its_answer(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    drop(world.store.submit(to_reserve("k", unknown_action(1)))?);
    // What comes after it is answered after it.
    world.command(Command::Lapse(world.effect_of("nothing")))?;
    taken(&world, &["k"])
}

/// Fails after it has committed the reservation of this key, and takes its
/// thread with it.
struct Collapses(Box<dyn Backend>, StreamId);

impl Backend for Collapses {
    fn batch(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        let mut fatal = false;
        self.0.batch(&mut |loader| {
            let changes = work(loader)?;
            fatal = changes.iter().flat_map(|changes| &changes.rows).any(|change| change.stream == self.1);
            Ok(changes)
        })?;
        if fatal {
            std::panic::panic_any("a backend that fails, on purpose");
        }
        Ok(())
    }

    fn accept_clock(&mut self) {
        self.0.accept_clock();
    }
}

fn a_writer_that_is_gone_leaves_nobody_waiting(subject: &dyn Subject) -> Verdict {
    let world = World::with(subject, "default", |mut parts| {
        let fatal = parts.tenant.effect("fatal");
        parts.backend = Box::new(Collapses(parts.backend, fatal));
        parts
    })?;
    let reserve = |key| world.store.submit(to_reserve(key, unknown_action(1)));
    world.gate.shut();
    let begun = reserve("fatal");
    world.gate.await_writer();
    let waiting = reserve("waiting");
    world.gate.open();
    ensure_eq!(refused(&begun?.wait()), Some(Code::CommitUnknown), "nobody can say what became of it");
    ensure_eq!(refused(&waiting?.wait()), Some(Code::StoreClosed), "this was never begun");
    ensure_eq!(
        refused(&reserve("later")?.wait()),
        Some(Code::StoreClosed),
        "nor is anything that comes later"
    );
    taken(&world, &["fatal"])?;
    absent(&world, &world.effect_of("waiting"))
}

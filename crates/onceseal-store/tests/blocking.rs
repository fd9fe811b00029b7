//! A caller that may block runs its command itself where nobody else writes,
//! and everything else about it stays as it is.

use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, ThreadId};
use std::time::Instant;

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::reply::Reply;
use onceseal_core::store::Note;
use onceseal_store::backend::{Backend, Fault, Work};
use onceseal_store::conformance::Gate;
use onceseal_store::{Options, Parts, Store};

/// Keeps on which thread each batch was run, and panics where it is told to.
struct Watched {
    backend: Box<dyn Backend>,
    threads: Arc<Mutex<Vec<ThreadId>>>,
    panics_at: Option<usize>,
}

impl Backend for Watched {
    fn batch(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        let batches = {
            let mut threads = self.threads.lock().expect("whole");
            threads.push(thread::current().id());
            threads.len()
        };
        self.backend.batch(work)?;
        if self.panics_at == Some(batches) {
            std::panic::panic_any("a backend that fails, on purpose");
        }
        Ok(())
    }

    fn accept_clock(&mut self) {
        self.backend.accept_clock();
    }
}

struct Scene {
    store: Store,
    gate: Gate,
    threads: Arc<Mutex<Vec<ThreadId>>>,
}

impl Scene {
    fn new(panics_at: Option<usize>) -> Scene {
        let mut parts = Parts::memory(&Options::default()).expect("a store");
        let (gate, threads) = (Gate::default(), Arc::default());
        let watched = Watched { backend: parts.backend, threads: Arc::clone(&threads), panics_at };
        parts.backend = gate.before(Box::new(watched));
        let store = Store::of(parts).expect("a store");
        Scene { store, gate, threads }
    }

    /// Where each batch was run since this was last asked.
    fn threads(&self) -> Vec<ThreadId> {
        std::mem::take(&mut self.threads.lock().expect("whole"))
    }

    /// The place of the newest event.
    fn newest(&self) -> u64 {
        self.store.read(|snapshot| snapshot.newest()).expect("read")
    }
}

/// Each note is a stream of its own.
fn note(body: &str) -> Command {
    Command::Note(Note { body: body.to_owned(), source: "a test".to_owned() })
}

#[test]
fn a_command_is_run_here_where_nobody_writes() {
    let scene = Scene::new(None);
    drop(scene.threads());
    scene.store.run(note("1")).expect("noted");
    scene.store.submit(note("2")).expect("taken").wait().expect("noted");
    let (here, threads) = (thread::current().id(), scene.threads());
    assert_eq!(threads[0], here);
    assert_ne!(threads[1], here);
}

#[test]
fn a_command_stands_in_line_while_the_writer_has_a_batch() {
    let scene = Scene::new(None);
    drop(scene.threads());
    scene.gate.shut();
    let first = scene.store.submit(note("1")).expect("taken");
    scene.gate.await_writer();
    // It would wait at the gate for ever if it were run here.
    let second = scene.store.submit_here(note("2")).expect("taken");
    let third = scene.store.submit(note("3")).expect("taken");
    scene.gate.open();
    for ticket in [first, second, third] {
        ticket.wait().expect("noted");
    }
    let threads = scene.threads();
    assert_eq!(threads.len(), 2, "what has come meanwhile shares a batch");
    assert!(!threads.contains(&thread::current().id()));
}

#[test]
fn what_comes_while_a_command_is_run_here_is_run_after_it() {
    let scene = Scene::new(None);
    drop(scene.threads());
    scene.gate.shut();
    thread::scope(|scope| {
        let blocked = scope.spawn(|| scene.store.run(note("1")).map(|_| thread::current().id()));
        scene.gate.await_writer();
        let second = scene.store.submit(note("2")).expect("taken");
        let third = scene.store.submit_here(note("3")).expect("taken");
        scene.gate.open();
        let blocked = blocked.join().expect("it ends").expect("noted");
        second.wait().expect("noted");
        third.wait().expect("noted");
        assert_eq!(scene.threads()[0], blocked);
    });
    assert_eq!(scene.newest(), 4, "the store's first event and every note, once");
}

#[test]
fn a_panic_here_leaves_its_command_unknown_and_the_store_closed() {
    let scene = Scene::new(Some(2));
    let answer = scene.store.run(note("1"));
    assert_eq!(answer.expect_err("nobody can say").code(), Code::CommitUnknown);
    for later in [scene.store.submit_here(note("2")), scene.store.submit(note("3"))] {
        assert_eq!(later.expect("a ticket").wait().expect_err("closed").code(), Code::StoreClosed);
    }
    scene.store.close();
}

#[test]
fn what_waits_while_a_command_panics_here_was_never_begun() {
    let scene = Scene::new(Some(2));
    scene.gate.shut();
    thread::scope(|scope| {
        let blocked = scope.spawn(|| scene.store.run(note("1")));
        scene.gate.await_writer();
        let waiting = scene.store.submit(note("2")).expect("taken");
        scene.gate.open();
        let unknown = blocked.join().expect("it ends").expect_err("nobody can say");
        assert_eq!(unknown.code(), Code::CommitUnknown);
        assert_eq!(waiting.wait().expect_err("never begun").code(), Code::StoreClosed);
    });
}

#[test]
fn what_waits_while_a_command_is_run_here_can_be_withdrawn() {
    let scene = Scene::new(None);
    scene.gate.shut();
    thread::scope(|scope| {
        let blocked = scope.spawn(|| scene.store.run(note("1")));
        scene.gate.await_writer();
        let impatient = scene.store.submit(note("2")).expect("taken");
        let busy = impatient.wait_until(Instant::now()).expect_err("not begun");
        assert_eq!(busy.code(), Code::StoreBusy);
        // Nor does this wait for the batch.
        scene.store.accept_clock();
        scene.gate.open();
        blocked.join().expect("it ends").expect("noted");
    });
    assert_eq!(scene.newest(), 2, "the store's first event and the first note");
}

#[test]
fn a_rule_that_asks_its_own_store_is_told_that_it_is_busy() {
    let store: Arc<OnceLock<Store>> = Arc::default();
    let mut parts = Parts::memory(&Options::default()).expect("a store");
    let (own, rule) = (Arc::clone(&store), parts.decide);
    parts.decide = Arc::new(move |pinned, view, command, now| {
        if let (Command::Note(_), Some(store)) = (&command.command, own.get()) {
            let inner = store.submit_here(Command::Create).expect("a ticket");
            assert_eq!(inner.wait_until(Instant::now()).expect_err("busy").code(), Code::StoreBusy);
        }
        rule(pinned, view, command, now)
    });
    let store = store.get_or_init(|| Store::of(parts).expect("a store"));
    store.run(note("1")).expect("noted");
}

#[test]
fn many_that_block_and_one_that_does_not_are_all_answered() {
    let scene = Scene::new(None);
    let (callers, each) = (4, 200);
    thread::scope(|scope| {
        for caller in 0..callers {
            let store = &scene.store;
            scope.spawn(move || {
                for _ in 0..each {
                    let reply = match caller {
                        0 => store.submit(note("0")).expect("taken").wait(),
                        _ => store.run(note("0")),
                    };
                    assert!(matches!(reply, Ok(Reply::Done { changed: true })), "{reply:?}");
                }
            });
        }
    });
    assert_eq!(scene.newest(), 1 + callers * each);
}

#[test]
fn closing_waits_for_whoever_runs_a_command_here() {
    let scene = Scene::new(None);
    scene.gate.shut();
    thread::scope(|scope| {
        let blocked = scope.spawn(|| scene.store.run(note("1")));
        scene.gate.await_writer();
        let closing = scope.spawn(|| scene.store.close());
        while scene.store.read(|_| Ok(())).is_ok() {
            thread::yield_now();
        }
        assert!(!closing.is_finished());
        scene.gate.open();
        blocked.join().expect("it ends").expect("noted");
        closing.join().expect("it closes");
    });
    let later = scene.store.run(note("2")).expect_err("closed");
    assert_eq!(later.code(), Code::StoreClosed);
}

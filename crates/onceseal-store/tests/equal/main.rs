//! Random sequences of all kinds of commands on every store: the same answers, the
//! same rows, the same keys, the same hashes of events.

#![expect(dead_code, reason = "what only the tests of the rules need of their support")]

#[path = "../../../onceseal-core/tests/support/broken.rs"]
mod broken;
#[path = "../../../onceseal-core/tests/support/calls.rs"]
mod calls;
#[path = "../../../onceseal-core/tests/simulation/chance.rs"]
mod chance;
#[path = "../../../onceseal-core/tests/support/executor.rs"]
mod executor;
#[path = "../../../onceseal-core/tests/simulation/jobs.rs"]
mod jobs;
#[path = "../../../onceseal-core/tests/simulation/remote.rs"]
mod remote;
#[path = "../../../onceseal-core/tests/simulation/routes.rs"]
mod routes;
#[path = "../../../onceseal-core/tests/simulation/system.rs"]
mod system;
#[path = "../../../onceseal-core/tests/support/world.rs"]
mod world;

mod batches;
mod effects;
mod kept;
mod kinds;
mod odds;
mod playing;
mod recorded;
mod runs;
mod stores;
mod tampered;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use batches::Sequence;
use playing::{Answers, Ground};
use stores::NOTHING;

/// How many commands there are at least; each runs on every store.
const COMMANDS: &str = "ONCESEAL_EQUAL_COMMANDS";

fn commands() -> usize {
    std::env::var(COMMANDS).map_or(100_000, |text| text.parse().expect("a number"))
}

#[test]
fn random_commands_are_answered_and_kept_alike_in_memory_on_sqlite_and_on_postgresql() {
    let (wanted, began, ground) = (commands(), Instant::now(), Ground::new());
    let (seeds, played) = (AtomicU64::new(0), AtomicUsize::new(0));
    let all: Mutex<(BTreeMap<&str, usize>, Answers)> = Mutex::default();
    let work = || {
        while played.load(Ordering::Relaxed) < wanted {
            let seed = seeds.fetch_add(1, Ordering::Relaxed);
            let sequence = Sequence::drawn(seed);
            let answers = ground.play(seed, &sequence, NOTHING).unwrap_or_else(|differs| panic!("{differs}"));
            played.fetch_add(sequence.commands(), Ordering::Relaxed);
            let (kinds, sum) = &mut *all.lock().expect("nobody panics here");
            sequence.batches.iter().flat_map(|batch| &batch.commands).for_each(|said| {
                *kinds.entry(kinds::kind(&said.command)).or_default() += 1;
            });
            sum.add(&answers);
        }
    };
    thread::scope(|scope| {
        // They wait for disks and answers most of the time.
        (0..4).for_each(|_| drop(scope.spawn(work)));
    });
    let (kinds, answers) = all.into_inner().expect("nobody panicked");
    let (played, seeds, took) = (played.into_inner(), seeds.into_inner(), began.elapsed());
    println!(
        "{played} commands of {seeds} sequences on each of three stores in {took:.1?}: {answers:?}\n{kinds:?}"
    );
    assert_eq!(answers.failed, 0, "every command is decided");
    let missing: Vec<_> = kinds::ALL.iter().filter(|kind| !kinds.contains_key(**kind)).collect();
    assert!(missing.is_empty(), "nobody says {missing:?}");
}

//! Which task is next, held against a second opinion that is written as plainly
//! as it can be: no index, no blinding, everything looked at every time.

#[path = "../support/executor.rs"]
mod executor;
mod naive;
mod playing;
#[expect(dead_code, reason = "a part of it is needed here")]
#[path = "../support/world.rs"]
mod world;

use proptest::prelude::*;

use naive::Task;
use playing::{Play, Step};

fn names(most: usize) -> impl Strategy<Value = Vec<String>> {
    let name = prop_oneof![Just("a"), Just("a/b"), Just("a/b/c"), Just("a/d"), Just("e"), Just("ab")];
    prop::collection::btree_set(name.prop_map(str::to_owned), 0..=most)
        .prop_map(|set| set.into_iter().collect())
}

/// Tasks of which each may depend on those before it, and conflict with any.
fn tasks() -> impl Strategy<Value = Vec<Task>> {
    let task = (any::<u8>(), any::<u8>(), names(1), names(2), names(2), 1..3u8, 1..4u32);
    prop::collection::vec(task, 1..8).prop_map(|tasks| {
        let count = tasks.len();
        let pick = |bits: u8, among: std::ops::Range<usize>, except: usize| -> Vec<usize> {
            among.filter(|at| *at != except && bits & (1 << at) != 0).collect()
        };
        let named = tasks.into_iter().enumerate();
        named
            .map(|(at, (depends_on, conflicts, resources, reads, writes, phases, attempts))| Task {
                depends_on: pick(depends_on & 0x55, 0..at, at),
                conflicts: pick(conflicts & 0x11, 0..count, at),
                resources,
                reads,
                writes,
                phases,
                attempts,
            })
            .collect()
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Take),
        6 => any::<u8>().prop_map(Step::Pass),
        2 => (any::<u8>(), any::<u8>(), any::<bool>()).prop_map(|(task, to, why)| Step::Stop { task, to, why }),
        3 => any::<u8>().prop_map(Step::Queue),
        1 => Just(Step::Outlast),
        1 => any::<u8>().prop_map(Step::Grant),
        1 => Just(Step::Tick),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_next_task_is_the_one_that_a_plain_look_at_everything_finds(
        tasks in tasks(),
        capacity in 1..5u32,
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut play = Play::begin(&tasks, capacity);
        for step in steps {
            play.step(&step);
        }
        play.check();
    }
}

/// A chain of layers: each task depends on one of the layer before, conflicts
/// with a neighbour, and shares a resource with some of the others.
fn layers(tasks: usize, wide: usize) -> Vec<Task> {
    (0..tasks)
        .map(|at| Task {
            depends_on: if at < wide { vec![] } else { vec![at - wide] },
            conflicts: if at % 7 == 3 { vec![at - 1] } else { vec![] },
            resources: if at % 5 == 0 { vec![format!("r{}", at % 50)] } else { vec![] },
            reads: vec![],
            writes: if at % 11 == 0 { vec![format!("src/{}", at % 33)] } else { vec![] },
            phases: 1,
            attempts: 1,
        })
        .collect()
}

#[test]
fn ten_thousand_tasks_are_all_done_in_order_of_queueing_and_none_starves() {
    let count = 10_000;
    let mut play = Play::begin(&layers(count, 1_000), 8);
    let mut taken = Vec::new();
    while taken.len() < count {
        let mut at_work = Vec::new();
        while let Some(task) = play.take_alone() {
            at_work.push(task);
        }
        assert!(!at_work.is_empty(), "somebody can always go on");
        for task in &at_work {
            play.finish(*task);
        }
        taken.extend(at_work);
    }
    // Nobody is overtaken by more than those that stand in its way.
    let mut place = vec![0; count];
    taken.iter().enumerate().for_each(|(at, task)| place[*task] = at);
    let furthest = place.iter().enumerate().map(|(task, at)| at.abs_diff(task)).max();
    assert!(furthest < Some(64), "{furthest:?}");
}

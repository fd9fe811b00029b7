//! Leases on resources: exclusive, kept alive, lost, swept, given back.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use onceseal::core::id::HolderKey;
use onceseal::core::json::Object;
use onceseal::core::time::Span;
use onceseal::runs::{LeaseGuard, Preempt, Resource};
use onceseal::store::clock::SystemClock;
use onceseal::{Control, Error, sweep};

use crate::processes::{PLACE, Process, open, wait_for_go};
use crate::support::{Home, POLICY, World, bot, code, policy};

const SECOND: i64 = 1_000_000;

fn name(text: &str) -> Resource {
    Resource::Name(text.to_owned())
}

async fn take(control: &Control, resource: Resource) -> Result<LeaseGuard, Error> {
    control.lease(resource).length(Span::seconds(1)).take().await
}

async fn swept(control: &Control) -> usize {
    let control = control.clone();
    tokio::task::spawn_blocking(move || sweep(control.store())).await.expect("no panic").expect("swept")
}

fn outcome(result: &str) -> Object {
    let mut outcome = Object::new();
    outcome.insert("result", result);
    outcome
}

/// Looks again and again, as a person would.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let late = tokio::time::Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(tokio::time::Instant::now() < late, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether anybody holds it, and when the first of them ends.
fn held(control: &Control, resource: &Resource) -> Option<i64> {
    let lease = control.inspect_lease(resource).expect("readable")?;
    lease.holders().map(|held| held.until.micros()).min()
}

#[tokio::test]
async fn one_holds_a_resource_and_the_others_are_told_who_and_until_when() {
    for world in World::both().await {
        let mut first = take(&world.control, name("a")).await.expect("taken");
        let error = take(&world.control, name("a")).await.expect_err("held");
        let holder = error.refusal().and_then(|refusal| refusal.held.clone()).expect("who").by;
        assert_eq!((error.code(), holder.holder, holder.fence), ("lease_held", first.lease().holder, 1));
        assert!(error.to_string().contains(&holder.until.to_string()), "{error}");
        assert!(first.commit(outcome("done")).await.expect("committed"));
        let next = take(&world.control, name("a")).await.expect("free");
        assert_eq!(next.fence(), 2, "numbers only grow");
        // The same outcome once more is the first one; another is not.
        assert!(!first.commit(outcome("done")).await.expect("it was so"));
        assert_eq!(code(first.commit(outcome("other")).await), "outcome_final");
        let lease = world.control.inspect_lease(&name("a")).expect("readable").expect("known");
        let kept = world.control.lease_outcome(&lease, 1).expect("readable");
        assert_eq!(kept, Some(outcome("done")));
        assert_eq!(world.control.lease_outcome(&lease, 2).expect("readable"), None);
    }
}

#[tokio::test]
async fn shared_holders_stand_beside_each_other_and_a_named_one_gets_its_own() {
    let world = World::memory(POLICY).await;
    let shared = || world.control.lease(name("a")).shared().take();
    let (one, other) = (shared().await.expect("taken"), shared().await.expect("taken too"));
    assert!(one.is_shared() && one.fence() != other.fence());
    assert_eq!(code(take(&world.control, name("a")).await), "lease_held");
    let me = || world.control.lease(name("b")).holder(HolderKey([3; 16])).once();
    let (first, again) = (me().await.expect("taken"), me().await.expect("its own"));
    assert_eq!(first.lease, again.lease);
}

#[tokio::test]
async fn a_path_is_held_with_all_that_is_below_it() {
    let world = World::memory(POLICY).await;
    let root = world.control.root();
    let path = |text: &str| Resource::parse(&format!("root/{root}/path/{text}")).expect("a path");
    let _source = take(&world.control, path("src")).await.expect("taken");
    assert_eq!(code(take(&world.control, path("src/lib.rs")).await), "lease_held");
    take(&world.control, path("docs")).await.expect("another directory");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_threads_one_at_a_time_is_inside() {
    let home = Home::new();
    let control = open(home.dir.path()).await;
    let (inside, entered) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (control, inside, entered) = (control.clone(), inside.clone(), entered.clone());
            tokio::spawn(async move {
                while entered.load(Ordering::SeqCst) < 24 {
                    match control.lease(name("a")).take().await {
                        Ok(mut lease) => {
                            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                            entered.fetch_add(1, Ordering::SeqCst);
                            tokio::task::yield_now().await;
                            assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                            lease.give_back().await.expect("given back");
                        }
                        Err(error) => assert_eq!(error.code(), "lease_held"),
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
}

#[tokio::test]
#[ignore = "a child of another test"]
async fn child_that_takes_turns() {
    let base = PathBuf::from(std::env::var_os(PLACE).expect("a place"));
    let control = open(&base).await;
    wait_for_go();
    take_turns(&control, &base).await;
}

/// Adds to a counter in a file, ten times, each time under the lease.
async fn take_turns(control: &Control, base: &std::path::Path) {
    for _ in 0..10 {
        let mut lease = loop {
            match control.lease(name("counter")).take().await {
                Ok(lease) => break lease,
                Err(error) => assert_eq!(error.code(), "lease_held"),
            }
            tokio::task::yield_now().await;
        };
        let file = base.join("counter");
        let count: u32 = std::fs::read_to_string(&file).unwrap_or_default().parse().unwrap_or_default();
        std::fs::write(&file, (count + 1).to_string()).expect("written");
        lease.give_back().await.expect("given back");
    }
}

#[tokio::test]
async fn p03_two_processes_that_take_turns_lose_no_count() {
    let home = Home::new();
    let control = open(home.dir.path()).await;
    control.activate(policy(POLICY), false, None).await.expect("active");
    let mut other = Process::start("run_leases::child_that_takes_turns", home.dir.path(), &[]);
    other.ready();
    other.go();
    take_turns(&control, home.dir.path()).await;
    assert!(other.success());
    assert_eq!(std::fs::read_to_string(home.dir.path().join("counter")).expect("a count"), "20");
}

#[tokio::test]
async fn a_lease_is_kept_alive_past_several_lengths_as_the_clock_is_moved() {
    for world in World::both().await {
        let lease = take(&world.control, name("a")).await.expect("taken");
        let mut ends = held(&world.control, &name("a")).expect("held");
        for _ in 0..5 {
            world.clock.advance(SECOND * 6 / 10);
            until("it is renewed", || held(&world.control, &name("a")).is_some_and(|until| until > ends))
                .await;
            ends = held(&world.control, &name("a")).expect("held");
            assert!(!lease.is_lost());
            assert_eq!(swept(&world.control).await, 0, "nobody calls it over");
        }
        assert_eq!(code(take(&world.control, name("a")).await), "lease_held");
    }
}

#[tokio::test]
async fn p04_a_lease_taken_by_an_operator_is_lost_and_its_holder_is_told() {
    let control = Control::memory(policy(POLICY), Arc::new(SystemClock)).await.expect("a store");
    let run = control.runs().by(bot()).start("simple").change("c").send().await.expect("started").run;
    let resource = Resource::Run(run.id());
    let lease = take(&control, resource.clone()).await.expect("taken");
    let preempt = Preempt { person: Control::account(), reason: "it hangs".to_owned() };
    let other = control.lease(resource.clone()).preempt(preempt).take().await.expect("taken from it");
    tokio::time::timeout(Duration::from_secs(20), lease.lost()).await.expect("told");
    assert!(lease.is_lost() && !other.is_lost());
    assert_eq!(code(run.transition("running").under(&lease).send().await), "lease_fenced");
    run.transition("running").under(&other).send().await.expect("moved");
    // What is lost is not given back: it is somebody else's.
    drop(lease);
    assert_eq!(run.view().await.expect("there").holder.map(|held| held.fence), Some(other.fence()));
    let blank = Preempt { person: Control::account(), reason: " ".to_owned() };
    assert_eq!(code(control.lease(resource).preempt(blank).take().await), "out_of_bounds");
}

#[cfg(feature = "fault")]
#[tokio::test]
async fn p04_a_lease_that_cannot_be_renewed_is_kept_to_its_end_and_then_lost() {
    use onceseal::core::code::Code;
    use onceseal::fault::{self, point};
    use onceseal::store::StoreError;

    let _alone = fault::alone();
    let control = Control::memory(policy(POLICY), Arc::new(SystemClock)).await.expect("a store");
    let tries = Arc::new(AtomicU32::new(0));
    let counted = tries.clone();
    fault::on(point::BEFORE_RENEW, move || {
        counted.fetch_add(1, Ordering::SeqCst);
        Err(StoreError::new(Code::StoreFailed))
    });
    let asked = std::time::Instant::now();
    let lease = take(&control, name("a")).await.expect("taken");
    tokio::time::timeout(Duration::from_secs(20), lease.lost()).await.expect("told");
    assert!(asked.elapsed() >= Duration::from_millis(900), "not before its end");
    assert!(tries.load(Ordering::SeqCst) > 3, "it was tried again");
}

#[tokio::test]
async fn whoever_gives_up_waiting_for_a_resource_holds_nothing() {
    for world in World::both().await {
        for _ in 0..20 {
            let long = world.control.lease(name("a")).length(Span::hours(1));
            let mut taking = Box::pin(long.take());
            // It may have been taken by then, or not.
            drop(crate::support::poll_once(taking.as_mut()));
            drop(taking);
        }
        let patient = world.control.lease(name("a")).wait(Duration::from_secs(20)).take();
        patient.await.expect("it was given back");
    }
}

#[tokio::test]
async fn whoever_waits_for_a_resource_gets_it_when_it_is_given_back() {
    let world = World::memory(POLICY).await;
    let mut first = world.control.lease(name("a")).length(Span::hours(1)).take().await.expect("taken");
    let mut waiting = Box::pin(world.control.lease(name("a")).wait(Duration::from_secs(60)).take());
    let brief = world.control.lease(name("a")).wait(Duration::from_millis(1)).take();
    assert_eq!(code(brief.await), "lease_held");
    assert!(crate::support::poll_once(waiting.as_mut()).is_pending());
    first.give_back().await.expect("given back");
    assert_eq!(waiting.await.expect("taken").fence(), 2);
}

#[tokio::test]
async fn a_lease_whose_time_is_over_is_lost_though_nobody_says_so() {
    let world = World::memory(POLICY).await;
    // Far from its first renewal.
    let lease = world.control.lease(name("a")).length(Span::seconds(3_600)).take().await.expect("taken");
    world.clock.advance(3_600 * SECOND);
    assert!(!lease.is_lost(), "the end itself still belongs to it");
    world.clock.advance(1);
    assert!(lease.is_lost());
    tokio::time::timeout(Duration::from_secs(20), lease.lost()).await.expect("told");
    take(&world.control, name("a")).await.expect("another takes it");
}

#[tokio::test]
async fn an_expired_lease_is_swept_like_a_lapsed_attempt_and_its_run_is_interrupted() {
    for world in World::both().await {
        let run =
            world.control.runs().by(bot()).start("simple").change("c").send().await.expect("started").run;
        let resource = Resource::Run(run.id());
        let lease =
            world.control.lease(resource.clone()).length(Span::seconds(60)).once().await.expect("taken");
        run.transition("running").under_lease(lease.lease.clone()).send().await.expect("moved");
        world.clock.advance(60 * SECOND);
        assert_eq!(swept(&world.control).await, 0, "its last moment is its own");
        world.clock.advance(1);
        let view = run.view().await.expect("there");
        assert!(view.holder.is_none() && view.lapsed.is_some(), "it is seen before it is recorded");
        assert_eq!(swept(&world.control).await, 1);
        assert_eq!(swept(&world.control).await, 0, "once");
        let view = run.view().await.expect("there");
        assert!(view.holder.is_none() && view.lapsed.is_none());
        let stands = (view.row.state.as_str(), view.row.code.as_deref());
        assert_eq!(stands, ("paused", Some("operation-interrupted")));
        let events = world.control.run_events(run.id(), 3, 1).expect("readable");
        assert!(events[0].by.is_none() && events[0].request.is_none(), "nobody asked for it");
        let report = world.control.verify_run(run.id()).expect("readable");
        assert!(report.is_clean(), "{report:?}");
    }
}

#[tokio::test]
async fn what_expired_while_nobody_was_there_is_swept_at_the_next_opening() {
    let home = Home::new();
    let clock = crate::support::clock();
    let control = home.control(clock.clone()).await.expect("a store");
    control.activate(policy(POLICY), false, None).await.expect("active");
    let run = control.runs().by(bot()).start("simple").change("c").send().await.expect("started").run.id();
    control.lease(Resource::Run(run)).length(Span::seconds(60)).once().await.expect("taken");
    control.close();
    clock.advance(61 * SECOND);
    let opening = onceseal::Opening { sweep: true, ..home.opening(clock) };
    let found = tokio::task::spawn_blocking(move || Control::found(&opening));
    let control = found.await.expect("no panic").expect("the store");
    let state = || control.run(run).expect("readable").expect("there").row.state;
    until("it is swept", || state() == "paused").await;
}

#[tokio::test]
async fn p04_a_clock_that_goes_back_gives_no_lease_back() {
    for world in World::both().await {
        let lease =
            world.control.lease(name("a")).length(Span::seconds(60)).once().await.expect("taken").lease;
        // Forward: it is over, and another takes the resource.
        world.clock.step_wall(1_800 * SECOND);
        let other =
            world.control.lease(name("a")).length(Span::seconds(60)).once().await.expect("free").lease;
        // Back: what was recorded stays.
        world.clock.step_wall(-1_800 * SECOND);
        let renewed = world.control.renew_lease(lease.clone(), Span::seconds(60)).await;
        assert_eq!(code(renewed), "lease_fenced");
        assert_eq!(code(world.control.commit_lease(lease.clone(), outcome("late")).await), "lease_fenced");
        assert_eq!(code(world.control.interrupt_lease(lease).await), "lease_fenced");
        world.control.renew_lease(other, Span::seconds(60)).await.expect("it is the one that holds");
    }
}

#[tokio::test]
async fn a_dropped_guard_gives_back_what_it_holds_and_lets_a_run_be_interrupted() {
    let control = Control::memory(policy(POLICY), Arc::new(SystemClock)).await.expect("a store");
    let long = |resource: &Resource| control.lease(resource.clone()).length(Span::seconds(3_600)).take();
    drop(long(&name("a")).await.expect("taken"));
    until("it is given back", || held(&control, &name("a")).is_none()).await;
    let run = control.runs().by(bot()).start("simple").change("c").send().await.expect("started").run;
    let resource = Resource::Run(run.id());
    run.transition("running").send().await.expect("moved");
    drop(long(&resource).await.expect("taken"));
    // Shortened to a second, and then it lapses.
    until("it lapses", || held(&control, &resource).is_none()).await;
    assert_eq!(swept(&control).await, 1);
    assert_eq!(run.view().await.expect("there").row.state, "paused");
    // Given back by a word, the run stays where it is.
    run.command("resume").send().await.expect("resumed");
    long(&resource).await.expect("taken").give_back().await.expect("given back");
    assert_eq!(run.view().await.expect("there").row.state, "running");
    let handed = long(&resource).await.expect("taken").hand_on();
    assert_eq!(control.interrupt_lease(handed).await.map_err(|error| error.code()), Ok(()));
}

#[tokio::test]
async fn lengths_have_bounds_and_a_run_that_ended_is_not_held() {
    let world = World::memory(POLICY).await;
    for length in [Span::millis(999), Span::hours(25), Span::ZERO] {
        assert_eq!(code(world.control.lease(name("a")).length(length).take().await), "out_of_bounds");
    }
    let run = world.control.runs().by(bot()).start("simple").change("c").send().await.expect("started").run;
    run.command("cancel").send().await.expect("cancelled");
    assert_eq!(code(take(&world.control, Resource::Run(run.id())).await), "run_ended");
    let gone = Resource::Run(onceseal::core::id::RunId([9; 16]));
    assert_eq!(code(take(&world.control, gone).await), "run_unknown");
}

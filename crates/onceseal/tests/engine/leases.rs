//! Leases: kept alive by the engine, lost, and reported on late. These run on
//! the host's clock, since what they measure is that time passes.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onceseal::core::code::Code;
use onceseal::core::effect::EffectState;
use onceseal::core::journal::Kind;
use onceseal::fault::{self, point};
use onceseal::store::StoreError;
use onceseal::store::clock::SystemClock;
use onceseal::{Call, Control, Error, Failure, Receipt};
use tokio::sync::Notify;

use crate::support::{Gate, POLICY, World, bot, code, host, never, pay, policy, unheld};

fn quick(control: &Control) -> onceseal::Proposing {
    control.action("quick").arg("order", "o").by(bot())
}

#[tokio::test]
async fn ua_082_an_executor_that_blocks_its_thread_for_three_leases_keeps_its_lease() {
    let control = Control::memory(policy(POLICY), Arc::new(SystemClock)).await.expect("a store");
    let (running, other) = (control.clone(), control.clone());
    let receipt = quick(&control).execute(|call| async move {
        // Not an await: the runtime's one thread can do nothing else meanwhile.
        std::thread::sleep(Duration::from_millis(3_000));
        // Nobody takes it over, nobody calls it unknown.
        assert_eq!(code(quick(&other).execute(never).await), "in_progress");
        assert!(!call.is_lost());
        Ok::<_, Failure>("done")
    });
    assert_eq!(receipt.await.expect("committed").fence, 1);
    let kinds = running.log(0, 100).expect("readable").into_iter().filter_map(|event| event.event);
    let lapsed = kinds.filter(|event| event.body.kind() == Kind::EffectLapsed).count();
    assert_eq!(lapsed, 0);
}

/// Waits until the lease is lost, as a long executor would look now and then.
async fn until_lost(call: &Call) {
    let late = tokio::time::Instant::now() + Duration::from_secs(20);
    while !call.is_lost() {
        assert!(tokio::time::Instant::now() < late, "the lease is never lost");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn ua_097_a_failed_renewal_is_tried_again_and_the_work_goes_on() {
    let _alone = fault::alone();
    let control = Control::memory(policy(POLICY), Arc::new(SystemClock)).await.expect("a store");
    let (tries, renewed) = (Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
    let (counted, told) = (tries.clone(), renewed.clone());
    fault::on(point::BEFORE_RENEW, move || match counted.fetch_add(1, Ordering::SeqCst) {
        0..=2 => Err(StoreError::new(Code::StoreBusy)),
        // The one before has been answered, so it was renewed.
        4 => {
            told.notify_one();
            Ok(())
        }
        _ => Ok(()),
    });
    let receipt = quick(&control).execute(|call| async move {
        renewed.notified().await;
        assert!(!call.is_lost());
        Ok::<_, Failure>(())
    });
    assert_eq!(receipt.await.expect("committed").fence, 1);
    assert!(tries.load(Ordering::SeqCst) >= 5);
}

#[tokio::test]
async fn ua_097_only_at_the_leases_end_the_executor_is_told_that_it_is_lost() {
    let _alone = fault::alone();
    let control = Control::memory(policy(POLICY), Arc::new(SystemClock)).await.expect("a store");
    let tries = Arc::new(AtomicU32::new(0));
    let counted = tries.clone();
    fault::on(point::BEFORE_RENEW, move || {
        counted.fetch_add(1, Ordering::SeqCst);
        Err(StoreError::new(Code::StoreFailed))
    });
    let asked = std::time::Instant::now();
    let result = quick(&control).execute(|call| async move {
        until_lost(&call).await;
        Ok::<_, Failure>(u32::try_from(asked.elapsed().as_millis()).expect("short"))
    });
    let receipt = result.await.expect("nobody has answered for it meanwhile");
    let elapsed = receipt.value.and_then(|value| value.as_integer()).expect("an integer");
    assert!((900..10_000).contains(&elapsed), "lost after {elapsed} ms of a lease of 1 s");
    assert!(tries.load(Ordering::SeqCst) > 3);
}

#[tokio::test]
async fn p04_an_attempt_knows_that_its_lease_has_run_out_though_nobody_says_so() {
    for world in World::both().await {
        let clock = world.clock.clone();
        // A lease of 5 minutes, far from its first renewal.
        let receipt = world.pay("o", 5).execute(|call| async move {
            clock.step_wall(59 * 60_000_000);
            assert!(!call.is_lost(), "no time has passed");
            clock.advance(5 * 60_000_000);
            assert!(!call.is_lost(), "the end itself still belongs to it");
            clock.advance(1);
            assert!(call.is_lost());
            Ok::<_, Failure>(())
        });
        receipt.await.expect("nobody has answered for it meanwhile");
    }
}

/// A call whose executor runs and does not end.
async fn hung(control: &Control, order: &str) -> Pin<Box<dyn Future<Output = Result<Receipt, Error>>>> {
    let started = Arc::new(Notify::new());
    let tell = started.clone();
    let mut call = Box::pin(pay(control, order, 5).execute(|_| async move {
        tell.notify_one();
        std::future::pending::<Result<(), Failure>>().await
    }));
    tokio::select! {
        ended = call.as_mut() => panic!("{ended:?}"),
        () = started.notified() => {}
    }
    call
}

#[tokio::test]
async fn p14_a_lease_is_renewed_however_long_a_chore_takes() {
    let _alone = fault::alone();
    let control = Control::memory(policy(POLICY), Arc::new(SystemClock)).await.expect("a store");
    // Whoever settles what a dropped call left behind stops there.
    let stop = fault::stop(point::BEFORE_SETTLE);
    drop(hung(&control, "dropped").await);
    stop.reached();
    let (tries, renewed) = (AtomicU32::new(0), Arc::new(Notify::new()));
    let told = renewed.clone();
    fault::on(point::BEFORE_RENEW, move || {
        // The one before has been answered.
        if tries.fetch_add(1, Ordering::SeqCst) == 1 {
            told.notify_one();
        }
        Ok(())
    });
    let receipt = quick(&control).execute(|call| async move {
        renewed.notified().await;
        assert!(!call.is_lost());
        Ok::<_, Failure>(())
    });
    receipt.await.expect("committed");
    stop.release();
}

#[tokio::test]
async fn p14_what_dropped_calls_left_is_submitted_together() {
    let _alone = fault::alone();
    let gate = Gate::new();
    let control = Control::memory(policy(POLICY), gate.clone()).await.expect("a store");
    let (first, others) = (hung(&control, "a").await, [hung(&control, "b").await, hung(&control, "c").await]);
    let (all, dropped) = sync_channel(1);
    let (begin, begun) = sync_channel(1);
    let (submitting, submitted) = sync_channel(3);
    let (dropped, count) = (Mutex::new(dropped), AtomicU32::new(0));
    fault::on(point::BEFORE_SETTLE, move || {
        let stopped = match count.fetch_add(1, Ordering::SeqCst) {
            0 => {
                // Until the others are there.
                begin.send(()).expect("heard");
                dropped.lock().expect("whole").recv().expect("told");
                return Ok(());
            }
            // From here on the store answers nobody.
            1 => Some(gate.close()),
            _ => None,
        };
        submitting.send(stopped).expect("heard");
        Ok(())
    });
    drop(first);
    begun.recv_timeout(Duration::from_secs(20)).expect("the first");
    drop(others);
    all.send(()).expect("it waits");
    let wait = Duration::from_secs(20);
    let stopped = submitted.recv_timeout(wait).expect("the second").expect("the store stops");
    assert!(submitted.recv_timeout(wait).expect("the third, though the second has no answer").is_none());
    stopped.reached();
    stopped.open();
    for order in ["a", "b", "c"] {
        assert_eq!(code(unheld(pay(&control, order, 5)).await), "ambiguous");
    }
}

#[tokio::test]
async fn p04_a_lease_that_lapsed_can_be_reported_on_until_somebody_else_answers() {
    for world in World::both().await {
        let (other, clock) = (world.control.clone(), world.clock.clone());
        let receipt = quick(&world.control).execute(|call| async move {
            // The host slept: the lease is over before anybody could renew it.
            clock.advance(60_000_000);
            // Whoever comes records that.
            assert_eq!(code(quick(&other).execute(never).await), "ambiguous");
            assert!(call.is_lost());
            Ok::<_, Failure>("done")
        });
        let receipt = receipt.await.expect("committed");
        assert_eq!(world.state("quick:o"), Some(EffectState::Committed));
        let document = world.receipt(&receipt);
        let document = document.as_object().expect("an object");
        assert_eq!(document.get("result"), Some(&"committed".into()));
        assert!(document.get("first_receipt").and_then(|id| id.as_text()).is_some(), "the unknown one's");
    }
}

#[tokio::test]
async fn p04_a_holder_that_comes_after_a_person_changes_nothing_and_is_kept() {
    for world in World::both().await {
        let (control, clock) = (world.control.clone(), world.clock.clone());
        let result = quick(&world.control).execute(|call| async move {
            clock.advance(60_000_000);
            assert!(call.is_lost());
            let resolved =
                control.resolve("quick:o", None, false, "not at the bank".into(), None, host("ann"));
            resolved.await.expect("resolved");
            Ok::<_, Failure>("done")
        });
        let error = result.await.expect_err("fenced");
        assert_eq!((error.ran(), error.retry().as_str()), (true, "never"));
        assert!(matches!(&error, Error::Unsettled { returned: Ok(value), .. } if *value == "done".into()));
        let refusal = error.refusal().expect("a refusal").clone();
        assert_eq!((refusal.code, world.state("quick:o")), (Code::Fenced, Some(EffectState::Failed)));
        let late = refusal.receipt.expect("the late word has a receipt");
        let document = world.control.receipt(late).expect("readable").expect("there");
        let document = document.as_object().expect("an object");
        assert_eq!(document.get("result"), Some(&"committed".into()));
        assert_eq!(document.get("contradicts"), Some(&true.into()));
        assert_eq!(document.get("value"), Some(&"done".into()));
    }
}

#[tokio::test]
async fn ua_011_a_holder_that_slept_past_its_lease_is_fenced_by_the_next_attempt() {
    for world in World::both().await {
        let (go, going) = tokio::sync::oneshot::channel::<()>();
        let (runs, running) = tokio::sync::oneshot::channel::<()>();
        let slept = tokio::spawn(quick(&world.control).execute(|call| async move {
            assert_eq!(call.fence(), 1);
            runs.send(()).expect("heard");
            going.await.expect("woken");
            Ok::<_, Failure>("the first")
        }));
        running.await.expect("it runs");
        world.clock.advance(60_000_000);
        // Nobody takes it over by time alone.
        assert_eq!(code(quick(&world.control).execute(never).await), "ambiguous");
        let resolved = world.control.resolve("quick:o", None, false, "not there".into(), None, host("ann"));
        resolved.await.expect("resolved");
        let second = quick(&world.control).execute(|call| async move {
            assert_eq!(call.fence(), 2);
            Ok::<_, Failure>("the second")
        });
        second.await.expect("committed");
        go.send(()).expect("it sleeps");
        assert_eq!(code(slept.await.expect("no panic")), "fenced");
        let replayed = quick(&world.control).replay().execute(never).await.expect("replayed");
        assert_eq!((replayed.value, replayed.fence), (Some("the second".into()), 2));
    }
}

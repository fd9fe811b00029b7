//! Outcomes that the store does not take, and attempts that take it too long
//! to hand out.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onceseal::core::code::Code;
use onceseal::core::effect::EffectState;
use onceseal::core::id::ActionId;
use onceseal::core::json::Value;
use onceseal::fault::{self, Action, point};
use onceseal::store::StoreError;
use onceseal::store::clock::Clock;
use onceseal::{Error, Executed, Failure, Proposing};

use crate::support::{World, bot, code, never};

/// A call whose lease is a second, so that nobody tries for long.
fn quick(world: &World, order: &str) -> Proposing {
    world.control.action("quick").arg("order", order).by(bot())
}

fn failing(code: Code) -> impl Fn() -> Result<(), StoreError> {
    move || Err(StoreError::new(code))
}

#[tokio::test]
async fn a_value_whose_outcome_cannot_be_written_is_replaced_by_the_reason() {
    let _alone = fault::alone();
    for world in World::both().await {
        fault::on(point::BEFORE_SETTLE, failing(Code::StoreClosed));
        let card = "4242-4242";
        let call = world.pay("o", 5).arg("card", card);
        let result = call.execute(|_| async move { Ok::<_, Failure>(format!("paid with {card}")) }).await;
        let error = result.expect_err("not recorded");
        assert_eq!(
            (error.code(), error.retry().as_str(), error.ran()),
            ("store_closed", "after_resolution", true)
        );
        let shown = format!("{error} {error:?}");
        assert!(shown.contains("said that it was done") && !shown.contains(card), "{shown}");
        let Error::Unsettled { action, fence: 1, returned, because } = error else { panic!("{error:?}") };
        assert_eq!((returned, because.code()), (Ok("paid with [redacted]".into()), "store_closed"));
        let row = world.control.effect("pay:o").expect("readable").expect("there");
        assert_eq!((row.state, row.holder), (EffectState::Executing, action));
    }
}

#[tokio::test]
async fn a_not_executed_whose_outcome_cannot_be_written_is_replaced_by_the_reason() {
    let _alone = fault::alone();
    for world in World::both().await {
        fault::on(point::BEFORE_SETTLE, failing(Code::StoreClosed));
        let result = quick(&world, "o").execute(|_| async { Err::<(), _>(Failure::not_executed("no")) });
        let error = result.await.expect_err("not recorded");
        assert_eq!(error.code(), "store_closed", "what is not recorded is not claimed");
        assert!(error.to_string().contains("said that nothing was done"), "{error}");
        let Error::Unsettled { returned, .. } = error else { panic!("{error:?}") };
        assert_eq!(returned, Err(Failure::not_executed("no")));
    }
}

/// How a call under each of these circumstances ends, and how often its
/// executor ran.
async fn ends(world: &World, call: Proposing, executed: Executed, before: impl FnOnce()) -> (Error, u32) {
    let runs = AtomicU32::new(0);
    before();
    let result = call.execute(|_| {
        runs.fetch_add(1, Ordering::SeqCst);
        std::future::ready(executed)
    });
    let error = result.await.expect_err("an error");
    fault::disarm();
    world.clock.advance(1);
    (error, runs.load(Ordering::SeqCst))
}

#[tokio::test]
async fn p06_an_error_says_whether_the_executor_ran() {
    let _alone = fault::alone();
    for world in World::both().await {
        let world = &world;
        let id = |n| ActionId([n; 16]);
        let ok = || Ok(Value::Null);
        let no = || Err(Failure::not_executed("no"));
        let lost = || Err(Failure::unknown("lost"));
        let nothing = || {};
        let unwritten = || fault::on(point::BEFORE_SETTLE, failing(Code::StoreClosed));
        let late = || {
            let clock = world.clock.clone();
            fault::on(point::AFTER_RESERVE, move || {
                clock.advance(500_001);
                Ok(())
            });
        };
        let fails = |point: &'static str| move || fault::arm(point, 1, Action::Fail);
        let ended = [
            // Refused, waiting, not to be proposed.
            ends(world, world.pay("a", 9_999), ok(), nothing).await,
            ends(world, world.ask("a"), ok(), nothing).await,
            ends(world, world.ask("a").wait(Duration::from_millis(1)), ok(), nothing).await,
            ends(world, world.pay("a", 5).arg("amount", Value::Float(0.5)), ok(), nothing).await,
            // Failed on the way there.
            ends(world, world.pay("b", 5), ok(), fails(point::BEFORE_SUBMIT)).await,
            ends(world, world.pay("b", 5), ok(), fails(point::AFTER_RESERVE)).await,
            ends(world, world.pay("b", 5), ok(), fails(point::BEFORE_EXECUTOR)).await,
            ends(world, quick(world, "b"), ok(), late).await,
            // What it said, and what an id is answered with afterwards.
            ends(world, world.pay("c", 5).id(id(1)), no(), nothing).await,
            ends(world, world.pay("c", 5).id(id(1)), ok(), nothing).await,
            ends(world, world.pay("d", 5).id(id(2)), lost(), nothing).await,
            ends(world, world.pay("d", 5).id(id(2)), ok(), nothing).await,
            ends(world, world.pay("d", 5), ok(), nothing).await,
            // Not recorded.
            ends(world, world.pay("e", 5), ok(), unwritten).await,
            ends(world, world.pay("f", 5), no(), unwritten).await,
            ends(world, world.pay("g", 5), lost(), unwritten).await,
            ends(world, world.pay("h", 5), ok(), fails(point::AFTER_EXECUTOR)).await,
        ];
        for (error, runs) in &ended {
            assert_eq!(u32::from(error.ran()), *runs, "{error:?}");
        }
        let ran: Vec<_> =
            ended.iter().filter(|(error, _)| error.ran()).map(|(error, _)| error.code()).collect();
        let codes = [
            "not_executed",
            "outcome_unknown",
            "store_closed",
            "store_closed",
            "outcome_unknown",
            "outcome_unknown",
        ];
        assert_eq!(ran, codes);
    }
}

#[tokio::test]
async fn an_unknown_error_keeps_the_executors_words_with_the_reason_attached() {
    let _alone = fault::alone();
    for world in World::both().await {
        fault::on(point::BEFORE_SETTLE, failing(Code::StoreClosed));
        let executor = |_| async { Err::<(), _>(std::io::Error::other("reset by peer")) };
        match quick(&world, "o").execute(executor).await {
            Err(Error::Unknown { message, receipt: None, unrecorded: Some(reason), .. }) => {
                assert_eq!((message.as_str(), reason.code()), ("reset by peer", "store_closed"));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn ua_104_an_outcome_that_cannot_be_written_is_tried_until_the_lease_ends() {
    let _alone = fault::alone();
    for why in [Code::StoreFailed, Code::StoreUnreachable] {
        for world in World::both().await {
            let minutes = Arc::new(Mutex::new(Vec::new()));
            let (tried, clock) = (minutes.clone(), world.clock.clone());
            fault::on(point::BEFORE_SETTLE, move || {
                tried.lock().expect("whole").push(clock.now().boot_us / 60_000_000);
                clock.advance(60_000_000);
                Err(StoreError::new(why))
            });
            // A lease of five minutes.
            let result = world.pay("o", 5).execute(|_| async { Ok::<_, Failure>("paid") }).await;
            assert_eq!(code(result), why.as_str());
            assert_eq!(*minutes.lock().expect("whole"), [0, 1, 2, 3, 4, 5], "to its end, and not after it");
            // Nobody claims that it did not happen: the lease's lapse makes it unknown.
            fault::disarm();
            assert_eq!(code(world.pay("o", 5).execute(never).await), "ambiguous");
        }
    }
}

#[tokio::test]
async fn p05_a_store_that_fails_before_it_commits_starts_no_executor() {
    let _alone = fault::alone();
    let world = World::sqlite(crate::support::POLICY).await;
    fault::arm(point::BEFORE_COMMIT, 1, Action::Fail);
    assert_eq!(code(quick(&world, "o").execute(never).await), "store_failed");
    assert_eq!(world.state("quick:o"), None);
}

#[tokio::test]
async fn ua_032_a_commit_whose_answer_was_lost_is_looked_up_and_not_repeated() {
    let _alone = fault::alone();
    let world = World::sqlite(crate::support::POLICY).await;
    // The attempt's commit: the store finds it in the file.
    fault::arm(point::AFTER_COMMIT, 1, Action::Fail);
    let receipt = quick(&world, "o").execute(|_| async { Ok::<_, Failure>("paid") }).await;
    assert_eq!(receipt.expect("committed").fence, 1);
    // The outcome's.
    fault::on(point::BEFORE_SETTLE, || {
        fault::arm(point::AFTER_COMMIT, 1, Action::Fail);
        Ok(())
    });
    let receipt = quick(&world, "p").execute(|_| async { Ok::<_, Failure>("paid") }).await;
    assert!(receipt.expect("committed").id.is_some());
    let events = world.control.log(0, 1_000).expect("readable");
    let settled = events.iter().filter_map(|event| event.event.as_ref());
    let settled = settled.filter(|event| event.body.kind().to_string() == "effect.settled").count();
    assert_eq!(settled, 2, "each once");
}

#[tokio::test]
async fn a_settle_that_nobody_can_say_was_committed_is_submitted_again_with_the_same_answer() {
    let _alone = fault::alone();
    for world in World::both().await {
        let lost = Arc::new(AtomicU32::new(0));
        let counted = lost.clone();
        fault::on(point::AFTER_SETTLE, move || match counted.fetch_add(1, Ordering::SeqCst) {
            0..=2 => Err(StoreError::new(Code::CommitUnknown)),
            _ => Ok(()),
        });
        let receipt = quick(&world, "o").execute(|_| async { Ok::<_, Failure>("paid") }).await;
        let receipt = receipt.expect("committed");
        assert_eq!(lost.load(Ordering::SeqCst), 4);
        let document = world.receipt(&receipt);
        assert_eq!(document.as_object().and_then(|o| o.get("result")), Some(&"committed".into()));
        let receipts = world.control.receipts(None, true, 10).expect("readable");
        assert_eq!(receipts.len(), 1, "one answer, however often it was reported");
    }
}

#[tokio::test]
async fn with_less_than_half_the_lease_left_the_executor_is_not_called() {
    let _alone = fault::alone();
    for world in World::both().await {
        // The process is stopped for a while, as by a debugger or a full disk.
        let clock = world.clock.clone();
        fault::on(point::AFTER_RESERVE, move || {
            clock.advance(500_001);
            Ok(())
        });
        match quick(&world, "o").execute(never).await {
            Err(Error::NotExecuted { code: Some(code), receipt: Some(_), .. }) => {
                assert_eq!(code, "lease_too_short");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(world.state("quick:o"), Some(EffectState::Failed));
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_while_its_outcome_is_written_leaves_it_to_the_keeper() {
    let _alone = fault::alone();
    for world in World::both().await {
        let tries = Arc::new(AtomicU32::new(0));
        let counted = tries.clone();
        fault::on(point::BEFORE_SETTLE, move || match counted.fetch_add(1, Ordering::SeqCst) {
            0 => Err(StoreError::new(Code::StoreBusy)),
            _ => Ok(()),
        });
        {
            let mut call = std::pin::pin!(quick(&world, "o").execute(|_| async { Ok::<_, Failure>("paid") }));
            // Until it waits for its second try.
            while tries.load(Ordering::SeqCst) == 0 {
                assert!(crate::support::poll_once(call.as_mut()).is_pending());
                tokio::task::yield_now().await;
            }
        }
        let replayed = crate::support::unheld(quick(&world, "o")).await.expect("committed");
        assert_eq!(replayed.value, Some("paid".into()));
    }
}

#[tokio::test]
async fn a_call_that_fails_where_its_executor_would_start_is_not_executed() {
    let _alone = fault::alone();
    for world in World::both().await {
        for (at, point) in [point::AFTER_RESERVE, point::BEFORE_EXECUTOR].into_iter().enumerate() {
            fault::arm(point, 1, Action::Fail);
            let order = format!("o{at}");
            assert_eq!(code(world.pay(&order, 5).execute(never).await), "store_failed");
            assert_eq!(world.state(&format!("pay:{order}")), Some(EffectState::Failed), "the key is free");
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_lost_after_the_executor_returned_is_unknown() {
    let _alone = fault::alone();
    for world in World::both().await {
        fault::arm(point::AFTER_EXECUTOR, 1, Action::Fail);
        let result = world.pay("o", 5).execute(|_| async { Ok::<_, Failure>("paid") }).await;
        assert_eq!(code(result), "outcome_unknown");
        assert_eq!(world.state("pay:o"), Some(EffectState::Ambiguous));
    }
}

//! The executor's contract: a value is committed, *not executed* is failed,
//! everything else is unknown; and what becomes of a call that is given up.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use onceseal::core::effect::EffectState;
use onceseal::core::json::Value;
use onceseal::core::time::Span;
use onceseal::{Control, Error, Failure};
use tokio::sync::Notify;

use crate::support::{Gate, POLICY, World, code, never, pay, policy, poll_once, unheld};

#[tokio::test]
async fn p06_a_value_is_committed_and_returned() {
    for world in World::both().await {
        let receipt = world.pay("o", 5).execute(|_| async { Ok::<_, Failure>(Value::from("paid")) }).await;
        let receipt = receipt.expect("committed");
        assert_eq!((receipt.value.clone(), receipt.fence, receipt.replayed), (Some("paid".into()), 1, false));
        assert_eq!(world.state("pay:o"), Some(EffectState::Committed));
        let document = world.receipt(&receipt);
        let document = document.as_object().expect("an object");
        assert_eq!(document.get("result"), Some(&"committed".into()));
        assert_eq!(document.get("value"), Some(&"paid".into()));
    }
}

#[tokio::test]
async fn p06_not_executed_is_failed_passed_on_and_frees_the_key() {
    for world in World::both().await {
        let executor = |_| async {
            let (code, message) = (Some("card_declined".to_owned()), "declined".to_owned());
            Err::<(), _>(Failure::NotExecuted { code, message })
        };
        match world.pay("o", 5).execute(executor).await {
            Err(Error::NotExecuted { receipt: Some(_), code: Some(code), message, .. }) => {
                assert_eq!((code.as_str(), message.as_str()), ("card_declined", "declined"));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(world.state("pay:o"), Some(EffectState::Failed));
        let second = world.pay("o", 5).execute(|call| async move {
            assert_eq!(call.fence(), 2);
            Ok::<_, Failure>(())
        });
        assert_eq!(second.await.expect("committed").fence, 2);
    }
}

#[tokio::test]
async fn p06_any_other_error_is_ambiguous_passed_on_and_blocks_the_key() {
    for world in World::both().await {
        let executor = |_| async { Err::<(), _>(std::io::Error::other("the connection was reset")) };
        match world.pay("o", 5).execute(executor).await {
            Err(Error::Unknown { receipt: Some(_), message, unrecorded: None, .. }) => {
                assert_eq!(message, "the connection was reset");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(world.state("pay:o"), Some(EffectState::Ambiguous));
        assert_eq!(code(world.pay("o", 5).execute(never).await), "ambiguous");
    }
}

#[tokio::test]
async fn p06_a_panic_is_ambiguous_and_goes_on() {
    for world in World::both().await {
        let call = world.pay("o", 5);
        let task = tokio::spawn(call.execute(|_| async { panic_quietly().await }));
        assert!(task.await.expect_err("the panic").is_panic());
        assert_eq!(code(unheld(world.pay("o", 5)).await), "ambiguous");
        let row = world.control.effect("pay:o").expect("readable").expect("there");
        assert_eq!((row.code.as_deref(), row.state), (Some("panic"), EffectState::Ambiguous));
    }
}

/// Panics without a word on the terminal.
async fn panic_quietly() -> Result<(), Failure> {
    std::panic::resume_unwind(Box::new("on purpose"))
}

#[tokio::test]
async fn a_future_dropped_before_its_command_was_begun_leaves_nothing() {
    let gate = Gate::new();
    let control = Control::memory(policy(POLICY), gate.clone()).await.expect("a store");
    let stopped = gate.close();
    let mut first = Box::pin(pay(&control, "first", 5).execute(never));
    assert!(poll_once(first.as_mut()).is_pending());
    stopped.reached();
    {
        let mut second = pin!(pay(&control, "second", 5).execute(never));
        assert!(poll_once(second.as_mut()).is_pending());
    }
    stopped.open();
    // Whatever was in the queue has been run once this is answered.
    let third = pay(&control, "third", 5).execute(|_| async { Ok::<_, Failure>(()) });
    third.await.expect("committed");
    assert!(control.effect("pay:second").expect("readable").is_none());
}

#[tokio::test]
async fn p06_a_future_dropped_before_its_executor_started_was_not_executed() {
    let gate = Gate::new();
    let control = Control::memory(policy(POLICY), gate.clone()).await.expect("a store");
    let stopped = gate.close();
    {
        let mut call = pin!(pay(&control, "o", 5).execute(never));
        assert!(poll_once(call.as_mut()).is_pending());
        stopped.reached();
    }
    stopped.open();
    // The key becomes free: the second attempt is handed out.
    let call = pay(&control, "o", 5).replay().wait(Duration::from_secs(20));
    let receipt = call.execute(|_| async { Ok::<_, Failure>(()) }).await.expect("committed");
    assert_eq!((receipt.fence, receipt.replayed), (2, false));
}

#[tokio::test]
async fn p06_a_future_dropped_after_its_executor_started_is_ambiguous_and_does_not_wait() {
    let gate = Gate::new();
    let control = Control::memory(policy(POLICY), gate.clone()).await.expect("a store");
    let started = Arc::new(Notify::new());
    let stopped = {
        let mut call = Box::pin(pay(&control, "o", 5).execute(|_| hang(started.clone())));
        tokio::select! {
            _ = call.as_mut() => panic!("it hangs"),
            () = started.notified() => {}
        }
        // The store answers nobody while the call is dropped here.
        gate.close()
    };
    stopped.reached();
    stopped.open();
    assert_eq!(code(unheld(pay(&control, "o", 5)).await), "ambiguous");
    let row = control.effect("pay:o").expect("readable").expect("there");
    assert_eq!(row.code.as_deref(), Some("cancelled"));
}

async fn hang(started: Arc<Notify>) -> Result<(), Failure> {
    started.notify_one();
    std::future::pending().await
}

#[tokio::test]
async fn ua_034_a_cancelled_task_leaves_a_closed_attempt_that_is_unknown() {
    for world in World::both().await {
        let started = Arc::new(Notify::new());
        let task = tokio::spawn(world.pay("o", 5).execute({
            let started = started.clone();
            |_| hang(started)
        }));
        started.notified().await;
        task.abort();
        assert!(task.await.expect_err("aborted").is_cancelled());
        assert_eq!(code(unheld(world.pay("o", 5)).await), "ambiguous");
    }
}

#[tokio::test]
async fn p14_at_the_deadline_the_executor_is_dropped_and_its_outcome_unknown() {
    for world in World::both().await {
        let dropped = Arc::new(AtomicU32::new(0));
        let flag = OnDrop(dropped.clone());
        let call = world.pay("o", 5).deadline(Span::millis(30)).execute(|_| async move {
            let _flag = flag;
            std::future::pending::<Result<(), Failure>>().await
        });
        match call.await {
            Err(Error::Unknown { code: Some(code), .. }) => assert_eq!(code, "deadline"),
            other => panic!("{other:?}"),
        }
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
        assert_eq!(world.state("pay:o"), Some(EffectState::Ambiguous));
    }
}

struct OnDrop(Arc<AtomicU32>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn ua_007_an_executor_that_fails_after_it_sent_is_not_called_again() {
    for world in World::both().await {
        let calls = Arc::new(AtomicU32::new(0));
        for _ in 0..3 {
            let calls = calls.clone();
            let result = world.pay("o", 5).execute(|_| async move {
                calls.fetch_add(1, Ordering::SeqCst);
                Err::<(), _>(std::io::Error::other("no answer"))
            });
            assert!(result.await.is_err());
        }
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        assert_eq!(world.control.effect("pay:o").expect("readable").expect("there").fence, 1);
    }
}

#[tokio::test]
async fn what_the_executor_gets_was_read_back_from_what_was_recorded() {
    for world in World::both().await {
        let call =
            world.control.action("pay").arg("amount", 5).arg("order", "ö\u{1F600}").by(crate::support::bot());
        let receipt = call.execute(|call| async move {
            assert_eq!(call.effect_key(), Some("pay:%C3%B6%F0%9F%98%80"));
            assert_eq!(call.args().get("order"), Some(&"ö\u{1F600}".into()));
            Ok::<_, Failure>(call.action().to_string())
        });
        let receipt = receipt.await.expect("committed");
        assert_eq!(receipt.value, Some(receipt.action.to_string().into()));
    }
}

#[tokio::test]
async fn an_action_without_an_effect_key_runs_each_time_and_is_an_attempt_like_any_other() {
    for world in World::both().await {
        for _ in 0..2 {
            let call = world.control.action("read").by(crate::support::bot());
            let receipt = call.execute(|call| async move {
                assert_eq!((call.effect_key(), call.fence()), (None, 1));
                Ok::<_, Failure>(())
            });
            let document = world.receipt(&receipt.await.expect("committed"));
            assert_eq!(document.as_object().and_then(|o| o.get("effect_key")), Some(&Value::Null));
        }
    }
}

//! The facade for code that blocks.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use onceseal::blocking::{Control, Proposing};
use onceseal::core::approval::Said;
use onceseal::core::effect::{EffectState, Finding};
use onceseal::core::reply::Reply;
use onceseal::core::time::Span;
use onceseal::{CallOptions, Error, Failure};

use crate::support::{Home, POLICY, bot, clock, host, needed, policy};

fn both() -> [(Control, Option<Home>); 2] {
    let home = Home::new();
    let on_disk = Control::found(&home.opening(clock())).expect("a store");
    on_disk.activate(policy(POLICY), false, None).expect("active");
    [(Control::memory(policy(POLICY), clock()).expect("a store"), None), (on_disk, Some(home))]
}

fn pay<'a>(control: &'a Control, order: &str, amount: i32) -> Proposing<'a> {
    control.action("pay").arg("order", order).arg("amount", amount).by(bot())
}

fn never(_: onceseal::Call) -> Result<(), Failure> {
    panic!("this executor must not run");
}

#[test]
fn a_call_ends_as_it_does_without_the_facade() {
    for (control, _home) in both() {
        let receipt = pay(&control, "o", 5).execute(|_| Ok::<_, Failure>("paid")).expect("committed");
        assert_eq!((receipt.value, receipt.fence), (Some("paid".into()), 1));
        assert_eq!(pay(&control, "o", 5).execute(never).expect_err("refused").code(), "duplicate");
        let failed = pay(&control, "p", 5).execute(|_| Err::<(), _>(Failure::not_executed("no")));
        assert_eq!(failed.expect_err("failed").code(), "not_executed");
        let lost = pay(&control, "q", 5).execute(|_| Err::<(), _>(std::io::Error::other("lost")));
        assert_eq!(lost.expect_err("unknown").code(), "outcome_unknown");
        let found = |_: String, fence| {
            assert_eq!(fence, 1);
            Some((Finding::Committed(Some("\"ch_1\"".into())), None))
        };
        let reply = control.reconcile("pay:q", Span::seconds(1), found).expect("recorded");
        assert!(matches!(reply, Some(Reply::Settled { state: EffectState::Committed, .. })), "{reply:?}");
    }
}

#[test]
fn an_executor_may_block_call_again_and_have_a_runtime_of_its_own() {
    for (control, _home) in both() {
        let receipt = pay(&control, "outer", 5).execute(|_| {
            let own = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
            own.block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
            let inner = pay(&control, "inner", 5).execute(|_| Ok::<_, Failure>("inner"))?;
            Ok::<_, Error>(inner.value.expect("a value"))
        });
        assert_eq!(receipt.expect("committed").value, Some("inner".into()));
    }
}

#[test]
fn a_panic_of_the_executor_is_unknown_and_goes_on() {
    for (control, _home) in both() {
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pay(&control, "o", 5)
                .execute(|_| -> Result<(), Failure> { std::panic::resume_unwind(Box::new("x")) })
        }));
        assert!(panicked.is_err());
        let waited = pay(&control, "o", 5).replay().wait(Duration::from_secs(20)).execute(never);
        assert_eq!(waited.expect_err("unknown").code(), "ambiguous");
    }
}

#[test]
fn many_threads_call_at_once_and_each_effect_happens_once() {
    for (control, _home) in both() {
        let hits = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let threads: Vec<_> = (0..8)
            .map(|n| {
                let (control, hits) = (control.clone(), hits.clone());
                thread::spawn(move || {
                    let call =
                        pay(&control, &format!("o{}", n % 4), 5).replay().wait(Duration::from_secs(20));
                    call.execute(|_| {
                        hits.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        Ok::<_, Failure>("paid")
                    })
                })
            })
            .collect();
        for thread in threads {
            assert_eq!(thread.join().expect("no panic").expect("an answer").value, Some("paid".into()));
        }
        assert_eq!(hits.load(std::sync::atomic::Ordering::SeqCst), 4);
    }
}

#[test]
fn a_call_waits_for_a_person_who_answers_on_another_thread() {
    for (control, _home) in both() {
        let (action, approval) = needed(pay(&control, "o", 2_000).execute(never));
        let (waiting, started) = sync_channel(1);
        let caller = {
            let control = control.clone();
            thread::spawn(move || {
                waiting.send(()).expect("heard");
                let options = CallOptions { wait: Some(Duration::from_secs(20)), ..CallOptions::default() };
                control.resume(action, options, |_| Ok::<_, Failure>("paid"))
            })
        };
        started.recv().expect("it starts");
        let row = control.engine().approval(approval).expect("readable").expect("there");
        let shown = row.private.bound.binding.expect("a binding");
        control.answer(approval, host("ann"), Said::Yes, shown).expect("counted");
        assert_eq!(caller.join().expect("no panic").expect("committed").value, Some("paid".into()));
    }
}

#[test]
fn a_facade_that_is_dropped_inside_an_async_runtime_does_not_panic() {
    let control = Control::memory(policy(POLICY), clock()).expect("a store");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async move { drop(control) });
}

#[test]
fn a_task_that_has_used_up_its_share_is_answered_although_it_blocks() {
    let control = Control::memory(policy(POLICY), clock()).expect("a store");
    let store = control.engine().store();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let answer = runtime.block_on(std::future::poll_fn(|context| {
        loop {
            let mut step = std::pin::pin!(tokio::task::coop::consume_budget());
            if step.as_mut().poll(context).is_pending() {
                break;
            }
        }
        let ticket = store.submit(onceseal::core::command::Command::Create).expect("a ticket");
        std::task::Poll::Ready(ticket.wait())
    }));
    assert_eq!(answer.expect("decided"), Reply::Done { changed: false });
}

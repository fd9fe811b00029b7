//! The fault kit itself: the remote that misbehaves, stops, and a process that
//! really dies at each of the engine's points.

use std::path::PathBuf;
use std::sync::Arc;

use onceseal::core::effect::{EffectState, Finding};
use onceseal::core::json::Value;
use onceseal::fault::{self, Action, Remote, point};
use onceseal::{Control, Failure};

use crate::processes::{PLACE, Process};
use crate::support::{Home, POLICY, World, clock, code, never, pay, policy};

fn done(answer: &Value) -> (Option<&Value>, Option<i64>) {
    let object = answer.as_object().expect("an object");
    (object.get("done"), object.get("number").and_then(Value::as_integer))
}

#[tokio::test]
async fn a_remote_that_honours_keys_performs_once_and_answers_the_same() {
    let remote = Remote::new();
    let first = remote.perform_key("k", "one").await.expect("performed");
    let second = remote.perform_key("k", "two").await.expect("answered");
    assert_eq!((done(&first), &second), ((Some(&"one".into()), Some(1)), &first));
    remote.perform_key("other", "three").await.expect("performed");
    assert_eq!((remote.hits(), remote.effects("k"), remote.effects("other")), (3, 1, 1));
}

#[tokio::test]
async fn a_remote_without_keys_performs_whatever_reaches_it() {
    let remote = Remote::without_keys();
    for _ in 0..2 {
        remote.perform_key("k", "one").await.expect("performed");
    }
    assert_eq!((remote.hits(), remote.effects("k")), (2, 2));
}

#[tokio::test]
async fn a_remote_goes_wrong_as_told_in_order_and_then_goes_well() {
    let remote = Remote::without_keys();
    remote.lose_request();
    remote.refuse();
    remote.lose_answer();
    let lost = remote.perform_key("k", 1).await;
    assert!(matches!(lost, Err(Failure::Unknown { .. })));
    assert_eq!((remote.hits(), remote.effects("k")), (0, 0), "it never arrived");
    let refused = remote.perform_blocking("k", 1);
    assert!(matches!(refused, Err(Failure::NotExecuted { .. })));
    assert_eq!((remote.hits(), remote.effects("k")), (1, 0));
    let lost = remote.perform_key("k", 1).await;
    assert!(matches!(lost, Err(Failure::Unknown { .. })));
    assert_eq!((remote.hits(), remote.effects("k")), (2, 1), "it happened");
    assert!(remote.perform_key("k", 1).await.is_ok());
    remote.hang();
    let mut hanging = Box::pin(remote.perform_key("k", 1));
    assert!(crate::support::poll_once(hanging.as_mut()).is_pending());
    assert_eq!(remote.effects("k"), 3, "it happened, and nobody is told");
}

#[tokio::test]
async fn what_happens_while_a_remote_lags_is_found_once_it_has_caught_up() {
    let remote = Remote::new();
    remote.lag();
    let answer = remote.perform_key("k", 1).await.expect("performed");
    assert_eq!(remote.find("k"), Some((Finding::Absent, None)));
    remote.catch_up();
    let text = onceseal::core::json::canonical(&answer);
    assert_eq!(remote.find("k"), Some((Finding::Committed(Some(text)), Some("remote:k".into()))));
}

#[test]
fn a_call_stops_where_it_is_told_to_and_goes_on_when_it_is_let_go() {
    let _alone = fault::alone();
    let control = onceseal::blocking::Control::memory(policy(POLICY), clock()).expect("a store");
    let stop = fault::stop(point::AFTER_RESERVE);
    let remote = Arc::new(Remote::new());
    let caller = std::thread::spawn({
        let (control, remote) = (control.clone(), remote.clone());
        move || {
            let call = control.action("pay").arg("order", "o").arg("amount", 5).by(crate::support::bot());
            call.execute(|_| remote.perform_blocking("o", 1))
        }
    });
    stop.reached();
    let row = control.engine().effect("pay:o").expect("readable").expect("there");
    assert_eq!((row.state, remote.hits()), (EffectState::Executing, 0), "permitted, and not started");
    stop.release();
    assert!(caller.join().expect("no panic").is_ok());
    assert_eq!(remote.hits(), 1);
}

/// What a child is told to die at.
const DIE_AT: &str = "ONCESEAL_TEST_DIE_AT";

#[tokio::test]
#[ignore = "a child of another test"]
async fn child_that_dies() {
    let base = PathBuf::from(std::env::var_os(PLACE).expect("a place"));
    let home = base.clone();
    let opening = onceseal::Opening {
        surroundings: crate::support::surroundings(&base),
        settings: onceseal::config::Settings::default(),
        clock: clock(),
        sweep: false,
    };
    let found = tokio::task::spawn_blocking(move || Control::found(&opening)).await.expect("no panic");
    let control = found.expect("the store");
    fault::arm(&std::env::var(DIE_AT).expect("a point"), 1, Action::Kill);
    let call = pay(&control, "o", 5).execute(|_| async move {
        std::fs::write(home.join("hit"), "").expect("written");
        Ok::<_, Failure>("paid")
    });
    let _ = call.await;
}

#[tokio::test]
async fn p06_a_process_that_dies_at_any_point_leaves_nothing_known_unknown_or_committed_as_it_was() {
    // For each point: whether the executor ran, and what is known once the lease is over.
    let expected = [
        (point::BEFORE_SUBMIT, false, None),
        (point::BEFORE_COMMIT, false, None),
        (point::AFTER_COMMIT, false, Some(EffectState::Ambiguous)),
        (point::AFTER_RESERVE, false, Some(EffectState::Ambiguous)),
        (point::BEFORE_EXECUTOR, false, Some(EffectState::Ambiguous)),
        (point::AFTER_EXECUTOR, true, Some(EffectState::Ambiguous)),
        (point::BEFORE_SETTLE, true, Some(EffectState::Ambiguous)),
        (point::AFTER_SETTLE, true, Some(EffectState::Committed)),
    ];
    for (at, ran, state) in expected {
        let (home, clock) = (Home::new(), clock());
        let control = home.control(clock.clone()).await.expect("a store");
        control.activate(policy(POLICY), false, None).await.expect("active");
        control.close();
        let child = Process::start("faults::child_that_dies", home.dir.path(), &[(DIE_AT, at)]);
        assert!(!child.success(), "{at}: it died");
        assert_eq!(home.dir.path().join("hit").exists(), ran, "{at}");
        let control = home.control(clock.clone()).await.expect("the store");
        clock.advance(6 * 60_000_000);
        let again = pay(&control, "o", 5).execute(never);
        match state {
            None => assert_eq!(control.effect("pay:o").expect("readable"), None, "{at}"),
            Some(EffectState::Committed) => assert_eq!(code(again.await), "duplicate", "{at}"),
            Some(_) => assert_eq!(code(again.await), "ambiguous", "{at}"),
        }
    }
}

#[test]
fn every_point_has_one_name() {
    let names: std::collections::BTreeSet<_> = point::ALL.into_iter().collect();
    assert_eq!(names.len(), point::ALL.len());
}

#[tokio::test]
async fn nothing_happens_at_a_point_once_the_turn_is_over() {
    {
        let _alone = fault::alone();
        fault::on(point::BEFORE_SUBMIT, || {
            Err(onceseal::store::StoreError::new(onceseal::core::code::Code::StoreFailed))
        });
        fault::arm(point::BEFORE_EXECUTOR, 1, Action::Fail);
    }
    let world = World::memory(POLICY).await;
    assert!(world.pay("o", 5).execute(|_| async { Ok::<_, Failure>(()) }).await.is_ok());
}

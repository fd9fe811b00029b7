//! Outcomes that nobody knows, and how they become known: section B of the
//! users' reports.

use std::sync::Arc;
use std::time::Duration;

use onceseal::core::effect::EffectState;
use onceseal::core::json::Value;
use onceseal::core::reply::Reply;
use onceseal::core::time::Span;
use onceseal::fault::Remote;
use onceseal::{Error, Failure, Proposing};

use crate::support::{World, code, host, never, unheld};

const SETTLE: Span = Span::seconds(30);

fn member<'a>(document: &'a Value, name: &str) -> &'a Value {
    document.as_object().and_then(|object| object.get(name)).unwrap_or(&Value::Null)
}

/// Starts a call whose remote acts and never answers.
async fn hanging(world: &World, call: Proposing, remote: &Arc<Remote>) -> tokio::task::JoinHandle<()> {
    remote.hang();
    let own = remote.clone();
    let call = call.execute(|call| async move { own.perform(call, "paid").await });
    let task = tokio::spawn(async move { drop(call.await) });
    remote.arrived().await;
    assert_eq!(world.state("pay:o"), Some(EffectState::Executing));
    task
}

#[tokio::test]
async fn ua_023_a_lease_that_ends_on_a_started_attempt_is_unknown_and_not_free() {
    for world in World::both().await {
        let remote = Arc::new(Remote::without_keys());
        let task = hanging(&world, world.pay("o", 5), &remote).await;
        world.clock.advance(5 * 60_000_000 + 1);
        let error = world.pay("o", 5).execute(never).await.expect_err("unknown");
        assert_eq!((error.code(), error.retry().as_str()), ("ambiguous", "after_resolution"));
        assert_eq!(remote.hits(), 1);
        task.abort();
    }
}

#[tokio::test]
async fn ua_025_a_deadline_already_past_is_refused_and_nothing_is_reserved() {
    for world in World::both().await {
        let call = world.pay("o", 5).deadline(Span::ZERO).execute(never).await;
        assert_eq!(code(call), "out_of_bounds");
        assert_eq!(world.state("pay:o"), None);
    }
}

#[tokio::test]
async fn ua_028_a_call_that_is_aborted_is_unknown_until_the_remote_is_asked() {
    for world in World::both().await {
        let remote = Arc::new(Remote::without_keys());
        let task = hanging(&world, world.pay("o", 5), &remote).await;
        task.abort();
        assert_eq!(code(unheld(world.pay("o", 5)).await), "ambiguous");
        let asked = world.control.reconcile("pay:o", SETTLE, async |key, fence| {
            assert_eq!((key.as_str(), fence), ("pay:o", 1));
            remote.find(&key)
        });
        match asked.await.expect("recorded") {
            Some(Reply::Settled { state: EffectState::Committed, receipt: Some(receipt), .. }) => {
                let document = world.control.receipt(receipt).expect("readable").expect("there");
                assert_eq!(member(&document, "result"), &"committed".into());
                assert_eq!(member(member(&document, "answered"), "source"), &"remote".into());
                assert_eq!(member(member(&document, "answered"), "evidence"), &"remote:pay:o".into());
                assert_eq!(member(member(&document, "value"), "done"), &"paid".into());
                assert_ne!(member(&document, "first_receipt"), &Value::Null);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(remote.hits(), 1);
    }
}

#[tokio::test]
async fn ua_029_an_answer_lost_after_it_happened_is_found_by_asking() {
    for world in World::both().await {
        let remote = Arc::new(Remote::without_keys());
        remote.lose_answer();
        let own = remote.clone();
        let lost = world.pay("o", 5).execute(|call| async move { own.perform(call, "paid").await });
        assert_eq!(code(lost.await), "outcome_unknown");
        world.control.reconcile("pay:o", SETTLE, async |key, _| remote.find(&key)).await.expect("recorded");
        let replayed = world.pay("o", 5).replay().execute(never).await.expect("replayed");
        assert_eq!((replayed.replayed, remote.effects("pay:o")), (true, 1));
        assert_eq!(replayed.value.as_ref().map(|value| member(value, "done")), Some(&"paid".into()));
    }
}

#[tokio::test]
async fn p06_absent_is_believed_only_once_the_remote_has_had_time_to_settle() {
    for world in World::both().await {
        let remote = Arc::new(Remote::without_keys());
        // It happens, and cannot be found yet.
        remote.lag();
        remote.lose_answer();
        let own = remote.clone();
        let lost = world.pay("o", 5).execute(|call| async move { own.perform(call, "paid").await });
        assert_eq!(code(lost.await), "outcome_unknown");
        let ask = async || world.control.reconcile("pay:o", SETTLE, async |key, _| remote.find(&key)).await;
        assert_eq!(code(ask().await), "too_early");
        remote.catch_up();
        let reply = ask().await.expect("recorded");
        assert!(matches!(reply, Some(Reply::Settled { state: EffectState::Committed, .. })), "{reply:?}");
    }
}

#[tokio::test]
async fn p06_what_the_remote_never_got_is_failed_and_free_again() {
    for world in World::both().await {
        let remote = Arc::new(Remote::without_keys());
        remote.lose_request();
        let attempt = async || {
            let remote = remote.clone();
            world.pay("o", 5).execute(|call| async move { remote.perform(call, "paid").await }).await
        };
        assert_eq!(code(attempt().await), "outcome_unknown");
        world.clock.advance(5 * 60_000_000 + 30_000_000);
        let reply = world.control.reconcile("pay:o", SETTLE, async |key, _| remote.find(&key)).await;
        assert!(matches!(reply, Ok(Some(Reply::Settled { state: EffectState::Failed, .. }))), "{reply:?}");
        assert_eq!(attempt().await.expect("committed").fence, 2);
        assert_eq!(remote.effects("pay:o"), 1);
    }
}

#[tokio::test]
async fn a_remote_that_cannot_tell_changes_nothing() {
    for world in World::both().await {
        let lost = world.pay("o", 5).execute(|_| async { Err::<(), _>(Failure::unknown("lost")) }).await;
        assert_eq!(code(lost), "outcome_unknown");
        let newest = world.control.store().read(|snapshot| snapshot.newest()).expect("readable");
        let reply = world.control.reconcile("pay:o", SETTLE, async |_, _| None).await.expect("asked");
        assert_eq!(reply, None);
        assert_eq!(world.control.store().read(|snapshot| snapshot.newest()).expect("readable"), newest);
        let unknown = world.control.reconcile("pay:nothing", SETTLE, async |_, _| None).await;
        assert_eq!(code(unknown), "effect_unknown");
    }
}

#[tokio::test]
async fn p15_a_persons_word_ends_the_unknown_and_names_the_person_and_the_proof() {
    for world in World::both().await {
        let lost = world.pay("o", 5).execute(|_| async { Err::<(), _>(Failure::unknown("lost")) }).await;
        let Err(Error::Unknown { receipt: Some(first), .. }) = lost else { panic!("{lost:?}") };
        let early = world.control.receipt(first).expect("readable").expect("there");
        let said = ("not in the bank's list".to_owned(), Some("ticket 7".to_owned()));
        let reply = world.control.resolve("pay:o", None, false, said.0, said.1, host("ann")).await;
        let Ok(Reply::Settled { state: EffectState::Failed, receipt: Some(receipt), .. }) = reply else {
            panic!("{reply:?}")
        };
        let document = world.control.receipt(receipt).expect("readable").expect("there");
        let answered = member(&document, "answered");
        let expected = [
            ("source", "person"),
            ("person", "host:ann"),
            ("proof", "host"),
            ("reason", "not in the bank's list"),
            ("evidence", "ticket 7"),
            ("cause", "lost"),
        ];
        for (name, value) in expected {
            assert_eq!(member(answered, name), &value.into(), "{name}");
        }
        assert_eq!(member(&document, "first_receipt"), &first.to_string().into());
        let late = world.control.receipt(first).expect("readable").expect("there");
        assert_eq!(early, late, "a receipt does not change by what follows");
        let second = world.pay("o", 5).execute(|_| async { Ok::<_, Failure>(()) }).await;
        assert_eq!(second.expect("committed").fence, 2);
    }
}

#[tokio::test]
async fn ua_035_a_cancelled_call_still_comes_to_a_terminal_answer() {
    for world in World::both().await {
        let remote = Arc::new(Remote::new());
        let task = hanging(&world, world.pay("o", 5), &remote).await;
        task.abort();
        assert_eq!(code(unheld(world.pay("o", 5)).await), "ambiguous");
        let row = world.control.effect("pay:o").expect("readable").expect("there");
        let action = world.control.action_row(row.holder).expect("readable").expect("there");
        let document = world.control.receipt(action.receipt().expect("a receipt")).expect("readable");
        assert_eq!(member(&document.expect("there"), "result"), &"ambiguous".into());
    }
}

#[tokio::test]
async fn nobody_waits_for_what_only_a_person_can_say() {
    for world in World::both().await {
        let lost = world.pay("o", 5).execute(|_| async { Err::<(), _>(Failure::unknown("lost")) }).await;
        assert!(lost.is_err());
        let waiting = world.pay("o", 5).replay().wait(Duration::from_secs(3_600)).execute(never);
        assert_eq!(code(waiting.await), "ambiguous", "at once");
    }
}

//! Waiting for people: section D of the users' reports.

use std::time::Duration;

use onceseal::core::action::ActionState;
use onceseal::core::approval::{Said, Status};
use onceseal::core::effect::EffectState;
use onceseal::core::id::ApprovalId;
use onceseal::core::journal::Row;
use onceseal::core::reply::Reply;
use onceseal::core::stream::{StreamId, StreamKind};
use onceseal::core::time::Span;
use onceseal::views::Filter;
use onceseal::{Error, Failure, Receipt};

use crate::support::{Home, POLICY, World, clock, code, host, needed, never, policy};

const LONG: Duration = Duration::from_secs(20);

async fn fine(_: onceseal::Call) -> Result<&'static str, Failure> {
    Ok("done")
}

/// A call that waits already when this returns; `request` is what it waits for.
async fn waiting(
    world: &World,
    order: &str,
) -> (tokio::task::JoinHandle<Result<Receipt, Error>>, ApprovalId) {
    let task = tokio::spawn(world.ask(order).wait(LONG).execute(fine));
    loop {
        let filter = Filter { state: Some(Status::Pending.number()), ..Filter::default() };
        let listed = world.control.list(StreamKind::Approval, &filter, 10).expect("readable");
        if let Some((stream, _)) = listed.items.first() {
            return (task, ApprovalId(stream.name));
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn ua_094_an_answer_before_the_wait_starts_is_not_missed() {
    for world in World::both().await {
        let (_, approval) = needed(world.ask("o").execute(never).await);
        world.answer(approval, "ann", Said::Yes).await.expect("counted");
        let receipt = world.ask("o").wait(LONG).execute(fine).await.expect("committed");
        assert_eq!(receipt.value, Some("done".into()));
    }
}

#[tokio::test]
async fn an_answer_in_this_process_wakes_the_caller() {
    for world in World::both().await {
        let (task, approval) = waiting(&world, "o").await;
        world.answer(approval, "ann", Said::Yes).await.expect("counted");
        assert_eq!(task.await.expect("no panic").expect("committed").value, Some("done".into()));
    }
}

#[tokio::test]
async fn an_answer_through_another_handle_on_the_file_is_seen() {
    let world = World::sqlite(POLICY).await;
    let (task, approval) = waiting(&world, "o").await;
    let home = world.home.as_ref().expect("on disk");
    // Nothing but the file tells this process of the other's doings.
    let other = home.control(world.clock.clone()).await.expect("the store");
    crate::support::answer(&other, approval, "ann", Said::Yes).await.expect("counted");
    assert_eq!(task.await.expect("no panic").expect("committed").value, Some("done".into()));
}

#[tokio::test]
async fn ua_065_a_wait_that_ends_a_denial_an_expiry_and_a_cancellation_are_four_things() {
    for world in World::both().await {
        let timed_out = world.ask("timeout").wait(Duration::from_millis(1)).execute(never).await;
        let Err(Error::WaitTimeout { approval, .. }) = timed_out else { panic!("{timed_out:?}") };
        let row = world.control.approval(approval).expect("readable").expect("there");
        assert_eq!(row.status, Status::Pending, "nobody said no");
        world.answer(approval, "ann", Said::Yes).await.expect("it can still be answered");

        let (task, approval) = waiting(&world, "denied").await;
        world.answer(approval, "ann", Said::No).await.expect("counted");
        assert_eq!(code(task.await.expect("no panic")), "approval_denied");

        let (task, approval) = waiting(&world, "cancelled").await;
        world.control.revoke(approval, host("ann")).await.expect("revoked");
        assert_eq!(code(task.await.expect("no panic")), "approval_revoked");

        let (task, approval) = waiting(&world, "expired").await;
        world.clock.advance(15 * 60_000_000 + 1);
        // Time is not recorded by itself; whatever happens next makes the waiter look.
        world.control.note("clock".into(), "\"later\"".into()).await.expect("noted");
        assert_eq!(code(task.await.expect("no panic")), "approval_expired");
        let row = world.control.approval(approval).expect("readable").expect("there");
        assert_eq!(row.status, Status::Expired);
    }
}

#[tokio::test]
async fn ua_064_a_held_call_is_let_go_with_its_request_and_the_same_call_resumes() {
    for world in World::both().await {
        let held = world.ask("o").wait(Duration::from_millis(1)).execute(never).await;
        let Err(Error::WaitTimeout { action, approval }) = held else { panic!("{held:?}") };
        // The client has gone; the person answers later.
        world.answer(approval, "ann", Said::Yes).await.expect("counted");
        let receipt = world.ask("o").execute(fine).await.expect("committed");
        assert_eq!(receipt.action, action, "the waiting action itself runs");
        let row = world.control.approval(approval).expect("readable").expect("there");
        assert_eq!(row.consumed_by, Some(action));
    }
}

#[tokio::test]
async fn ua_067_a_persons_time_does_not_count_against_the_executors() {
    for world in World::both().await {
        let call = world.ask("o").deadline(Span::millis(400)).wait(LONG);
        let task = tokio::spawn(call.execute(|call| async move {
            let left = call.deadline().saturating_duration_since(std::time::Instant::now());
            Ok::<_, Failure>(u32::try_from(left.as_millis()).expect("short"))
        }));
        let (_, approval) = needed(world.ask("o").execute(never).await);
        // The person takes longer than the executor may, by this clock and by the store's.
        tokio::time::sleep(Duration::from_millis(450)).await;
        world.clock.advance(60_000_000);
        world.answer(approval, "ann", Said::Yes).await.expect("counted");
        let receipt = task.await.expect("no panic").expect("committed");
        assert!(receipt.value.and_then(|left| left.as_integer()).expect("an integer") > 0);
    }
}

#[tokio::test]
async fn ua_061_approved_and_not_started_is_a_state_of_its_own_with_an_age() {
    for world in World::both().await {
        let (action, approval) = needed(world.ask("o").execute(never).await);
        world.answer(approval, "ann", Said::Yes).await.expect("counted");
        world.clock.advance(60_000_000);
        let filter = Filter { state: Some(Status::Granted.number()), ..Filter::default() };
        let listed = world.control.list(StreamKind::Approval, &filter, 10).expect("readable");
        let [(stream, Row::Approval(row))] = listed.items.as_slice() else { panic!("{listed:?}") };
        assert_eq!(*stream, StreamId::approval(approval));
        let age = world.control.store().now().since(row.updated_at);
        assert_eq!(age, Span::seconds(60));
        let row = world.control.action_row(action).expect("readable").expect("there");
        assert_eq!(row.state, ActionState::Waiting { approval }, "not running");
        assert_eq!(world.control.attention().expect("readable").granted.count, 1);
        // Whoever comes picks it up.
        world.ask("o").execute(fine).await.expect("committed");
        assert_eq!(world.control.attention().expect("readable").total(), 0);
    }
}

#[tokio::test]
async fn ua_062_one_look_counts_everything_that_waits_for_a_person() {
    for world in World::both().await {
        assert_eq!(world.control.attention().expect("readable").total(), 0);
        for order in ["a", "b", "c"] {
            needed(world.ask(order).execute(never).await);
            world.clock.advance(1_000_000);
        }
        let (_, approval) = needed(world.ask("d").execute(never).await);
        world.answer(approval, "ann", Said::Yes).await.expect("counted");
        let lost = world.pay("o", 5).execute(|_| async { Err::<(), _>(Failure::unknown("lost")) }).await;
        assert!(lost.is_err());
        let attention = world.control.attention().expect("readable");
        assert_eq!((attention.pending.count, attention.granted.count, attention.unknown.count), (3, 1, 1));
        let oldest = attention.pending.oldest.expect("one");
        assert_eq!(world.control.store().now().since(oldest), Span::seconds(3));
        world.control.resolve("pay:o", None, true, "seen".into(), None, host("ann")).await.expect("resolved");
        assert_eq!(world.control.attention().expect("readable").unknown.count, 0);
    }
}

#[tokio::test]
async fn ua_068_two_of_three_different_people_must_say_yes() {
    let yaml = "
schema: onceseal.policy/v1
groups: { finance: ['host:ann', 'host:ben', 'host:cas'] }
actions:
  wire: { approval: { approvers: [finance], quorum: 2 }, effect: 'wire:{order}', decision: approve }
";
    for world in [World::memory(yaml).await, World::sqlite(yaml).await] {
        let call = || world.control.action("wire").arg("order", "o").by(crate::support::bot());
        let (_, approval) = needed(call().execute(never).await);
        let row = world.control.approval(approval).expect("readable").expect("there");
        let shown = row.private.bound.binding.expect("a binding");
        let answer =
            async |person: &str| world.control.answer(approval, host(person), Said::Yes, shown).await;
        let counted = |reply: Result<Reply, Error>| match reply {
            Ok(Reply::Approval { status, yes, quorum, repeated }) => (status, yes, quorum, repeated),
            other => panic!("{other:?}"),
        };
        assert_eq!(counted(answer("ann").await), (Status::Pending, 1, 2, false));
        assert_eq!(counted(answer("ann").await), (Status::Pending, 1, 2, true), "once a person");
        assert_eq!(code(answer("dan").await), "not_entitled");
        needed(call().execute(never).await);
        assert_eq!(counted(answer("cas").await), (Status::Granted, 2, 2, false));
        call().execute(fine).await.expect("committed");
    }
}

#[tokio::test]
async fn identical_callers_share_one_request_and_its_effect_happens_once() {
    for world in World::both().await {
        let (task, approval) = waiting(&world, "o").await;
        let other = tokio::spawn(world.ask("o").replay().wait(LONG).execute(fine));
        tokio::task::yield_now().await;
        world.answer(approval, "ann", Said::Yes).await.expect("counted");
        let one = task.await.expect("no panic");
        let other = other.await.expect("no panic").expect("its own or the other's result");
        assert_eq!(other.value, Some("done".into()));
        if let Err(error) = one {
            // Without `replay` the one that came second is told that it happened.
            assert!(["duplicate", "in_progress"].contains(&error.code()), "{error:?}");
        }
        assert_eq!(world.state("ask:o"), Some(EffectState::Committed));
        assert_eq!(world.control.effect("ask:o").expect("readable").expect("there").fence, 1);
    }
}

#[tokio::test]
async fn a_wait_may_be_as_long_as_there_is() {
    for world in World::both().await {
        let task = tokio::spawn(world.ask("o").wait(Duration::MAX).execute(fine));
        let approval = loop {
            let filter = Filter { state: Some(Status::Pending.number()), ..Filter::default() };
            let listed = world.control.list(StreamKind::Approval, &filter, 10).expect("readable");
            if let Some((stream, _)) = listed.items.first() {
                break ApprovalId(stream.name);
            }
            tokio::task::yield_now().await;
        };
        world.answer(approval, "ann", Said::Yes).await.expect("counted");
        assert!(task.await.expect("no panic").is_ok());
    }
}

#[tokio::test]
async fn an_approver_answers_after_the_client_left_and_nothing_is_lost() {
    let home = Home::new();
    let clock = clock();
    let client = home.control(clock.clone()).await.expect("a store");
    client.activate(policy(POLICY), false, None).await.expect("active");
    let ask = |control: &onceseal::Control| control.action("ask").arg("order", "o").by(crate::support::bot());
    let (_, approval) = needed(ask(&client).execute(never).await);
    {
        let mut call = Box::pin(ask(&client).wait(LONG).execute(never));
        assert!(crate::support::poll_once(call.as_mut()).is_pending());
    }
    client.close();
    drop(client);
    let later = home.control(clock).await.expect("the store");
    crate::support::answer(&later, approval, "ann", Said::Yes).await.expect("counted");
    ask(&later).execute(fine).await.expect("committed");
}

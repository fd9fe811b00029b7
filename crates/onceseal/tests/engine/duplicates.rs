//! The same effect is asked for twice: section A of the users' reports.

use std::sync::Arc;
use std::time::Duration;

use onceseal::core::approval::Said;
use onceseal::core::effect::EffectState;
use onceseal::core::id::ActionId;
use onceseal::core::journal::Kind;
use onceseal::core::json::Value;
use onceseal::core::reply::Reply;
use onceseal::fault::Remote;
use onceseal::{Control, Error, Principal, Proposing, Receipt};

use crate::support::{Home, World, bot, code, host, needed, never, pay};

async fn run(call: Proposing, remote: &Arc<Remote>) -> Result<Receipt, Error> {
    call.execute(|call| async move { remote.perform(call, "paid").await }).await
}

fn kinds(control: &Control, kind: Kind) -> usize {
    let events = control.log(0, 10_000).expect("readable").into_iter().filter_map(|event| event.event);
    events.filter(|event| event.body.kind() == kind).count()
}

#[tokio::test]
async fn ua_001_a_second_call_with_a_new_id_gets_the_stored_result() {
    for world in World::both().await {
        let remote = Arc::new(Remote::without_keys());
        let first = run(world.pay("o", 5).id(ActionId([1; 16])), &remote).await.expect("committed");
        let second = run(world.pay("o", 5).id(ActionId([2; 16])).replay(), &remote).await.expect("replayed");
        assert_eq!((remote.hits(), second.replayed, second.action), (1, true, first.action));
        assert_eq!((second.value, second.id, second.fence), (first.value, first.id, first.fence));
        // Whoever does not ask for the result of another is told, and nothing runs either.
        assert_eq!(code(run(world.pay("o", 5), &remote).await), "duplicate");
        assert_eq!(remote.hits(), 1);
    }
}

#[tokio::test]
async fn ua_002_a_run_that_starts_over_repeats_only_what_has_not_happened() {
    for world in World::both().await {
        let remote = Arc::new(Remote::without_keys());
        let mut replays = Vec::new();
        for round in 0..2 {
            for tool in ["one", "two", "three"] {
                if tool == "three" && round == 0 {
                    remote.refuse();
                }
                match run(world.pay(tool, 5).replay(), &remote).await {
                    Ok(receipt) => replays.push((tool, receipt.replayed)),
                    Err(error) => assert_eq!((error.code(), round), ("not_executed", 0)),
                }
            }
        }
        let expected = [("one", false), ("two", false), ("one", true), ("two", true), ("three", false)];
        assert_eq!(replays, expected);
        for tool in ["one", "two", "three"] {
            assert_eq!(remote.effects(&format!("pay:{tool}")), 1);
        }
    }
}

#[tokio::test]
async fn ua_004_what_ran_before_an_approval_is_not_run_again_after_it() {
    for world in World::both().await {
        let remote = Arc::new(Remote::without_keys());
        // A node that is entered from its first line each time.
        let node = async || {
            run(world.pay("before", 5).replay(), &remote).await.expect("paid or replayed");
            run(world.pay("risky", 2_000), &remote).await
        };
        let (_, approval) = needed(node().await);
        world.answer(approval, "ann", Said::Yes).await.expect("counted");
        node().await.expect("committed");
        assert_eq!((remote.effects("pay:before"), remote.effects("pay:risky")), (1, 1));
    }
}

#[tokio::test]
async fn ua_005_the_first_answer_stands_and_the_second_is_told_so() {
    for world in World::both().await {
        let (action, approval) = needed(world.ask("o").execute(never).await);
        world.answer(approval, "ann", Said::Yes).await.expect("counted");
        let remote = Arc::new(Remote::new());
        let resumed = world.control.resume(action).execute(|call| {
            let remote = remote.clone();
            async move { remote.perform(call, 1).await }
        });
        resumed.await.expect("committed");
        assert_eq!(code(world.answer(approval, "ben", Said::No).await), "approval_decided");
        assert_eq!(world.state("ask:o"), Some(EffectState::Committed));
    }
}

#[tokio::test]
async fn ua_008_a_repeated_task_is_one_attempt_and_one_recorded_refusal() {
    for world in World::both().await {
        let remote = Arc::new(Remote::without_keys());
        run(world.pay("o", 5), &remote).await.expect("committed");
        assert!(run(world.pay("o", 5).replay(), &remote).await.expect("replayed").replayed);
        assert_eq!(kinds(&world.control, Kind::EffectAcquired), 1);
        assert_eq!(kinds(&world.control, Kind::ActionEnded), 2, "the repeat has its own answer");
    }
}

#[tokio::test]
async fn ua_010_without_what_tells_two_effects_apart_an_action_is_refused_with_the_reason() {
    for world in World::both().await {
        let call = world.control.action("pay").arg("amount", 5).by(bot());
        let error = call.execute(never).await.expect_err("no order");
        // The resource needs the order too, and comes first.
        assert_eq!(error.code(), "resource_error");
        let call = world.control.action("ask").by(bot()).execute(never).await.expect_err("no order");
        assert_eq!(call.code(), "effect_key_error");
        assert!(call.to_string().contains("template cannot be filled"), "{call}");
    }
}

#[tokio::test]
async fn ua_013_after_a_crash_what_had_started_is_unknown_and_not_ready_again() {
    let (home, clock) = (Home::new(), crate::support::clock());
    {
        let control = home.control(clock.clone()).await.expect("a store");
        control.activate(crate::support::policy(crate::support::POLICY), false, None).await.expect("active");
        let mut call =
            Box::pin(pay(&control, "o", 5).execute(|_| std::future::pending::<Result<(), Error>>()));
        while control.effect("pay:o").expect("readable").is_none() {
            assert!(crate::support::poll_once(call.as_mut()).is_pending());
            tokio::task::yield_now().await;
        }
        // Nothing of it is dropped: so ends a process that is killed.
        std::mem::forget((call, control));
    }
    let control = home.control(clock.clone()).await.expect("the store");
    assert_eq!(code(pay(&control, "o", 5).execute(never).await), "in_progress");
    clock.advance(5 * 60_000_000 + 1);
    assert_eq!(code(pay(&control, "o", 5).execute(never).await), "ambiguous");
}

#[tokio::test]
async fn ua_014_the_same_id_with_the_same_content_is_the_same_action() {
    for world in World::both().await {
        let remote = Arc::new(Remote::without_keys());
        let id = ActionId([7; 16]);
        let first = run(world.pay("o", 5).id(id), &remote).await.expect("committed");
        let again = run(world.pay("o", 5).id(id), &remote).await.expect("its first answer");
        assert_eq!((again.action, again.id, again.value), (id, first.id, first.value));
        assert!(again.replayed && again.fence == 1 && remote.hits() == 1);
        assert_eq!(code(run(world.pay("o", 6).id(id), &remote).await), "id_reused");
    }
}

#[tokio::test]
async fn an_id_whose_action_ended_otherwise_is_answered_as_it_was_then() {
    for world in World::both().await {
        let remote = Arc::new(Remote::without_keys());
        let (failed, unknown, denied) = (ActionId([1; 16]), ActionId([2; 16]), ActionId([3; 16]));
        remote.refuse();
        assert_eq!(code(run(world.pay("failed", 5).id(failed), &remote).await), "not_executed");
        remote.lose_answer();
        assert_eq!(code(run(world.pay("unknown", 5).id(unknown), &remote).await), "outcome_unknown");
        assert_eq!(code(run(world.pay("denied", 9_999).id(denied), &remote).await), "policy_denied");
        match run(world.pay("failed", 5).id(failed), &remote).await {
            Err(Error::NotExecuted { receipt: Some(_), message, .. }) => {
                assert_eq!(message, "the remote refused")
            }
            other => panic!("{other:?}"),
        }
        match run(world.pay("unknown", 5).id(unknown), &remote).await {
            Err(Error::Unknown { receipt: Some(_), message, .. }) => {
                assert_eq!(message, "the connection was lost")
            }
            other => panic!("{other:?}"),
        }
        let error = run(world.pay("denied", 9_999).id(denied), &remote).await.expect_err("denied");
        let refusal = error.refusal().expect("a refusal");
        assert_eq!((error.code(), refusal.reason.as_deref()), ("policy_denied", Some("rule[2]")));
        assert_eq!(remote.hits(), 2);
    }
}

fn said(error: &Error) -> (&'static str, &'static str) {
    (error.code(), error.retry().as_str())
}

#[tokio::test]
async fn ua_014_an_id_that_ended_by_a_no_that_passes_says_that_another_is_needed() {
    for world in World::both().await {
        let remote = Arc::new(Remote::new());
        let (one, other, third) = (ActionId([1; 16]), ActionId([2; 16]), ActionId([3; 16]));
        let (go, going) = tokio::sync::oneshot::channel::<()>();
        let first = tokio::spawn(world.pay("o", 5).execute({
            let remote = remote.clone();
            |call| async move {
                let answer = remote.perform(call, "paid").await;
                going.await.expect("told");
                answer
            }
        }));
        remote.arrived().await;
        let ended = run(world.pay("o", 5).id(one), &remote).await.expect_err("in progress");
        assert_eq!(said(&ended), ("in_progress", "never"));
        assert!(ended.to_string().ends_with("ask again under another"), "{ended}");
        // Nothing is recorded of the same within a minute, so that id has not ended.
        let repeated = run(world.pay("o", 5).id(other), &remote).await.expect_err("in progress");
        assert_eq!(said(&repeated), ("in_progress", "later"));
        let proposed = world.pay("o", 5).id(one).propose().await.expect("its answer");
        assert!(matches!(proposed, Reply::Ended { .. }), "{proposed:?}");
        go.send(()).expect("it waits");
        first.await.expect("no panic").expect("committed");
        let now = run(world.pay("o", 5).id(one), &remote).await.expect_err("its answer");
        assert_eq!(said(&now), ("in_progress", "never"), "for ever");
        assert!(matches!(now, Error::Ended(_)), "{now:?}");
        let later = run(world.pay("o", 5).id(other), &remote).await.expect_err("it has happened");
        assert_eq!(said(&later), ("duplicate", "never"));

        // So it is with what nobody knows.
        remote.lose_answer();
        assert_eq!(code(run(world.pay("p", 5), &remote).await), "outcome_unknown");
        let ended = world.pay("p", 5).id(third).propose().await.expect_err("ambiguous");
        assert_eq!(said(&ended), ("ambiguous", "never"));
        let unnamed = run(world.pay("p", 5), &remote).await.expect_err("ambiguous");
        assert_eq!(said(&unnamed), ("ambiguous", "after_resolution"));
        let resolve = world.control.resolve("pay:p", None, false, "not there".into(), None, host("ann"));
        resolve.await.expect("resolved");
        let now = run(world.pay("p", 5).id(third), &remote).await.expect_err("its answer");
        assert_eq!(said(&now), ("ambiguous", "never"));
        run(world.pay("p", 5), &remote).await.expect("committed");
    }
}

#[tokio::test]
async fn ua_014_not_executed_may_be_tried_again_unless_the_caller_gave_the_id() {
    for world in World::both().await {
        let remote = Arc::new(Remote::new());
        let id = ActionId([1; 16]);
        for _ in 0..2 {
            remote.refuse();
        }
        let unnamed = run(world.pay("o", 5), &remote).await.expect_err("refused");
        assert_eq!(said(&unnamed), ("not_executed", "later"));
        let named = run(world.pay("o", 5).id(id), &remote).await.expect_err("refused");
        assert_eq!(said(&named), ("not_executed", "never"));
        let again = run(world.pay("o", 5).id(id), &remote).await.expect_err("its answer");
        assert_eq!((said(&again), again.to_string()), (said(&named), named.to_string()));
        run(world.pay("o", 5), &remote).await.expect("committed");
    }
}

#[tokio::test]
async fn ua_014_a_recorded_action_that_is_refused_for_a_while_is_started_later_by_its_id() {
    for world in World::both().await {
        let remote = Arc::new(Remote::new());
        let reply = world.pay("o", 5).propose().await.expect("ready");
        let Reply::Ready { action, .. } = reply else { panic!("{reply:?}") };
        remote.lose_answer();
        assert_eq!(code(run(world.pay("o", 5), &remote).await), "outcome_unknown");
        let refused = world.control.resume(action).execute(never).await.expect_err("ambiguous");
        assert_eq!(said(&refused), ("ambiguous", "after_resolution"));
        let resolve = world.control.resolve("pay:o", None, false, "not there".into(), None, host("ann"));
        resolve.await.expect("resolved");
        let own = remote.clone();
        let resumed =
            world.control.resume(action).execute(|call| async move { own.perform(call, "paid").await });
        assert_eq!(resumed.await.expect("committed").action, action);
    }
}

#[tokio::test]
async fn ua_016_a_key_is_remembered_for_ever() {
    for world in World::both().await {
        let remote = Arc::new(Remote::without_keys());
        run(world.pay("o", 5), &remote).await.expect("committed");
        world.clock.advance(20 * 365 * 24 * 3_600 * 1_000_000);
        assert_eq!(code(run(world.pay("o", 5), &remote).await), "duplicate");
    }
}

#[tokio::test]
async fn ua_017_another_amount_under_the_same_key_is_a_conflict_and_learns_nothing_of_the_first() {
    for world in World::both().await {
        let remote = Arc::new(Remote::without_keys());
        run(world.pay("o", 5), &remote).await.expect("committed");
        let error = run(world.pay("o", 6).replay(), &remote).await.expect_err("a conflict");
        assert_eq!(error.code(), "effect_key_conflict");
        let effect = error.refusal().and_then(|refusal| refusal.effect.clone()).expect("its state");
        assert_eq!((effect.state, effect.same_intent), (EffectState::Committed, Some(false)));
        assert_eq!((effect.receipt, effect.stored), (None, None));
        // What is incidental makes no other request.
        let noted = world.pay("o", 5).arg("note", "please").replay();
        assert!(run(noted, &remote).await.expect("replayed").replayed);
    }
}

#[tokio::test]
async fn ua_022_what_a_create_call_made_is_named_again_and_not_made_again() {
    for world in World::both().await {
        let made = std::sync::atomic::AtomicU32::new(0);
        let create = async || {
            let call = world.pay("campaign", 5).replay().execute(|_| async {
                let id = made.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                Ok::<_, Error>(format!("campaign-{id}"))
            });
            call.await.expect("made or replayed").value
        };
        assert_eq!((create().await, create().await), (Some("campaign-0".into()), Some("campaign-0".into())));
    }
}

#[tokio::test]
async fn a_result_is_handed_to_the_principal_who_had_it_and_to_nobody_else() {
    for world in World::both().await {
        let remote = Arc::new(Remote::without_keys());
        run(world.pay("o", 5), &remote).await.expect("committed");
        let other = world.pay("o", 5).by(Principal::agent("other")).replay();
        let error = run(other, &remote).await.expect_err("not its own");
        let effect = error.refusal().and_then(|refusal| refusal.effect.clone()).expect("its state");
        assert_eq!((error.code(), effect.receipt, effect.stored), ("duplicate", None, None));
    }
}

#[tokio::test]
async fn ua_020_one_intent_is_one_request() {
    for world in World::both().await {
        let first = needed(world.ask("o").execute(never).await);
        world.clock.advance(60_000_000);
        assert_eq!(needed(world.ask("o").execute(never).await), first);
        let proposed = needed(world.ask("o").propose().await);
        assert_eq!(proposed, first);
    }
}

#[tokio::test]
async fn a_proposal_that_is_ready_is_started_by_its_id_once() {
    for world in World::both().await {
        let reply = world.pay("o", 5).propose().await.expect("ready");
        let Reply::Ready { action, .. } = reply else { panic!("{reply:?}") };
        assert_eq!(world.state("pay:o"), None, "nothing is taken yet");
        let remote = Arc::new(Remote::new());
        let resume = async || {
            let executor = |call| {
                let remote = remote.clone();
                async move { remote.perform(call, "paid").await }
            };
            world.control.resume(action).execute(executor).await
        };
        let first = resume().await.expect("committed");
        let again = resume().await.expect("its answer");
        assert_eq!((first.replayed, again.replayed, remote.hits()), (false, true, 1));
        assert_eq!(again.value, first.value);
        assert_eq!(first.action, action);
        assert!(matches!(first.value, Some(Value::Object(_))));
    }
}

#[tokio::test]
async fn ua_026_a_duplicate_waits_for_the_first_callers_result() {
    for world in World::both().await {
        let remote = Arc::new(Remote::without_keys());
        let (go, going) = tokio::sync::oneshot::channel::<()>();
        let first = tokio::spawn(world.pay("o", 5).execute({
            let remote = remote.clone();
            |call| async move {
                let answer = remote.perform(call, "paid").await;
                going.await.expect("told");
                answer
            }
        }));
        remote.arrived().await;
        // Too short a wait: it is under way, and worth asking again later.
        let short = world.pay("o", 5).replay().wait(Duration::from_millis(1)).execute(never).await;
        let error = short.expect_err("in progress");
        assert_eq!((error.code(), error.retry().as_str()), ("in_progress", "later"));
        // An id does not burn by waiting.
        let id = ActionId([9; 16]);
        let mut second =
            Box::pin(world.pay("o", 5).id(id).replay().wait(Duration::from_secs(20)).execute(never));
        tokio::select! {
            biased;
            answer = second.as_mut() => panic!("{answer:?}"),
            () = tokio::task::yield_now() => {}
        }
        go.send(()).expect("it waits");
        let (first, second) =
            (first.await.expect("no panic").expect("committed"), second.await.expect("replayed"));
        assert_eq!((second.replayed, second.value, second.id), (true, first.value, first.id));
        assert_eq!(remote.hits(), 1);
    }
}

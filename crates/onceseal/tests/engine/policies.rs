//! The active policy is state: what a call does when it changes under it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use onceseal::core::approval::{Identity, Said};
use onceseal::core::command::Command;
use onceseal::core::journal::Kind;
use onceseal::core::policy::{Activate, ActivePolicy};
use onceseal::fault::{self, point};
use onceseal::{Control, Failure};

use crate::support::{Home, POLICY, World, bot, clock, code, needed, never, policy};

/// The same entry, with this decision.
fn one(decision: &str) -> Arc<ActivePolicy> {
    policy(&format!(
        "schema: onceseal.policy/v1\nactions:\n  ask: {{ effect: 'ask:{{order}}', decision: {decision} }}\n"
    ))
}

fn ask(control: &Control) -> onceseal::Proposing {
    control.action("ask").arg("order", "o").by(bot())
}

async fn fine(_: onceseal::Call) -> Result<&'static str, Failure> {
    Ok("done")
}

/// Two handles on one file, as two processes have them.
async fn two() -> (Home, Control, Control) {
    let home = Home::new();
    let clock = clock();
    let here = home.control(clock.clone()).await.expect("a store");
    here.activate(one("allow"), false, None).await.expect("active");
    let other = home.control(clock).await.expect("the store");
    (home, here, other)
}

/// Makes a policy active from a thread of its own, as another process does.
fn activate(control: &Control, policy: Arc<ActivePolicy>) {
    let control = control.clone();
    let command = Command::Activate(Activate { policy, again: true, person: None });
    let done = std::thread::spawn(move || control.store().run(command));
    done.join().expect("no panic").expect("active");
}

#[tokio::test]
async fn a_policy_that_another_process_made_active_is_the_one_that_decides() {
    let (_home, here, other) = two().await;
    activate(&other, one("deny"));
    // This process has not heard of it.
    assert_eq!(here.policy().expect("one").hash, one("allow").hash);
    assert_eq!(code(ask(&here).execute(never).await), "policy_denied");
    assert_eq!(here.policy().expect("one").hash, one("deny").hash);
}

#[tokio::test]
async fn a_policy_that_changes_between_preparing_and_deciding_has_the_proposal_prepared_anew() {
    let _alone = fault::alone();
    let (_home, here, other) = two().await;
    let changed = AtomicU32::new(0);
    fault::on(point::BEFORE_SUBMIT, move || {
        if changed.fetch_add(1, Ordering::SeqCst) == 0 {
            activate(&other, one("approve"));
        }
        Ok(())
    });
    needed(ask(&here).execute(never).await);
}

#[tokio::test]
async fn a_policy_that_changes_each_time_is_followed_three_times_and_never_made_active_here() {
    let _alone = fault::alone();
    let (_home, here, other) = two().await;
    let changes = Arc::new(AtomicU32::new(0));
    let (counted, activating) = (changes.clone(), other.clone());
    fault::on(point::BEFORE_SUBMIT, move || {
        let n = counted.fetch_add(1, Ordering::SeqCst);
        activate(&activating, one(if n.is_multiple_of(2) { "approve" } else { "allow" }));
        Ok(())
    });
    assert_eq!(code(ask(&here).execute(never).await), "policy_stale");
    assert_eq!(changes.load(Ordering::SeqCst), 4, "once, and again three times");
    let events = here.log(0, 100).expect("readable").into_iter().filter_map(|event| event.event);
    let activated = events.filter(|event| event.body.kind() == Kind::PolicyActivated).count();
    assert_eq!(activated, 1 + 4, "only what was made active elsewhere");
    assert_eq!(here.effect("ask:o").expect("readable"), None);
}

#[tokio::test]
async fn a_call_that_only_the_new_policy_takes_is_taken() {
    let (_home, here, other) = two().await;
    let floats = "schema: onceseal.policy/v1\nactions:\n  ask: { floats: allow, decision: allow }\n";
    activate(&other, policy(floats));
    let call = ask(&here).arg("price", onceseal::core::json::Value::Float(0.5));
    assert!(call.execute(fine).await.is_ok());
}

#[tokio::test]
async fn p01_an_approval_under_a_rule_that_changed_is_void_and_the_action_decided_anew() {
    let (_home, here, other) = two().await;
    activate(&other, one("approve"));
    let (action, approval) = needed(ask(&here).execute(never).await);
    crate::support::answer(&here, approval, "ann", Said::Yes).await.expect("counted");
    // Between approval and dispatch the rule changes to one that asks as well.
    let longer = "schema: onceseal.policy/v1\nactions:\n  ask: { effect: 'ask:{order}', approval: { ttl: 1h }, \
                  decision: approve }\n";
    activate(&other, policy(longer));
    let (same, fresh) = needed(here.resume(action).execute(never).await);
    assert!(same == action && fresh != approval);
    assert_eq!(here.approval(approval).expect("readable").expect("there").status.as_str(), "revoked");
    // Presented by a new proposal it is as void.
    assert_eq!(code(ask(&here).approval(approval).execute(never).await), "approval_revoked");
}

#[tokio::test]
async fn a_request_under_an_old_rule_cannot_be_answered_any_more() {
    let (_home, here, other) = two().await;
    activate(&other, one("approve"));
    let (_, approval) = needed(ask(&here).execute(never).await);
    activate(&other, one("deny"));
    assert_eq!(code(crate::support::answer(&here, approval, "ann", Said::Yes).await), "approval_revoked");
}

#[tokio::test]
async fn a_sweep_takes_back_requests_that_the_active_policy_does_not_know() {
    let (_home, here, other) = two().await;
    activate(&other, one("approve"));
    let (action, approval) = needed(ask(&here).execute(never).await);
    let sweep = async || {
        let control = here.clone();
        tokio::task::spawn_blocking(move || onceseal::sweep(control.store())).await.expect("no panic")
    };
    assert_eq!(sweep().await.expect("swept"), 0, "it is what the policy asks for");
    activate(&other, one("deny"));
    assert_eq!(sweep().await.expect("swept"), 1);
    assert_eq!(here.approval(approval).expect("readable").expect("there").status.as_str(), "revoked");
    let row = here.action_row(action).expect("readable").expect("there");
    assert!(row.receipt().is_some(), "and what waited for it has its answer");
}

#[tokio::test]
async fn a_file_with_a_policy_that_was_active_before_is_old_and_refused() {
    for world in World::both().await {
        let first = policy(POLICY);
        assert!(!world.control.activate(first.clone(), false, None).await.expect("active already"));
        assert!(world.control.activate(one("allow"), false, None).await.expect("active"));
        assert_eq!(code(world.control.activate(first.clone(), false, None).await), "policy_file_old");
        assert_eq!(world.control.policy().expect("one").hash, one("allow").hash);
        // The way back is asked for.
        assert!(world.control.activate(first, true, Identity::parse("host:ann")).await.expect("active"));
        world.pay("o", 5).execute(fine).await.expect("committed");
    }
}

#[tokio::test]
async fn opening_with_a_file_makes_its_policy_active_and_refuses_an_old_one() {
    let home = Home::new();
    let file = |decision: &str| {
        let state = home.dir.path().join("marks");
        let path = home.dir.path().join(format!("{decision}.yaml"));
        let text = format!(
            "schema: onceseal.policy/v1\nsettings: {{ memory: true, mark: '{}' }}\nactions:\n  ask: {{ decision: \
             {decision} }}\n",
            state.display()
        );
        std::fs::write(&path, text).expect("written");
        path
    };
    let control = Control::open(file("allow")).await.expect("open");
    assert!(control.action("ask").by(bot()).execute(fine).await.is_ok());
    std::fs::write(home.dir.path().join("bad.yaml"), "schema: onceseal.policy/v1\nactions: 7\n")
        .expect("written");
    let refused = Control::open(home.dir.path().join("bad.yaml")).await.map(drop);
    assert_eq!(refused.expect_err("malformed").code(), "policy_invalid");
}

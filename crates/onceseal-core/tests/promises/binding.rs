//! An approval stands for one exact action.

use onceseal_core::approval::{Said, Status};
use onceseal_core::code::Code;
use onceseal_core::effect::EffectState;
use onceseal_core::reply::Reply;

use crate::calls::Call;
use crate::doing::{asked, attempt};
use crate::{pay, pay_world, refused, send};

#[test]
fn p01_an_approval_permits_the_action_it_was_given_for_and_no_other() {
    let base = Call { user: Some("ada"), ..pay(5) };
    let other_note = Call { arguments: r#"{"amount":5,"id":1,"note":"x"}"#.into(), ..base.clone() };
    for (field, changed) in [
        ("arguments", Call { arguments: r#"{"amount":6,"id":1}"#.into(), ..base.clone() }),
        ("arguments", other_note),
        ("principal", Call { agent: "other", ..base.clone() }),
        ("principal", Call { user: Some("eve"), ..base.clone() }),
        ("environment", Call { environment: "staging", ..base.clone() }),
        ("resource", Call { resource: Some("payment:2"), ..base.clone() }),
    ] {
        let mut world = pay_world();
        let (waiting, approval) = asked(world.call(base.clone()));
        world.answer(approval, "host:ada2", Said::Yes);
        let before = world.approval(approval).clone();

        let refusal = refused(world.call(Call { approval: Some(approval), ..changed }));
        assert_eq!((refusal.code, refusal.field), (Code::ApprovalMismatch, Some(field)));
        assert_eq!(*world.approval(approval), before, "nothing is written to the approval");
        assert!(world.effect("pay:1").is_none(), "and nothing to the effect");
        assert!(refusal.receipt.is_some());

        let started = attempt(world.call(Call { approval: Some(approval), ..base.clone() }));
        assert_eq!(started.approval, Some(approval), "the right action may still use it");
        assert_ne!(started.action, refusal.action.expect("recorded"));
        let ended = world.acquire(waiting, None);
        assert!(matches!(ended, Reply::Ended { code: Some(Code::ApprovalUsed), .. }), "{ended:?}");
        world.check();
    }
}

#[test]
fn p01_the_name_of_an_action_is_part_of_what_is_approved() {
    let policy =
        crate::PAY.replace("read: { decision: allow }", "pay2: { effect: \"pay:{id}\", decision: approve }");
    let mut world = crate::World::new(&crate::Real, &policy);
    let (_, approval) = asked(world.call(pay(5)));
    world.answer(approval, "host:ada", Said::Yes);
    let refusal = refused(world.call(Call { name: "pay2", approval: Some(approval), ..pay(5) }));
    assert_eq!((refusal.code, refusal.field), (Code::ApprovalMismatch, Some("name")));
}

#[test]
fn p01_a_mismatch_beats_every_status_and_the_expiry() {
    for said in [None, Some(Said::Yes), Some(Said::No)] {
        for late in [false, true] {
            let mut world = pay_world();
            let (_, approval) = asked(world.call(pay(5)));
            if let Some(said) = said {
                world.answer(approval, "host:ada", said);
            }
            if late {
                world.now = world.now + onceseal_core::time::Span::hours(1);
            }
            let before = world.approval(approval).clone();
            let refusal = refused(world.call(Call { approval: Some(approval), ..pay(6) }));
            assert_eq!(refusal.code, Code::ApprovalMismatch);
            assert_eq!(*world.approval(approval), before);
        }
    }
}

#[test]
fn ua_046_arguments_changed_after_the_gate_are_refused() {
    let mut world = pay_world();
    let (waiting, approval) = asked(world.call(pay(5)));
    world.answer(approval, "host:ada", Said::Yes);
    let changed = Call { action: Some(waiting), approval: Some(approval), ..pay(500) };
    assert_eq!(refused(world.call(changed)).code, Code::IdReused);
    let changed = Call { approval: Some(approval), ..pay(500) };
    assert_eq!(refused(world.call(changed)).code, Code::ApprovalMismatch);
    assert_eq!(world.approval(approval).status, Status::Granted);
    let started = attempt(world.acquire(waiting, None));
    assert_eq!(started.action, waiting, "the stored action is what runs");
    assert_eq!(world.effect("pay:1").map(|row| row.state), Some(EffectState::Executing));
    world.check();
}

#[test]
fn an_approval_presented_to_an_allowed_action_is_left_alone() {
    let mut world = pay_world();
    let (_, approval) = asked(world.call(pay(5)));
    world.answer(approval, "host:ada", Said::Yes);
    let started = attempt(world.call(Call { approval: Some(approval), ..send(1) }));
    assert_eq!(started.approval, None);
    assert_eq!(world.approval(approval).status, Status::Granted);
}

#[test]
fn p08_an_unknown_approval_is_refused() {
    let mut world = pay_world();
    let nobody = onceseal_core::id::ApprovalId([1; 16]);
    let refusal = refused(world.call(Call { approval: Some(nobody), ..pay(5) }));
    assert_eq!((refusal.code, refusal.approval), (Code::ApprovalUnknown, Some(nobody)));
    assert!(refusal.receipt.is_some());
}

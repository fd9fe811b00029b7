//! The scenes that one process can play.

use std::cell::Cell;

use onceseal::core::action::{Action, Proposal, Reach, Run};
use onceseal::core::code::Code;
use onceseal::core::command::Command;
use onceseal::core::effect::{EffectState, Holding, Outcome as Reported, Settle};
use onceseal::core::json::Value;
use onceseal::core::reply::Reply;
use onceseal::{Call, Control, Error, Failure, Principal};

use super::Outcome;
use super::stage::{ACTION, LARGE, SMALL, Stage, arguments, refund};
use crate::context::wait;
use crate::error::CliError;

/// The code of a refusal, if this was one.
pub(super) fn code_of<T>(outcome: &Result<T, Error>) -> Option<Code> {
    outcome.as_ref().err().and_then(Error::refusal).map(|refusal| refusal.code)
}

/// Stopped, if it was refused with this code and the provider was called so often.
pub(super) fn judged(found: Option<Code>, wanted: Code, called: u32, expected: u32) -> Outcome {
    let times = match called {
        0 => "was not called".to_owned(),
        1 => "was called once".to_owned(),
        times => format!("was called {times} times"),
    };
    let stopped = found == Some(wanted) && called == expected;
    let by = found.filter(|_| stopped).map(|code| (code.as_str(), code.sentence().to_owned()));
    Outcome { by, evidence: format!("The provider {times}.") }
}

pub(super) fn lost_answer(stage: &Stage) -> Result<Outcome, CliError> {
    let lost = |_: Call| async {
        stage.provider("txn_1");
        Err::<Value, _>(Failure::unknown("the connection was lost after the request had been sent"))
    };
    let first = wait(refund(&stage.control, "support-agent", "txn_1", SMALL).execute(lost))?;
    if !matches!(first, Err(Error::Unknown { .. })) {
        return Err(Error::Unexpected.into());
    }
    let again = stage.pay(refund(&stage.control, "support-agent", "txn_1", SMALL), "txn_1")?;
    Ok(judged(code_of(&again), Code::Ambiguous, stage.called("txn_1"), 1))
}

pub(super) fn mutated_approval(stage: &Stage) -> Result<Outcome, CliError> {
    let approval = stage.approved("txn_2")?;
    let other = refund(&stage.control, "support-agent", "txn_2", LARGE + 4_000).approval(approval);
    let mutated = stage.pay(other, "txn_2")?;
    Ok(judged(code_of(&mutated), Code::ApprovalMismatch, stage.called("txn_2"), 0))
}

pub(super) fn two_agents(stage: &Stage) -> Result<Outcome, CliError> {
    let other = stage.second_process()?;
    let meanwhile = Cell::new(None);
    let first = |_: Call| async {
        stage.provider("txn_3");
        let second = refund(&other, "second-agent", "txn_3", SMALL);
        let second = second.execute(|_: Call| async {
            stage.provider("txn_3");
            Ok::<Value, Failure>(Value::Null)
        });
        meanwhile.set(code_of(&second.await));
        Ok::<Value, Failure>(Value::Null)
    };
    wait(refund(&stage.control, "first-agent", "txn_3", SMALL).execute(first))??;
    Ok(judged(meanwhile.get(), Code::InProgress, stage.called("txn_3"), 1))
}

pub(super) fn replayed_approval(stage: &Stage) -> Result<Outcome, CliError> {
    let approval = stage.approved("txn_4")?;
    stage.pay(refund(&stage.control, "support-agent", "txn_4", LARGE).approval(approval), "txn_4")??;
    let again = refund(&stage.control, "support-agent", "txn_4", LARGE).approval(approval);
    let replayed = stage.pay(again, "txn_4")?;
    Ok(judged(code_of(&replayed), Code::ApprovalUsed, stage.called("txn_4"), 1))
}

pub(super) fn late_worker(stage: &Stage) -> Result<Outcome, CliError> {
    let stalled = taken(&stage.control, "txn_5")?;
    stage.lease_ends();
    let key = "refund:txn_5";
    let reason = "the provider has no such refund".to_owned();
    wait(stage.control.resolve(key, Some(stalled.fence), false, reason, None, Control::account()))??;
    stage.pay(refund(&stage.control, "second-worker", "txn_5", SMALL), "txn_5")??;
    let late = Settle::new(stalled, Reported::Committed);
    let late = match wait(stage.control.submit(Command::Settle(late)))?? {
        Reply::Refused(refusal) => Some(refusal.code),
        _ => None,
    };
    let now = stage.control.effect(key)?;
    let stands = now.is_some_and(|row| (row.state, row.fence) == (EffectState::Committed, stalled.fence + 1));
    let outcome = judged(late.filter(|_| stands), Code::Fenced, stage.called("txn_5"), 1);
    let evidence = format!("{} The late report is kept beside the second attempt's.", outcome.evidence);
    Ok(Outcome { evidence, ..outcome })
}

/// An attempt whose holder never comes back.
fn taken(control: &Control, payment: &str) -> Result<Holding, CliError> {
    let policy = super::stage::policy()?;
    let action = Action {
        name: ACTION.to_owned(),
        arguments: arguments(payment, SMALL),
        principal: Principal::agent("first-worker"),
        environment: Action::DEFAULT_ENVIRONMENT.to_owned(),
        resource: None,
    };
    let proposal = Proposal::prepare(control.store().tenant(), &policy, action).map_err(Error::from)?;
    let run =
        Run { proposal, action: None, approval: None, reach: Reach::Executing, lease: None, deadline: None };
    match wait(control.submit(Command::Run(Box::new(run))))?? {
        Reply::Attempt(attempt) => Ok(Holding::from(&attempt)),
        _ => Err(Error::Unexpected.into()),
    }
}

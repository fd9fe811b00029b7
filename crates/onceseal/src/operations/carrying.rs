//! Carrying one operation out: claim, look again, perform, report.

use std::sync::Arc;
use std::time::Duration;

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{Begin, Finding, Holding, Reconcile};
use onceseal_core::id::ActionId;
use onceseal_core::json::{self, Limits, Object, Value};
use onceseal_core::operation::{Claim, GiveBack, Next, Postpone};
use onceseal_core::reply::{self, Attempt, Reply};
use onceseal_core::route::Health;
use onceseal_core::time::{Span, Timestamp};
use onceseal_core::tool::Recovery;
use onceseal_store::StoreError;

use super::tool::{Handler, Job, Question, Tool, Word};
use crate::attempt::{Held, Judging, Sequel};
use crate::claim::Unclaimed;
use crate::control::Control;
use crate::error::Error;
use crate::executed::Failure;
use crate::moment::Moment;
use crate::outcome::storable;
use crate::permit::secrets_under;

/// Pauses before something is tried again: the first and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));

/// A remote that could not tell is asked again after this at least.
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// How a pause is lengthened with the attempts, and spread so that workers which
/// failed together do not come again together.
pub(super) fn pause(attempts: u64) -> Duration {
    let doubled = PAUSES.0.saturating_mul(1 << attempts.saturating_sub(1).min(16)).min(PAUSES.1);
    doubled.mul_f64(0.8 + 0.4 * f64::from(spread()) / 255.0)
}

/// A random number that spreads a pause.
fn spread() -> u8 {
    let mut byte = [0; 1];
    // Without random numbers it is not spread, which is no harm.
    let _ = getrandom::fill(&mut byte);
    byte[0]
}

/// Carries an operation out as far as it can be now. What stands in the way is
/// recorded with the operation, not returned.
pub(super) async fn carry_out(control: Control, tool: Tool, action: ActionId) -> Result<(), Error> {
    let mut absent = None;
    loop {
        let asked = Moment::now(control.store().clock().as_ref());
        let begin = !tool.asks_before();
        let claim = Claim { action, contract: tool.digest(), lease: None, begin, absent };
        let ticket = control.ticket(Command::Claim(claim))?;
        match Unclaimed::new(&control.inner.keeper, ticket).await? {
            Reply::Claimed(attempt, job) => {
                control.inner.keeper.recorded();
                return attempted(&control, &tool, *attempt, *job, asked).await;
            }
            Reply::Ask(reply::Question::Remote { asked_at, job }) => {
                match asked_about(&control, &tool, *job, asked_at).await? {
                    Some(at) => absent = Some(at),
                    None => return Ok(()),
                }
            }
            // Somebody else has it, or it will not be carried out: recorded.
            _ => return Ok(()),
        }
    }
}

/// Asks the remote. `Some`: it knows of no attempt, and was asked then.
async fn asked_about(
    control: &Control,
    tool: &Tool,
    job: reply::Job,
    asked_at: Timestamp,
) -> Result<Option<Timestamp>, Error> {
    let (effect, fence, action) = (job.effect, job.fence, job.action);
    let question = Question {
        arguments: arguments(&job.arguments)?,
        principal: principal(&job),
        provider_key: job.provider_key,
        fence,
    };
    match tool.handler().ask(&question).await {
        Some(Word::Absent) => return Ok(Some(asked_at)),
        Some(Word::Committed(value)) => {
            let secrets = secrets_under(control, job.policy, tool.name(), &question.arguments).await?;
            let Recovery::Ask { settle } = tool.contract().recovery else { return Ok(None) };
            let finding = Finding::Committed(storable(&value, &secrets));
            let reconcile = Reconcile { effect, fence, finding, evidence: None, settle };
            if let Reply::Settled { .. } = control.submit(Command::Reconcile(reconcile)).await? {
                return Ok(None);
            }
        }
        None => {}
    }
    let postpone =
        Postpone { action, after: Span::from_std(pause(fence).max(ASK_AGAIN)), code: Code::CannotTell };
    control.submit(Command::Postpone(postpone)).await?;
    Ok(None)
}

/// Performs what was claimed, once nothing stands against it any more.
async fn attempted(
    control: &Control,
    tool: &Tool,
    mut attempt: Attempt,
    job: reply::Job,
    mut asked: Moment,
) -> Result<(), Error> {
    let (arguments, principal) = (arguments(&job.arguments)?, principal(&job));
    if !attempt.begun {
        // Half of the lease is for the attempt.
        let patience = attempt.lease.to_std() / 2;
        let looked = tokio::time::timeout(patience, objection(tool, &principal, &arguments)).await;
        let next = match looked {
            Ok(None) => None,
            Ok(Some(next)) => Some(next),
            Err(_) => Some(Code::CannotTell),
        };
        if let Some(code) = next {
            let next = match code {
                Code::CannotTell => Next::Later { after: Span::from_std(pause(attempt.fence)), code },
                _ => Next::Park { code },
            };
            control.submit(Command::GiveBack(GiveBack { attempt: Holding::from(&attempt), next })).await?;
            return Ok(());
        }
        let begin = Begin { attempt: Holding::from(&attempt), lease: attempt.lease };
        match control.submit(Command::Begin(begin)).await? {
            Reply::Attempt(begun) => {
                // What is left of the lease was given when it was claimed.
                attempt = Attempt { taken_at: attempt.taken_at, ..begun };
            }
            _ => return Ok(()),
        }
        asked = asked.min(Moment::now(control.store().clock().as_ref()));
    }
    let secrets = secrets_under(control, job.policy, tool.name(), &arguments).await?;
    let (handler, fence) = (tool.clone(), attempt.fence);
    let judging: Judging = Arc::new(move |failure| match failure {
        Some(failure) => sequel(handler.handler(), failure, fence),
        None => Sequel { again: Some(Span::from_std(pause(fence))), health: None },
    });
    let held = Held::of_worker(control, attempt, asked, judging);
    let provider_key = job.provider_key;
    let performed = held
        .perform(control, arguments, &secrets, |call| {
            tool.handler().perform(Job { call, principal, provider_key })
        })
        .await;
    match performed {
        // Recorded: the operation says so.
        Ok(_) | Err(Error::NotExecuted { .. } | Error::Unknown { unrecorded: None, .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn sequel(handler: &dyn Handler, failure: &Failure, attempts: u64) -> Sequel {
    let again = match (handler.again(failure, attempts), failure) {
        // If the contract lets it be made again, then not at once.
        (None, Failure::Unknown { .. }) => Some(pause(attempts)),
        (again, _) => again,
    };
    let health = handler.reached(failure).map(|answered| match answered {
        true => Health::Well,
        false => Health::Ill { spread: spread() },
    });
    Sequel { again: again.map(Span::from_std), health }
}

/// Why the operation is not to be attempted now, if anything says so.
async fn objection(tool: &Tool, principal: &Principal, arguments: &Object) -> Option<Code> {
    match tool.handler().authorizes(principal, arguments).await {
        Some(true) => {}
        Some(false) => return Some(Code::AuthorizationDenied),
        None => return Some(Code::CannotTell),
    }
    if !tool.contract().business_rule {
        return None;
    }
    match tool.handler().permits(principal, arguments).await {
        Some(true) => None,
        Some(false) => Some(Code::BusinessRuleViolation),
        None => Some(Code::CannotTell),
    }
}

fn principal(job: &reply::Job) -> Principal {
    Principal { agent: job.proposed.agent.clone(), user: job.proposed.user.clone() }
}

fn arguments(text: &str) -> Result<Object, Error> {
    match json::read_canonical(text, &Limits::DATA) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        _ => Err(StoreError::new(Code::Corrupt).into()),
    }
}

//! Carrying one operation out: claim, look again, perform, report.

use std::sync::Arc;
use std::time::Duration;

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{Begin, Finding, Holding, Reconcile};
use onceseal_core::hash::Hash;
use onceseal_core::id::ActionId;
use onceseal_core::json::{self, Limits, Object, Value};
use onceseal_core::operation::{Claim, GiveBack, Next, Postpone};
use onceseal_core::reply::{self, Attempt, Reply};
use onceseal_core::route::Health;
use onceseal_core::stream::StreamId;
use onceseal_core::time::{Span, Timestamp};
use onceseal_core::tool::Recovery;
use onceseal_store::StoreError;

use super::Operations;
use super::checked::shown;
use super::tool::{Handler, Job, Question, Tool, Word};
use crate::attempt::{Held, Judging, Sequel};
use crate::chance::spread;
use crate::claim::Unclaimed;
use crate::control::Control;
use crate::error::Error;
use crate::executed::Failure;
use crate::fault::{self, point};
use crate::moment::Moment;
use crate::outcome::{receipt_of, storable};
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

/// Carries an operation out as far as it can be now. What stands in the way is
/// recorded with the operation, not returned. `false`: somebody else has it, and
/// nothing was done.
pub(super) async fn carry_out(operations: &Operations, tool: &Tool, action: ActionId) -> Result<bool, Error> {
    let control = operations.control();
    let mut absent = None;
    loop {
        let asked = Moment::now(control.store().clock().as_ref());
        let begin = !(tool.asks_before() || operations.directory.is_some());
        let claim = Claim { action, contract: tool.digest(), lease: None, begin, absent };
        let ticket = control.ticket(Command::Claim(claim))?;
        match Unclaimed::new(&control.inner.keeper, ticket).await? {
            Reply::Claimed(attempt, job) => {
                control.inner.keeper.recorded();
                // As a worker that dies here: nothing more is recorded.
                fault::reach(point::AFTER_CLAIM)?;
                attempted(operations, tool, *attempt, *job, asked).await?;
                return Ok(true);
            }
            Reply::Ask(reply::Question::Remote { asked_at, job }) => {
                match asked_about(control, tool, *job, asked_at).await? {
                    Some(at) => absent = Some(at),
                    None => return Ok(true),
                }
            }
            // It will not be carried out, at least not now: recorded.
            Reply::Refused(_) => return Ok(true),
            _ => return Ok(false),
        }
    }
}

/// Asks the remote about the last attempt. `Some`: it knows of none, and was
/// asked then.
async fn asked_about(
    control: &Control,
    tool: &Tool,
    job: reply::Job,
    asked_at: Timestamp,
) -> Result<Option<Timestamp>, Error> {
    let (fence, action) = (job.fence, job.action);
    let question = Question {
        arguments: arguments(&job.arguments)?,
        principal: principal(&job),
        provider_key: job.provider_key,
        fence,
        patience: tool.contract().request_timeout.to_std(),
        effect: job.effect,
        directory: control.inner.directory.clone(),
    };
    match ask(control, tool, job.effect, job.policy, &question).await? {
        Heard::Recorded => return Ok(None),
        Heard::Absent => return Ok(Some(asked_at)),
        Heard::Nothing => {}
    }
    let postpone =
        Postpone { action, after: Span::from_std(pause(fence).max(ASK_AGAIN)), code: Code::CannotTell };
    control.submit(Command::Postpone(postpone)).await?;
    Ok(None)
}

/// What came of asking a remote.
pub(super) enum Heard {
    /// It happened, and that is recorded.
    Recorded,
    /// It knows of no attempt.
    Absent,
    /// It cannot tell, or what it says does not count.
    Nothing,
}

/// Asks the remote, and records that it happened if it says so.
pub(super) async fn ask(
    control: &Control,
    tool: &Tool,
    effect: StreamId,
    policy: Hash,
    question: &Question,
) -> Result<Heard, Error> {
    let done = match tool.handler().ask(question).await {
        Some(Word::Committed(done)) => shown(tool, &question.arguments, done),
        Some(Word::Absent) => return Ok(Heard::Absent),
        None => return Ok(Heard::Nothing),
    };
    let Recovery::Ask { settle } = tool.contract().recovery else { return Ok(Heard::Nothing) };
    let secrets = secrets_under(control, policy, tool.name(), &question.arguments).await?;
    let finding = Finding::Committed(storable(&done.value, &secrets));
    let remote = receipt_of(&done, &secrets);
    let reconcile = Reconcile { effect, fence: question.fence, finding, evidence: None, remote, settle };
    match control.submit(Command::Reconcile(reconcile)).await? {
        Reply::Settled { .. } => Ok(Heard::Recorded),
        _ => Ok(Heard::Nothing),
    }
}

/// Performs what was claimed, once nothing stands against it any more.
async fn attempted(
    operations: &Operations,
    tool: &Tool,
    mut attempt: Attempt,
    job: reply::Job,
    mut asked: Moment,
) -> Result<(), Error> {
    let control = operations.control();
    let (arguments, principal) = (arguments(&job.arguments)?, principal(&job));
    // A request that goes out ends within the lease, so that nobody asks about it
    // or repeats it before it is over.
    let lease = attempt.lease.to_std();
    let needs = (lease / 2).max(tool.contract().request_timeout.to_std().min(lease));
    if !attempt.begun {
        let patience = lease - needs;
        let looked =
            tokio::time::timeout(patience, objection(operations, tool, &principal, &arguments)).await;
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
    let held = Held::of_worker(control, attempt, asked, needs, judging);
    let (key, provider_key) = (job.intent.key, job.provider_key);
    let performed = held
        .perform(control, arguments, &secrets, async |call| {
            let directory = control.inner.directory.clone();
            let patience = tool.contract().request_timeout.to_std();
            let job = Job { call: call.clone(), principal, key, provider_key, patience, directory };
            let done = tool.handler().perform(job).await?;
            Ok::<_, Failure>(shown(tool, call.args(), done))
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
async fn objection(
    operations: &Operations,
    tool: &Tool,
    principal: &Principal,
    arguments: &Object,
) -> Option<Code> {
    if let Err(code) = operations.authorized(tool, principal, arguments).await {
        return Some(code);
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

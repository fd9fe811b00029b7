//! `exec`: any program as the one attempt at an action.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use onceseal::core::code::Retry;
use onceseal::core::id::{ActionId, ApprovalId};
use onceseal::core::json::{Object, Value};
use onceseal::core::policy::Policy;
use onceseal::core::time::{Span, Timestamp};
use onceseal::process::{Ended, GRACE_MAX, Process};
use onceseal::{Call, CallOptions, Control, Error, Failure, Receipt};

use super::call::CallArgs;
use super::{list, refused};
use crate::context::{Context, wait};
use crate::error::{CliError, REFUSED};
use crate::text::literal;

/// Run a command as the one attempt at an action
///
/// The action is decided by the policy, approved if the policy asks for it, and its effect is taken before the
/// command starts; the same line again resumes what waits, and is refused once it has happened. Exit 0 of the
/// command means that it happened. Any other end means that nobody knows, except the exit codes named by
/// --not-executed-on, and a command that could not be started.
///
/// The command finds ONCESEAL_ACTION, ONCESEAL_ATTEMPT and, if the action has one, ONCESEAL_EFFECT_KEY in its
/// environment. It runs in a process group of its own, which is stopped at the deadline. Its output passes through;
/// with --json the outcome is the last line of stdout, or an error object the last of stderr.
#[derive(Debug, Args)]
pub(crate) struct Exec {
    #[command(flatten)]
    call: CallArgs,
    /// Use this approval
    #[arg(long, value_name = "ID", value_parser = approval)]
    approval: Option<ApprovalId>,
    /// Give the action this id, or go on with the one that has it
    #[arg(long, value_name = "ID", value_parser = action)]
    id: Option<ActionId>,
    /// Wait so long for a person's answer
    #[arg(long, value_name = "TIME", value_parser = list::span)]
    wait: Option<Span>,
    /// Take a shorter lease than the policy's
    #[arg(long, value_name = "TIME", value_parser = list::span)]
    lease: Option<Span>,
    /// Stop the command earlier than the policy does
    #[arg(long, value_name = "TIME", value_parser = list::span)]
    deadline: Option<Span>,
    /// Exit codes by which the command says that nothing was done
    #[arg(long, value_name = "CODES", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..=255))]
    not_executed_on: Vec<i32>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// An approval's id, as it is printed.
pub(crate) fn approval(text: &str) -> Result<ApprovalId, String> {
    ApprovalId::parse(text).ok_or_else(|| "an approval's id is apr_ and 32 hex digits".to_owned())
}

/// An action's id, as it is printed.
pub(crate) fn action(text: &str) -> Result<ActionId, String> {
    ActionId::parse(text).ok_or_else(|| "an action's id is act_ and 32 hex digits".to_owned())
}

pub(crate) fn run(context: &Context, exec: Exec) -> Result<ExitCode, CliError> {
    let config = context.config()?;
    let action = exec.call.action(context, &config.policy.policy)?;
    let control = context.act(&config)?;
    let program = Program::new(&exec);
    let options = CallOptions {
        id: exec.id,
        approval: exec.approval,
        wait: None,
        lease: exec.lease,
        deadline: exec.deadline,
        replay: false,
    };
    let proposed = control
        .action(&exec.call.action)
        .args(action.arguments.clone())
        .by(action.principal.clone())
        .environment(action.environment.clone())
        .options(options.clone());
    let proposed = match &action.resource {
        Some(resource) => proposed.resource(resource.clone()),
        None => proposed,
    };
    let outcome = wait(async {
        match (proposed.execute(|call| program.run(call)).await, exec.wait) {
            (Err(Error::ApprovalNeeded { action, approval, expires_at }), Some(patience)) => {
                context.out.note(&waiting(approval, expires_at));
                let options = CallOptions { wait: Some(patience.to_std()), ..options };
                control.resume(action).options(options).execute(|call| program.run(call)).await
            }
            (outcome, _) => outcome,
        }
    })?;
    match outcome {
        Ok(receipt) => done(context, &control, &receipt, program.ended.get()),
        Err(error) => Err(told(&control, &config.policy.policy, &action.name, error, program.ended.get())),
    }
}

fn waiting(approval: ApprovalId, expires_at: Timestamp) -> String {
    format!("waiting for a person until {expires_at}: onceseal approve {approval}")
}

/// The program to run, and how it ended.
struct Program {
    process: Process,
    not_executed_on: BTreeSet<i32>,
    ended: Cell<Option<Ended>>,
}

impl Program {
    fn new(exec: &Exec) -> Program {
        let (program, args) =
            exec.command.split_first().map(|(first, rest)| (first.clone(), rest)).unwrap_or_default();
        let process = Process { args: args.to_vec(), ..Process::new(program) };
        Program {
            process,
            not_executed_on: exec.not_executed_on.iter().copied().collect(),
            ended: Cell::new(None),
        }
    }

    /// Runs it to its end. It is asked to end early enough that its end is
    /// known before the attempt's deadline.
    async fn run(&self, call: Call) -> Result<Value, Failure> {
        let left = call.deadline().saturating_duration_since(Instant::now());
        let grace = GRACE_MAX.min(left / 10);
        let mut env: Vec<(OsString, OsString)> = vec![
            ("ONCESEAL_ACTION".into(), call.action().to_string().into()),
            ("ONCESEAL_ATTEMPT".into(), call.fence().to_string().into()),
        ];
        env.extend(call.effect_key().map(|key| ("ONCESEAL_EFFECT_KEY".into(), key.into())));
        let process = Process { env, grace, ..self.process.clone() };
        let ran = process.run(call.deadline() - grace * 2, |_| {}).await;
        self.ended.set(Some(ran.ended));
        ran.executed(&self.not_executed_on)
    }
}

/// How the command ended, for programs.
fn child(ended: Ended) -> Value {
    let mut object = Object::new();
    object.insert("code", ended.code());
    let (exit, signal) = match ended {
        Ended::Exit(status) => (Value::Integer(status.into()), Value::Null),
        Ended::Signal(signal) => (Value::Null, Value::Integer(signal.into())),
        _ => (Value::Null, Value::Null),
    };
    object.insert("exit", exit);
    object.insert("signal", signal);
    object.into()
}

fn done(
    context: &Context,
    control: &Control,
    receipt: &Receipt,
    ended: Option<Ended>,
) -> Result<ExitCode, CliError> {
    let key = refused::effect_key(control, receipt.action);
    if context.out.is_json() {
        let mut object = Object::new();
        object.insert("action", receipt.action.to_string());
        object.insert("receipt", receipt.id.map_or(Value::Null, |id| id.to_string().into()));
        object.insert("result", "committed");
        object.insert("replayed", receipt.replayed);
        object.insert("attempt", refused::integer(receipt.fence));
        object.insert("effect_key", key.map_or(Value::Null, Value::Text));
        object.insert("child", ended.map_or(Value::Null, child));
        context.out.document(object)?;
        return Ok(ExitCode::SUCCESS);
    }
    let key = key.map(|key| literal(&key.into())).unwrap_or_default();
    let id = receipt.id.map(|id| format!(", receipt {id}")).unwrap_or_default();
    context.out.note(&if receipt.replayed {
        format!("{} had committed {key} already{id}; the command was not run", receipt.action)
    } else {
        format!("committed {key}, attempt {}{id}", receipt.fence)
    });
    Ok(ExitCode::SUCCESS)
}

/// Why the action was not committed.
fn told(control: &Control, policy: &Policy, name: &str, error: Error, ended: Option<Ended>) -> CliError {
    let told = match error {
        Error::ApprovalNeeded { action, approval, expires_at } => asked(
            CliError::new("approval_needed", format!("{name} waits for a person"), REFUSED),
            action,
            approval,
        )
        .about("expires_at", expires_at.to_string())
        .because(format!("the policy asks; {approval} can be answered until {expires_at}")),
        Error::WaitTimeout { action, approval } => asked(
            CliError::new("wait_timeout", "nobody answered within the wait; the request stays", REFUSED),
            action,
            approval,
        ),
        Error::NotExecuted { action, receipt, ref message, .. } => {
            let told =
                CliError::new(error.code(), format!("not executed: {message}"), REFUSED).retry(error.retry());
            let told = told.about("action", action.to_string());
            let told = match receipt {
                Some(id) => told.about("receipt", id.to_string()),
                None => told,
            };
            told.next("the effect is free: the same command tries again")
        }
        Error::Unknown { action, receipt, ref message, ref unrecorded, .. } => {
            let told = CliError::new(error.code(), format!("it is unknown whether {name} happened"), REFUSED)
                .retry(error.retry())
                .about("action", action.to_string());
            let told = match (receipt, unrecorded) {
                (Some(id), _) => told.about("receipt", id.to_string()).because(message.clone()),
                (None, Some(also)) => {
                    told.because(format!("{message}; and it could not be recorded: {also}"))
                }
                (None, None) => told.because(message.clone()),
            };
            match refused::effect_key(control, action) {
                Some(key) => refused::to_resolve(told.about("effect_key", key.as_str()), &key),
                None => told,
            }
        }
        Error::Refused(refusal) => refused::call(control, policy, name, &refusal),
        Error::Ended(refusal) => refused::call(control, policy, name, &refusal).retry(Retry::Never),
        Error::Unsettled { because, .. } => return told(control, policy, name, *because, ended),
        error => refused::of(control, error),
    };
    match ended {
        Some(ended) => told.about("child", child(ended)),
        None => told,
    }
}

fn asked(error: CliError, action: ActionId, approval: ApprovalId) -> CliError {
    error
        .retry(Retry::AfterApproval)
        .about("action", action.to_string())
        .about("approval", approval.to_string())
        .next(format!("onceseal approve {approval}"))
        .next("then the same command again")
}

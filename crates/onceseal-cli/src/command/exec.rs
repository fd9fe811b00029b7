//! `exec`: any program as the one attempt at an action.

pub(crate) mod told;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use onceseal::core::code::Code;
use onceseal::core::id::{ActionId, ApprovalId};
use onceseal::core::json::Value;
use onceseal::core::limits;
use onceseal::core::policy::{DEFAULT_DEADLINE, DEFAULT_LEASE, Policy};
use onceseal::core::time::{Span, Timestamp};
use onceseal::process::{Ended, GRACE_MAX, Process, classify};
use onceseal::{Call, CallOptions, Error, Failure, Outcome};

use super::call::{CallArgs, proposed};
use super::list;
use crate::context::{Context, wait};
use crate::error::CliError;

/// Run a command as the one attempt at an action
///
/// The action is decided by the policy, approved if the policy asks for it, and its effect is taken before the
/// command starts; the same line again resumes what waits, and is refused once it has happened. Exit 0 of the
/// command means that it happened. Any other end means that nobody knows, except the exit codes named by
/// --not-executed-on, and a command that could not be started.
///
/// What is decided, shown and approved is the action, its name and arguments; the command after `--` is no part of it
/// and is not bound. Pass what matters as --arg, and keep the command in a script that the agent cannot change.
///
/// The command finds ONCESEAL_ACTION, ONCESEAL_ATTEMPT, ONCESEAL_ARGUMENTS (the arguments that were decided and
/// approved, as JSON, up to 128 KiB) and, if the action has one, ONCESEAL_EFFECT_KEY in its environment. It runs in a
/// process group of its own, which is stopped at the deadline and when its lease is lost. Its output passes through;
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
    /// Wait so long for a person's answer; not for another attempt under way, which is refused at once
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

impl Exec {
    /// Which of its lengths of time the policy does not permit, and what it does.
    fn bounds(&self, policy: &Policy) -> Option<String> {
        let entry = policy.entry(&self.call.action);
        let lease = entry.map_or(DEFAULT_LEASE, |entry| entry.lease_or(DEFAULT_LEASE));
        let deadline = entry.map_or(DEFAULT_DEADLINE, |entry| entry.deadline_for(lease));
        match (self.lease, self.deadline) {
            (Some(given), _) if given < limits::LEASE_MIN => {
                Some(format!("--lease is {given}, and a lease is {} at least", limits::LEASE_MIN))
            }
            (Some(given), _) if given > lease => {
                Some(format!("--lease is {given}, and the policy permits {lease} at most"))
            }
            (_, Some(Span::ZERO)) => {
                Some("--deadline is 0s, and no command ends before it begins".to_owned())
            }
            (_, Some(given)) if given > deadline => {
                Some(format!("--deadline is {given}, and the policy permits {deadline} at most"))
            }
            _ => None,
        }
    }
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
    let proposed = proposed(&control, &action).options(options.clone());
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
    let ran = program.ran.into_inner();
    let bounds = exec.bounds(&config.policy.policy);
    match outcome {
        Err(Error::Refused(refusal)) if refusal.code == Code::OutOfBounds => {
            let told = told::not_done(
                &control,
                &config.policy.policy,
                &action,
                Error::Refused(refusal),
                ran.as_ref(),
            );
            Err(bounds.into_iter().fold(told, CliError::because))
        }
        Ok(receipt) => told::done(context, &control, &receipt, ran.as_ref()),
        Err(error) => Err(told::not_done(&control, &config.policy.policy, &action, error, ran.as_ref())),
    }
}

pub(crate) fn waiting(approval: ApprovalId, expires_at: Timestamp) -> String {
    format!("waiting for a person until {expires_at}: onceseal approve {approval}")
}

/// The program to run, and what became of it.
struct Program {
    process: Process,
    not_executed_on: BTreeSet<i32>,
    ran: RefCell<Option<Ran>>,
}

/// A command that was given its attempt: from here on it may have acted,
/// whatever can be recorded of it.
struct Ran {
    call: Call,
    /// How it ended, and what that says; nothing while it has not.
    ended: Option<(Ended, Outcome)>,
}

impl Program {
    fn new(exec: &Exec) -> Program {
        let (program, args) =
            exec.command.split_first().map(|(first, rest)| (first.clone(), rest)).unwrap_or_default();
        let process = Process { args: args.to_vec(), passes_all_on: true, ..Process::new(program) };
        Program {
            process,
            not_executed_on: exec.not_executed_on.iter().copied().collect(),
            ran: RefCell::new(None),
        }
    }

    /// Runs it to its end. It is asked to end early enough that its end is
    /// known before the attempt's deadline.
    async fn run(&self, call: Call) -> Result<Value, Failure> {
        self.ran.replace(Some(Ran { call: call.clone(), ended: None }));
        let left = call.deadline().saturating_duration_since(Instant::now());
        let grace = GRACE_MAX.min(left / 10);
        let process = Process { grace, ..self.process.clone() }.for_attempt(&call);
        let ran = process.run_for(&call, call.deadline() - grace * 2).await?;
        let outcome = classify(&ran.ended, &self.not_executed_on);
        self.ran.replace(Some(Ran { call, ended: Some((ran.ended, outcome)) }));
        ran.executed(&self.not_executed_on)
    }
}

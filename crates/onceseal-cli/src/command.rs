//! One module per command.

pub(crate) mod actions;
pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod away;
pub(crate) mod bench;
pub(crate) mod call;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod effects;
pub(crate) mod events;
pub(crate) mod exec;
pub(crate) mod export;
pub(crate) mod init;
pub(crate) mod lease;
pub(crate) mod list;
pub(crate) mod migrate;
pub(crate) mod operations;
pub(crate) mod policy;
pub(crate) mod project;
pub(crate) mod receipts;
pub(crate) mod refused;
pub(crate) mod runs;
pub(crate) mod sim;
pub(crate) mod tasks;
pub(crate) mod worker;

use std::process::ExitCode;

use clap::CommandFactory;

use crate::cli::{Cli, Command};
use crate::context::Context;
use crate::error::CliError;

/// Runs a command to its exit status.
pub(crate) fn run(context: &Context, command: Command) -> Result<ExitCode, CliError> {
    match command {
        Command::Init => init::run(context),
        Command::Demo(demo) => demo::run(context, &demo),
        Command::Exec(exec) => exec::run(context, exec),
        Command::Policy(policy) => policy::run(context, policy),
        Command::Actions(actions) => actions::run(context, actions),
        Command::Approvals(approvals) => approvals::run(context, approvals),
        Command::Pending(pending) => approvals::pending(context, &pending),
        Command::Approve(approve) => approvals::approve(context, &approve),
        Command::Deny(deny) => approvals::deny(context, &deny),
        Command::Effects(effects) => effects::run(context, effects),
        Command::Resolve(resolve) => effects::resolve(context, resolve),
        Command::Receipts(receipts) => receipts::run(context, &receipts),
        Command::Events(events) => events::run(context, &events),
        Command::Export(export) => export::run(context, &export),
        Command::Operations(operations) => operations::run(context, operations),
        Command::Worker(worker) => worker::run(context, &worker),
        Command::Runs(runs) => runs::run(context, runs),
        Command::Tasks(tasks) => tasks::run(context, tasks),
        Command::Lease(lease) => lease::run(context, lease),
        Command::Sim(sim) => sim::run(context, &sim),
        Command::Audit(audit) => audit::run(context, &audit),
        Command::Doctor(doctor) => doctor::run(context, doctor),
        Command::Migrate(migrate) => migrate::run(context, &migrate),
        Command::Bench(bench) => bench::run(context, &bench),
        Command::Project(project) => project::run(context, &project),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "onceseal", &mut script);
            context.out.text(&String::from_utf8_lossy(&script))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

//! The command line.

use std::path::PathBuf;
use std::sync::OnceLock;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, Parser, Subcommand, ValueEnum};
use onceseal::runs::Definition;
use onceseal::store::SCHEMA_VERSION;

use crate::command::{
    actions, approvals, audit, bench, demo, doctor, effects, events, exec, export, lease, migrate,
    operations, policy, project, receipts, runs, sim, tasks, worker,
};

/// Version of the program, and of the stores it writes.
fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| format!("{}\nstore schema {SCHEMA_VERSION}", env!("CARGO_PKG_VERSION")))
}

/// Approve exactly, act once, prove it.
///
/// Stands between the decision to act and the command that acts: decides an action by policy, binds a person's
/// approval to exactly that action, lets its effect happen at most once, and keeps what is unknown apart from what
/// failed.
#[derive(Debug, Parser)]
#[command(name = "onceseal", version = version(), max_term_width = 100, subcommand_required = true)]
#[command(
    after_help = "Exit status: 0 done; 1 refused, blocked, unknown or broken; 2 usage, configuration or \
                        storage; 3 could not be checked."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// The configuration file, instead of ONCESEAL_CONFIG or onceseal.yaml here or above
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON: data on stdout, an error object on stderr
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
    /// Whether output is coloured; NO_COLOR is respected
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        help_heading = "Global options"
    )]
    pub(crate) color: Color,
    /// Use state on a network or host-shared file system, where locks may not hold
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) force_filesystem: bool,
}

/// When output is coloured.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

/// What to do. Where a variant says nothing, the type behind it does.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make this directory a project, with a policy to begin with
    Init,
    Demo(demo::Demo),
    Exec(exec::Exec),
    /// Check, explain and activate the policy
    #[command(subcommand)]
    Policy(policy::Policy),
    /// Propose actions, and look at them
    #[command(subcommand)]
    Actions(actions::Actions),
    /// Look at requests for approval, and answer them
    #[command(subcommand)]
    Approvals(approvals::Approvals),
    /// List the requests that wait for an answer: `approvals list --state pending`
    Pending(approvals::Pending),
    Approve(approvals::Approve),
    Deny(approvals::Deny),
    /// Look at effects, and resolve unknown outcomes
    #[command(subcommand)]
    Effects(effects::Effects),
    Resolve(effects::Resolve),
    /// Look at receipts, the evidence of terminal answers
    #[command(subcommand)]
    Receipts(receipts::Receipts),
    Events(events::Events),
    /// Write receipts or events as JSON lines, in the order of the log
    #[command(subcommand)]
    Export(export::Export),
    /// Have actions carried out later by a worker, and look after them
    #[command(subcommand)]
    Operations(operations::Operations),
    Worker(worker::Worker),
    /// Follow long jobs that survive their process, and move them on
    #[command(subcommand)]
    Runs(runs::Runs),
    /// Work on the parts of a run, each by one worker at a time
    #[command(subcommand)]
    Tasks(tasks::Tasks),
    /// Hold a resource, so that one at a time works on it
    #[command(subcommand)]
    Lease(lease::Lease),
    #[command(subcommand)]
    Sim(sim::Sim),
    Audit(audit::Audit),
    Doctor(doctor::Doctor),
    Migrate(migrate::Migrate),
    /// Measure this machine and disk, with full evidence
    Bench(bench::Bench),
    /// Settle which of two copies of a project goes on
    #[command(subcommand)]
    Project(project::Project),
    /// Print the completions of a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Whether it is for programs alone: it answers them whatever was asked for.
    pub(crate) const fn answers_programs(&self) -> bool {
        matches!(self, Command::Operations(operations) if operations.answers_programs())
    }
}

/// With what was probably meant, where that is no word alike.
pub(crate) fn tipped(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let words: Vec<_> = std::env::args().take_while(|argument| argument != "--").collect();
    let parent =
        words.iter().position(|argument| argument == word).and_then(|at| words.get(at.checked_sub(1)?));
    let is_asked = || {
        Definition::built_in().iter().any(|definition| {
            let mut commands = definition.states().keys().flat_map(|state| definition.commands(state));
            commands.any(|(name, _)| name == word)
        })
    };
    let tip = match (parent.map(String::as_str), word.as_str()) {
        (Some("runs"), word) if is_asked() => format!("onceseal runs command RUN {word}"),
        (Some("lease"), "release") => {
            "onceseal lease interrupt, or onceseal lease commit with an outcome".to_owned()
        }
        _ => return error,
    };
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

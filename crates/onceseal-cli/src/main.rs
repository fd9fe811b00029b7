//! The `onceseal` program: parsing and printing.
//!
//! Invariant: no rule is here. What may happen is decided in `onceseal-core`,
//! what happens is done by `onceseal`, and this crate reads what a person typed
//! and shows what came of it.

mod cli;
mod codes;
mod command;
mod context;
mod error;
mod files;
mod out;
mod show;
mod standing;
mod table;
mod text;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use cli::{Cli, Command};
use context::Context;
use error::CliError;
use out::Out;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A file that may not get longer is an error to be told, and no end without a word.
/// Where the system has no such signal there is nothing to be done.
fn outlive_limits() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    if let Ok(runtime) = runtime {
        let _inside = runtime.enter();
        let kind = tokio::signal::unix::SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
        // Once listened to it ends nothing any more, and programs that are started have it as it was.
        drop(tokio::signal::unix::signal(kind));
    }
}

fn main() -> ExitCode {
    outlive_limits();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&cli::tipped(error)),
    };
    let out = Out::new(cli.global.json || cli.command.answers_programs(), cli.global.color);
    let context = Context::new(out, cli.global);
    // These two have stores of their own, which are gone by then.
    let own_store = matches!(cli.command, Command::Demo(_) | Command::Bench(_));
    match command::run(&context, cli.command) {
        Ok(code) => code,
        Err(error) => {
            let error = if own_store { error } else { context.told(error) };
            context.out.error(&error);
            ExitCode::from(error.exit)
        }
    }
}

/// Help and version are answers; everything else is a command line that cannot
/// be understood.
fn usage(error: &clap::Error) -> ExitCode {
    let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    // What follows `--` is a command's own.
    let json =
        std::env::args_os().take_while(|argument| argument != "--").any(|argument| argument == "--json");
    if asked || !json {
        // Nowhere is left to say that the terminal is gone.
        let _ = error.print();
        return ExitCode::from(if asked { 0 } else { 2 });
    }
    Out::new(true, cli::Color::Never).error(&CliError::misused(&error.render().to_string()));
    ExitCode::from(2)
}

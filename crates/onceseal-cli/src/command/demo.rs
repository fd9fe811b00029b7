//! demo
use crate::context::Context;
use crate::error::CliError;
use clap::Args;
use std::process::ExitCode;
/// demo
#[derive(Debug, Args)]
pub(crate) struct Demo {}
pub(crate) fn run(_context: &Context, _demo: &Demo) -> Result<ExitCode, CliError> {
    Ok(ExitCode::SUCCESS)
}

//! demo
use std::process::ExitCode;
use clap::Args;
use crate::context::Context;
use crate::error::CliError;
/// demo
#[derive(Debug, Args)]
pub(crate) struct Demo {}
pub(crate) fn run(_context: &Context, _demo: &Demo) -> Result<ExitCode, CliError> { Ok(ExitCode::SUCCESS) }

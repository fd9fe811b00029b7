//! `project`: which of two copies of a directory is the project.

use std::process::ExitCode;

use clap::Subcommand;
use onceseal::core::json::Object;
use onceseal::store::place;

use super::init::fresh_id;
use crate::context::Context;
use crate::error::CliError;

/// How to settle it.
#[derive(Debug, Subcommand)]
pub(crate) enum Project {
    /// Go on here with this project's state, instead of at the other copy
    Adopt,
    /// Make this copy a project of its own, with new state
    New {
        /// Also if this is no copy, and what has happened here is forgotten
        #[arg(long)]
        forget: bool,
    },
}

pub(crate) fn run(context: &Context, project: &Project) -> Result<ExitCode, CliError> {
    let opening = context.opening(context.settings()?)?;
    let concessions = opening.concessions();
    let settled = match project {
        Project::Adopt => place::adopt(&opening.surroundings, &concessions)?,
        Project::New { forget } => {
            let settled = place::renew(&opening.surroundings, &concessions, fresh_id()?, *forget)?;
            opening.place()?.prepare()?;
            settled
        }
    };
    if context.out.is_json() {
        let mut object = Object::new();
        object.insert("project", settled.id().to_string());
        object.insert("root", settled.root().display().to_string());
        context.out.document(object)?;
    } else {
        context.out.text(&format!("project {} is at {}\n", settled.id(), context.path(settled.root())))?;
    }
    Ok(ExitCode::SUCCESS)
}

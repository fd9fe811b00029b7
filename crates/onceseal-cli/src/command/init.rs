//! `init`: a project id and a policy to begin with.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use onceseal::Control;
use onceseal::config::{Config, FILE, STARTER, Settings};
use onceseal::core::json::{Object, Value};
use onceseal::store::place::{self, GitExclude, Origin, ProjectId};

use crate::context::Context;
use crate::error::{CliError, REFUSED};
use crate::table::fields;
use crate::text::shown;

pub(crate) fn run(context: &Context) -> Result<ExitCode, CliError> {
    let here = std::env::current_dir().map_err(onceseal::store::StoreError::from)?;
    let file = context.global.config.clone().unwrap_or_else(|| here.join(FILE));
    let there = Config::stands_at(&file);
    let settings = match there {
        true => Config::load_settings(&file).map_err(|error| CliError::of_file(error, &file))?,
        false => Settings::default(),
    };
    let opening = context.opening_beside(&file, settings)?;
    let (surroundings, concessions) = (&opening.surroundings, opening.concessions());
    let made = place::init(surroundings, &concessions, fresh_id()?)?;
    let place = opening.place()?;
    match made.origin {
        // What the directory was before has its state, or has lost it.
        Origin::Found | Origin::Restored => drop(place.expect_state()?),
        Origin::Created => place.prepare()?,
    }
    if there && made.origin == Origin::Found {
        return Err(CliError::new(
            "already_initialised",
            "this directory is a project and has a policy",
            REFUSED,
        )
        .next("onceseal doctor"));
    }
    let wrote = !there && write(&file)?;
    report(context, &file, wrote, &made, place.directory())
}

/// A new project's id.
pub(crate) fn fresh_id() -> Result<ProjectId, CliError> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| {
        CliError::new("no_randomness", format!("the system gives no random numbers: {error}"), 2)
    })?;
    Ok(ProjectId::new(random))
}

/// Writes the policy to begin with, unless somebody else just wrote one.
fn write(file: &Path) -> Result<bool, CliError> {
    let made = OpenOptions::new().write(true).create_new(true).open(file);
    match made.and_then(|mut file| file.write_all(STARTER.as_bytes()).and_then(|()| file.sync_all())) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => {
            let message = format!("{} cannot be written: {}", file.display(), error.kind());
            Err(CliError::new("config_unwritable", message, 2))
        }
    }
}

fn report(
    context: &Context,
    file: &Path,
    wrote: bool,
    made: &place::Initialised,
    state: &Path,
) -> Result<ExitCode, CliError> {
    let person = Control::account().to_string();
    if context.out.is_json() {
        let mut object = Object::new();
        object.insert("policy_file", file.display().to_string());
        object.insert("policy_written", wrote);
        object.insert("project", made.project.id().to_string());
        object.insert("state", state.display().to_string());
        object.insert("person", person);
        let outer = made.outer.as_ref().map(|outer| outer.display().to_string());
        object.insert("outer_project", outer.map_or(Value::Null, Value::Text));
        context.out.document(object)?;
        return Ok(ExitCode::SUCCESS);
    }
    let policy = format!("{}{}", context.path(file), if wrote { "" } else { " (it was there)" });
    let project = match made.origin {
        Origin::Created => format!("{}", made.project.id()),
        Origin::Found => format!("{} (it was there)", made.project.id()),
        Origin::Restored => format!("{} (this directory had it before)", made.project.id()),
    };
    context.out.text(&fields(&[
        ("policy", policy),
        ("project", project),
        ("state", context.path(state)),
        ("you are", shown(&person)),
    ]))?;
    if !matches!(made.git, GitExclude::NoRepository) {
        context.out.note(".onceseal/ is excluded from git, so that clones get an id of their own");
    }
    context.out.note(
        "note: approvals given here are proven by the operating system's account. It cannot tell an agent that \
         runs as you from you.",
    );
    if let Some(outer) = made.outer.as_ref().filter(|_| made.origin == Origin::Created) {
        let shared = match std::env::var_os("ONCESEAL_STATE") {
            Some(_) => "they share the state that ONCESEAL_STATE names, and no policy",
            None => "they share nothing: what has happened there is not known here, and could happen again",
        };
        context.out.note(&format!(
            "warning: this directory lies in another project, {}; {shared}",
            context.path(outer)
        ));
    }
    if state.starts_with(made.project.root()) {
        context.out.note(
            "warning: the state lies in the project, where `git clean`, a container's rebuild or the agent's own \
             `rm` can destroy it: what had happened would then be forgotten, and could happen again",
        );
    }
    context.out.note(match wrote {
        true => "next: read the policy, then onceseal exec customer.read -- true",
        false => "next: onceseal policy check",
    });
    Ok(ExitCode::SUCCESS)
}

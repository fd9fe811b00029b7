//! `migrate`: a server's schema is brought to this program's, or a store moves
//! from its file to a server.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use onceseal::audit::{AuditOptions, audit};
use onceseal::config::{Settings, StoreAddress};
use onceseal::core::json::{Object, Value};
use onceseal::{Moving, Opening};

use crate::context::Context;
use crate::error::{CliError, UNUSABLE};
use crate::text::counted;

/// Bring the server's schema to this program's, or move a store to a server
#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// The file that moves: `sqlite:PATH`, or `sqlite:` for this project's
    #[arg(long, value_name = "sqlite:PATH")]
    from: Option<String>,
    /// The server that it moves to, as in `store` [default: the one in the settings]
    #[arg(long, value_name = "URL", requires = "from")]
    to: Option<String>,
}

pub(crate) fn run(context: &Context, migrate: &Migrate) -> Result<ExitCode, CliError> {
    match (&migrate.from, &migrate.to) {
        (Some(from), to) => moved(context, from, to.as_deref()),
        (None, _) => brought_on(context),
    }
}

/// The schema of the store that the settings name.
fn brought_on(context: &Context) -> Result<ExitCode, CliError> {
    let opening = context.opening(context.settings()?)?;
    let Some((found, now)) = opening.migrate()? else {
        let text = "nothing to do: a file is brought to this program's schema when it is opened to act";
        return tell(context, text, Object::new());
    };
    let text = match found {
        0 => format!("the schema was made, at version {now}"),
        found if found == now => format!("nothing to do: the schema is at version {now}"),
        found => format!("the schema was at version {found} and is at version {now}"),
    };
    let mut object = Object::new();
    object.insert("from", Value::Integer(found));
    object.insert("to", Value::Integer(now));
    tell(context, &text, object)
}

/// A whole store, which is audited where it came to before its file is put aside.
fn moved(context: &Context, from: &str, to: Option<&str>) -> Result<ExitCode, CliError> {
    let path = from
        .strip_prefix("sqlite:")
        .ok_or_else(|| CliError::usage("--from is sqlite:PATH, or sqlite: for this project's store"))?;
    let settings = context.settings()?;
    let to = match to {
        Some(to) => StoreAddress::parse(to)?,
        None => context.opening(settings.clone())?.settings.store.ok_or_else(|| {
            CliError::usage(
                "--to is missing: name the server there, or as `store` in the settings or ONCESEAL_STORE",
            )
        })?,
    };
    let here = context.opening(Settings { store: None, memory: false, ..settings })?;
    let settings = Settings { store: Some(to), ..here.settings.clone() };
    let opening = Opening { settings, ..here.clone() };
    let file = match path {
        "" => {
            let place = here.place()?;
            if let Some(ended) = ended(context, place.database(), &opening)? {
                return Ok(ended);
            }
            place.expect_state().map_err(onceseal::Error::from)?;
            place.database().to_owned()
        }
        path => {
            let path = PathBuf::from(path);
            if let Some(ended) = ended(context, &path, &opening)? {
                return Ok(ended);
            }
            path
        }
    };
    let moving = Moving::begin(&file, &opening)?;
    let mut events = 0;
    for tenant in moving.tenants() {
        let control = moving
            .copy(tenant)?
            .ok_or_else(|| CliError::new("not_moved", "what was moved is not there", UNUSABLE))?;
        let report = audit(&control, &AuditOptions::default())?;
        if !report.is_clean() || report.events != tenant.events {
            return Err(CliError::new(
                "not_moved",
                format!(
                    "the audit of tenant {} on the server found something, so the file stays the store; `onceseal \
                     audit` says of the file what it is",
                    tenant.tenant
                ),
                UNUSABLE,
            ));
        }
        events += tenant.events;
    }
    let (tenants, renumbered) =
        (moving.tenants().len(), moving.tenants().iter().any(|tenant| tenant.is_renumbered));
    let aside = moving.end()?;
    let mut text = format!(
        "{} of {} moved and audited clean; set `store` to the server on all hosts. The file is now {}",
        counted(usize::try_from(events).unwrap_or(usize::MAX), "event"),
        counted(tenants, "tenant"),
        context.path(&aside)
    );
    if renumbered {
        text.push_str(
            "\nThe file held several tenants, each of which has a log of its own now, numbered from 1: other \
             accounts that acted here accept that once with `onceseal doctor --accept-went-back`.",
        );
    }
    let mut object = Object::new();
    object.insert("tenants", Value::Integer(i64::try_from(tenants).unwrap_or(i64::MAX)));
    object.insert("events", Value::Integer(i64::try_from(events).unwrap_or(i64::MAX)));
    object.insert("renumbered", Value::Bool(renumbered));
    object.insert("file", aside.display().to_string());
    tell(context, &text, object)
}

/// The end of a move that had put the file aside before it was ended.
fn ended(context: &Context, file: &Path, opening: &Opening) -> Result<Option<ExitCode>, CliError> {
    let tenants = Moving::resume(file, opening)?;
    if tenants.is_empty() {
        return Ok(None);
    }
    let mut object = Object::new();
    object.insert("tenants", Value::Integer(i64::try_from(tenants.len()).unwrap_or(i64::MAX)));
    let text = format!(
        "the move that was begun before has ended: {} on the server; set `store` to it on all hosts",
        counted(tenants.len(), "tenant")
    );
    tell(context, &text, object).map(Some)
}

fn tell(context: &Context, text: &str, object: Object) -> Result<ExitCode, CliError> {
    if context.out.is_json() {
        context.out.document(object)?;
    } else {
        context.out.text(&format!("{text}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

//! Several processes on one file: each one's share, and the worst wait.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use onceseal::core::json::{self, Limits, Object, Value};

use super::failed;
use super::load::Load;
use crate::context::Context;
use crate::error::CliError;

/// One process: prints its actions and its worst wait.
pub(super) fn child(context: &Context, place: &Path, seconds: f64) -> Result<ExitCode, CliError> {
    let load = Load::open(place)?;
    let ran = load.run(1, seconds)?;
    let number = |n: usize| Value::Integer(i64::try_from(n).unwrap_or(json::SAFE_INTEGER));
    let mut object = Object::new();
    object.insert("actions", number(ran.latencies_us.len()));
    object.insert("worst_us", number(ran.latencies_us.last().map_or(0, |us| *us as usize)));
    context.out.line(&object.into())?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn run(
    context: &Context,
    scratch: &Path,
    processes: usize,
    seconds: f64,
) -> Result<ExitCode, CliError> {
    let place = scratch.join("shared");
    // Made before they start, so that none of them pays for it.
    Load::open(&place)?.control().close();
    let program = std::env::current_exe().map_err(|error| failed(error.kind()))?;
    let mut running = Vec::new();
    for _ in 0..processes {
        let mut command = Command::new(&program);
        command.args(["bench", "--seconds", &seconds.to_string(), "--child"]).arg(&place);
        running.push(command.stdout(Stdio::piped()).spawn().map_err(|error| failed(error.kind()))?);
    }
    let mut shares = Vec::new();
    for process in running {
        let output = process.wait_with_output().map_err(|error| failed(error.kind()))?;
        if !output.status.success() {
            return Err(failed("did not end well"));
        }
        let line = json::read(output.stdout.trim_ascii(), &Limits::RESULT)
            .map_err(|_| failed("printed no figures"))?;
        let figure =
            |name| line.as_object().and_then(|o| o.get(name)).and_then(Value::as_integer).unwrap_or(0);
        shares.push((figure("actions"), figure("worst_us")));
    }
    let total: i64 = shares.iter().map(|(actions, _)| actions).sum();
    let fair = total as f64 / processes as f64;
    let rows = shares.iter().map(|(actions, worst)| (*actions, *actions as f64 / fair, *worst));
    if context.out.is_json() {
        let rows = rows.map(|(actions, share, worst)| {
            let mut object = Object::new();
            object.insert("actions", Value::Integer(actions));
            object
                .insert("fair_share", Value::number((share * 100.0).round() / 100.0).unwrap_or(Value::Null));
            object.insert("worst_us", Value::Integer(worst));
            Value::Object(object)
        });
        let mut object = Object::new();
        object.insert("processes", Value::List(rows.collect()));
        context.out.document(object)?;
    } else {
        let mut text = "actions  of a fair share  worst wait ms\n".to_owned();
        for (actions, share, worst) in rows {
            text.push_str(&format!("{actions:7}  {share:15.2}  {:13.1}\n", worst as f64 / 1_000.0));
        }
        context.out.text(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

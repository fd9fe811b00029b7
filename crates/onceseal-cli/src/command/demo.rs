//! `demo`: the failures this exists for, each with what stopped it.
//!
//! Everything happens in a private directory with a store, a clock that is
//! moved by hand, and a provider that counts how often it was called. Nothing
//! is staged: what is printed is what the engine answered.

use std::process::ExitCode;

use clap::Args;
use onceseal::core::json::{Object, Value};

use crate::context::Context;
use crate::error::{CliError, REFUSED};
use crate::table::state_style;

mod crash;
mod scenes;
mod stage;
mod tamper;

use stage::Stage;

/// Show the failures this exists for, each with what stopped it
///
/// Runs in a private temporary directory and touches nothing else. Exits 1 if one of the failures was not stopped.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Keep the directory, to look at the store with the other commands
    #[arg(long)]
    keep: bool,
    /// The process that is killed in the middle
    #[arg(long, hide = true, value_name = "DIRECTORY")]
    crash_in: Option<std::path::PathBuf>,
}

/// One failure.
struct Scene {
    name: &'static str,
    story: &'static str,
    play: fn(&Stage) -> Result<Outcome, CliError>,
}

/// What came of it.
struct Outcome {
    /// What stopped it, a code and a sentence; `None`: nothing did.
    by: Option<(&'static str, String)>,
    /// What can be seen of it afterwards.
    evidence: String,
}

const SCENES: [Scene; 7] = [
    Scene {
        name: "lost answer",
        story: "An agent pays a refund. The provider does it, the answer gets lost, and the agent tries again.",
        play: scenes::lost_answer,
    },
    Scene {
        name: "mutated approval",
        story: "A person approves 50.00. The agent comes back with that approval and 90.00.",
        play: scenes::mutated_approval,
    },
    Scene {
        name: "two agents on one effect",
        story: "While one agent is paying a refund, another one starts to pay the same.",
        play: scenes::two_agents,
    },
    Scene {
        name: "replayed approval",
        story: "An approval was used. The agent presents it once more.",
        play: scenes::replayed_approval,
    },
    Scene {
        name: "late worker",
        story: "A worker stalls, its lease ends, a person looks and lets another one do it. Then the first one reports.",
        play: scenes::late_worker,
    },
    Scene {
        name: "crash in the middle",
        story: "A process calls the provider and is killed with SIGKILL before it can record the answer. Another tries again.",
        play: crash::crash_in_the_middle,
    },
    Scene {
        name: "tampered journal",
        story: "Somebody who can write the database file makes a refund of 20.00 one of 10.00, in every place.",
        play: tamper::tampered_journal,
    },
];

pub(crate) fn run(context: &Context, demo: &Demo) -> Result<ExitCode, CliError> {
    if let Some(directory) = &demo.crash_in {
        return crash::child(directory);
    }
    let stage = Stage::build()?;
    let mut played = Vec::with_capacity(SCENES.len());
    for scene in &SCENES {
        let outcome = (scene.play)(&stage)?;
        if !context.out.is_json() {
            context.out.text(&told(played.len() + 1, scene, &outcome))?;
        }
        played.push((scene, outcome));
    }
    let stopped = played.iter().filter(|(_, outcome)| outcome.by.is_some()).count();
    let kept = stage.leave(demo.keep)?;
    if context.out.is_json() {
        let mut object = Object::new();
        object.insert(
            "scenes",
            Value::List(played.iter().map(|(scene, outcome)| as_value(scene, outcome)).collect()),
        );
        object.insert("kept", kept.map_or(Value::Null, |path| path.display().to_string().into()));
        context.out.document(object)?;
    } else {
        let total = played.len();
        let kept = kept.map(|path| format!(" ONCESEAL_STATE={} shows its store.", path.display()));
        let kept = kept.unwrap_or_else(|| " Nothing of it is left on this machine.".to_owned());
        context.out.text(&format!("{stopped} of {total} stopped.{kept}\n"))?;
    }
    Ok(ExitCode::from(if stopped == played.len() { 0 } else { REFUSED }))
}

fn told(number: usize, scene: &Scene, outcome: &Outcome) -> String {
    let verdict = match &outcome.by {
        Some((code, sentence)) => {
            let style = state_style("ok");
            format!("{style}STOPPED{style:#} {code}: {sentence}")
        }
        None => {
            let style = state_style("fail");
            format!("{style}NOT STOPPED{style:#}")
        }
    };
    format!("{number}. {}\n   {}\n   {verdict}\n   {}\n\n", scene.name, scene.story, outcome.evidence)
}

fn as_value(scene: &Scene, outcome: &Outcome) -> Value {
    let mut object = Object::new();
    object.insert("name", scene.name);
    object.insert("story", scene.story);
    object.insert("stopped", outcome.by.is_some());
    object.insert("by", outcome.by.as_ref().map_or(Value::Null, |(code, _)| (*code).into()));
    object.insert("evidence", outcome.evidence.as_str());
    object.into()
}

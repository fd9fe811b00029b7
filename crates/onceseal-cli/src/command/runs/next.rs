//! What a person would type next about a run, as far as its definition and its parts
//! tell.

use onceseal::runs::{Definition, RunView};

use super::parts::Parts;
use crate::text::shell;

/// The commands, the likeliest first. One that an operator asks for stands with the
/// state that follows.
pub(super) fn steps(view: &RunView, parts: &Parts) -> Vec<String> {
    let RunView { id, row, .. } = view;
    if row.terminal {
        let key = row.private.key.as_deref().and_then(|key| key.strip_prefix("change:"));
        let change = key.map_or("CHANGE".to_owned(), shell);
        return vec![format!("onceseal runs start {} {change} begins a new one", shell(&row.kind))];
    }
    let mut steps = Vec::new();
    if view.holder.is_none() && view.lapsed.is_some() {
        steps.push(format!("whoever takes it interrupts it first: onceseal lease run {id} -- …"));
    }
    let commands = commands(view);
    let is_idle = view.definition.as_ref().is_some_and(|definition| definition.is_idle(&row.state));
    // What lets a run go on that somebody has stopped comes before all else.
    let (first, others): (Vec<_>, Vec<_>) =
        commands.into_iter().partition(|(_, to)| is_idle && rank(view, *to) == Rank::GoesOn);
    steps.extend(first.iter().map(|command| asked(view, command)));
    if let Some(definition) = &view.definition {
        steps.extend(deliver(view, parts));
        steps.extend(on(view, definition).map(|to| format!("onceseal runs transition {id} {}", shell(to))));
        if parts.has_tasks_in_line() && !definition.is_idle(&row.state) {
            steps.push(format!("onceseal tasks work {id} --check ./check.sh --until-empty -- ./work.sh"));
        }
    }
    if parts.is_blocked() {
        steps.push(format!("onceseal runs blockers {id}"));
    }
    steps.extend(others.iter().map(|command| asked(view, command)));
    steps
}

/// Where a step leads, the least to be regretted first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    GoesOn,
    Untold,
    Idle,
    Ends,
}

fn rank(view: &RunView, to: Option<&str>) -> Rank {
    match (&view.definition, to) {
        (_, None) | (None, _) => Rank::Untold,
        (Some(definition), Some(to)) if definition.is_terminal(to) => Rank::Ends,
        (Some(definition), Some(to)) if definition.is_idle(to) => Rank::Idle,
        _ => Rank::GoesOn,
    }
}

/// What an operator may ask for: first what goes on, last what ends the run.
pub(super) fn commands(view: &RunView) -> Vec<(&str, Option<&str>)> {
    let mut commands: Vec<_> = view.commands().collect();
    commands.sort_by_key(|(_, to)| rank(view, *to));
    commands
}

fn asked(view: &RunView, (name, to): &(&str, Option<&str>)) -> String {
    match to {
        Some(to) => format!("onceseal runs command {} {name}  ({to})", view.id),
        None => format!("{name} is for the program that works on it to do"),
    }
}

/// Binding what is missing at the first gate that asks for proof, or else planning
/// what is bound at all of them.
fn deliver(view: &RunView, parts: &Parts) -> Option<String> {
    let (id, bound) = (view.id, view.row.delivery_revision());
    match (parts.unbound().next(), bound) {
        (Some(gate), _) => {
            let (gate, revision) = (shell(gate), bound.unwrap_or(1));
            Some(format!("onceseal runs deliver {id} {gate} {revision} --receipt-file FILE --ask"))
        }
        (None, Some(revision)) if parts.planned() < Some(revision) => {
            Some(format!("onceseal tasks plan {id} {revision} FILE"))
        }
        _ => None,
    }
}

/// The state to which a run goes on: one that is not its end, and that nobody asks
/// for as an operator.
fn on<'a>(view: &'a RunView, definition: &'a Definition) -> Option<&'a str> {
    let asked: Vec<_> = view.commands().filter_map(|(_, to)| to).collect();
    let on =
        view.next().filter(|to| *to != view.row.state && !definition.is_terminal(to) && !asked.contains(to));
    on.min_by_key(|to| rank(view, Some(to)))
}

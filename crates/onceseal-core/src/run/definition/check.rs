//! What the members of a definition mean together: that a run can always go on,
//! and come to an end.

use std::collections::BTreeSet;

use super::{Definition, State};
use crate::policy::nearest;
use crate::run::document::DocumentError;

pub(super) fn check(definition: &Definition) -> Result<(), DocumentError> {
    let Definition { initial, states, .. } = definition;
    exists(definition, "initial", initial)?;
    if definition.is_terminal(initial) {
        return Err(DocumentError::new(
            "initial",
            format!("`{initial}` is terminal: a run could do nothing"),
        ));
    }
    for (name, state) in states {
        let State::Living { to, interrupted, commands, .. } = state else { continue };
        let path = |member: &str| format!("states.{name}.{member}");
        if to.is_empty() {
            let problem = "is empty, so a run would end there: say `terminal: true`, or what may follow";
            return Err(DocumentError::new(path("to"), problem));
        }
        for next in to {
            exists(definition, &path("to"), next)?;
        }
        let targets =
            commands.iter().filter_map(|(command, to)| Some((format!("commands.{command}"), to.as_ref()?)));
        for (member, next) in std::iter::once(("interrupted".to_owned(), interrupted)).chain(targets) {
            exists(definition, &path(&member), next)?;
            if !to.contains(next) {
                let problem = format!("`{next}` may not follow on `{name}`: add it to `to`, or name another");
                return Err(DocumentError::new(path(&member), problem));
            }
        }
    }
    let reached = reached(definition, BTreeSet::from([initial.as_str()]), |(from, to)| (from, to));
    if let Some(name) = states.keys().find(|name| !reached.contains(name.as_str())) {
        let problem = format!("is never reached from `{initial}`");
        return Err(DocumentError::new(format!("states.{name}"), problem));
    }
    let ends = states.keys().map(String::as_str).filter(|name| definition.is_terminal(name)).collect();
    let end = self::reached(definition, ends, |(from, to)| (to, from));
    match states.keys().find(|name| !end.contains(name.as_str())) {
        Some(name) => {
            let problem = "is a dead end: no terminal state can be reached from it";
            Err(DocumentError::new(format!("states.{name}"), problem))
        }
        None => Ok(()),
    }
}

/// The states that are reached from some along edges, as they are turned.
fn reached<'a>(
    definition: &'a Definition,
    mut reached: BTreeSet<&'a str>,
    turned: impl Fn((&'a str, &'a str)) -> (&'a str, &'a str),
) -> BTreeSet<&'a str> {
    let edges: Vec<_> = definition.edges().map(turned).collect();
    loop {
        let next = edges.iter().filter(|(from, _)| reached.contains(from)).map(|(_, to)| *to);
        let new: Vec<_> = next.filter(|to| !reached.contains(to)).collect();
        if new.is_empty() {
            return reached;
        }
        reached.extend(new);
    }
}

fn exists(definition: &Definition, path: &str, state: &str) -> Result<(), DocumentError> {
    if definition.has(state) {
        return Ok(());
    }
    let hint = nearest(state, definition.states.keys().map(String::as_str));
    let hint = hint.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
    Err(DocumentError::new(path, format!("`{state}` is no state of this definition{hint}")))
}

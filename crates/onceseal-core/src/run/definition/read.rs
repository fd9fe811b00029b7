//! Reading a definition's document: its members, not yet what they mean together.

use std::collections::{BTreeMap, BTreeSet};

use super::{Definition, Gate, Proving, State};
use crate::hash::Hash;
use crate::json::{Object, Value};
use crate::run::document::{DocumentError, Read, known, mapping, named, text};

/// More states nobody oversees.
const STATES: usize = 64;
/// More gates than this nobody passes.
const GATES: usize = 16;
/// More commands than this nobody reads.
const COMMANDS: usize = 32;

/// The document without its text and digest.
pub(super) fn document(kind: &str, document: &Object) -> Read<Definition> {
    known(document, "", &["gates", "initial", "provisional", "states"])?;
    named("kind", kind)?;
    let states = members(document, "states", STATES, true)?;
    let states = states.map(|(name, value)| Ok((name.to_owned(), state(name, value)?)));
    let gates = members(document, "gates", GATES, false)?;
    let gates = gates.map(|(name, value)| Ok((name.to_owned(), gate(name, value)?)));
    let provisional = match document.get("provisional") {
        None => false,
        Some(Value::Bool(provisional)) => *provisional,
        Some(_) => return Err(DocumentError::new("provisional", "must be true or false")),
    };
    Ok(Definition {
        digest: Hash([0; 32]),
        text: String::new(),
        kind: kind.to_owned(),
        initial: text(document, "initial", "initial")?.to_owned(),
        states: states.collect::<Read<_>>()?,
        gates: gates.collect::<Read<_>>()?,
        provisional,
    })
}

fn state(name: &str, value: &Value) -> Read<State> {
    let path = format!("states.{name}");
    named(&path, name)?;
    let Value::Object(state) = value else { return Err(mapping(&path)) };
    known(state, &path, &["commands", "idle", "interrupted", "terminal", "to"])?;
    match state.get("terminal") {
        None | Some(Value::Bool(false)) => {}
        Some(Value::Bool(true)) if state.len() == 1 => return Ok(State::Terminal),
        Some(Value::Bool(true)) => {
            return Err(DocumentError::new(
                path,
                "is terminal, so nothing follows on it: it has no `to`, `idle`, `interrupted` or `commands`",
            ));
        }
        Some(_) => {
            return Err(DocumentError::new(format!("{path}.terminal"), "must be true or false"));
        }
    }
    let idle = match state.get("idle") {
        None => false,
        Some(Value::Bool(idle)) => *idle,
        Some(_) => return Err(DocumentError::new(format!("{path}.idle"), "must be true or false")),
    };
    let interrupted = format!("{path}.interrupted");
    Ok(State::Living {
        to: followers(state, &format!("{path}.to"))?,
        interrupted: text(state, "interrupted", &interrupted)?.to_owned(),
        idle,
        commands: commands(state, &format!("{path}.commands"))?,
    })
}

fn followers(state: &Object, path: &str) -> Read<BTreeSet<String>> {
    let Some(Value::List(items)) = state.get("to") else {
        return Err(DocumentError::new(
            path,
            "must be the list of states that may follow; a state on which none follows is `terminal: true`",
        ));
    };
    let mut to = BTreeSet::new();
    for item in items {
        match item {
            Value::Text(name) if to.insert(name.clone()) => {}
            Value::Text(name) => return Err(DocumentError::new(path, format!("names `{name}` twice"))),
            _ => return Err(DocumentError::new(path, "must be a list of names of states")),
        }
    }
    Ok(to)
}

fn commands(state: &Object, path: &str) -> Read<BTreeMap<String, Option<String>>> {
    let commands = match state.get("commands") {
        None => return Ok(BTreeMap::new()),
        Some(Value::Object(commands)) if commands.len() <= COMMANDS => commands,
        Some(Value::Object(_)) => {
            return Err(DocumentError::new(path, format!("has more than {COMMANDS} commands")));
        }
        Some(_) => return Err(mapping(path)),
    };
    let command = |(name, to): (&str, &Value)| {
        let path = format!("{path}.{name}");
        named(&path, name)?;
        match to {
            Value::Null => Ok((name.to_owned(), None)),
            Value::Text(to) => Ok((name.to_owned(), Some(to.clone()))),
            _ => Err(DocumentError::new(path, "must be the state that follows, or null")),
        }
    };
    commands.iter().map(command).collect()
}

fn gate(name: &str, value: &Value) -> Read<Gate> {
    let path = format!("gates.{name}");
    named(&path, name)?;
    let Value::Object(gate) = value else { return Err(mapping(&path)) };
    known(gate, &path, &["proof"])?;
    let path = format!("{path}.proof");
    let proof = match text(gate, "proof", &path)? {
        "required" => Proving::Required,
        "none" => Proving::None,
        _ => return Err(DocumentError::new(path, "must be required or none")),
    };
    Ok(Gate { proof })
}

/// The members of a mapping of at most so many; none if it may be left out.
fn members<'a>(
    document: &'a Object,
    name: &str,
    most: usize,
    needed: bool,
) -> Read<impl Iterator<Item = (&'a str, &'a Value)>> {
    let members = match document.get(name) {
        None if !needed => None,
        Some(Value::Object(members)) if members.len() > most => {
            return Err(DocumentError::new(name, format!("has more than {most} members")));
        }
        Some(Value::Object(members)) => Some(members),
        _ => return Err(mapping(name)),
    };
    Ok(members.into_iter().flat_map(Object::iter))
}

//! Reading a definition's document: its members, not yet what they mean together.
//! Whatever is wrong is kept, and reading goes on, so that all of it is told at once.

use std::collections::{BTreeMap, BTreeSet};

use super::{Gate, Proving};
use crate::json::{Object, Value};
use crate::run::document::{DocumentError, mapping, named, nearest_of};

/// What resources that are no runs are called by: `path/x` is no change `x`.
const RESERVED: [&str; 5] = ["name", "path", "root", "run", "workspace"];
/// More states nobody oversees.
const STATES: usize = 64;
/// More gates than this nobody passes.
const GATES: usize = 16;
/// More commands than this nobody reads.
const COMMANDS: usize = 32;

/// A document as far as it could be read.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) errors: Vec<DocumentError>,
    pub(super) initial: Option<String>,
    pub(super) states: BTreeMap<String, Drafted>,
    pub(super) gates: BTreeMap<String, Gate>,
    pub(super) provisional: bool,
}

/// A state as far as it could be read.
#[derive(Default)]
pub(super) struct Drafted {
    pub(super) terminal: bool,
    /// The states that may follow, in the order in which they stand.
    pub(super) to: Option<Vec<String>>,
    pub(super) interrupted: Option<String>,
    pub(super) idle: bool,
    pub(super) commands: BTreeMap<String, Option<String>>,
}

impl Draft {
    pub(super) fn read(kind: &str, document: &Object) -> Draft {
        let mut draft = Draft::default();
        if document.get("kind").is_some() {
            draft.wrong("kind", "is the name under which the definition stands");
        }
        let meant = draft.known(document, "", &["gates", "initial", "provisional", "states"], &["kind"]);
        draft.keep(named("kind", kind));
        if RESERVED.contains(&kind) {
            draft.wrong("kind", "is what other resources are called by; choose another name");
        }
        draft.initial = draft.text(document, "", "initial", &meant, "the state that a run begins in");
        if !meant.contains("states") {
            let of = "from states to what may follow, as in `open: { to: [closed], interrupted: closed }`";
            for (name, value) in draft.members(document, "states", STATES, true, of) {
                let state = draft.state(name, value);
                draft.states.insert(name.to_owned(), state);
            }
        }
        let of = "from gates to what they ask for, as in `design: { proof: required }`";
        for (name, value) in draft.members(document, "gates", GATES, false, of) {
            let gate = draft.gate(name, value);
            draft.gates.extend(gate.map(|gate| (name.to_owned(), gate)));
        }
        draft.provisional = draft.flag(document, "", "provisional").unwrap_or_default();
        draft
    }

    pub(super) fn wrong(&mut self, path: impl Into<String>, problem: impl Into<String>) {
        self.errors.push(DocumentError::new(path, problem));
    }

    fn keep<T>(&mut self, read: Result<T, DocumentError>) -> Option<T> {
        read.map_err(|error| self.errors.push(error)).ok()
    }

    fn state(&mut self, name: &str, value: &Value) -> Drafted {
        let path = format!("states.{name}");
        self.keep(named(&path, name));
        let Value::Object(state) = value else {
            self.wrong(path, "must be a mapping, as `{ terminal: true }` or `{ to: […], interrupted: … }`");
            return Drafted::default();
        };
        let members = ["commands", "idle", "interrupted", "terminal", "to"];
        let meant = self.known(state, &path, &members, &[]);
        let follows =
            ["commands", "idle", "interrupted", "to"].iter().any(|member| state.get(member).is_some());
        // Who wrote anything at all meant that the state is one.
        let terminal = self.flag(state, &path, "terminal").unwrap_or(!follows);
        if terminal || meant.contains("terminal") {
            if follows {
                let problem = "is terminal, so nothing follows on it: it has no `to`, `idle`, `interrupted` or \
                               `commands`";
                self.wrong(path, problem);
            }
            return Drafted { terminal: true, ..Drafted::default() };
        }
        if !follows {
            let problem = "says nothing: `{ terminal: true }`, or what may follow (`to`, `interrupted`)";
            self.wrong(path, problem);
            return Drafted::default();
        }
        let why = "the state that follows when whoever worked on it is gone";
        Drafted {
            terminal,
            to: self.followers(state, &path, &meant),
            interrupted: self.text(state, &path, "interrupted", &meant, why),
            idle: self.flag(state, &path, "idle").unwrap_or_default(),
            commands: self.commands(state, &format!("{path}.commands")),
        }
    }

    fn followers(&mut self, state: &Object, path: &str, meant: &BTreeSet<String>) -> Option<Vec<String>> {
        if meant.contains("to") {
            return None;
        }
        let path = format!("{path}.to");
        let Some(Value::List(items)) = state.get("to") else {
            self.wrong(
                path,
                "must be the list of states that may follow; a state on which none follows is `terminal: true`",
            );
            return None;
        };
        let (mut to, before): (Vec<String>, usize) = (Vec::new(), self.errors.len());
        for (at, item) in items.iter().enumerate() {
            let path = format!("{path}[{at}]");
            match item {
                Value::Text(name) if to.contains(name) => self.wrong(path, format!("names `{name}` twice")),
                Value::Text(name) => to.push(name.clone()),
                _ => self.wrong(path, "must be the name of a state"),
            }
        }
        (self.errors.len() == before).then_some(to)
    }

    fn commands(&mut self, state: &Object, path: &str) -> BTreeMap<String, Option<String>> {
        let mut commands = BTreeMap::new();
        let of_it = match state.get("commands") {
            None => return commands,
            Some(Value::Object(of_it)) if of_it.len() <= COMMANDS => of_it,
            Some(Value::Object(_)) => {
                self.wrong(path, format!("has more than {COMMANDS} commands"));
                return commands;
            }
            Some(_) => {
                self.errors.push(mapping(path));
                return commands;
            }
        };
        for (name, to) in of_it.iter() {
            let path = format!("{path}.{name}");
            self.keep(named(&path, name));
            match to {
                Value::Null => drop(commands.insert(name.to_owned(), None)),
                Value::Text(to) => drop(commands.insert(name.to_owned(), Some(to.clone()))),
                _ => self.wrong(path, "must be the state that follows, or null"),
            }
        }
        commands
    }

    fn gate(&mut self, name: &str, value: &Value) -> Option<Gate> {
        let path = format!("gates.{name}");
        self.keep(named(&path, name));
        let Value::Object(gate) = value else {
            self.wrong(path, "must be a mapping, as `{ proof: required }`");
            return None;
        };
        let meant = self.known(gate, &path, &["proof"], &[]);
        let proof = match self.text(gate, &path, "proof", &meant, "required or none")?.as_str() {
            "required" => Proving::Required,
            "none" => Proving::None,
            _ => {
                self.wrong(format!("{path}.proof"), "must be required or none");
                return None;
            }
        };
        Some(Gate { proof })
    }

    /// Says which members are not known; answers with those that were meant.
    fn known(&mut self, object: &Object, path: &str, known: &[&str], told: &[&str]) -> BTreeSet<String> {
        let mut meant = BTreeSet::new();
        for (name, _) in object.iter().filter(|(name, _)| !known.contains(name) && !told.contains(name)) {
            let missing = known.iter().copied().filter(|known| object.get(known).is_none());
            let hint = match nearest_of(name, missing).or_else(|| nearest_of(name, known.iter().copied())) {
                Some(near) => {
                    let hint = format!("; did you mean `{near}`?");
                    meant.insert(near);
                    hint
                }
                None => format!("; known are {}", known.join(", ")),
            };
            self.wrong(member(path, name), format!("is not known{hint}"));
        }
        meant
    }

    /// A text that must be there, unless it was meant by another name.
    fn text(
        &mut self,
        object: &Object,
        path: &str,
        name: &str,
        meant: &BTreeSet<String>,
        what: &str,
    ) -> Option<String> {
        match object.get(name) {
            Some(Value::Text(text)) => return Some(text.clone()),
            Some(_) => self.wrong(member(path, name), "must be a text"),
            None if meant.contains(name) => {}
            None => self.wrong(member(path, name), format!("is missing: {what}")),
        }
        None
    }

    /// A flag; `None` if it is none.
    fn flag(&mut self, object: &Object, path: &str, name: &str) -> Option<bool> {
        match object.get(name) {
            None => Some(false),
            Some(Value::Bool(flag)) => Some(*flag),
            Some(_) => {
                self.wrong(member(path, name), "must be true or false");
                None
            }
        }
    }

    /// The members of a mapping of at most so many; none if it may be left out.
    fn members<'a>(
        &mut self,
        document: &'a Object,
        name: &str,
        most: usize,
        needed: bool,
        of: &str,
    ) -> Vec<(&'a str, &'a Value)> {
        match document.get(name) {
            None if !needed => {}
            Some(Value::Object(members)) if members.len() <= most => return members.iter().collect(),
            Some(Value::Object(_)) => self.wrong(name, format!("has more than {most} members")),
            Some(_) => self.wrong(name, format!("must be a mapping {of}")),
            None => self.wrong(name, format!("is missing: a mapping {of}")),
        }
        Vec::new()
    }
}

fn member(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

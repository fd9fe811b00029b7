//! Run definitions: the states of a kind of run, as data, fixed by hash.

mod built_in;
mod check;
mod read;

use std::collections::{BTreeMap, BTreeSet};

use crate::hash::Hash;
use crate::json::{self, Limits, Object, Value};
use crate::pack::Corrupt;
use crate::run::definition::read::Draft;
use crate::run::document::DocumentError;

/// What runs of one kind go through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    digest: Hash,
    text: String,
    kind: String,
    initial: String,
    states: BTreeMap<String, State>,
    gates: BTreeMap<String, Gate>,
    provisional: bool,
}

/// One state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The run goes on.
    Living {
        /// The states that may follow.
        to: BTreeSet<String>,
        /// The one that follows when whoever worked on it is gone.
        interrupted: String,
        /// Whether none of its tasks is taken meanwhile.
        idle: bool,
        /// What an operator may ask for, and the state that follows, where that
        /// is not for the program to say.
        commands: BTreeMap<String, Option<String>>,
    },
    /// Nothing follows.
    Terminal,
}

/// A point that a delivery is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    /// What a delivery must name.
    pub proof: Proving,
}

/// Whether a delivery needs a person's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proving {
    /// It names an approval of this store, which is used by it.
    Required,
    /// It need not.
    None,
}

impl Definition {
    /// Reads a document: `initial`, `states`, and perhaps `gates` and
    /// `provisional`.
    ///
    /// # Errors
    /// Everything that is wrong with it, at least one thing.
    pub fn compile(kind: &str, document: &Object) -> Result<Definition, Vec<DocumentError>> {
        let mut draft = Draft::read(kind, document);
        check::check(&mut draft);
        Definition::of(kind, document, draft)
    }

    fn of(kind: &str, document: &Object, draft: Draft) -> Result<Definition, Vec<DocumentError>> {
        let Draft { errors, initial, states, gates, provisional } = draft;
        let states = states.into_iter().map(|(name, state)| {
            if state.terminal {
                return Some((name, State::Terminal));
            }
            let (to, interrupted) = (state.to?.into_iter().collect(), state.interrupted?);
            Some((name, State::Living { to, interrupted, idle: state.idle, commands: state.commands }))
        });
        let (Some(initial), Some(states), true) = (initial, states.collect(), errors.is_empty()) else {
            return Err(errors);
        };
        let mut document = document.clone();
        document.insert("kind", kind);
        let text = json::canonical(&Value::Object(document));
        let digest = Hash::of("onceseal.run-definition.v1\n", &[text.as_bytes()]);
        Ok(Definition { digest, text, kind: kind.to_owned(), initial, states, gates, provisional })
    }

    /// Reads a stored text again. It was checked when it was first used: runs go
    /// by it for all their life, also if a later program would not take it.
    ///
    /// # Errors
    /// [`Corrupt`] if it is not canonical or cannot be read.
    pub fn restore(text: &str) -> Result<Definition, Corrupt> {
        const WRONG: Corrupt = Corrupt("run definition");
        let Ok(Value::Object(mut document)) = json::read_canonical(text, &Limits::DATA) else {
            return Err(WRONG);
        };
        match document.remove("kind") {
            Some(Value::Text(kind)) => {
                Definition::of(&kind, &document, Draft::read(&kind, &document)).map_err(|_| WRONG)
            }
            _ => Err(WRONG),
        }
    }

    /// Every definition that is built in.
    #[must_use]
    pub fn built_in() -> Vec<Definition> {
        built_in::all()
    }

    /// SHA-256(`onceseal.run-definition.v1\n` ‖ text).
    #[must_use]
    pub const fn digest(&self) -> Hash {
        self.digest
    }

    /// Canonical text of the document, with the kind.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The kind that it defines.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The state of a run that was started.
    #[must_use]
    pub fn initial(&self) -> &str {
        &self.initial
    }

    /// The states by name.
    #[must_use]
    pub const fn states(&self) -> &BTreeMap<String, State> {
        &self.states
    }

    /// The gates by name.
    #[must_use]
    pub const fn gates(&self) -> &BTreeMap<String, Gate> {
        &self.gates
    }

    /// Whether a run may be started before its change has a name.
    #[must_use]
    pub const fn is_provisional(&self) -> bool {
        self.provisional
    }

    /// Whether this state is one of it.
    #[must_use]
    pub fn has(&self, state: &str) -> bool {
        self.states.contains_key(state)
    }

    /// Whether nothing follows on this state.
    #[must_use]
    pub fn is_terminal(&self, state: &str) -> bool {
        matches!(self.states.get(state), Some(State::Terminal))
    }

    /// Whether one state may follow on another.
    #[must_use]
    pub fn permits(&self, from: &str, to: &str) -> bool {
        matches!(self.states.get(from), Some(State::Living { to: next, .. }) if next.contains(to))
    }

    /// Whether no task of a run is taken while it is in this state.
    #[must_use]
    pub fn is_idle(&self, state: &str) -> bool {
        !matches!(self.states.get(state), Some(State::Living { idle: false, .. }))
    }

    /// The state that follows when whoever worked on a run is gone; `None` if
    /// nothing follows.
    #[must_use]
    pub fn interrupted(&self, state: &str) -> Option<&str> {
        match self.states.get(state)? {
            State::Living { interrupted, .. } => Some(interrupted),
            State::Terminal => None,
        }
    }

    /// Every pair of states of which the second may follow on the first.
    pub fn edges(&self) -> impl Iterator<Item = (&str, &str)> {
        self.states.iter().flat_map(|(from, state)| {
            let to = match state {
                State::Living { to, .. } => Some(to),
                State::Terminal => None,
            };
            to.into_iter().flatten().map(|to| (from.as_str(), to.as_str()))
        })
    }

    /// What an operator may ask for in a state.
    pub fn commands(&self, state: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
        let commands = match self.states.get(state) {
            Some(State::Living { commands, .. }) => Some(commands),
            Some(State::Terminal) | None => None,
        };
        commands.into_iter().flatten().map(|(name, to)| (name.as_str(), to.as_deref()))
    }
}

#[cfg(test)]
mod tests;

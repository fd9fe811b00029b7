//! What one task is, as a plan says it.

use std::collections::BTreeSet;

use crate::hash::Hash;
use crate::json::{self, Object, Value};
use crate::lease::Resource;
use crate::limits;
use crate::run::DocumentError;
use crate::run::document::{Read, known, mapping};
use crate::run::name;

/// Names in one list of a task.
const NAMES: usize = 256;
/// Phases of one task.
const PHASES: usize = 16;
/// How often an obligation may be attempted if nothing is said.
const ATTEMPTS: u32 = 3;
/// What the one phase is called where none is named.
const PHASE: &str = "work";

/// A task of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Its name in the plan: like a request id.
    pub id: String,
    /// Tasks that must be verified before it begins.
    pub depends_on: Vec<String>,
    /// What it goes through, in this order.
    pub phases: Vec<String>,
    /// Tasks that it must not run beside.
    pub conflicts: Vec<String>,
    /// Anything with a name that one task at a time may have.
    pub resources: Vec<String>,
    /// Paths that it reads, with all that is below them.
    pub reads: Vec<Vec<String>>,
    /// Paths that it writes, with all that is below them.
    pub writes: Vec<Vec<String>>,
    /// How often it may be attempted in each phase for each cause.
    pub attempts: u32,
    text: String,
}

impl Spec {
    /// Reads one task. `at` is its place in the plan, for errors.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub(super) fn read(at: &str, value: &Value) -> Read<Spec> {
        let Value::Object(object) = value else { return Err(mapping(at)) };
        let members =
            ["attempts", "conflicts", "depends_on", "id", "input", "phases", "reads", "resources", "writes"];
        known(object, at, &members)?;
        let id = match object.get("id") {
            Some(Value::Text(id)) if name::is_request(id) => id.clone(),
            _ => {
                let problem = "must be a name: 1 to 128 ASCII letters, digits, `.`, `_`, `:` and `-`";
                return Err(DocumentError::new(format!("{at}.id"), problem));
            }
        };
        if !matches!(object.get("input"), None | Some(Value::Object(_))) {
            return Err(mapping(&format!("{at}.input")));
        }
        let mut phases = names(object, at, "phases", name::is_plain)?;
        if phases.len() > PHASES {
            return Err(DocumentError::new(format!("{at}.phases"), format!("has more than {PHASES} phases")));
        }
        if phases.is_empty() {
            phases.push(PHASE.to_owned());
        }
        let most = i64::from(limits::ATTEMPTS_MAX);
        let attempts = match object.get("attempts") {
            None => ATTEMPTS,
            Some(Value::Integer(n)) if (1..=most).contains(n) => u32::try_from(*n).unwrap_or(ATTEMPTS),
            Some(_) => {
                let problem = format!("must be a number from 1 to {most}");
                return Err(DocumentError::new(format!("{at}.attempts"), problem));
            }
        };
        let spec = Spec {
            depends_on: names(object, at, "depends_on", name::is_request)?,
            conflicts: names(object, at, "conflicts", name::is_request)?,
            resources: names(object, at, "resources", limits::is_long_name)?,
            reads: paths(object, at, "reads")?,
            writes: paths(object, at, "writes")?,
            text: json::canonical(value),
            id,
            phases,
            attempts,
        };
        for (member, list) in [("depends_on", &spec.depends_on), ("conflicts", &spec.conflicts)] {
            if list.contains(&spec.id) {
                return Err(DocumentError::new(format!("{at}.{member}"), "names the task itself"));
            }
        }
        if spec.text.len() > limits::RESULT_BYTES {
            let problem = format!("is longer than {} bytes", limits::RESULT_BYTES);
            return Err(DocumentError::new(at, problem));
        }
        Ok(spec)
    }

    /// Canonical text of the whole of it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// SHA-256(`onceseal.task.v1\n` ‖ text).
    #[must_use]
    pub fn digest(&self) -> Hash {
        Hash::of("onceseal.task.v1\n", &[self.text.as_bytes()])
    }
}

fn names(object: &Object, at: &str, member: &str, is_name: impl Fn(&str) -> bool) -> Read<Vec<String>> {
    list(object, at, member, is_name, "is no name")
}

fn list(
    object: &Object,
    at: &str,
    member: &str,
    is_fit: impl Fn(&str) -> bool,
    otherwise: &str,
) -> Read<Vec<String>> {
    let path = format!("{at}.{member}");
    let items = match object.get(member) {
        None => return Ok(Vec::new()),
        Some(Value::List(items)) if items.len() <= NAMES => items,
        Some(Value::List(_)) => {
            return Err(DocumentError::new(path, format!("has more than {NAMES} names")));
        }
        Some(_) => return Err(DocumentError::new(path, "must be a list of names")),
    };
    let mut seen = BTreeSet::new();
    let mut names = Vec::new();
    for (number, item) in items.iter().enumerate() {
        match item {
            Value::Text(name) if !is_fit(name) => {
                return Err(DocumentError::new(format!("{path}[{number}]"), otherwise));
            }
            Value::Text(name) if seen.insert(name) => names.push(name.clone()),
            Value::Text(name) => return Err(DocumentError::new(path, format!("names `{name}` twice"))),
            _ => return Err(DocumentError::new(path, "must be a list of names")),
        }
    }
    Ok(names)
}

fn paths(object: &Object, at: &str, member: &str) -> Read<Vec<Vec<String>>> {
    let is_path = |text: &str| limits::is_long_name(text) && Resource::segments(text).is_some();
    let otherwise = "is no path inside the project: steps parted by `/`, none of them empty, `.` or `..`";
    let texts = list(object, at, member, is_path, otherwise)?;
    Ok(texts.iter().filter_map(|text| Resource::segments(text)).collect())
}

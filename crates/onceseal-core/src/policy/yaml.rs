//! The strict reader of the policy file: YAML 1.2 in, plain data out.
//!
//! One document is read, and each construct has one meaning for every reader
//! of YAML 1.2: what could be understood in two ways (a key twice, tags,
//! aliases, merge keys, directives) is refused where it stands. Plain scalars
//! have the types of the core schema (YAML 1.2.2 §10.3.2), without fractions.
//! Size and depth are bounded before anything is built, and nothing here
//! recurses into the document.

mod scalar;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;

use granit_parser::{ErrorKind, Event, Marker, Parser, ScalarStyle, ScanError};

use super::error::{Path, PolicyError, PolicyErrorKind, Position, Step};
use crate::json::{Object, Value};
use crate::limits::{POLICY_BYTES, POLICY_DEPTH};

/// A document and where its values stand in the file.
#[derive(Debug, Clone)]
pub struct Document {
    value: Value,
    mark: Mark,
}

#[derive(Debug, Clone)]
struct Mark {
    at: Position,
    inside: Inside,
}

#[derive(Debug, Clone)]
enum Inside {
    Nothing,
    Items(Vec<Mark>),
    Members(BTreeMap<String, Mark>),
}

impl Document {
    /// Reads one YAML document. A file without one is `null`.
    ///
    /// # Errors
    /// The first thing that is not strict YAML, with its place.
    pub fn read(file: &[u8]) -> Result<Document, PolicyError> {
        let text = decode(file)?;
        let options = granit_parser::options! {
            strict_indentation: true,
            disallow_directives: true,
            emit_unresolved_aliases: true,
            flow_nesting_limit: POLICY_DEPTH,
            block_nesting_limit: POLICY_DEPTH,
            emit_comments: false,
        };
        let mut reader = Reader::default();
        for event in Parser::new_from_str_with_options(text, options) {
            match event {
                Ok((event, span)) => reader.take(event, position(&span.start))?,
                Err(error) => return Err(reader.fail(position(error.marker()), scan_error(&error))),
            }
        }
        let (value, mark) = reader.root.unwrap_or_else(|| leaf(Value::Null, START));
        Ok(Document { value, mark })
    }

    /// The document as plain data.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Takes one member of the top level out, for whoever else reads the file.
    /// Its places stay known.
    pub fn take(&mut self, section: &str) -> Option<Value> {
        match &mut self.value {
            Value::Object(members) => members.remove(section),
            _ => None,
        }
    }

    /// Where the value at `path` stands: a member at its key, an item at its
    /// first character. The nearest value around it, if the path leads nowhere.
    #[must_use]
    pub fn position(&self, path: &Path) -> Position {
        let mut mark = &self.mark;
        for step in path.steps() {
            let next = match (&mark.inside, step) {
                (Inside::Members(members), Step::Name(name)) => members.get(name),
                (Inside::Items(items), Step::Index(index)) => items.get(*index),
                _ => None,
            };
            match next {
                Some(inner) => mark = inner,
                None => break,
            }
        }
        mark.at
    }
}

/// `name` as a key of a mapping: plain where every reader takes it for text.
pub(super) fn key(name: &str) -> String {
    const YAML_1_1: [&str; 6] = ["yes", "no", "on", "off", "y", "n"];
    let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
        && !YAML_1_1.contains(&name.to_lowercase().as_str());
    if is_word && matches!(scalar::resolve(name), Ok(Value::Text(_))) {
        return name.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in name.chars() {
        match u32::from(c) {
            _ if matches!(c, '"' | '\\') => quoted.extend(['\\', c]),
            _ if c.is_alphanumeric() || c.is_ascii_punctuation() || c == ' ' => quoted.push(c),
            code if code <= 0xFFFF => quoted.push_str(&format!("\\u{code:04X}")),
            code => quoted.push_str(&format!("\\U{code:08X}")),
        }
    }
    quoted.push('"');
    quoted
}

const START: Position = Position { line: 1, column: 1 };

fn decode(file: &[u8]) -> Result<&str, PolicyError> {
    let fail = |kind| PolicyError { path: Path::default(), position: None, kind };
    if file.len() > POLICY_BYTES {
        return Err(fail(PolicyErrorKind::TooLarge { bytes: file.len() }));
    }
    if file.starts_with(b"\xEF\xBB\xBF") {
        return Err(fail(PolicyErrorKind::Encoding("the file starts with a byte-order mark")));
    }
    std::str::from_utf8(file).map_err(|_| fail(PolicyErrorKind::Encoding("the file is not UTF-8")))
}

fn position(at: &Marker) -> Position {
    Position { line: at.line(), column: at.col() + 1 }
}

fn scan_error(error: &ScanError) -> PolicyErrorKind {
    match error.kind() {
        ErrorKind::RecursionLimitExceeded => PolicyErrorKind::TooDeep,
        ErrorKind::DirectiveDisallowed => {
            refused("a directive (%)", "remove it, the file is read as YAML 1.2")
        }
        other => PolicyErrorKind::Syntax(other.to_string()),
    }
}

fn refused(what: &'static str, instead: &'static str) -> PolicyErrorKind {
    PolicyErrorKind::Refused { what, instead }
}

fn leaf(value: Value, at: Position) -> (Value, Mark) {
    (value, Mark { at, inside: Inside::Nothing })
}

/// Builds the tree from the inside out; `open` is the way to where it stands.
#[derive(Default)]
struct Reader {
    open: Vec<Open>,
    documents: usize,
    root: Option<(Value, Mark)>,
}

enum Open {
    List { at: Position, items: Vec<Value>, marks: Vec<Mark> },
    Mapping { at: Position, members: Vec<(String, Value)>, marks: BTreeMap<String, Mark>, key: Option<Key> },
}

struct Key {
    name: String,
    at: Position,
}

impl Reader {
    fn take(&mut self, event: Event<'_>, at: Position) -> Result<(), PolicyError> {
        match event {
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(..) => self.start_document(at),
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                Err(self.fail(at, refused("an alias (*)", "write the value out")))
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.plain_node(at, anchor, tag.is_some())?;
                self.scalar(at, &text, style == ScalarStyle::Plain)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.plain_node(at, anchor, tag.is_some())?;
                self.enter(at, Open::List { at, items: Vec::new(), marks: Vec::new() })
            }
            Event::MappingStart(_, anchor, tag) => {
                self.plain_node(at, anchor, tag.is_some())?;
                let (members, marks) = (Vec::new(), BTreeMap::new());
                self.enter(at, Open::Mapping { at, members, marks, key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => self.leave(at),
            other => Err(self.fail(at, PolicyErrorKind::Syntax(format!("unexpected {other:?}")))),
        }
    }

    fn start_document(&mut self, at: Position) -> Result<(), PolicyError> {
        self.documents += 1;
        if self.documents > 1 {
            return Err(self.fail(at, refused("a second document (---)", "keep one document per file")));
        }
        Ok(())
    }

    fn plain_node(&self, at: Position, anchor: usize, tagged: bool) -> Result<(), PolicyError> {
        if anchor != 0 {
            return Err(self.fail(at, refused("an anchor (&)", "write the value out where it is used")));
        }
        if tagged {
            return Err(
                self.fail(at, refused("a tag (!)", "write text in quotes, and everything else plain"))
            );
        }
        Ok(())
    }

    fn scalar(&mut self, at: Position, text: &str, plain: bool) -> Result<(), PolicyError> {
        if text.contains('\0') {
            return Err(self.fail(at, PolicyErrorKind::NulCharacter));
        }
        if let Some(Open::Mapping { key: None, .. }) = self.open.last() {
            return self.key(at, text, plain);
        }
        let value = if plain { scalar::resolve(text) } else { Ok(Value::from(text)) };
        let value = value.map_err(|kind| self.fail(at, kind))?;
        self.put(at, leaf(value, at))
    }

    fn key(&mut self, at: Position, text: &str, plain: bool) -> Result<(), PolicyError> {
        if plain && text == "<<" {
            return Err(self.fail(at, refused("a merge key (<<)", "write the members out")));
        }
        if plain && !matches!(scalar::resolve(text), Ok(Value::Text(_))) {
            return Err(self.fail(at, PolicyErrorKind::KeyNotText { key: text.to_owned() }));
        }
        if let Some(Open::Mapping { key, .. }) = self.open.last_mut() {
            *key = Some(Key { name: text.to_owned(), at });
        }
        Ok(())
    }

    fn enter(&mut self, at: Position, collection: Open) -> Result<(), PolicyError> {
        if let Some(Open::Mapping { key: None, .. }) = self.open.last() {
            return Err(self.fail(at, refused("a list or mapping as a key", "keys are text")));
        }
        if self.open.len() == POLICY_DEPTH {
            return Err(self.fail(at, PolicyErrorKind::TooDeep));
        }
        self.open.push(collection);
        Ok(())
    }

    fn leave(&mut self, end: Position) -> Result<(), PolicyError> {
        let finished = match self.open.pop() {
            Some(Open::List { at, items, marks }) => {
                (Value::List(items), Mark { at, inside: Inside::Items(marks) })
            }
            Some(Open::Mapping { at, members, marks, key: None }) => match Object::from_members(members) {
                Ok(object) => (Value::Object(object), Mark { at, inside: Inside::Members(marks) }),
                Err(key) => return Err(self.fail(at, PolicyErrorKind::DuplicateKey { key, first: at })),
            },
            Some(Open::Mapping { key: Some(_), .. }) | None => {
                return Err(
                    self.fail(end, PolicyErrorKind::Syntax("unexpected end of a collection".to_owned()))
                );
            }
        };
        self.put(end, finished)
    }

    /// Puts a finished value where it belongs.
    fn put(&mut self, at: Position, (value, mark): (Value, Mark)) -> Result<(), PolicyError> {
        let problem = match self.open.last_mut() {
            None => {
                self.root = Some((value, Mark { at: START, ..mark }));
                return Ok(());
            }
            Some(Open::List { items, marks, .. }) => {
                items.push(value);
                marks.push(mark);
                return Ok(());
            }
            Some(Open::Mapping { members, marks, key, .. }) => match key.take() {
                None => PolicyErrorKind::Syntax("a value without a key".to_owned()),
                Some(Key { name, at: key_at }) => match marks.entry(name.clone()) {
                    Slot::Vacant(slot) => {
                        slot.insert(Mark { at: key_at, ..mark });
                        members.push((name, value));
                        return Ok(());
                    }
                    Slot::Occupied(first) => {
                        let first = first.get().at;
                        return Err(self.fail(key_at, PolicyErrorKind::DuplicateKey { key: name, first }));
                    }
                },
            },
        };
        Err(self.fail(at, problem))
    }

    fn fail(&self, at: Position, kind: PolicyErrorKind) -> PolicyError {
        let step = |open: &Open| match open {
            Open::List { items, .. } => Some(Step::Index(items.len())),
            Open::Mapping { key, .. } => key.as_ref().map(|key| Step::Name(key.name.clone())),
        };
        let path = Path::new(self.open.iter().filter_map(step).collect());
        PolicyError { path, position: Some(at), kind }
    }
}

#[cfg(test)]
mod tests;

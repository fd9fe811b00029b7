//! Templates of effect keys and resources: literal text and `{argument}`.
//!
//! Two different tuples of value texts never make one key. A value is escaped
//! to `[A-Za-z0-9_-]` and `%XX`, and between two placeholders stands a literal
//! with a character that no escaped value has, so a key can be taken apart in
//! one way only.

use super::argument::ArgumentPath;
use super::error::quoted;
use crate::json::{Object, Value};
use crate::limits::EFFECT_KEY_BYTES;

/// Keys that Onceseal makes itself start so.
const OWN_PREFIXES: [&str; 2] = ["act:", "op:"];

/// What a template is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateKind {
    /// The effect key. `{resource}` is the action's resource.
    Effect,
    /// The action's resource. `{resource}` is an argument of that name.
    Resource,
}

/// A template, checked when the policy is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    kind: TemplateKind,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Argument(ArgumentPath),
    Resource,
}

/// Why text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateProblem {
    /// Without any text.
    #[error("the template is empty; leave it out or write one, as \"refund:{{payment_id}}\"")]
    Empty,
    /// Longer than any key may be.
    #[error("the template is longer than {EFFECT_KEY_BYTES} bytes")]
    TooLong,
    /// Control characters.
    #[error("the template has control characters; remove them")]
    Control,
    /// A brace that does not enclose a name.
    #[error("a brace stands alone; braces only enclose one argument, as {{payment_id}}")]
    StrayBrace,
    /// Braces around something that is no name of an argument.
    #[error(
        "{} is no placeholder; write letters, digits and _ with dots into objects, as {{payment_id}}",
        quoted(&format!("{{{text}}}"))
    )]
    Placeholder {
        /// What stands between the braces.
        text: String,
    },
    /// A path into the action's resource, which is text.
    #[error("{{resource}} is the action's resource and has no members; rename the argument")]
    InsideResource,
    /// Two placeholders that could not be told apart in the key.
    #[error(
        "between {{{left}}} and {{{right}}} must stand a character other than letters, digits, _, - and %, as in {{{left}}}:{{{right}}}"
    )]
    Adjacent {
        /// The left placeholder.
        left: String,
        /// The right placeholder.
        right: String,
    },
    /// It starts as the keys do that Onceseal makes itself.
    #[error("a template must not start with `{0}`, as keys of actions without a template do")]
    OwnPrefix(&'static str),
}

/// Why a template has no value for an action. Such an action is refused before
/// any rule is looked at. No message has a value in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The argument is absent.
    #[error("the argument {} is missing; the {} needs it", quoted(argument), noun(*kind))]
    Missing {
        /// Of which template.
        kind: TemplateKind,
        /// The argument.
        argument: String,
    },
    /// The argument is neither text nor an integer.
    #[error("the argument {} is {found}; the {} needs text or an integer", quoted(argument), noun(*kind))]
    WrongType {
        /// Of which template.
        kind: TemplateKind,
        /// The argument.
        argument: String,
        /// The type it has.
        found: &'static str,
    },
    /// The argument, or the resource, is empty text.
    #[error("{} is empty; the {} needs text that is not", quoted(argument), noun(*kind))]
    Empty {
        /// Of which template.
        kind: TemplateKind,
        /// The argument, or `resource`.
        argument: String,
    },
    /// The effect key needs a resource and the action has none.
    #[error("the action has no resource; the effect key needs it")]
    NoResource,
    /// The effect key needs the resource, and an argument has that name too.
    #[error(
        "an argument is called `resource` like the action's own; the effect key would be ambiguous, rename it"
    )]
    AmbiguousResource,
    /// Longer than 1,024 bytes after escaping.
    #[error("the {} would be longer than {EFFECT_KEY_BYTES} bytes; shorten its arguments", noun(*kind))]
    TooLong {
        /// Of which template.
        kind: TemplateKind,
    },
    /// The arguments make a key that starts as Onceseal's own.
    #[error("the {} would start with `{prefix}`, as keys of actions without a template do", noun(*kind))]
    OwnPrefix {
        /// Of which template.
        kind: TemplateKind,
        /// The start.
        prefix: &'static str,
    },
}

fn noun(kind: TemplateKind) -> &'static str {
    match kind {
        TemplateKind::Effect => "effect key",
        TemplateKind::Resource => "resource",
    }
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str, kind: TemplateKind) -> Result<Template, TemplateProblem> {
        if text.is_empty() {
            return Err(TemplateProblem::Empty);
        }
        if text.len() > EFFECT_KEY_BYTES {
            return Err(TemplateProblem::TooLong);
        }
        if text.chars().any(char::is_control) {
            return Err(TemplateProblem::Control);
        }
        if let Some(prefix) = own_prefix(text) {
            return Err(TemplateProblem::OwnPrefix(prefix));
        }
        let parts = parts(text, kind)?;
        told_apart(&parts)?;
        Ok(Template { kind, parts })
    }

    /// The arguments it uses, in order.
    pub fn arguments(&self) -> impl Iterator<Item = &ArgumentPath> {
        self.parts.iter().filter_map(|part| match part {
            Part::Argument(path) => Some(path),
            Part::Literal(_) | Part::Resource => None,
        })
    }

    /// Whether it is the same for every action.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Literal(_)))
    }

    /// The key for these arguments; `resource` is the action's, if it has one.
    ///
    /// # Errors
    /// A value that is absent, empty or of another type, or a key that must
    /// not be.
    pub fn resolve(&self, arguments: &Object, resource: Option<&str>) -> Result<String, TemplateError> {
        let kind = self.kind;
        let mut key = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(text) => key.push_str(text),
                Part::Argument(path) => self.put_argument(path, arguments, &mut key)?,
                Part::Resource if arguments.get("resource").is_some() => {
                    return Err(TemplateError::AmbiguousResource);
                }
                Part::Resource => match resource {
                    None => return Err(TemplateError::NoResource),
                    Some("") => return Err(TemplateError::Empty { kind, argument: "resource".to_owned() }),
                    Some(text) => escape(text, &mut key),
                },
            }
            if key.len() > EFFECT_KEY_BYTES {
                return Err(TemplateError::TooLong { kind });
            }
        }
        match own_prefix(&key) {
            Some(prefix) => Err(TemplateError::OwnPrefix { kind, prefix }),
            None => Ok(key),
        }
    }

    fn put_argument(
        &self,
        path: &ArgumentPath,
        arguments: &Object,
        key: &mut String,
    ) -> Result<(), TemplateError> {
        let (kind, argument) = (self.kind, || path.to_string());
        match path.find(arguments) {
            None => return Err(TemplateError::Missing { kind, argument: argument() }),
            Some(Value::Text(text)) if text.is_empty() => {
                return Err(TemplateError::Empty { kind, argument: argument() });
            }
            Some(Value::Text(text)) => escape(text, key),
            Some(Value::Integer(n)) => key.push_str(&n.to_string()),
            Some(other) => {
                return Err(TemplateError::WrongType {
                    kind,
                    argument: argument(),
                    found: other.type_name(),
                });
            }
        }
        Ok(())
    }
}

fn own_prefix(key: &str) -> Option<&'static str> {
    OWN_PREFIXES.into_iter().find(|prefix| key.starts_with(prefix))
}

fn parts(text: &str, kind: TemplateKind) -> Result<Vec<Part>, TemplateProblem> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (literal, braced) = rest.split_at(at);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal.to_owned()));
        }
        let inside = braced.strip_prefix('{').ok_or(TemplateProblem::StrayBrace)?;
        let (name, after) = inside.split_once('}').ok_or(TemplateProblem::StrayBrace)?;
        parts.push(placeholder(name, kind)?);
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Literal(rest.to_owned()));
    }
    Ok(parts)
}

fn placeholder(text: &str, kind: TemplateKind) -> Result<Part, TemplateProblem> {
    let names_only = text.split('.').all(is_identifier);
    let path = ArgumentPath::parse(text).filter(|_| names_only);
    let path = path.ok_or_else(|| TemplateProblem::Placeholder { text: text.to_owned() })?;
    match (kind, path.names()) {
        (TemplateKind::Effect, [only]) if only == "resource" => Ok(Part::Resource),
        (TemplateKind::Effect, [first, ..]) if first == "resource" => Err(TemplateProblem::InsideResource),
        _ => Ok(Part::Argument(path)),
    }
}

fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_')
}

/// Refuses two placeholders without a character between them that no escaped
/// value has. `%` is no such character: every escape starts with one.
fn told_apart(parts: &[Part]) -> Result<(), TemplateProblem> {
    let divides = |c: char| !(is_kept(c) || c == '%');
    let mut left: Option<&Part> = None;
    for part in parts {
        match (part, left) {
            (Part::Literal(text), _) if text.contains(divides) => left = None,
            (Part::Literal(_), _) => {}
            (_, Some(left)) => {
                return Err(TemplateProblem::Adjacent { left: left.name(), right: part.name() });
            }
            (_, None) => left = Some(part),
        }
    }
    Ok(())
}

impl Part {
    fn name(&self) -> String {
        match self {
            Part::Literal(text) => text.clone(),
            Part::Argument(path) => path.to_string(),
            Part::Resource => "resource".to_owned(),
        }
    }
}

fn is_kept(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

fn escape(text: &str, key: &mut String) {
    const HEXADECIMAL: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if is_kept(char::from(byte)) {
            key.push(char::from(byte));
        } else {
            key.push('%');
            key.push(char::from(HEXADECIMAL[usize::from(byte >> 4)]));
            key.push(char::from(HEXADECIMAL[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests;

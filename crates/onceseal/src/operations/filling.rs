//! Texts and values with placeholders, as contracts have them.
//!
//! `{name}` and `{customer.id}` are arguments, `{provider:key}` is the key that
//! the remote tells attempts by, `{secret:NAME}` is a variable of the worker's
//! environment, which is never stored. A doubled brace is one brace.

use std::fmt;

use onceseal_core::json::{self, Object, Value};
use onceseal_core::policy::ArgumentPath;

/// A part of a text.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    Argument(ArgumentPath),
    ProviderKey,
    Secret(String),
}

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Filling(Vec<Part>);

/// What placeholders stand for.
pub(super) struct Given<'a> {
    pub(super) arguments: &'a Object,
    pub(super) provider_key: &'a str,
}

/// Why a text cannot be filled: nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Missing {
    /// There is no such argument, or it is null, a list or an object.
    Argument(String),
    /// The environment has no such variable.
    Secret(String),
    /// A value cannot stand where it would.
    Unfit,
}

/// How a value is written where it stands; `None` if it cannot stand there.
pub(super) type Encode = fn(&str) -> Option<String>;

/// As it is.
pub(super) fn plainly(text: &str) -> Option<String> {
    Some(text.to_owned())
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Argument(path) => {
                write!(f, "the argument {path} is not there, or is no text, number or boolean")
            }
            Missing::Unfit => f.write_str("a value is empty, or dots alone, where a part of a URL is filled"),
            Missing::Secret(name) => write!(f, "the worker's environment has no variable {name}"),
        }
    }
}

impl Filling {
    /// Reads a text.
    ///
    /// # Errors
    /// What is wrong with it, in a sentence.
    pub(super) fn parse(text: &str) -> Result<Filling, String> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '{' | '}' if rest.peek() == Some(&c) => {
                    rest.next();
                    plain.push(c);
                }
                '{' => {
                    let mut closed = false;
                    let name: String = rest
                        .by_ref()
                        .take_while(|c| {
                            closed = *c == '}';
                            !closed
                        })
                        .collect();
                    if !closed {
                        return Err("a { without its }; write {{ for the character".to_owned());
                    }
                    if !plain.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut plain)));
                    }
                    parts.push(Part::named(&name)?);
                }
                '}' => return Err("a } without its {; write }} for the character".to_owned()),
                c => plain.push(c),
            }
        }
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Filling(parts))
    }

    /// The text without placeholders, if it has none.
    pub(super) fn plain(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// What stands before the first placeholder.
    #[cfg(feature = "http")]
    pub(super) fn start(&self) -> &str {
        match self.0.first() {
            Some(Part::Text(text)) => text,
            _ => "",
        }
    }

    /// The text with something harmless in every place.
    #[cfg(feature = "http")]
    pub(super) fn sample(&self) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            _ => "x".to_owned(),
        };
        self.0.iter().map(part).collect()
    }

    /// The variables of the secrets in it.
    #[cfg(feature = "http")]
    pub(super) fn secrets(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(|part| match part {
            Part::Secret(name) => Some(name.clone()),
            _ => None,
        })
    }

    /// Whether a secret is filled in.
    pub(super) fn has_secrets(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Secret(_)))
    }

    /// The argument that it is, if it is nothing else.
    #[cfg(feature = "http")]
    pub(super) fn argument(&self) -> Option<&ArgumentPath> {
        match self.0.as_slice() {
            [Part::Argument(path)] => Some(path),
            _ => None,
        }
    }

    /// Whether it is one placeholder and nothing else.
    pub(super) fn is_one(&self) -> bool {
        matches!(self.0.as_slice(), [Part::Argument(_) | Part::ProviderKey | Part::Secret(_)])
    }

    /// The text with everything filled in, each value as `encode` writes it.
    pub(super) fn fill(&self, given: &Given<'_>, encode: Encode) -> Result<String, Missing> {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::ProviderKey => out.push_str(&encode(given.provider_key).ok_or(Missing::Unfit)?),
                Part::Argument(path) => {
                    out.push_str(&encode(&argument(path, given)?).ok_or(Missing::Unfit)?);
                }
                Part::Secret(name) => {
                    let value = std::env::var(name).map_err(|_| Missing::Secret(name.clone()))?;
                    out.push_str(&encode(&value).ok_or(Missing::Unfit)?);
                }
            }
        }
        Ok(out)
    }
}

impl Part {
    fn named(name: &str) -> Result<Part, String> {
        if name == "provider:key" {
            return Ok(Part::ProviderKey);
        }
        if let Some(variable) = name.strip_prefix("secret:") {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let fits = !variable.is_empty() && variable.chars().all(plain);
            return fits
                .then(|| Part::Secret(variable.to_owned()))
                .ok_or_else(|| "{secret:NAME} names a variable of letters, digits and _".to_owned());
        }
        match ArgumentPath::parse(name).filter(|_| !name.contains(['{', ':'])) {
            Some(path) => Ok(Part::Argument(path)),
            None => Err("a placeholder is {argument}, {provider:key} or {secret:NAME}".to_owned()),
        }
    }
}

fn argument(path: &ArgumentPath, given: &Given<'_>) -> Result<String, Missing> {
    match path.find(given.arguments) {
        Some(Value::Text(text)) => Ok(text.clone()),
        Some(value @ (Value::Bool(_) | Value::Integer(_) | Value::Float(_))) => Ok(json::canonical(value)),
        _ => Err(Missing::Argument(path.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(arguments: &Object) -> Given<'_> {
        Given { arguments, provider_key: "osl_key" }
    }

    fn arguments() -> Object {
        let mut customer = Object::new();
        customer.insert("id", "c/1 é");
        let mut object = Object::new();
        object.insert("amount", Value::Integer(5));
        object.insert("customer", Value::Object(customer));
        object
    }

    #[test]
    fn placeholders_are_arguments_the_key_and_secrets_and_braces_are_doubled() {
        let arguments = arguments();
        let filled = |text: &str| Filling::parse(text).expect("it reads").fill(&given(&arguments), plainly);
        assert_eq!(
            filled("a {amount} {customer.id} {provider:key} {{x}}"),
            Ok("a 5 c/1 é osl_key {x}".into())
        );
        assert_eq!(filled("{nothing}"), Err(Missing::Argument("nothing".into())));
        assert_eq!(filled("{customer}"), Err(Missing::Argument("customer".into())));
        assert_eq!(filled("{secret:ONCESEAL_NOT_SET}"), Err(Missing::Secret("ONCESEAL_NOT_SET".into())));
        for wrong in ["{", "}", "{a", "{}", "{secret:}", "{secret:a b}", "{other:x}", "{a{b}"] {
            assert!(Filling::parse(wrong).is_err(), "{wrong}");
        }
    }
}

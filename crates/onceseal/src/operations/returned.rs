//! What a result may hold besides what its schema says: how much, nothing that
//! looks like a credential or a command to a model, and the arguments' values
//! where they are repeated.

use std::fmt;

use onceseal_core::json::{self, Object, Value};
use onceseal_core::policy::ArgumentPath;

/// Names of members that no result has: what a model would leak, or obey. They
/// are compared by their letters and digits alone, without case and without an
/// `s` at the end.
const FORBIDDEN: [&str; 22] = [
    "accesstoken",
    "apikey",
    "authorization",
    "bearertoken",
    "clientsecret",
    "cookie",
    "credential",
    "developermessage",
    "idtoken",
    "instruction",
    "passwd",
    "password",
    "privatekey",
    "proxyauthorization",
    "refreshtoken",
    "secret",
    "sessiontoken",
    "setcookie",
    "systemmessage",
    "systemprompt",
    "toolcall",
    "toolchoice",
];

/// The rules of a contract's members `output_bytes`, `output_depth` and
/// `output_equals`.
#[derive(Debug, Clone, Default)]
pub(super) struct Returned {
    bytes: Option<usize>,
    depth: Option<usize>,
    equals: Vec<(Pointer, ArgumentPath)>,
}

/// A JSON pointer (RFC 6901).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pointer(Vec<String>);

impl Returned {
    /// # Errors
    /// What is wrong with one of them, in a sentence.
    pub(super) fn parse(contract: &Object) -> Result<Returned, String> {
        let number = |name: &str| match contract.get(name) {
            None => Ok(None),
            Some(value) => {
                let number = value.as_integer().and_then(|number| usize::try_from(number).ok());
                number.map(Some).ok_or_else(|| format!("{name}: a number of 0 or more"))
            }
        };
        let equals = match contract.get("output_equals") {
            None => Vec::new(),
            Some(Value::Object(pairs)) => pairs
                .iter()
                .map(|(pointer, path)| {
                    let path = path.as_text().and_then(ArgumentPath::parse);
                    let path = path.ok_or("output_equals: maps JSON pointers to arguments")?;
                    Ok((Pointer::parse(pointer).map_err(|what| format!("output_equals: {what}"))?, path))
                })
                .collect::<Result<_, String>>()?,
            Some(_) => return Err("output_equals: maps JSON pointers to arguments".to_owned()),
        };
        Ok(Returned { bytes: number("output_bytes")?, depth: number("output_depth")?, equals })
    }

    /// Whether a result keeps to them.
    ///
    /// # Errors
    /// What it does not keep to, without any value.
    pub(super) fn fits(&self, arguments: &Object, result: &Value) -> Result<(), String> {
        if let Some(most) = self.bytes.filter(|most| json::canonical(result).len() > *most) {
            return Err(format!("it is longer than {most} bytes"));
        }
        if let Some(most) = self.depth.filter(|most| depth(result) > *most) {
            return Err(format!("it nests deeper than {most}"));
        }
        if let Some(name) = forbidden(result) {
            return Err(format!("its member `{name}` is named like a credential or a command to a model"));
        }
        for (pointer, path) in &self.equals {
            let found = pointer.find(result);
            if found.is_none() || found != path.find(arguments) {
                return Err(format!("{pointer} is not the argument {path}"));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|step| write!(f, "/{step}"))
    }
}

impl Pointer {
    /// # Errors
    /// What is wrong, in a sentence.
    pub(super) fn parse(text: &str) -> Result<Pointer, String> {
        let rest = text.strip_prefix('/').ok_or("a JSON pointer begins with /, as in /id")?;
        Ok(Pointer(rest.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect()))
    }

    /// What it points at.
    pub(super) fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(value, |value, step| match value {
            Value::Object(object) => object.get(step),
            Value::List(items) => items.get(step.parse::<usize>().ok()?),
            _ => None,
        })
    }
}

/// A receipt's name: a text, or a number as it is written.
pub(super) fn named(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.clone()),
        Value::Integer(_) => Some(json::canonical(value)),
        _ => None,
    }
}

/// How deep it nests: a scalar 0, a container one more than its deepest member.
fn depth(value: &Value) -> usize {
    match value {
        Value::Object(object) => object.iter().map(|(_, value)| depth(value) + 1).max().unwrap_or(0),
        Value::List(items) => items.iter().map(|value| depth(value) + 1).max().unwrap_or(0),
        _ => 0,
    }
}

fn forbidden(value: &Value) -> Option<&str> {
    match value {
        Value::Object(object) => object
            .iter()
            .find_map(|(name, value)| if is_forbidden(name) { Some(name) } else { forbidden(value) }),
        Value::List(items) => items.iter().find_map(forbidden),
        _ => None,
    }
}

fn is_forbidden(name: &str) -> bool {
    // Upper case first: what folds to the same letter is the same letter.
    let folded = name.to_uppercase().to_lowercase();
    let plain: String = folded.chars().filter(|c| c.is_alphanumeric()).collect();
    let plain = plain.trim_end_matches('s');
    FORBIDDEN.contains(&plain.trim_start_matches('x')) || FORBIDDEN.contains(&plain)
}

#[cfg(test)]
mod tests {
    use onceseal_core::json::Limits;

    use super::*;

    fn read(text: &str) -> Value {
        json::read(text.as_bytes(), &Limits::DATA).expect("JSON")
    }

    fn object(text: &str) -> Object {
        match read(text) {
            Value::Object(object) => object,
            other => panic!("no object: {other:?}"),
        }
    }

    #[test]
    fn a_result_keeps_to_its_size_its_depth_and_the_arguments() {
        let rules = r#"{"output_bytes":60,"output_depth":1,"output_equals":{"/order":"order.id"}}"#;
        let rules = Returned::parse(&object(rules)).expect("rules");
        let arguments = object(r#"{"order":{"id":"o-1"}}"#);
        let fits = |text: &str| rules.fits(&arguments, &read(text)).is_ok();
        assert!(fits(r#"{"order":"o-1"}"#));
        assert!(!fits(r#"{"order":"o-2"}"#), "another order");
        assert!(!fits("{}"), "none");
        assert!(!fits(r#"{"order":"o-1","deep":{"x":1}}"#), "too deep");
        let long = format!(r#"{{"order":"o-1","x":"{}"}}"#, "y".repeat(60));
        assert!(!fits(&long), "too long");
        for wrong in [r#"{"output_bytes":-1}"#, r#"{"output_equals":{"x":"a"}}"#, r#"{"output_equals":[]}"#] {
            assert!(Returned::parse(&object(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn p13_no_result_has_a_member_named_like_a_credential_or_a_command() {
        let rules = Returned::default();
        for name in [
            "Password",
            "API-Key",
            "api keys",
            "X-Api-Key",
            "set-cookie",
            "systemPrompt",
            "paſſwords",
            "idToken",
        ] {
            assert!(
                rules.fits(&Object::new(), &read(&format!(r#"{{"a":[{{"{name}":1}}]}}"#))).is_err(),
                "{name}"
            );
        }
        assert!(rules.fits(&Object::new(), &read(r#"{"passwords_changed":1,"next_token":2}"#)).is_ok());
    }
}

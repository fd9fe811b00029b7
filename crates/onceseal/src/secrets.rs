//! Values that an entry redacts, taken out of whatever is written down.
//!
//! The executor sees them, so its texts and results may repeat them. Values
//! shorter than [`SHORTEST`] are not looked for: they would be found by chance.

use onceseal_core::json::{self, Object, Value};
use onceseal_core::policy::ArgumentPath;

use crate::render::REDACTED;

/// Characters, or digits, that a value has at least to be looked for.
pub(crate) const SHORTEST: usize = 4;

/// The redacted values of one call.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// Those at these paths; a path that is stopped by a value hides all of it.
    pub(crate) fn of(arguments: &Object, paths: &[ArgumentPath]) -> Secrets {
        let mut found = Vec::new();
        for path in paths {
            let mut object = arguments;
            for (at, name) in path.names().iter().enumerate() {
                match object.get(name) {
                    Some(Value::Object(inner)) if at + 1 < path.names().len() => object = inner,
                    Some(value) => {
                        collect(value, &mut found);
                        break;
                    }
                    None => break,
                }
            }
        }
        found.retain(|text| text.chars().count() >= SHORTEST);
        // The longest first: one value may be part of another.
        found.sort_by_key(|text| std::cmp::Reverse(text.len()));
        found.dedup();
        Secrets(found)
    }

    /// Whether there is nothing to hide.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text without them.
    pub(crate) fn hide(&self, mut text: String) -> String {
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), REDACTED);
            }
        }
        text
    }

    /// The value without them, in texts, in names of members and as numbers.
    pub(crate) fn hide_in(&self, value: Value) -> Value {
        match value {
            Value::Text(text) => Value::Text(self.hide(text)),
            Value::Integer(_) | Value::Float(_) if self.0.contains(&json::canonical(&value)) => {
                REDACTED.into()
            }
            Value::List(items) => Value::List(items.into_iter().map(|item| self.hide_in(item)).collect()),
            Value::Object(object) => {
                let mut hidden = Object::new();
                for (name, member) in object.iter() {
                    hidden.insert(self.hide(name.to_owned()), self.hide_in(member.clone()));
                }
                Value::Object(hidden)
            }
            value => value,
        }
    }
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Text(text) => found.push(text.clone()),
        Value::Integer(n) => found.push(n.to_string()),
        // As JSON has it, and as a program prints it: `1e-7` is `0.0000001` too.
        Value::Float(x) => found.extend([json::canonical(value), x.to_string(), format!("{x:?}")]),
        Value::List(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(object) => object.iter().for_each(|(_, member)| collect(member, found)),
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use onceseal_core::json::Limits;

    use super::*;

    fn object(text: &str) -> Object {
        match json::read(text.as_bytes(), &Limits::DATA) {
            Ok(Value::Object(object)) => object,
            other => panic!("{other:?}"),
        }
    }

    fn secrets(arguments: &str, paths: &[&str]) -> Secrets {
        let list = paths.join(", ");
        let policy =
            format!("schema: onceseal.policy/v1\nactions:\n  a.b: {{ redact: [{list}], decision: allow }}\n");
        let policy = onceseal_core::policy::Policy::from_yaml(policy.as_bytes()).expect("a policy");
        let paths = policy.entry("a.b").expect("an entry").redact.clone();
        Secrets::of(&object(arguments), &paths)
    }

    #[test]
    fn p13_what_an_entry_redacts_is_taken_out_of_texts_results_and_names() {
        let secrets = secrets(r#"{"card":{"number":"4242 4242","pin":12345},"name":"Ann"}"#, &["card"]);
        assert_eq!(secrets.hide("card 4242 4242, pin 12345".into()), "card [redacted], pin [redacted]");
        let result = object(r#"{"4242 4242":[12345,"for Ann 4242 4242"],"other":12346}"#);
        let hidden = object(r#"{"[redacted]":["[redacted]","for Ann [redacted]"],"other":12346}"#);
        assert_eq!(secrets.hide_in(result.into()), hidden.into());
    }

    #[test]
    fn p13_a_redacted_fraction_is_hidden_in_whatever_form_it_is_written() {
        let secrets = secrets(r#"{"rate":12.75,"tiny":0.00000125}"#, &["rate", "tiny"]);
        let result = object(r#"{"rate":12.75,"deep":[{"12.75":[1.25e-6]}],"other":12.5}"#);
        let hidden = object(r#"{"rate":"[redacted]","deep":[{"[redacted]":["[redacted]"]}],"other":12.5}"#);
        assert_eq!(secrets.hide_in(result.into()), hidden.into());
        let (x, n) = (0.00000125, 12.75);
        assert_eq!(secrets.hide(format!("{x} {x:?} {n}")), "[redacted] [redacted] [redacted]");
    }

    #[test]
    fn a_value_inside_another_does_not_leave_the_rest_of_it() {
        let secrets = secrets(r#"{"a":"4242","b":"4242-1111"}"#, &["a", "b"]);
        assert_eq!(secrets.hide("4242-1111 and 4242".into()), "[redacted] and [redacted]");
    }

    #[test]
    fn short_values_are_not_looked_for() {
        let secrets = secrets(r#"{"a":"123","b":7}"#, &["a", "b"]);
        assert_eq!(secrets.hide("1237".into()), "1237");
        assert_eq!(secrets.hide_in(Value::Integer(123)), Value::Integer(123));
    }
}

//! Values that an entry redacts, taken out of whatever is written down.
//!
//! The executor sees them, so its texts and results may repeat them: as they
//! are, or as JSON, programs, URLs and XML write a text, also one within
//! another. Not looked for are values shorter than [`SHORTEST`], which would be
//! found by chance, and names of members, which are words of the program.

mod escapes;

use std::ops::Range;

use escapes::Escape;
use onceseal_core::json::{self, Object, Value};
use onceseal_core::policy::ArgumentPath;

use crate::render::REDACTED;

/// Characters, or digits, that a value has at least to be looked for.
pub(crate) const SHORTEST: usize = 4;
/// So many escapes within each other are undone: JSON that is a text in JSON
/// that was printed for debugging.
const DEPTH: usize = 3;

/// The redacted values of one call.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl From<Vec<String>> for Secrets {
    fn from(mut values: Vec<String>) -> Secrets {
        values.retain(|text| text.chars().count() >= SHORTEST);
        values.sort();
        values.dedup();
        Secrets(values)
    }
}

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
        Secrets::from(found)
    }

    /// Whether there is nothing to hide.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text without them.
    pub(crate) fn hide(&self, text: String) -> String {
        let mut found = Vec::new();
        self.find(&text, &|at| at, DEPTH, &mut found);
        found.sort_by_key(|range| range.start);
        let (mut shown, mut hidden) = (String::new(), 0..0);
        for range in found {
            // They may overlap: one value may be part of another.
            if range.start < hidden.end {
                hidden.end = hidden.end.max(range.end);
            } else {
                shown.push_str(&text[hidden.end..range.start]);
                shown.push_str(REDACTED);
                hidden = range;
            }
        }
        shown.push_str(&text[hidden.end..]);
        shown
    }

    /// Where they stand in a text and in what it says with escapes undone.
    /// `place` is where a byte of it stood before any was.
    fn find(&self, text: &str, place: &dyn Fn(usize) -> usize, depth: usize, found: &mut Vec<Range<usize>>) {
        let own = self.0.iter().filter(|secret| depth == DEPTH || may_be_escaped(secret));
        for secret in own {
            let places = text.match_indices(secret.as_str());
            found.extend(places.map(|(at, _)| place(at)..place(at + secret.len())));
        }
        if depth == 0 || !self.0.iter().any(|secret| may_be_escaped(secret)) {
            return;
        }
        for escape in Escape::ALL {
            if let Some((plain, from)) = escape.undo(text) {
                self.find(&plain, &|at| place(from[at]), depth - 1, found);
            }
        }
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
                    let mut name = self.hide(name.to_owned());
                    // No member is lost because two names are hidden.
                    while hidden.get(&name).is_some() {
                        name.push('\'');
                    }
                    hidden.insert(name, self.hide_in(member.clone()));
                }
                Value::Object(hidden)
            }
            value => value,
        }
    }
}

/// Whether anybody writes it otherwise than it is.
fn may_be_escaped(secret: &str) -> bool {
    !secret.bytes().all(|byte| byte.is_ascii_alphanumeric())
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
    fn values_that_overlap_in_a_text_leave_nothing_of_either() {
        let secrets = secrets(r#"{"a":"abcd","b":"cdefgh"}"#, &["a", "b"]);
        assert_eq!(secrets.hide("<abcdefgh>".into()), "<[redacted]>");
    }

    #[test]
    fn p13_a_redacted_text_is_hidden_in_the_forms_that_errors_have_it_in() {
        let secret = "Zoë \"Z\" O'Hara & C:\\+😀/";
        let json = json::canonical(&secret.into());
        let inside = |text: &str| json::canonical(&text.into()).trim_matches('"').to_owned();
        let forms = [
            secret.to_owned(),
            inside(secret),
            inside(&json),
            inside(&format!("{{\"name\":{json}}}")),
            r#"Zo\u00eb \"Z\" O\u0027Hara \u0026 C:\\+\ud83d\ude00\/"#.to_owned(),
            r#"Zo\u00EB \"Z\" O\u0027Hara \u0026 C:\\+\uD83D\uDE00\/"#.to_owned(),
            format!("{secret:?}"),
            format!("{json:?}"),
            format!("{:?}", format!("{json:?}")),
            "Zo%C3%AB%20%22Z%22%20O%27Hara%20%26%20C%3A%5C%2B%F0%9F%98%80%2F".to_owned(),
            "Zo%c3%ab%20%22Z%22%20O'Hara%20%26%20C:%5c%2b%f0%9f%98%80/".to_owned(),
            "Zo%25C3%25AB%2520%2522Z%2522%2520O'Hara%2520%2526%2520C:%255C%252B%25F0%259F%2598%2580/"
                .to_owned(),
            "Zo%C3%AB+%22Z%22+O'Hara+%26+C%3A%5C%2B%F0%9F%98%80%2F".to_owned(),
            format!("{:?}", r#"{"q":"Zo%C3%AB+\"Z\"+O'Hara+%26+C:\\%2B%F0%9F%98%80\/"}"#),
            "Zo&#235; &quot;Z&quot; O&apos;Hara &amp; C:\\+&#x1F600;/".to_owned(),
        ];
        let secrets = secrets(&format!("{{\"name\":{json}}}"), &["name"]);
        for form in forms {
            let text = secrets.hide(format!("100% of <{form}> \\ & + declined"));
            assert!(text.starts_with("100% of <") && text.ends_with("> \\ & + declined"), "{text}");
            assert!(
                text.contains(REDACTED) && !text.contains("Hara") && !text.contains("Z"),
                "{form}: {text}"
            );
        }
    }

    #[test]
    fn what_only_reads_like_an_escape_is_left() {
        let secrets = secrets(r#"{"a":"a b c","b":"x%41y"}"#, &["a", "b"]);
        for text in ["a+b-c", "xAy", "%61%zz", r"a\u0020b", "&nbsp;&#32"] {
            assert_eq!(secrets.hide(text.into()), text);
        }
        assert_eq!(secrets.hide("x%41y x%2541y".into()), "[redacted] [redacted]");
    }

    #[test]
    fn two_members_whose_names_are_hidden_are_both_kept() {
        let secrets = secrets(r#"{"a":["4242-1","4242-2"]}"#, &["a"]);
        let result = object(r#"{"4242-1":1,"4242-2":{"4242-1":2}}"#);
        let hidden = object(r#"{"[redacted]":1,"[redacted]'":{"[redacted]":2}}"#);
        assert_eq!(secrets.hide_in(result.into()), hidden.into());
    }

    #[test]
    fn short_values_are_not_looked_for() {
        let secrets = secrets(r#"{"a":"123","b":7}"#, &["a", "b"]);
        assert_eq!(secrets.hide("1237".into()), "1237");
        assert_eq!(secrets.hide_in(Value::Integer(123)), Value::Integer(123));
    }
}

//! A whole action before a person's eyes.
//!
//! Invariant: nothing of it is left out or cut; every character is seen or
//! escaped; and what the requester wrote stands behind a bar on every line, so
//! that it cannot pass for words of this program.

use onceseal::core::action::ActionRow;
use onceseal::core::approval::{ApprovalRow, Status};
use onceseal::core::id::ApprovalId;
use onceseal::core::json::{Object, Value};
use onceseal::core::time::Timestamp;

mod contract;
mod delivery;

pub(crate) use contract::Contract;
pub(crate) use delivery::Asked;

use crate::standing;
use crate::table::{fields, state_style};
use crate::text::{age, deceives, literal, value_deceives};

/// What stands before each line of the requester's.
const BAR: &str = "| ";
/// What stands there if a text of the line could deceive.
const MARK: &str = "! ";

/// A line of the requester's.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    text: String,
    marked: bool,
}

impl Line {
    fn new(text: impl Into<String>, marked: bool) -> Line {
        Line { text: text.into(), marked }
    }
}

/// A request with the action it is about, and with what else is known of that.
/// Lines are folded at `width` columns.
pub(crate) fn approval(
    id: ApprovalId,
    row: &ApprovalRow,
    action: &ActionRow,
    arguments: &Object,
    known: Vec<(&'static str, String)>,
    now: Timestamp,
    width: usize,
) -> String {
    let bound = &row.private.bound;
    let yes = row.yeses();
    let status = standing::status(row, now);
    let style = state_style(status.as_str());
    let left = match status {
        Status::Pending | Status::Granted => format!(" (in {})", age(row.expires_at.since(now))),
        _ => String::new(),
    };
    let hash =
        |hash: &Option<onceseal::core::hash::Hash>| hash.map_or("erased".to_owned(), |hash| hash.to_string());
    let proofs = row.proofs.iter().map(|proof| proof.as_str()).collect::<Vec<_>>().join(" or ");
    let people = match &bound.approvers {
        Some(groups) => {
            groups.iter().map(|group| literal(&group.as_str().into())).collect::<Vec<_>>().join(", ")
        }
        None => "anybody".to_owned(),
    };
    let mut out = format!("{id}\n");
    let mut rows = vec![
        ("status", format!("{style}{status}{style:#}, {yes} of {} yes", row.quorum)),
        ("expires", format!("{}{left}", row.expires_at)),
        ("asked by", format!("{} of the policy", action.decided.reason)),
        ("may answer", format!("{people} proven by {proofs}")),
        ("action hash", hash(&bound.action_hash)),
        ("binding", hash(&bound.binding)),
    ];
    rows.extend(known);
    out.push_str(&fields(&rows));
    for response in &row.private.responses {
        let person =
            response.person.as_ref().map_or("erased".to_owned(), |person| literal(&person.as_str().into()));
        out.push_str(&format!("  {} said {} at {}\n", person, response.said, response.at));
    }
    out.push_str("\nWhat would be done. Lines behind a bar are the requester's words.\n");
    let lines = wanted(action, bound.effect_key.as_deref(), arguments);
    if lines.iter().any(|line| line.marked) {
        let style = state_style("fail");
        out.push_str(&format!(
            "{style}WARNING{style:#}: lines marked `!` have characters that are not seen, or change how others are \
             seen.\n"
        ));
    }
    for line in lines {
        fold(&line, width, &mut out);
    }
    out
}

/// The action, one line per text or value.
fn wanted(action: &ActionRow, effect_key: Option<&str>, arguments: &Object) -> Vec<Line> {
    let Some(proposal) = &action.private.proposal else { return vec![Line::new("(erased)", false)] };
    let optional = |text: Option<&str>| text.map_or(Value::Null, Value::from);
    let mut lines = Vec::new();
    for (name, value) in [
        ("action", Value::from(proposal.name.as_str())),
        ("agent", Value::from(proposal.agent.as_str())),
        ("user", optional(proposal.user.as_deref())),
        ("environment", Value::from(proposal.environment.as_str())),
        ("resource", optional(proposal.resource.as_deref())),
        ("effect key", optional(effect_key)),
    ] {
        lines.push(Line::new(format!("{name:<12} {}", literal(&value)), value_deceives(&value)));
    }
    lines.push(Line::new(if arguments.is_empty() { "arguments    none" } else { "arguments" }, false));
    members(arguments, 1, &mut lines);
    lines
}

fn members(object: &Object, depth: usize, lines: &mut Vec<Line>) {
    for (name, value) in object.iter() {
        put(&format!("{}: ", literal(&name.into())), deceives(name), value, depth, lines);
    }
}

/// A value after `head`; lists and objects with content on lines of their own.
fn put(head: &str, marked: bool, value: &Value, depth: usize, lines: &mut Vec<Line>) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(object) if !object.is_empty() => {
            lines.push(Line::new(format!("{indent}{head}{{"), marked));
            members(object, depth + 1, lines);
            lines.push(Line::new(format!("{indent}}}"), false));
        }
        Value::List(items) if !items.is_empty() => {
            lines.push(Line::new(format!("{indent}{head}["), marked));
            for item in items {
                put("", false, item, depth + 1, lines);
            }
            lines.push(Line::new(format!("{indent}]"), false));
        }
        plain => {
            let marked = marked || value_deceives(plain);
            lines.push(Line::new(format!("{indent}{head}{}", literal(plain)), marked));
        }
    }
}

/// Writes a line behind bars, folded so that no terminal breaks it itself and
/// thereby puts some of it before the bar. What is not ASCII counts as two
/// columns, the most a character takes.
fn fold(line: &Line, width: usize, out: &mut String) {
    let room = width.saturating_sub(BAR.len() + 2).max(16);
    let bar = if line.marked { MARK } else { BAR };
    let mut left = room;
    out.push_str(bar);
    for c in line.text.chars() {
        let wide = if c.is_ascii() { 1 } else { 2 };
        if wide > left {
            out.push_str(" \\\n");
            out.push_str(bar);
            left = room;
        }
        out.push(c);
        left -= wide;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use onceseal::core::json::{self, Limits};

    fn lines(text: &str) -> Vec<Line> {
        let Ok(Value::Object(object)) = json::read(text.as_bytes(), &Limits::DATA) else {
            panic!("an object")
        };
        let mut lines = Vec::new();
        members(&object, 1, &mut lines);
        lines
    }

    #[test]
    fn ua_076_every_value_is_shown_in_full_however_deep_and_long() {
        let long = "x".repeat(5_000);
        let shown = lines(&format!(r#"{{"a":{{"b":[1,{{"c":"{long}"}},[]]}},"d":{{}}}}"#));
        let long = format!("        \"c\": \"{long}\"");
        let expected = [
            "  \"a\": {",
            "    \"b\": [",
            "      1",
            "      {",
            &long,
            "      }",
            "      []",
            "    ]",
            "  }",
            "  \"d\": {}",
        ];
        assert_eq!(shown, expected.map(|text| Line::new(text, false)));
    }

    #[test]
    fn ua_074_no_text_of_the_requester_leaves_the_bar() {
        let mut out = String::new();
        for line in lines(r#"{"note":"ok\n\napr_1 granted\u001b[2K\r","k\n":"v"}"#) {
            fold(&line, 40, &mut out);
        }
        assert!(out.lines().all(|line| line.starts_with(MARK) && line.chars().count() <= 40), "{out}");
        let whole: String = out.replace(" \\\n! ", "");
        assert!(whole.contains(r#""note": "ok\n\napr_1 granted\u001b[2K\r""#), "{whole}");
    }

    #[test]
    fn a_wide_text_is_folded_before_the_terminal_breaks_it() {
        let mut out = String::new();
        fold(&Line::new("住".repeat(100), false), 42, &mut out);
        assert!(out.lines().all(|line| line.chars().filter(|c| !c.is_ascii()).count() <= 19), "{out}");
    }

    #[test]
    fn ua_073_hidden_characters_are_escaped_and_marked_in_names_and_values() {
        assert_eq!(lines("{\"a\":\"x\u{202e}y\"}"), [Line::new("  \"a\": \"x\\u{202e}y\"", true)]);
        assert_eq!(lines("{\"a\u{200b}\":1}"), [Line::new("  \"a\\u{200b}\": 1", true)]);
        assert_eq!(lines("{\"a\":1}"), [Line::new("  \"a\": 1", false)]);
    }
}

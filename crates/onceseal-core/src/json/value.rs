//! JSON as plain data: what the reader returns and the writer takes.

use std::cmp::Ordering;
use std::fmt;

/// The largest integer magnitude that every JSON reader keeps exact: 2^53 − 1.
pub const SAFE_INTEGER: i64 = (1 << 53) - 1;

/// One JSON value.
///
/// A number has one form only: an integral number within ±[`SAFE_INTEGER`] is
/// [`Value::Integer`], every other finite number is [`Value::Float`]. So equal
/// values are equal in this type and in their canonical text.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer within ±[`SAFE_INTEGER`]. One beyond it is refused wherever
    /// it would be written.
    Integer(i64),
    /// A finite number that is not such an integer.
    Float(f64),
    /// Text without lone surrogates or U+0000.
    Text(String),
    /// An array.
    List(Vec<Value>),
    /// An object.
    Object(Object),
}

impl Value {
    /// The number `x` in its one form; `None` for NaN and infinities.
    #[must_use]
    pub fn number(x: f64) -> Option<Value> {
        if !x.is_finite() {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "2^53 − 1 is exact in an f64")]
        let limit = SAFE_INTEGER as f64;
        #[expect(clippy::cast_possible_truncation, reason = "integral and in range")]
        Some(if x.fract() == 0.0 && x.abs() <= limit { Value::Integer(x as i64) } else { Value::Float(x) })
    }

    /// Whether at most so many lists and objects stand in each other.
    #[must_use]
    pub fn nests_within(&self, depth: usize) -> bool {
        let within = |item: &Value| item.nests_within(depth - 1);
        match self {
            Value::List(items) => depth > 0 && items.iter().all(within),
            Value::Object(object) => depth > 0 && object.iter().all(|(_, member)| within(member)),
            _ => true,
        }
    }

    /// Drops a value from the outside in. Dropped by itself, one that was built
    /// to nest a hundred thousand deep ends the process: its stack is too small.
    pub fn discard(self) {
        let mut rest = vec![self];
        while let Some(value) = rest.pop() {
            match value {
                Value::List(items) => rest.extend(items),
                Value::Object(object) => rest.extend(object.into_members().map(|(_, member)| member)),
                _ => {}
            }
        }
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, if it is one.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Value::Integer(n) => Some(*n),
            _ => None,
        }
    }

    /// The object, if it is one.
    #[must_use]
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The list, if it is one.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// The JSON name of its type, for messages: `null`, `boolean`, `integer`,
    /// `number`, `text`, `list`, `object`.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Integer(_) => "integer",
            Value::Float(_) => "number",
            Value::Text(_) => "text",
            Value::List(_) => "list",
            Value::Object(_) => "object",
        }
    }
}

/// Its canonical text, as [`canonical`](super::canonical) writes it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&super::canonical(self))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

macro_rules! from_integers {
    ($($type:ty),*) => {$(
        impl From<$type> for Value {
            fn from(n: $type) -> Value {
                Value::Integer(i64::from(n))
            }
        }
    )*};
}
from_integers!(i8, i16, i32, i64, u8, u16, u32);

/// A list.
impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Value {
        Value::List(items.into_iter().map(Into::into).collect())
    }
}

/// `null` for nothing.
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

/// `null`.
impl From<()> for Value {
    fn from((): ()) -> Value {
        Value::Null
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Value {
        Value::Bool(b)
    }
}

/// A JSON object: unique member names in RFC 8785 order (UTF-16 code units).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Object(Vec<(String, Value)>);

impl Object {
    /// An object without members.
    #[must_use]
    pub const fn new() -> Object {
        Object(Vec::new())
    }

    /// An object of these members in any order; the duplicate name if one
    /// stands twice.
    ///
    /// # Errors
    /// The first name that occurs twice.
    pub fn from_members(mut members: Vec<(String, Value)>) -> Result<Object, String> {
        members.sort_by(|a, b| compare_names(&a.0, &b.0));
        match members.windows(2).position(|pair| pair[0].0 == pair[1].0) {
            Some(at) => Err(members.swap_remove(at).0),
            None => Ok(Object(members)),
        }
    }

    /// The value of a member.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.find(name).ok().map(|at| &self.0[at].1)
    }

    /// The value of a member, to change.
    #[must_use]
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.find(name).ok().map(|at| &mut self.0[at].1)
    }

    /// Sets a member; returns the value it had.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        let name = name.into();
        match self.find(&name) {
            Ok(at) => Some(std::mem::replace(&mut self.0[at].1, value.into())),
            Err(at) => {
                self.0.insert(at, (name, value.into()));
                None
            }
        }
    }

    /// Takes a member out.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.find(name).ok().map(|at| self.0.remove(at).1)
    }

    /// The members in canonical order.
    pub fn into_members(self) -> impl Iterator<Item = (String, Value)> {
        self.0.into_iter()
    }

    /// The members in canonical order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(have, _)| compare_names(have, name))
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Value {
        Value::Object(object)
    }
}

/// RFC 8785 §3.2.3 order of names, by UTF-16 code units, without allocating.
///
/// UTF-8 bytes give code-point order, which differs from UTF-16 order only
/// where a supplementary character (lead byte F0 and up, surrogates D800–DFFF)
/// meets U+E000–U+FFFF (lead bytes EE and EF): such a lead byte is moved
/// between those of U+D7FF (ED) and U+E000 (EE).
#[must_use]
pub fn compare_names(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let shared = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    match (a.get(shared), b.get(shared)) {
        (Some(&x), Some(&y)) => utf16_rank(x).cmp(&utf16_rank(y)),
        (x, y) => x.is_some().cmp(&y.is_some()),
    }
}

fn utf16_rank(byte: u8) -> u16 {
    match byte {
        0xEE | 0xEF => u16::from(byte) + 0x100,
        _ => u16::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_order_by_utf16_code_units() {
        let names = [
            "",
            "a",
            "aa",
            "b",
            "é",
            "\u{7ff}",
            "\u{d7ff}",
            "\u{1F600}",
            "\u{10FFFF}",
            "\u{e000}",
            "\u{ffff}",
        ];
        for a in names {
            for b in names {
                assert_eq!(compare_names(a, b), a.encode_utf16().cmp(b.encode_utf16()), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn an_object_refuses_a_name_twice_and_keeps_order() {
        let members =
            |names: &[&str]| names.iter().map(|n| ((*n).to_owned(), Value::Null)).collect::<Vec<_>>();
        assert_eq!(Object::from_members(members(&["b", "a", "b"])), Err("b".to_owned()));
        let object = Object::from_members(members(&["b", "a"])).expect("distinct");
        assert_eq!(object.iter().map(|(n, _)| n).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn a_value_is_only_what_it_is() {
        let list = Value::List(vec![Value::Null]);
        let object = Value::Object(Object::new());
        let values = [
            (Value::Null, "null"),
            (Value::from(true), "boolean"),
            (Value::Integer(7), "integer"),
            (Value::Float(0.5), "number"),
            (Value::from("a"), "text"),
            (list, "list"),
            (object, "object"),
        ];
        for (value, name) in &values {
            assert_eq!(value.type_name(), *name);
            assert_eq!(value.as_integer(), (*name == "integer").then_some(7));
            assert_eq!(value.as_text(), (*name == "text").then_some("a"));
            assert_eq!(value.as_list().map(<[Value]>::len), (*name == "list").then_some(1));
            assert_eq!(value.as_object().is_some(), *name == "object");
        }
    }

    #[test]
    fn a_number_has_one_form() {
        assert_eq!(Value::number(-0.0), Some(Value::Integer(0)));
        assert_eq!(Value::number(9_007_199_254_740_991.0), Some(Value::Integer(SAFE_INTEGER)));
        assert_eq!(Value::number(-9_007_199_254_740_992.0), Some(Value::Float(-9_007_199_254_740_992.0)));
        assert_eq!(Value::number(0.5), Some(Value::Float(0.5)));
        assert_eq!(Value::number(f64::NAN), None);
        assert_eq!(Value::number(f64::NEG_INFINITY), None);
    }

    #[test]
    fn members_are_set_found_and_taken_out_in_order() {
        let mut object = Object::new();
        assert!(object.is_empty());
        assert_eq!(object.insert("b", "1"), None);
        assert_eq!(object.insert("a", "2"), None);
        assert_eq!(object.insert("b", "3"), Some(Value::from("1")));
        assert_eq!(object.get("b"), Some(&Value::from("3")));
        assert_eq!(object.get("c"), None);
        assert_eq!(object.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(object.remove("a"), Some(Value::from("2")));
        assert_eq!(object.remove("a"), None);
        assert_eq!(object.len(), 1);
        assert!(!object.is_empty());
    }

    fn nested(depth: usize) -> Value {
        (0..depth).fold(Value::Null, |inner, n| match n % 2 {
            0 => Value::List(vec![inner]),
            _ => {
                let mut object = Object::new();
                object.insert("a", inner);
                Value::Object(object)
            }
        })
    }

    #[test]
    fn p14_a_value_that_nests_too_deep_is_refused_and_not_walked_to_its_end() {
        use crate::json::{Limits, MAX_DEPTH, canonical, read_canonical};
        let deepest = nested(MAX_DEPTH);
        assert!(deepest.nests_within(MAX_DEPTH) && !deepest.nests_within(MAX_DEPTH - 1));
        assert_eq!(read_canonical(&canonical(&deepest), &Limits::DATA), Ok(deepest));
        for depth in [MAX_DEPTH + 1, 1_000_000] {
            let value = nested(depth);
            assert!(!value.nests_within(MAX_DEPTH));
            assert!(read_canonical(&canonical(&value), &Limits::DATA).is_err());
            value.discard();
        }
    }
}

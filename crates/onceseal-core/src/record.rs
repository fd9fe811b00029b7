//! Records, words and choices: the few shapes that events and rows are made of,
//! each declared once with its canonical text and its packed form.

use crate::hash::{Hash, write_hex};
use crate::id::{ActionId, ApprovalId, HolderId, ReceiptId, RootId, RunId};
use crate::json;
use crate::time::Timestamp;

/// A value with a canonical JSON text (RFC 8785).
pub trait Json {
    /// Appends the text. An absent value has none and is left out by its record.
    fn json(&self, out: &mut String);

    /// Whether its member is left out.
    fn absent(&self) -> bool {
        false
    }
}

/// A record that lists its fields, for the table of event kinds.
pub trait Fields {
    /// Name and type of each field, in canonical order.
    const FIELDS: &'static [(&'static str, &'static str)];
}

impl Json for bool {
    fn json(&self, out: &mut String) {
        out.push_str(if *self { "true" } else { "false" });
    }
}

impl Json for u64 {
    fn json(&self, out: &mut String) {
        // Counts stay below 2^53: fences and sequences grow by one.
        json::write_integer(i64::try_from(*self).unwrap_or(json::SAFE_INTEGER), out);
    }
}

impl Json for u32 {
    fn json(&self, out: &mut String) {
        json::write_integer(i64::from(*self), out);
    }
}

impl Json for String {
    fn json(&self, out: &mut String) {
        json::write_text(self, out);
    }
}

macro_rules! json_plain_text {
    ($($name:ident),*) => {$(
        impl Json for $name {
            fn json(&self, out: &mut String) {
                out.push('"');
                self.write(out);
                out.push('"');
            }
        }
    )*};
}
json_plain_text!(Hash, ActionId, ApprovalId, HolderId, ReceiptId, RootId, RunId);

impl Json for Timestamp {
    fn json(&self, out: &mut String) {
        out.push('"');
        self.write(out);
        out.push('"');
    }
}

/// Bytes as hex digits.
impl Json for [u8; 16] {
    fn json(&self, out: &mut String) {
        out.push('"');
        write_hex(self, out);
        out.push('"');
    }
}

impl<T: Json> Json for Option<T> {
    fn json(&self, out: &mut String) {
        if let Some(value) = self {
            value.json(out);
        }
    }
    fn absent(&self) -> bool {
        self.is_none()
    }
}

impl<T: Json> Json for Box<T> {
    fn json(&self, out: &mut String) {
        (**self).json(out);
    }
}

impl<T: Json> Json for Vec<T> {
    fn json(&self, out: &mut String) {
        out.push('[');
        for (at, item) in self.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            item.json(out);
        }
        out.push(']');
    }
}

/// Appends `"name":value` and the comma before it, unless the value is absent.
pub(crate) fn member(name: &str, value: &impl Json, out: &mut String) {
    if value.absent() {
        return;
    }
    if out.as_bytes().last() != Some(&b'{') {
        out.push(',');
    }
    out.push('"');
    out.push_str(name);
    out.push_str("\":");
    value.json(out);
}

/// Whether names stand in canonical order; a record that fails it does not compile.
#[must_use]
pub(crate) const fn sorted(names: &[&str]) -> bool {
    let mut at = 1;
    while at < names.len() {
        let (a, b) = (names[at - 1].as_bytes(), names[at].as_bytes());
        let mut i = 0;
        while i < a.len() && i < b.len() && a[i] == b[i] {
            i += 1;
        }
        if i == b.len() || (i < a.len() && a[i] > b[i]) {
            return false;
        }
        at += 1;
    }
    true
}

/// Declares a struct with named fields in canonical order.
macro_rules! record {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$about:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub struct $name { $($(#[$about])* pub $field: $type,)* }

        impl $crate::record::Fields for $name {
            const FIELDS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($field), stringify!($type)),)*];
        }

        impl $crate::pack::Pack for $name {
            fn pack(&self, out: &mut Vec<u8>) {
                $(self.$field.pack(out);)*
                let _ = out;
            }
            fn unpack(input: &mut &[u8]) -> Result<$name, $crate::pack::Corrupt> {
                let _ = &input;
                Ok($name { $($field: $crate::pack::Pack::unpack(input)?,)* })
            }
        }

        impl $crate::record::Json for $name {
            fn json(&self, out: &mut String) {
                const _: () = assert!($crate::record::sorted(&[$(stringify!($field)),*]));
                out.push('{');
                $($crate::record::member(stringify!($field), &self.$field, out);)*
                out.push('}');
            }
        }
    };
}

/// Declares a closed vocabulary: each word has a number (packed) and a text.
macro_rules! word {
    ($(#[$doc:meta])* pub enum $name:ident { $($(#[$about:meta])* $word:ident = $number:literal => $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$about])* $word,)* }

        impl $name {
            /// Every word.
            pub const ALL: &'static [$name] = &[$($name::$word,)*];

            /// The text of every word, in the same order.
            pub const NAMES: &'static [&'static str] = &[$($text,)*];

            /// The word as text.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$word => $text,)* }
            }

            /// The word's number, never used for another word.
            #[must_use]
            pub const fn number(self) -> u8 {
                match self { $($name::$word => $number,)* }
            }

            /// Reads the text.
            #[must_use]
            pub fn parse(text: &str) -> Option<$name> {
                match text { $($text => Some($name::$word),)* _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl $crate::pack::Pack for $name {
            fn pack(&self, out: &mut Vec<u8>) {
                out.push(self.number());
            }
            fn unpack(input: &mut &[u8]) -> Result<$name, $crate::pack::Corrupt> {
                match u8::unpack(input)? {
                    $($number => Ok($name::$word),)*
                    _ => Err($crate::pack::Corrupt(stringify!($name))),
                }
            }
        }

        impl $crate::record::Json for $name {
            fn json(&self, out: &mut String) {
                out.push('"');
                out.push_str(self.as_str());
                out.push('"');
            }
        }
    };
}

/// Declares a state with what belongs to it. Rows only: it has no JSON text.
macro_rules! choice {
    ($(#[$doc:meta])* pub enum $name:ident {
        $($(#[$about:meta])* $case:ident = $number:literal { $($(#[$fdoc:meta])* $field:ident: $type:ty),* },)*
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$about])* $case { $($(#[$fdoc])* $field: $type),* },)* }

        impl $crate::pack::Pack for $name {
            fn pack(&self, out: &mut Vec<u8>) {
                match self { $($name::$case { $($field),* } => {
                    out.push($number);
                    $($field.pack(out);)*
                })* }
            }
            fn unpack(input: &mut &[u8]) -> Result<$name, $crate::pack::Corrupt> {
                match u8::unpack(input)? {
                    $($number => Ok($name::$case { $($field: $crate::pack::Pack::unpack(input)?),* }),)*
                    _ => Err($crate::pack::Corrupt(stringify!($name))),
                }
            }
        }
    };
}

pub(crate) use {choice, record, word};

#[cfg(test)]
#[expect(dead_code, unreachable_pub, reason = "the macros declare more than a test uses")]
mod tests {
    use crate::pack::Pack;

    use super::*;

    word! {
        /// Test words.
        pub enum Colour {
            /// Red.
            Red = 1 => "red",
            /// Blue.
            Blue = 3 => "blue",
        }
    }

    record! {
        /// A test record.
        pub struct Thing {
            /// A colour.
            colour: Option<Colour>,
            /// A count.
            count: u64,
            /// Names.
            names: Vec<String>,
        }
    }

    #[test]
    fn a_record_is_canonical_and_leaves_absent_members_out() {
        let mut thing = Thing { colour: Some(Colour::Blue), count: 7, names: vec!["a\n".to_owned()] };
        let text = |thing: &Thing| {
            let mut out = String::new();
            thing.json(&mut out);
            out
        };
        assert_eq!(text(&thing), r#"{"colour":"blue","count":7,"names":["a\n"]}"#);
        assert_eq!(Thing::unpacked(&thing.packed()), Ok(thing.clone()));
        thing.colour = None;
        assert_eq!(text(&thing), r#"{"count":7,"names":["a\n"]}"#);
        assert_eq!(Thing::unpacked(&thing.packed()), Ok(thing));
        assert!(Colour::unpacked(&[2]).is_err());
    }

    #[test]
    fn order_of_fields_is_checked() {
        assert!(sorted(&["a", "ab", "b"]));
        assert!(!sorted(&["b", "a"]));
        assert!(!sorted(&["a", "a"]));
        assert!(!sorted(&["ab", "a"]));
    }
}

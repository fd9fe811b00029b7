//! Why a text was refused, where, and what to write instead.
//!
//! An error never holds a name or a value of the text: it may be shown to
//! people, logged and sent although the text may not.

use thiserror::Error;

use super::SAFE_INTEGER;

/// A refusal of the JSON reader.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{kind} (byte {offset}{})", place(.pointer))]
pub struct JsonError {
    /// What is wrong.
    pub kind: JsonErrorKind,
    /// Where in the text, in bytes from its start.
    pub offset: usize,
    /// Which value it is about: a JSON pointer (RFC 6901) in which a list item
    /// is written by its index, and a member of an object as `#n`, where `n`
    /// counts the members as they stand in the text from 0. Empty for the
    /// whole text.
    pub pointer: String,
}

impl JsonError {
    /// An error at `offset`, about the value that is read there.
    pub(super) fn at(offset: usize, kind: JsonErrorKind) -> JsonError {
        JsonError { kind, offset, pointer: String::new() }
    }

    /// The same error, seen from the container that holds the value at `step`.
    pub(super) fn under(mut self, step: &str) -> JsonError {
        self.pointer.insert_str(0, step);
        self.pointer.insert(0, '/');
        self
    }
}

fn place(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!(", at {pointer}") }
}

/// What the JSON reader refuses, each with what to do instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum JsonErrorKind {
    /// The text is longer than [`Limits::bytes`](super::Limits::bytes).
    #[error("the text is longer than {limit} bytes: send less, or a reference to where the rest is")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The text begins with a byte order mark.
    #[error("the text begins with a byte order mark: leave it out")]
    ByteOrderMark,
    /// The text is not UTF-8.
    #[error("the text is not UTF-8: encode it as UTF-8")]
    NotUtf8,
    /// More than [`Limits::depth`](super::Limits::depth) lists and objects are
    /// open at once.
    #[error("lists and objects are nested more than {limit} deep: flatten the value")]
    TooDeep {
        /// The most that may be open at once.
        limit: usize,
    },
    /// A list or object has more than [`Limits::members`](super::Limits::members).
    #[error("a list or object has more than {limit} items or members: split it")]
    TooManyMembers {
        /// The most that one may have.
        limit: usize,
    },
    /// A text or name has more scalar values than
    /// [`Limits::text_chars`](super::Limits::text_chars).
    #[error("a text is longer than {limit} characters: shorten it, or send a reference to it")]
    TextTooLong {
        /// The limit in Unicode scalar values.
        limit: usize,
    },
    /// The text is not JSON (RFC 8259) here, or ends too early.
    #[error("this is not JSON: {expected} belongs here")]
    Expected {
        /// What the grammar has at this place.
        expected: &'static str,
    },
    /// Something other than white space follows the value.
    #[error("text follows the value: send one JSON value and nothing after it")]
    TrailingText,
    /// A number such as `01`.
    #[error("a number begins with a needless zero: leave it out, or send text")]
    LeadingZero,
    /// `NaN`, `Infinity` or `-Infinity`.
    #[error("NaN and Infinity are not JSON: send null or text")]
    NotFinite,
    /// A fraction or an exponent under [`Numbers::Integers`](super::Numbers::Integers).
    #[error(
        "numbers with a fraction or an exponent are not accepted here: use minor units or a decimal string"
    )]
    Fraction,
    /// A number beyond ±[`SAFE_INTEGER`] under
    /// [`Numbers::Integers`](super::Numbers::Integers) or
    /// [`Numbers::Decimals`](super::Numbers::Decimals).
    #[error("numbers beyond ±{SAFE_INTEGER} are not exact everywhere: send this one as text")]
    BeyondSafe,
    /// An integer that a double would change, under
    /// [`Numbers::Any`](super::Numbers::Any).
    #[error("this integer would lose digits: send it as text")]
    Inexact,
    /// A number whose magnitude no double holds, such as `1e400`.
    #[error("this number is larger than any double: send it as text")]
    Overflow,
    /// Half of a surrogate pair.
    #[error("a lone surrogate is not a character: send its whole pair, or leave it out")]
    LoneSurrogate,
    /// U+0000, which not every store can keep.
    #[error("the character U+0000 cannot be stored: leave it out, or send the bytes as base64")]
    Nul,
    /// A control character that is not escaped.
    #[error("a control character stands unescaped in a text: write it as \\u00XX")]
    ControlCharacter,
    /// A backslash followed by something that JSON does not know.
    #[error("this escape does not exist in JSON: use \\\" \\\\ \\/ \\b \\f \\n \\r \\t or \\uXXXX")]
    BadEscape,
    /// A name stands twice in an object, perhaps escaped in another way.
    #[error("an object has the same name twice: keep one of them")]
    DuplicateName,
    /// Stored text that is not what its value would be written as.
    #[error("the text is not the canonical form of its value: it was changed since it was stored")]
    NotCanonical,
}

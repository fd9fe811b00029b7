//! The strict reader (RFC 8259, and narrower where two readers could differ).
//!
//! Invariant: what it returns has one canonical text, every number in it is
//! the number that was written, and it never recurses deeper than
//! [`MAX_DEPTH`], whatever the text.

mod number;
mod text;

use std::mem;

use super::{JsonError, JsonErrorKind, Object, Value, canonical};

/// No limit allows more lists and objects open at once than this, so that
/// reading, writing and dropping a value fit on any thread's stack.
pub const MAX_DEPTH: usize = 128;

/// What a reader accepts at most. Limits count what the text says, so they
/// hold before anything is built from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Length of the whole text in bytes.
    pub bytes: usize,
    /// Lists and objects open at once; 0 allows only a scalar. More than
    /// [`MAX_DEPTH`] counts as [`MAX_DEPTH`].
    pub depth: usize,
    /// Items of one list, members of one object.
    pub members: usize,
    /// Unicode scalar values in one text or name, after unescaping.
    pub text_chars: usize,
    /// Which numbers.
    pub numbers: Numbers,
}

/// Which numbers a reader accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// Integers within ±(2^53−1), written without fraction and exponent:
    /// `1.0` and `1e3` are refused, `-0` is 0.
    Integers,
    /// Numbers within ±(2^53−1). Integral ones (`1.0`, `1e3`) become integers.
    Decimals,
    /// Numbers that a double holds. An integer beyond ±(2^53−1) written without
    /// fraction and exponent must be what its double is written as, so that no
    /// 64-bit identifier changes by passing through.
    Any,
}

impl Limits {
    /// Actions: what a person can be asked to approve. One mebibyte is beyond
    /// what anyone reads, 64 levels and 1,024 members are beyond what tools
    /// send. Amounts must be exact, so there are no fractions.
    pub const ACTION: Limits =
        Limits { bytes: 1 << 20, depth: 64, members: 1024, text_chars: 1 << 16, numbers: Numbers::Integers };

    /// Results of executors: kept in rows that every replay reads, so they stay
    /// small. They come from programs that also measure, so fractions are
    /// accepted.
    pub const RESULT: Limits =
        Limits { bytes: 1 << 16, depth: 32, members: 1024, text_chars: 1 << 16, numbers: Numbers::Any };

    /// Payloads and files of data: bounded by their bytes and depth alone.
    pub const DATA: Limits = Limits {
        bytes: 8 << 20,
        depth: MAX_DEPTH,
        members: usize::MAX,
        text_chars: usize::MAX,
        numbers: Numbers::Any,
    };
}

/// Reads one JSON value from outside.
///
/// # Errors
/// The first thing in the text that these limits or RFC 8259 do not accept.
/// Beyond the grammar these are refused: a byte order mark, a name twice in
/// one object (after unescaping), lone surrogates and U+0000.
pub fn read(bytes: &[u8], limits: &Limits) -> Result<Value, JsonError> {
    if bytes.len() > limits.bytes {
        return Err(JsonError::at(limits.bytes, JsonErrorKind::TooLarge { limit: limits.bytes }));
    }
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        return Err(JsonError::at(0, JsonErrorKind::ByteOrderMark));
    }
    let text =
        str::from_utf8(bytes).map_err(|error| JsonError::at(error.valid_up_to(), JsonErrorKind::NotUtf8))?;
    let limits = &Limits { depth: limits.depth.min(MAX_DEPTH), ..*limits };
    let mut reader = Reader { text, at: 0, limits };
    let value = reader.value(limits.depth)?;
    reader.skip_blank();
    if reader.at < text.len() {
        return Err(reader.error(JsonErrorKind::TrailingText));
    }
    Ok(value)
}

/// Reads canonical text back, as a store returns it.
///
/// # Errors
/// As [`read`]; and [`JsonErrorKind::NotCanonical`], with the offset of the
/// first difference, if the value would be written differently.
pub fn read_canonical(text: &str, limits: &Limits) -> Result<Value, JsonError> {
    let value = read(text.as_bytes(), limits)?;
    let written = canonical(&value);
    if written == text {
        return Ok(value);
    }
    let offset = written.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
    Err(JsonError::at(offset, JsonErrorKind::NotCanonical))
}

/// A place in a text. `at` is always on a character boundary.
struct Reader<'t> {
    text: &'t str,
    at: usize,
    limits: &'t Limits,
}

impl Reader<'_> {
    /// Reads one value, inside which `room` lists and objects may be open.
    fn value(&mut self, room: usize) -> Result<Value, JsonError> {
        self.skip_blank();
        match self.peek() {
            Some(b'"') => Ok(Value::Text(self.text()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'{') => self.object(room),
            Some(b'[') => self.list(room),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(b'N' | b'I') if self.rest_starts("NaN") || self.rest_starts("Infinity") => {
                Err(self.error(JsonErrorKind::NotFinite))
            }
            _ => Err(self.expected("a value")),
        }
    }

    fn word(&mut self, word: &'static str, value: Value) -> Result<Value, JsonError> {
        if !self.rest_starts(word) {
            return Err(self.expected(word));
        }
        self.at += word.len();
        Ok(value)
    }

    fn list(&mut self, room: usize) -> Result<Value, JsonError> {
        let room = self.enter(room)?;
        let mut items = Vec::new();
        let mut more = !self.closes(b']');
        while more {
            let place = items.len();
            self.check_count(place)?;
            items.push(self.value(room).map_err(|error| error.under(&place.to_string()))?);
            more = self.goes_on(b']', "',' or ']'")?;
        }
        Ok(Value::List(items))
    }

    fn object(&mut self, room: usize) -> Result<Value, JsonError> {
        let start = self.at;
        let mut members = Vec::new();
        self.members(room, |name, value| {
            members.push((name, value));
            Ok(())
        })?;
        Object::from_members(members).map(Value::Object).or_else(|twice| {
            // Only this error needs to know where the members stood.
            let kind = JsonErrorKind::DuplicateName;
            let mut seen = false;
            self.at = start;
            self.members(room, |name, _| {
                let again = name == twice && mem::replace(&mut seen, true);
                if again { Err(kind) } else { Ok(()) }
            })?;
            Err(self.error(kind))
        })
    }

    /// Reads the object that begins here and gives each of its members; what
    /// `each` refuses is an error at the member's name.
    fn members(
        &mut self,
        room: usize,
        mut each: impl FnMut(String, Value) -> Result<(), JsonErrorKind>,
    ) -> Result<(), JsonError> {
        let room = self.enter(room)?;
        let mut more = !self.closes(b'}');
        let mut place = 0;
        while more {
            self.check_count(place)?;
            self.skip_blank();
            let offset = self.at;
            let step = |error: JsonError| error.under(&format!("#{place}"));
            let name = self.name().map_err(step)?;
            let value = self.value(room).map_err(step)?;
            each(name, value).map_err(|kind| step(JsonError::at(offset, kind)))?;
            more = self.goes_on(b'}', "',' or '}'")?;
            place += 1;
        }
        Ok(())
    }

    /// A member's name and the colon after it.
    fn name(&mut self) -> Result<String, JsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a name in double quotes"));
        }
        let name = self.text()?;
        self.skip_blank();
        if !self.eat(b':') {
            return Err(self.expected("':'"));
        }
        Ok(name)
    }

    /// Steps over an opening bracket; gives the room inside it.
    fn enter(&mut self, room: usize) -> Result<usize, JsonError> {
        let limit = self.limits.depth;
        let inner = room.checked_sub(1).ok_or_else(|| self.error(JsonErrorKind::TooDeep { limit }))?;
        self.at += 1;
        Ok(inner)
    }

    fn closes(&mut self, close: u8) -> bool {
        self.skip_blank();
        self.eat(close)
    }

    /// Whether another item follows (after a comma) or the container ends.
    fn goes_on(&mut self, close: u8, expected: &'static str) -> Result<bool, JsonError> {
        self.skip_blank();
        if self.eat(b',') {
            Ok(true)
        } else if self.eat(close) {
            Ok(false)
        } else {
            Err(self.expected(expected))
        }
    }

    fn check_count(&self, before: usize) -> Result<(), JsonError> {
        let limit = self.limits.members;
        if before < limit { Ok(()) } else { Err(self.error(JsonErrorKind::TooManyMembers { limit })) }
    }

    fn skip_blank(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn rest_starts(&self, word: &str) -> bool {
        self.text[self.at..].starts_with(word)
    }

    fn error(&self, kind: JsonErrorKind) -> JsonError {
        JsonError::at(self.at, kind)
    }

    fn expected(&self, expected: &'static str) -> JsonError {
        self.error(JsonErrorKind::Expected { expected })
    }
}

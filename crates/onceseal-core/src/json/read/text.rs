//! Texts and names: escapes, surrogate pairs, and the characters refused.

use super::super::write::plain_run;
use super::super::{JsonError, JsonErrorKind};
use super::Reader;

impl Reader<'_> {
    /// Reads the text whose opening quote is here.
    pub(super) fn text(&mut self) -> Result<String, JsonError> {
        let open = self.at;
        self.at += 1;
        let mut out = self.plain_run().to_owned();
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => out.push(self.escape()?),
                Some(0) => return Err(self.error(JsonErrorKind::Nul)),
                Some(_) => return Err(self.error(JsonErrorKind::ControlCharacter)),
                None => return Err(self.expected("a closing quote")),
            }
            out.push_str(self.plain_run());
        }
        self.at += 1;
        let limit = self.limits.text_chars;
        if out.len() > limit && out.chars().count() > limit {
            return Err(JsonError::at(open, JsonErrorKind::TextTooLong { limit }));
        }
        Ok(out)
    }

    /// Steps over characters that stand for themselves.
    fn plain_run(&mut self) -> &str {
        let start = self.at;
        self.at += plain_run(&self.text.as_bytes()[start..]);
        &self.text[start..self.at]
    }

    /// Reads the escape whose backslash is here.
    fn escape(&mut self) -> Result<char, JsonError> {
        let start = self.at;
        let Some(&[_, letter]) = self.text.as_bytes().get(start..start + 2) else {
            return Err(self.expected("an escape and a closing quote"));
        };
        let char = match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => return Err(self.error(JsonErrorKind::BadEscape)),
        };
        self.at += 2;
        Ok(char)
    }

    /// Reads `\uXXXX`, or the two of a surrogate pair.
    fn unicode_escape(&mut self) -> Result<char, JsonError> {
        let start = self.at;
        let first = self.code_unit()?;
        match char::from_u32(first.into()) {
            Some('\0') => return Err(JsonError::at(start, JsonErrorKind::Nul)),
            Some(char) => return Ok(char),
            None => {}
        }
        let lone = JsonError::at(start, JsonErrorKind::LoneSurrogate);
        if !self.rest_starts("\\u") {
            return Err(lone);
        }
        let pair = [first, self.code_unit()?];
        char::decode_utf16(pair).next().and_then(Result::ok).ok_or(lone)
    }

    /// Reads one `\uXXXX`, whose first two characters are known to be there.
    fn code_unit(&mut self) -> Result<u16, JsonError> {
        let start = self.at + 2;
        let digits = self.text.as_bytes().get(start..start + 4).unwrap_or_default();
        let unit = digits.iter().try_fold(0, |unit, &byte| Some(unit << 4 | char::from(byte).to_digit(16)?));
        match unit.and_then(|unit| u16::try_from(unit).ok()) {
            Some(unit) if digits.len() == 4 => {
                self.at = start + 4;
                Ok(unit)
            }
            _ => Err(self.expected("four hexadecimal digits after \\u")),
        }
    }
}

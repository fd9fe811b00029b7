//! The ways in which one text is written within another, undone.

/// How characters are written that do not stand for themselves.
#[derive(Debug, Clone, Copy)]
pub(super) enum Escape {
    /// JSON (RFC 8259 §7), the `Debug` form of Rust, and what shells and
    /// scripts have in common with them: `\"`, `\n`, `\u00e9`, `\u{e9}`, `\xc3\xa9`.
    Backslash,
    /// URLs (RFC 3986 §2.1): the bytes of UTF-8 as `%C3%a9`.
    Percent,
    /// Forms (`application/x-www-form-urlencoded`): as URLs, and `+` is a space.
    Form,
    /// XML and HTML: `&quot;`, `&#233;`, `&#xE9;`.
    Entity,
}

impl Escape {
    pub(super) const ALL: [Escape; 4] = [Escape::Backslash, Escape::Percent, Escape::Form, Escape::Entity];

    /// What the text says to a reader that undoes the escape, and for each byte
    /// of that, and for its end, where its character begins in the text.
    /// `None`: that is the text itself.
    pub(super) fn undo(self, text: &str) -> Option<(String, Vec<usize>)> {
        let mark = match self {
            Escape::Backslash => '\\',
            Escape::Percent => '%',
            // Without it this is what URLs are.
            Escape::Form => '+',
            Escape::Entity => '&',
        };
        if !text.contains(mark) {
            return None;
        }
        let (mut plain, mut from) = (String::with_capacity(text.len()), Vec::with_capacity(text.len() + 1));
        let mut rest = text;
        let mut undone = false;
        while let Some(itself) = rest.chars().next() {
            let escaped = self.first(rest);
            undone |= escaped.is_some();
            let (character, length) = escaped.unwrap_or((itself, itself.len_utf8()));
            plain.push(character);
            from.resize(plain.len(), text.len() - rest.len());
            rest = &rest[length..];
        }
        from.push(text.len());
        undone.then_some((plain, from))
    }

    /// The character that a text begins with, if it is escaped, and how many
    /// bytes that takes.
    fn first(self, text: &str) -> Option<(char, usize)> {
        match self {
            Escape::Backslash => backslash(text),
            Escape::Percent => bytes(text, "%"),
            Escape::Form if text.starts_with('+') => Some((' ', 1)),
            Escape::Form => bytes(text, "%"),
            Escape::Entity => entity(text),
        }
    }
}

fn backslash(text: &str) -> Option<(char, usize)> {
    let after = text.strip_prefix('\\')?;
    let plain = match after.chars().next()? {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'b' => '\u{8}',
        'f' => '\u{c}',
        '0' => '\0',
        'u' => return unicode(after),
        // Not UTF-8: then it is a character's number.
        'x' => return bytes(text, "\\x").or_else(|| Some((char::from_u32(hex(after.get(1..3)?)?)?, 4))),
        itself @ ('"' | '\'' | '\\' | '/') => itself,
        _ => return None,
    };
    Some((plain, 2))
}

/// `u00e9`, `ud83d\ude00` or `u{e9}`, with the backslash before it counted.
fn unicode(text: &str) -> Option<(char, usize)> {
    if let Some(braced) = text.strip_prefix("u{") {
        let digits = braced.split_once('}')?.0;
        return Some((char::from_u32(hex(digits)?)?, digits.len() + 4));
    }
    let unit = hex(text.get(1..5)?)?;
    if let Some(character) = char::from_u32(unit) {
        return Some((character, 6));
    }
    let low = hex(text.get(5..)?.strip_prefix("\\u")?.get(..4)?)?;
    let units = [u16::try_from(unit).ok()?, u16::try_from(low).ok()?];
    let character = char::decode_utf16(units).next()?.ok()?;
    Some((character, 12))
}

/// A character as the bytes of its UTF-8, each two digits after a prefix.
fn bytes(text: &str, prefix: &str) -> Option<(char, usize)> {
    let (mut bytes, mut rest) = ([0; 4], text);
    for at in 0..bytes.len() {
        let digits = rest.strip_prefix(prefix)?;
        bytes[at] = u8::try_from(hex(digits.get(..2)?)?).ok()?;
        rest = &digits[2..];
        if let Ok(character) = std::str::from_utf8(&bytes[..=at]) {
            return Some((character.chars().next()?, text.len() - rest.len()));
        }
    }
    None
}

fn entity(text: &str) -> Option<(char, usize)> {
    // The longest is `&#x10FFFF;`.
    let end = text.bytes().take(10).position(|byte| byte == b';')?;
    let name = text.get(..end)?.strip_prefix('&')?;
    let character = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = name.strip_prefix('#')?;
            let number = match number.strip_prefix(['x', 'X']) {
                Some(digits) => hex(digits)?,
                None => number.parse().ok()?,
            };
            char::from_u32(number)?
        }
    };
    Some((character, end + 1))
}

/// A number in hexadecimal digits of either case.
fn hex(digits: &str) -> Option<u32> {
    // The standard reader also takes a sign.
    let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    plain.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_reads_as_what_it_stands_for() {
        let table = [
            (Escape::Backslash, r#"\"a\\\/\'\n\r\t\b\f\0"#, "\"a\\/'\n\r\t\u{8}\u{c}\0"),
            (Escape::Backslash, r"\u00e9\u00E9\u{e9}\ud83d\ude00\u{1F600}\xc3\xa9\xe9", "ééé😀😀éé"),
            (Escape::Percent, "%C3%a9%20%F0%9F%98%80%2520+", "é 😀%20+"),
            (Escape::Form, "a+b%2Bc", "a b+c"),
            (Escape::Entity, "&amp;lt;&quot;&apos;&#233;&#xe9;&#XE9;&gt;", "&lt;\"'ééé>"),
        ];
        for (escape, text, plain) in table {
            let undone = escape.undo(text).map(|(undone, _)| undone);
            assert_eq!(undone.as_deref(), Some(plain), "{text}");
        }
    }

    #[test]
    fn what_is_no_escape_stands_for_itself() {
        let texts = [
            r"\",
            r"\q",
            r"\u12",
            r"\u{110000}",
            r"\u{e9",
            r"\ud83d",
            r"\ud83dx\ude00",
            r"\u+123",
            r"\x+1",
            "%",
            "%4",
            "%+1",
            "%zz",
            "%é",
            "%C3",
            "%ff%ff%ff%ff",
            "&;",
            "&amp",
            "&#;",
            "&#x110000;",
            "&no;",
            "&é;",
        ];
        for text in texts {
            // A form is a URL, and a `+` in it always stands for something else.
            for escape in [Escape::Backslash, Escape::Percent, Escape::Entity] {
                assert_eq!(escape.undo(text), None, "{text} as {escape:?}");
            }
        }
    }

    #[test]
    fn each_character_is_found_where_it_stood() {
        let (plain, from) = Escape::Percent.undo("ä%C3%A9x%20").expect("escaped");
        assert_eq!((plain.as_str(), from), ("äéx ", vec![0, 0, 2, 2, 8, 9, 12]));
    }
}

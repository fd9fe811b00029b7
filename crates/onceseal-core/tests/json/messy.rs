//! Seeded random values, and texts that say a value in needlessly many ways.

use onceseal_core::json::{Object, Value, canonical};

/// SplitMix64 (Steele, Lea, Flood 2014): small, seeded, the same everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).expect("an index")]
    }

    /// A character of a kind that readers and writers get wrong.
    fn char(&mut self) -> char {
        let (first, last) = self.pick(&[
            ('a', 'c'),
            ('a', 'c'),
            ('\u{1}', '\u{1f}'),
            ('!', '~'),
            ('\u{7f}', '\u{ff}'),
            ('\u{2028}', '\u{2029}'),
            ('\u{d7f0}', '\u{d7ff}'),
            ('\u{e000}', '\u{e010}'),
            ('\u{fff0}', '\u{ffff}'),
            ('\u{10000}', '\u{10010}'),
            ('\u{1f600}', '\u{1f610}'),
            ('\u{10fff0}', '\u{10ffff}'),
        ]);
        let span = u64::from(u32::from(last) - u32::from(first)) + 1;
        char::from_u32(u32::from(first) + self.below(span) as u32).expect("no surrogates in between")
    }

    fn text(&mut self) -> String {
        (0..self.below(6)).map(|_| self.char()).collect()
    }

    fn name(&mut self) -> String {
        match self.below(8) {
            0 => self.pick(&["__proto__", "constructor", "toJSON", "length", ""]).to_owned(),
            1 => self.below(20).to_string(),
            _ => self.text(),
        }
    }

    /// An object nested at most `depth` deep.
    pub(crate) fn object(&mut self, depth: u64) -> Value {
        let mut object = Object::new();
        for _ in 0..self.below(7) {
            let name = self.name();
            object.insert(name, self.value(depth));
        }
        Value::Object(object)
    }

    fn value(&mut self, depth: u64) -> Value {
        match self.below(if depth == 0 { 7 } else { 9 }) {
            0 => Value::Null,
            1 => Value::Bool(self.below(2) == 0),
            2 => Value::Integer(self.below(2_000_000) as i64 - 1_000_000),
            3 => Value::number(self.below(1_000_000) as f64 / 128.0).expect("finite"),
            4..=6 => Value::Text(self.text()),
            7 => Value::List((0..self.below(4)).map(|_| self.value(depth - 1)).collect()),
            _ => self.object(depth - 1),
        }
    }

    /// A text that reads as `value`, with members in any order, blanks and
    /// escapes where they may be, on one line.
    pub(crate) fn spell(&mut self, value: &Value) -> String {
        let mut out = String::new();
        self.spell_into(value, &mut out);
        out
    }

    fn spell_into(&mut self, value: &Value, out: &mut String) {
        self.blank(out);
        match value {
            Value::Text(text) => self.spell_text(text, out),
            Value::List(items) => {
                out.push('[');
                for (place, item) in items.iter().enumerate() {
                    out.push_str(if place > 0 { "," } else { "" });
                    self.spell_into(item, out);
                }
                out.push(']');
            }
            Value::Object(object) => {
                let mut members: Vec<_> = object.iter().collect();
                for at in 1..members.len() {
                    members.swap(at, usize::try_from(self.below(at as u64 + 1)).expect("an index"));
                }
                out.push('{');
                for (place, (name, member)) in members.into_iter().enumerate() {
                    out.push_str(if place > 0 { "," } else { "" });
                    self.blank(out);
                    self.spell_text(name, out);
                    self.blank(out);
                    out.push(':');
                    self.spell_into(member, out);
                }
                out.push('}');
            }
            scalar => out.push_str(&canonical(scalar)),
        }
        self.blank(out);
    }

    fn blank(&mut self, out: &mut String) {
        out.push_str(self.pick(&["", "", "", " ", "\t", "\r "]));
    }

    fn spell_text(&mut self, text: &str, out: &mut String) {
        out.push('"');
        for char in text.chars() {
            let must = char < ' ' || char == '"' || char == '\\';
            match char {
                '/' if self.below(2) == 0 => out.push_str("\\/"),
                '\n' if self.below(2) == 0 => out.push_str("\\n"),
                '"' | '\\' if self.below(2) == 0 => out.extend(['\\', char]),
                _ if must || self.below(4) == 0 => {
                    for unit in char.encode_utf16(&mut [0; 2]) {
                        let upper = self.below(2) == 0;
                        out.push_str(&if upper {
                            format!("\\u{unit:04X}")
                        } else {
                            format!("\\u{unit:04x}")
                        });
                    }
                }
                _ => out.push(char),
            }
        }
        out.push('"');
    }
}

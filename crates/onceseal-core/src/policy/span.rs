//! Durations as a policy writes them: `30s`, `15m`, `24h`, `2d`.

use std::fmt;

/// A length of time, in whole microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(i64);

impl Span {
    /// This many seconds; the longest span if that is more than an `i64` of
    /// microseconds.
    #[must_use]
    pub const fn seconds(seconds: i64) -> Span {
        Span(seconds.saturating_mul(1_000_000))
    }

    /// Its microseconds.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Reads a whole number of `s`, `m`, `h` or `d`; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Span> {
        let (at, unit) = text.char_indices().last()?;
        let seconds = UNITS.iter().find(|(name, _)| *name == unit)?.1;
        let digits = &text[..at];
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        digits.parse::<i64>().ok()?.checked_mul(seconds * 1_000_000).map(Span)
    }
}

const UNITS: [(char, i64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

impl fmt::Display for Span {
    /// In the largest unit that leaves nothing over; below a second in `us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |seconds: i64| self.0 != 0 && self.0 % (seconds * 1_000_000) == 0;
        match UNITS.iter().find(|(_, seconds)| whole(*seconds)) {
            Some((unit, seconds)) => write!(f, "{}{unit}", self.0 / (seconds * 1_000_000)),
            None => write!(f, "{}us", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_a_number_and_one_unit() {
        for (text, seconds) in
            [("30s", 30), ("5m", 300), ("24h", 86_400), ("2d", 172_800), ("0s", 0), ("015m", 900)]
        {
            assert_eq!(Span::parse(text), Some(Span::seconds(seconds)), "{text}");
        }
        for text in [
            "",
            "s",
            "5",
            "5 m",
            "-5m",
            "+5m",
            "1.5h",
            "5ms",
            "5M",
            "1h30m",
            "9223372036854775807d",
            "٣m",
            "5é",
        ] {
            assert_eq!(Span::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_span_prints_in_its_largest_whole_unit() {
        for text in ["30s", "5m", "90s", "36h", "2d"] {
            assert_eq!(Span::parse(text).map(|span| span.to_string()).as_deref(), Some(text));
        }
        assert_eq!(Span::seconds(3600).to_string(), "1h");
        assert_eq!(Span::seconds(0).to_string(), "0us");
    }
}

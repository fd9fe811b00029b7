//! Moments and spans, in microseconds. Nothing here reads a clock.

use std::fmt;
use std::ops::{Add, Sub};

use jiff::fmt::temporal::DateTimePrinter;

/// A moment in UTC: microseconds since 1970-01-01T00:00:00Z, never before it
/// and never after [`Timestamp::MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// 1970-01-01T00:00:00.000000Z.
    pub const MIN: Timestamp = Timestamp(0);
    /// 9999-12-30T22:00:00.000000Z, the last hour every time library here can print.
    pub const MAX: Timestamp = Timestamp(253_402_207_200_000_000);

    /// The moment `micros` microseconds after 1970 began; `None` outside the range.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Option<Timestamp> {
        if micros < Timestamp::MIN.0 || micros > Timestamp::MAX.0 { None } else { Some(Timestamp(micros)) }
    }

    /// Microseconds since 1970 began.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after.
    #[must_use]
    pub const fn since(self, earlier: Timestamp) -> Span {
        Span(if self.0 > earlier.0 { self.0 - earlier.0 } else { 0 })
    }

    /// Writes the RFC 3339 form with six digits and `Z`, the only form we write.
    pub fn write(self, out: &mut String) {
        const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(6));
        let moment = jiff::Timestamp::from_microsecond(self.0).unwrap_or(jiff::Timestamp::MAX);
        // Printing into a String cannot fail.
        let _ = PRINTER.print_timestamp(&moment, out);
    }

    /// Reads any RFC 3339 stamp that has an offset; finer than a microsecond is cut.
    #[must_use]
    pub fn parse(text: &str) -> Option<Timestamp> {
        let moment: jiff::Timestamp = text.parse().ok()?;
        Timestamp::from_micros(moment.as_microsecond())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(27);
        self.write(&mut text);
        f.write_str(&text)
    }
}

/// The sum, held at [`Timestamp::MAX`].
impl Add<Span> for Timestamp {
    type Output = Timestamp;
    fn add(self, span: Span) -> Timestamp {
        Timestamp(self.0.saturating_add(span.0).clamp(Timestamp::MIN.0, Timestamp::MAX.0))
    }
}

/// The difference, held at [`Timestamp::MIN`].
impl Sub<Span> for Timestamp {
    type Output = Timestamp;
    fn sub(self, span: Span) -> Timestamp {
        Timestamp(self.0.saturating_sub(span.0).clamp(Timestamp::MIN.0, Timestamp::MAX.0))
    }
}

/// A length of time in microseconds, never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(i64);

impl Span {
    /// No time.
    pub const ZERO: Span = Span(0);

    /// So many microseconds.
    #[must_use]
    pub const fn micros(n: u32) -> Span {
        Span(n as i64)
    }

    /// So many milliseconds.
    #[must_use]
    pub const fn millis(n: u32) -> Span {
        Span(n as i64 * 1_000)
    }

    /// So many seconds.
    #[must_use]
    pub const fn seconds(n: u32) -> Span {
        Span(n as i64 * 1_000_000)
    }

    /// So many minutes.
    #[must_use]
    pub const fn minutes(n: u32) -> Span {
        Span(n as i64 * 60_000_000)
    }

    /// So many hours.
    #[must_use]
    pub const fn hours(n: u32) -> Span {
        Span(n as i64 * 3_600_000_000)
    }

    /// The length in microseconds.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The length for `std` waits.
    #[must_use]
    pub fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_micros(self.0.unsigned_abs())
    }

    /// The nearest span at or below a `std` length, at most a thousand years.
    #[must_use]
    pub fn from_std(length: std::time::Duration) -> Span {
        const MOST: i64 = 1_000 * 366 * 86_400 * 1_000_000;
        Span(i64::try_from(length.as_micros()).unwrap_or(MOST).min(MOST))
    }

    /// So many times this span.
    #[must_use]
    pub const fn times(self, n: u32) -> Span {
        Span(self.0.saturating_mul(n as i64))
    }

    /// A fraction of this span.
    #[must_use]
    pub const fn divided_by(self, n: u32) -> Span {
        Span(self.0 / if n == 0 { 1 } else { n as i64 })
    }

    /// Reads `250ms`, `30s`, `15m`, `24h` or `30d`: a whole number without
    /// sign and one unit.
    #[must_use]
    pub fn parse(text: &str) -> Option<Span> {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let unit: i64 = match unit {
            "ms" => 1_000,
            "s" => 1_000_000,
            "m" => 60_000_000,
            "h" => 3_600_000_000,
            "d" => 86_400_000_000,
            _ => return None,
        };
        number.parse::<i64>().ok()?.checked_mul(unit).map(Span)
    }
}

/// The largest unit that gives a whole number: `15m`, `90s`, `1500ms`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(i64, &str); 5] =
            [(86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "m"), (1_000_000, "s"), (1_000, "ms")];
        match UNITS.iter().find(|(unit, _)| self.0 != 0 && self.0 % unit == 0) {
            Some((unit, name)) => write!(f, "{}{name}", self.0 / unit),
            None if self.0 == 0 => f.write_str("0s"),
            None => write!(f, "{}us", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_prints_six_digits_and_reads_back() {
        for (micros, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (1_767_268_800_000_001, "2026-01-01T12:00:00.000001Z"),
            (Timestamp::MAX.micros(), "9999-12-30T22:00:00.000000Z"),
        ] {
            let moment = Timestamp::from_micros(micros).expect("in range");
            assert_eq!(moment.to_string(), text);
            assert_eq!(Timestamp::parse(text), Some(moment));
        }
        assert_eq!(Timestamp::from_micros(-1), None);
        assert_eq!(Timestamp::from_micros(Timestamp::MAX.micros() + 1), None);
    }

    #[test]
    fn a_moment_with_an_offset_is_read_as_utc_and_one_without_is_refused() {
        assert_eq!(Timestamp::parse("2026-01-01T12:00:00+05:30"), Timestamp::parse("2026-01-01T06:30:00Z"));
        assert_eq!(Timestamp::parse("2026-01-01T12:00:00"), None);
    }

    #[test]
    fn spans_read_one_number_and_one_unit() {
        assert_eq!(Span::parse("15m"), Some(Span::minutes(15)));
        assert_eq!(Span::parse("250ms"), Some(Span::millis(250)));
        assert_eq!(Span::parse("30d"), Some(Span::hours(720)));
        for bad in ["", "15", "m", "-1s", "+1s", "1.5h", "1h30m", "15 m", "1M", "99999999999999999999s"] {
            assert_eq!(Span::parse(bad), None, "{bad}");
        }
        assert_eq!(Span::minutes(15).to_string(), "15m");
        assert_eq!(Span::millis(1500).to_string(), "1500ms");
    }

    #[test]
    fn adding_stays_in_range() {
        assert_eq!(Timestamp::MAX + Span::hours(1), Timestamp::MAX);
        assert_eq!(Timestamp::MIN - Span::hours(1), Timestamp::MIN);
    }
}

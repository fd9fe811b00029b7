//! Decimal text, compared exactly.

/// A decimal number as `-?[0-9]{1,28}(\.[0-9]{1,10})?` writes it.
///
/// It is held as an integer of 10⁻¹⁰: 28 + 10 digits are below 2¹²⁷.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::policy) struct Decimal(i128);

const WHOLE_DIGITS: usize = 28;
const FRACTION_DIGITS: usize = 10;

impl Decimal {
    /// Reads decimal text; `None` for any other text.
    pub(in crate::policy) fn parse(text: &str) -> Option<Decimal> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(unsigned) => (true, unsigned),
            None => (false, text),
        };
        let (whole, fraction) = match unsigned.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
            Some(_) => return None,
            None => (unsigned, ""),
        };
        if whole.is_empty() || whole.len() > WHOLE_DIGITS || fraction.len() > FRACTION_DIGITS {
            return None;
        }
        let digits = whole.bytes().chain(fraction.bytes());
        let padding = std::iter::repeat_n(b'0', FRACTION_DIGITS - fraction.len());
        let mut scaled = 0_i128;
        for digit in digits.chain(padding) {
            if !digit.is_ascii_digit() {
                return None;
            }
            scaled = scaled * 10 + i128::from(digit - b'0');
        }
        Some(Decimal(if negative { -scaled } else { scaled }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_compare_exactly_at_any_length() {
        let ascending = [
            "-9999999999999999999999999999.9999999999",
            "-1.5",
            "-1.49",
            "-0.0000000001",
            "0",
            "0.0000000001",
            "0.1",
            "0.3",
            "1",
            "9007199254740992.1",
            "9007199254740993",
            "9999999999999999999999999999.9999999998",
            "9999999999999999999999999999.9999999999",
        ];
        let read: Vec<_> = ascending.iter().map(|text| Decimal::parse(text)).collect();
        assert!(read.iter().all(Option::is_some));
        assert!(read.windows(2).all(|pair| pair[0] < pair[1]));
        for (a, b) in [("1", "1.0"), ("1", "0001.0000000000"), ("0", "-0.0"), ("1.50", "1.5")] {
            assert_eq!(Decimal::parse(a), Decimal::parse(b), "{a} {b}");
        }
    }

    #[test]
    fn other_text_is_no_decimal() {
        let (whole, fraction) = ("1".repeat(29), format!("1.{}", "1".repeat(11)));
        let texts = [
            "", "-", "+1", ".5", "1.", "1.-5", "--1", "1e3", " 1", "1 ", "1,5", "1_000", "١", "1.2.3", "0x1",
            "NaN", &whole, &fraction,
        ];
        for text in texts {
            assert_eq!(Decimal::parse(text), None, "{text:?}");
        }
    }
}

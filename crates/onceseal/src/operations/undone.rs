//! The numbers by which a program or a remote says that it did nothing.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;

use onceseal_core::json::Object;

use super::program::codes;

/// Exit codes or statuses that mean that nothing was done.
#[derive(Debug, Clone)]
pub(super) struct Undone<N> {
    /// All of them.
    pub(super) all: BTreeSet<N>,
    /// Those after which it is tried again by itself.
    again: BTreeSet<N>,
}

impl<N: Ord + Copy + Display + TryFrom<i64>> Undone<N> {
    /// What they are called, as [`Undone::parse`] reads them.
    pub(super) const KEYS: [&str; 2] = ["not_executed_on", "retry_on"];

    /// Reads `{not_executed_on?: [number…], retry_on?: [number…]}`.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    pub(super) fn parse(
        document: &Object,
        what: &str,
        within: RangeInclusive<i64>,
    ) -> Result<Undone<N>, String> {
        let [parked, again] = Undone::<N>::KEYS.map(|name| codes(document, name, what, within.clone()));
        let (parked, again): (BTreeSet<N>, BTreeSet<N>) = (parked?, again?);
        if let Some(both) = parked.intersection(&again).next() {
            return Err(format!(
                "{what}: {both} is in not_executed_on, which waits for a person, and in retry_on, which does not"
            ));
        }
        Ok(Undone { all: parked.union(&again).copied().collect(), again })
    }

    /// Whether what ended with this code, as `status_429`, is tried again by itself.
    pub(super) fn is_again(&self, code: &str) -> bool {
        let number = code.rsplit_once('_').and_then(|(_, number)| number.parse::<i64>().ok());
        number.and_then(|number| N::try_from(number).ok()).is_some_and(|number| self.again.contains(&number))
    }
}

#[cfg(test)]
mod tests {
    use onceseal_core::json::Value;

    use super::*;

    fn parsed(parked: &[i64], again: &[i64]) -> Result<Undone<u16>, String> {
        let list =
            |numbers: &[i64]| Value::List(numbers.iter().map(|number| Value::Integer(*number)).collect());
        let mut document = Object::new();
        document.insert("not_executed_on", list(parked));
        document.insert("retry_on", list(again));
        Undone::parse(&document, "http", 300..=599)
    }

    #[test]
    fn a_number_waits_for_a_person_or_is_tried_again_and_not_both() {
        let undone = parsed(&[400, 402], &[429]).expect("sound");
        assert_eq!(undone.all, BTreeSet::from([400, 402, 429]));
        assert!(
            undone.is_again("status_429") && !undone.is_again("status_402") && !undone.is_again("connect")
        );
        assert!(parsed(&[429], &[429]).expect_err("both").contains("429"));
        assert!(parsed(&[], &[200]).is_err());
    }
}

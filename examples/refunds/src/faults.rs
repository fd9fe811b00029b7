//! What goes wrong, and when: by a payment's name, or by chance that a seed
//! repeats, whatever order requests come in.

use std::time::Duration;

/// What goes wrong with one request for a refund.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection is closed and nothing is paid.
    Drop,
    /// It is paid and the connection closed without an answer.
    Lose,
    /// It is paid [`Faults::late_by`] later.
    Late,
    /// It is paid at once and answered [`Faults::late_by`] later.
    Slow,
}

/// What goes wrong.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// What chance is drawn from.
    pub seed: u64,
    /// Of 100 requests so many come to [`Fault::Drop`].
    pub drop: u64,
    /// Of 100 requests so many come to [`Fault::Lose`].
    pub lose: u64,
    /// Of 100 requests so many come to [`Fault::Late`] or [`Fault::Slow`].
    pub late: u64,
    /// How late.
    pub late_by: Duration,
}

impl Faults {
    /// What goes wrong with the `nth` request for this payment, the first being
    /// 0. The first for a payment whose name begins with `drop`, `lose`, `late` or
    /// `slow` goes wrong in that way.
    pub(crate) fn of(&self, payment: &str, nth: u64) -> Option<Fault> {
        let named =
            [("drop", Fault::Drop), ("lose", Fault::Lose), ("late", Fault::Late), ("slow", Fault::Slow)];
        match named.iter().find(|(name, _)| payment.starts_with(name)) {
            Some((_, fault)) if nth == 0 => return Some(*fault),
            _ => {}
        }
        let drawn = self.chance("fault", payment, nth);
        let (percent, coin) = (drawn % 100, (drawn / 100).is_multiple_of(2));
        match percent {
            _ if percent < self.drop => Some(Fault::Drop),
            _ if percent < self.drop + self.lose => Some(Fault::Lose),
            _ if percent < self.drop + self.lose + self.late => {
                Some(if coin { Fault::Late } else { Fault::Slow })
            }
            _ => None,
        }
    }

    /// How long a request takes before and after it is paid, together `most` at
    /// most.
    pub(crate) fn pauses(&self, payment: &str, nth: u64, most: Duration) -> (Duration, Duration) {
        let half = u64::try_from(most.as_micros() / 2).unwrap_or(u64::MAX);
        let pause = |what| Duration::from_micros(self.chance(what, payment, nth) % half.max(1));
        (pause("before"), pause("after"))
    }

    /// FNV-1a, with the last step of MurmurHash3 so that all bits count.
    fn chance(&self, what: &str, payment: &str, nth: u64) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325;
        let numbers = self.seed.to_le_bytes().into_iter().chain(nth.to_le_bytes());
        for byte in numbers.chain(what.bytes()).chain(payment.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^ (hash >> 33)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_goes_wrong_first_and_chance_the_rest() {
        let none = Faults::default();
        assert_eq!((none.of("lose_1", 0), none.of("lose_1", 1)), (Some(Fault::Lose), None));
        let some = Faults { seed: 7, drop: 2, lose: 10, late: 5, ..Faults::default() };
        let drawn: Vec<_> = (0..10_000).map(|n| some.of(&format!("p{n}"), 0)).collect();
        let share = |fault| drawn.iter().filter(|drawn| **drawn == Some(fault)).count();
        assert!((150..250).contains(&share(Fault::Drop)) && (900..1_100).contains(&share(Fault::Lose)));
        assert!((200..300).contains(&share(Fault::Late)) && (200..300).contains(&share(Fault::Slow)));
        assert_eq!(drawn, (0..10_000).map(|n| some.of(&format!("p{n}"), 0)).collect::<Vec<_>>());
    }
}

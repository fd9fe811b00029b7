//! What the conditions of a rule, when they hold, say about one subject: a few
//! values it can have, or a range of integers.

use crate::json::{SAFE_INTEGER, Value};
use crate::policy::condition::{Comparison, Condition, Test, Truth};
use crate::policy::model::Rule;

/// Whether `earlier` holds whenever `later` does.
pub(super) fn always_with(earlier: &Rule, later: &Rule) -> bool {
    earlier.when.iter().all(|wanted| Known::of(wanted, later).implies(wanted))
}

/// Whether no value can meet all conditions of a rule.
pub(super) fn never_holds(rule: &Rule) -> bool {
    rule.when.iter().any(|condition| Known::of(condition, rule).is_impossible())
}

/// The conditions of one rule on one subject.
struct Known<'a>(Vec<&'a Condition>);

impl<'a> Known<'a> {
    /// What `rule` says about the subject of `condition`.
    fn of(condition: &Condition, rule: &'a Rule) -> Known<'a> {
        Known(rule.when.iter().filter(|known| known.subject == condition.subject).collect())
    }

    fn implies(&self, wanted: &Condition) -> bool {
        let says_the_same =
            |known: &&Condition| known.key() == wanted.key() && known.operand() == wanted.operand();
        if self.0.iter().any(says_the_same) {
            return true;
        }
        if let Some(values) = self.values() {
            return values.iter().all(|value| wanted.test.judge(Some(value)) == Truth::True);
        }
        match &wanted.test {
            Test::Exists(true) => self.0.iter().any(|known| !matches!(known.test, Test::Exists(_))),
            Test::Integer(comparison, operand) => self.range().is_some_and(|(low, high)| {
                let (least, most) = bounds(*comparison, *operand);
                least <= low && high <= most
            }),
            _ => false,
        }
    }

    fn is_impossible(&self) -> bool {
        let tests = || self.0.iter().map(|known| &known.test);
        let absent = tests().any(|test| matches!(test, Test::Exists(false)));
        (absent && tests().any(|test| !matches!(test, Test::Exists(false))))
            || self.values().is_some_and(|values| values.is_empty())
            || self.range().is_some_and(|(low, high)| low > high)
    }

    /// The values that meet all conditions, if `eq` or `in` lists them and
    /// they are few enough to be tried out.
    fn values(&self) -> Option<Vec<&'a Value>> {
        let listed = self.0.iter().find_map(|known| match &known.test {
            Test::Equal(value) => Some(std::slice::from_ref(value)),
            Test::In(values) if values.len() <= TRIED => Some(values.as_slice()),
            _ => None,
        })?;
        let meets = |value: &&Value| self.0.iter().all(|known| known.test.judge(Some(value)) == Truth::True);
        Some(listed.iter().filter(meets).collect())
    }

    /// The least and the most integer that meet the integer conditions.
    fn range(&self) -> Option<(i64, i64)> {
        let ranges = self.0.iter().filter_map(|known| match known.test {
            Test::Integer(comparison, operand) => Some(bounds(comparison, operand)),
            _ => None,
        });
        ranges.reduce(|a, b| (a.0.max(b.0), a.1.min(b.1)))
    }
}

/// More values than this are not tried out.
const TRIED: usize = 1000;

fn bounds(comparison: Comparison, operand: i64) -> (i64, i64) {
    match comparison {
        Comparison::Less => (-SAFE_INTEGER, operand - 1),
        Comparison::AtMost => (-SAFE_INTEGER, operand),
        Comparison::Greater => (operand + 1, SAFE_INTEGER),
        Comparison::AtLeast => (operand, SAFE_INTEGER),
    }
}

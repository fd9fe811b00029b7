//! Whether there is an order: the search of Wing and Gong (JPDC 1993), which
//! remembers where it was (Lowe, CCPE 2017).

use std::collections::HashSet;

use super::model::Effect;
use super::{Moment, Operation};

/// So many steps are enough for any history that a client could have had.
const STEPS: usize = 20_000_000;

/// There is no order, or none was found.
#[derive(Debug)]
pub struct Failed {
    /// Which of the two.
    pub why: Why,
    /// The operations that were tried last where the search got furthest.
    pub around: Vec<Operation>,
}

/// Why a history was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// No order explains the answers.
    NoOrder,
    /// The search was given up.
    TooLong,
}

/// What has happened so far, as the search remembers it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Point {
    effect: Effect,
    /// All answered operations before this one have happened.
    low: usize,
    /// And these at or after it, in order.
    beyond: Vec<usize>,
    /// And these of which nobody was told.
    untold: Vec<usize>,
}

/// Whether the operations on one effect, in any order, could have happened one after
/// another, each between its call and its answer.
///
/// # Errors
/// If not.
pub fn check(operations: &[Operation]) -> Result<(), Failed> {
    let (mut told, mut untold): (Vec<_>, Vec<_>) =
        operations.iter().cloned().partition(|operation| operation.answered.is_some());
    told.sort_by_key(|operation| operation.invoked);
    untold.sort_by_key(|operation| operation.invoked);
    let search = Search { told, untold };
    let start = Point { effect: Effect::default(), low: 0, beyond: Vec::new(), untold: Vec::new() };
    let mut seen = HashSet::from([start.clone()]);
    let mut furthest = start.clone();
    let mut open = vec![start];
    let mut why = Why::NoOrder;
    while let Some(point) = open.pop() {
        if point.low == search.told.len() {
            return Ok(());
        }
        if seen.len() > STEPS {
            why = Why::TooLong;
            break;
        }
        if point.count() > furthest.count() {
            furthest = point.clone();
        }
        // The last one pushed is tried first: what was answered first.
        for next in search.next(&point) {
            if !seen.contains(&next) {
                seen.insert(next.clone());
                open.push(next);
            }
        }
    }
    Err(Failed { why, around: search.around(&furthest) })
}

impl Point {
    fn count(&self) -> usize {
        self.low + self.beyond.len()
    }

    fn with(&self, effect: Effect, at: usize) -> Point {
        let mut point = Point { effect, ..self.clone() };
        if at == point.low {
            point.low += 1;
            let in_row = point.beyond.iter().zip(point.low..).take_while(|(at, low)| *at == low).count();
            point.beyond.drain(..in_row);
            point.low += in_row;
        } else {
            let place = point.beyond.partition_point(|other| *other < at);
            point.beyond.insert(place, at);
        }
        point
    }

    fn with_untold(&self, effect: Effect, at: usize) -> Point {
        let mut point = Point { effect, ..self.clone() };
        let place = point.untold.partition_point(|other| *other < at);
        point.untold.insert(place, at);
        point
    }
}

struct Search {
    told: Vec<Operation>,
    untold: Vec<Operation>,
}

impl Search {
    /// The answered operations that may be next: those asked for before any that is
    /// left was answered; and that moment.
    fn candidates(&self, point: &Point) -> (Vec<usize>, Moment) {
        let (mut candidates, mut first) = (Vec::new(), Moment::MAX);
        for (at, operation) in self.told.iter().enumerate().skip(point.low) {
            if operation.invoked > first {
                break;
            }
            if point.beyond.binary_search(&at).is_err() {
                candidates.push(at);
                first = first.min(operation.answered.unwrap_or(Moment::MAX));
            }
        }
        candidates.retain(|at| self.told[*at].invoked <= first);
        candidates.sort_by_key(|at| std::cmp::Reverse(self.told[*at].answered));
        (candidates, first)
    }

    fn next(&self, point: &Point) -> Vec<Point> {
        let (candidates, first) = self.candidates(point);
        // What changes nothing and may be next may as well be: whatever follows could
        // follow it.
        let idle = |at: &&usize| point.effect.after(&self.told[**at]).contains(&point.effect);
        if let Some(at) = candidates.iter().find(idle) {
            return vec![point.with(point.effect.clone(), *at)];
        }
        let mut next = Vec::new();
        // What nobody was told of is tried last: it need not have happened.
        for (at, operation) in self.untold.iter().enumerate() {
            if operation.invoked <= first && point.untold.binary_search(&at).is_err() {
                let changed =
                    point.effect.after(operation).into_iter().filter(|after| *after != point.effect);
                next.extend(changed.map(|effect| point.with_untold(effect, at)));
            }
        }
        for at in candidates {
            let after = point.effect.after(&self.told[at]);
            next.extend(after.into_iter().map(|effect| point.with(effect, at)));
        }
        next
    }

    /// What happened last, and what could not be next.
    fn around(&self, point: &Point) -> Vec<Operation> {
        let (candidates, first) = self.candidates(point);
        let before = self.told[point.low.saturating_sub(6)..point.low].iter();
        let beyond = point.beyond.iter().chain(&candidates).map(|at| &self.told[*at]);
        let untold = self.untold.iter().filter(|operation| operation.invoked <= first);
        before.chain(beyond).chain(untold).cloned().collect()
    }
}

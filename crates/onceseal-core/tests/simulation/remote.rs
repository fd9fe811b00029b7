//! A remote as contracts suppose it: requests arrive late or never, and answers
//! are lost.

use std::collections::BTreeMap;

use onceseal_core::time::{Span, Timestamp};

/// How long a remembered key is remembered, from its first use.
pub(crate) const KEY_TTL: Span = Span::minutes(5);
/// How long after an attempt's lease its request may still arrive.
pub(crate) const SETTLE: Span = Span::minutes(1);

/// What the remote does with keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing.
    Blind,
    /// A key counts once, while it is remembered.
    Keys,
    /// It can be asked.
    Asked,
}

/// A request under way.
struct Request {
    wish: usize,
    key: String,
    arrives: Timestamp,
}

#[derive(Default)]
pub(crate) struct Remote {
    under_way: Vec<Request>,
    /// Whether it cannot be reached.
    pub(crate) is_down: bool,
    /// When each key was first used.
    keys: BTreeMap<String, Timestamp>,
    /// How often each wish was performed.
    pub(crate) performed: BTreeMap<usize, u32>,
}

impl Remote {
    pub(crate) fn send(&mut self, wish: usize, key: &str, arrives: Timestamp) {
        self.under_way.push(Request { wish, key: key.to_owned(), arrives });
    }

    /// Performs what has arrived by now.
    pub(crate) fn pass(&mut self, now: Timestamp, kind: impl Fn(usize) -> Kind) {
        let (arrived, still): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.under_way).into_iter().partition(|request| request.arrives <= now);
        self.under_way = still;
        for Request { wish, key, arrives } in arrived {
            let first = self.keys.get(&key).copied();
            self.keys.entry(key).or_insert(arrives);
            let remembered = first.is_some_and(|first| arrives <= first + KEY_TTL);
            if kind(wish) != Kind::Keys || !remembered {
                *self.performed.entry(wish).or_default() += 1;
            }
        }
    }

    pub(crate) fn times(&self, wish: usize) -> u32 {
        self.performed.get(&wish).copied().unwrap_or_default()
    }

    /// Whether a request for this is still under way.
    pub(crate) fn expects(&self, wish: usize) -> bool {
        self.under_way.iter().any(|request| request.wish == wish)
    }
}

//! What concurrent clients asked of effects and were answered, and whether it
//! could have happened one after another.
//!
//! Each effect is an object of its own, so a history is linearizable if that of
//! each effect is (Herlihy and Wing, TOPLAS 1990).

mod check;
mod line;
mod model;

pub use check::{Failed, Why, check};

use onceseal_core::code::Code;
use onceseal_core::effect::{EffectState, Outcome};

/// Microseconds on a clock that all clients share.
pub type Moment = i64;

/// One operation on one effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// No other has it.
    pub id: u64,
    /// When it was asked for: nothing happened before.
    pub invoked: Moment,
    /// When it was answered: it had happened then. `None` if its client does not
    /// know whether it happened.
    pub answered: Option<Moment>,
    /// What was asked for.
    pub call: Call,
    /// What was answered.
    pub answer: Answer,
}

/// What is asked of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// An attempt.
    Run {
        /// Its lease, in microseconds.
        lease: i64,
    },
    /// An attempt's outcome.
    Settle {
        /// The operation that was given it.
        by: u64,
        /// Its number.
        fence: u64,
        /// What became of it.
        outcome: Outcome,
    },
    /// More time for an attempt.
    Renew {
        /// The operation that was given it.
        by: u64,
        /// Its number.
        fence: u64,
        /// So many microseconds from now.
        lease: i64,
    },
    /// A person's word on an attempt.
    Resolve {
        /// Its number.
        fence: u64,
        /// What the person says.
        happened: bool,
    },
    /// That the lease is over.
    Lapse,
    /// Where it stands.
    Read,
}

/// What a client was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// An attempt.
    Given {
        /// Its number.
        fence: u64,
        /// When its lease ends.
        until: Moment,
    },
    /// The effect came to this.
    Settled {
        /// Where it stands.
        state: EffectState,
        /// Whether it did so before.
        repeated: bool,
    },
    /// More time.
    Renewed {
        /// When the lease ends.
        until: Moment,
    },
    /// Whether a lease was over.
    Lapsed(bool),
    /// It stands so; `None` if there is no such effect.
    Is(Option<(EffectState, u64)>),
    /// No.
    Refused(Code),
    /// The client was not told.
    Unknown,
}

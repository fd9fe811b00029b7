//! What everybody was told of leases and of the run, remembered outside of any
//! row, and the promises held against it.

/// Every promise that is looked at in every state.
pub(crate) const PROMISES: [&str; 14] =
    [ALONE, FENCED, VALID, FENCES, TOKEN, OWN, FREE, KEPT, OVER, OUTCOME, RUN, FINAL, FOLDS, HANDED];

pub(crate) const ALONE: &str = "one holds what no other holds a part of, but where all share it";
pub(crate) const FENCED: &str = "nothing is changed under a lease that is over";
pub(crate) const VALID: &str = "a lease is valid to its last moment";
pub(crate) const FENCES: &str = "each lease on a resource has the next fence";
pub(crate) const TOKEN: &str = "whoever cannot name the token changes nothing";
pub(crate) const OWN: &str = "whoever holds a resource and asks again gets what it has";
pub(crate) const FREE: &str = "what nobody holds is given to whoever asks";
pub(crate) const KEPT: &str = "a live lease ends by its holder's word or an operator's";
pub(crate) const OVER: &str = "what was recorded as over never lives again";
pub(crate) const OUTCOME: &str = "an outcome that was accepted is kept and never replaced";
pub(crate) const RUN: &str =
    "a run moves under a live lease, and is interrupted when the last one ended without a word";
pub(crate) const FINAL: &str = "a run that ended stays as it is";
pub(crate) const HANDED: &str =
    "a resource is handed over once, to whoever accepts first, while nobody has taken it since";
pub(crate) const FOLDS: &str = "every verdict folds into rows after few reads";

/// How a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Over {
    /// It has not, or nobody said so.
    No,
    /// Its holder gave it up with this outcome.
    With(usize),
    /// Its holder gave it up, an operator took it away, or somebody recorded that
    /// its time was over: what follows is the same.
    Gone,
}

/// A lease that was handed out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Grant {
    pub(crate) fence: u64,
    pub(crate) holder: u8,
    pub(crate) shared: bool,
    /// Ticks until it ends, as its holder was told.
    pub(crate) until: i8,
    pub(crate) token: [u8; 16],
    /// Whether its holder has not crashed.
    pub(crate) known: bool,
    pub(crate) over: Over,
}

impl Grant {
    pub(crate) fn live(&self, at: i8) -> bool {
        self.over == Over::No && at <= self.until
    }

    /// Whether its time is over, and nobody has recorded it.
    pub(crate) fn lapses(&self, at: i8) -> bool {
        self.over == Over::No && at > self.until
    }
}

/// Where the handoff stands, by what was asked and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Handoff {
    Unknown,
    /// Of the resource as it was under its lease of this number.
    Prepared {
        fence: u64,
    },
    /// By this holder.
    Accepted {
        heir: u8,
        /// The number of the lease that it was prepared of.
        fence: u64,
    },
    Withdrawn,
}

/// Where the run stands, by what was asked and answered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RunGhost {
    pub(crate) state: &'static str,
    /// Whether it stands there because nobody works on it.
    pub(crate) interrupted: bool,
}

impl RunGhost {
    pub(crate) fn ended(&self) -> bool {
        self.state == "completed"
    }

    /// The last lease on it ended without a word.
    pub(crate) fn interrupt(&mut self) {
        if !self.ended() {
            *self = RunGhost { state: "paused", interrupted: true };
        }
    }
}

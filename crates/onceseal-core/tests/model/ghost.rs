//! What really happened, remembered outside of any row, and the promises held
//! against it.
//!
//! The ghost hears what everybody hears: who was handed an attempt, which
//! words were spoken, what took place at the remote. It never looks into a row
//! to learn any of this.

use onceseal_core::id::ActionId;

/// Every promise that is looked at in every state.
pub(crate) const PROMISES: [&str; 14] = [
    P01_EXACT,
    P02_ONCE,
    P02_KEPT,
    P03_KNOWN,
    P03_LIVE,
    P03_REMOTE,
    P04_FENCED,
    P06_WORD,
    P12_RECEIPT,
    DEADLINE,
    ANSWERS,
    WAITING,
    AGREE,
    FOLDS,
];

pub(crate) const P01_EXACT: &str =
    "P01: an approval permits its own action under its own rule, and nothing else does";
pub(crate) const P02_ONCE: &str = "P02: an approval is used once, by the attempt that it permits";
pub(crate) const P02_KEPT: &str = "P02: an approval stays granted when the effect is refused";
pub(crate) const P03_KNOWN: &str =
    "P03: a new attempt starts only after the last is known not to have happened";
pub(crate) const P03_LIVE: &str =
    "P03: an attempt is handed out, begun, or taken away only as its lease permits";
pub(crate) const P03_REMOTE: &str = "P03: the remote sees an effect once";
pub(crate) const P04_FENCED: &str = "P04: a holder that was answered for changes nothing";
pub(crate) const P06_WORD: &str = "P06: failed and committed come from an explicit word";
pub(crate) const P12_RECEIPT: &str = "P12: every end has a receipt of its own";
pub(crate) const DEADLINE: &str = "P14: no lease passes its deadline";
pub(crate) const ANSWERS: &str =
    "an approval is granted by entitled people in time, asked once, and a no is remembered";
pub(crate) const WAITING: &str = "a waiting action has an open request of its own";
pub(crate) const AGREE: &str =
    "an action runs exactly while it holds its effect, and ends as its effect does";
pub(crate) const FOLDS: &str = "every verdict folds into rows after few reads";

/// What is known outside of one key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct KeyGhost {
    /// The number of the last attempt that was handed out.
    pub(crate) fence: u64,
    /// Ticks until its lease ends, by what its holder was told; −1 if over.
    pub(crate) lease: i8,
    /// Whether its holder has reported and holds it no longer.
    pub(crate) reported: bool,
    /// Whether somebody said that it did not happen.
    pub(crate) said_failed: bool,
    /// Whether somebody said that it happened.
    pub(crate) said_committed: bool,
    /// Whether the remote or a person was told that their word counts.
    pub(crate) answered: bool,
    /// Whether its request is still on the way to the remote.
    pub(crate) in_flight: bool,
    /// Whether the effect took place, and nobody has wrongly denied it.
    pub(crate) happened: bool,
}

impl KeyGhost {
    /// Another attempt is handed out.
    pub(crate) fn next(&mut self, fence: u64, lease: i8) {
        let (in_flight, happened) = (self.in_flight, self.happened);
        *self = KeyGhost { fence, lease, in_flight, happened, ..KeyGhost::default() };
    }
}

/// What is known outside of one request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct AskGhost {
    /// What was asked about.
    pub(crate) content: usize,
    /// Under which policy.
    pub(crate) policy: usize,
    /// Ticks until it expires; −1 if over.
    pub(crate) expires: i8,
    /// Whether an entitled person said yes in time.
    pub(crate) yes: bool,
    /// Whether one said no before it was granted.
    pub(crate) denied: bool,
    /// Whether a person took it back.
    pub(crate) revoked: bool,
    /// Whether it permitted an attempt.
    pub(crate) used: bool,
}

/// An attempt in somebody's hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Hold {
    pub(crate) key: usize,
    pub(crate) action: ActionId,
    pub(crate) fence: u64,
    pub(crate) begun: bool,
    /// Ticks until the lease ends, as the holder knows; −1 if over.
    pub(crate) lease: i8,
    /// Ticks until the deadline; −1 if over.
    pub(crate) deadline: i8,
    /// What the executor did.
    pub(crate) ran: Ran,
}

/// What an executor did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Ran {
    /// Nothing yet.
    No,

    /// It ran, and the effect took place.
    Done,
    /// It ran, and the answer is lost.
    Lost,
}

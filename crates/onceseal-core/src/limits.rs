//! Every limit of the product, each with its reason.

use crate::code::Code;
use crate::json::{self, Limits, SAFE_INTEGER};
use crate::time::Span;

/// A lease shorter than this ends before a slow disk has answered.
pub const LEASE_MIN: Span = Span::seconds(1);
/// Nobody should wait longer than a day to learn that a holder is gone.
pub const LEASE_MAX: Span = Span::hours(24);
/// An attempt that renews longer than this is a run.
pub const DEADLINE_MAX: Span = Span::hours(30 * 24);
/// A request that ends sooner nobody has read.
pub const TTL_MIN: Span = Span::seconds(1);
/// A question older than a month is asked again.
pub const TTL_MAX: Span = Span::hours(30 * 24);
/// How many people one approval may need; each answer is kept with it.
pub const QUORUM_MAX: u32 = 16;
/// More attempts than this are no limit.
pub const ATTEMPTS_MAX: u32 = 1_000_000;
/// How far a revision may be above the newest of its gate or plan: moments in
/// milliseconds fit, and no mistake uses up those that come after.
pub const REVISION_STEP: u64 = 10_000_000_000_000;
/// A policy file is read as a whole, and its text is kept for ever.
pub const POLICY_BYTES: usize = 1 << 20;
/// How deep a policy file may nest; far beyond what its keys need.
pub const POLICY_DEPTH: usize = 64;
/// All rules of an entry are judged for each of its actions, and compared with
/// each other when a policy is checked.
pub const RULES: usize = 1024;
/// More conditions of one rule than this nobody reads.
pub const CONDITIONS: usize = 64;
/// Names in one list of a policy, which are compared with each other.
pub const NAMES: usize = 1024;
/// Patterns of one policy, which are kept compiled.
pub const PATTERNS: usize = 1024;
/// A pattern compiled within this many bytes judges the longest text in
/// milliseconds.
pub const PATTERN_BYTES: usize = 128 << 10;
/// How long a proposed action may wait to be started.
pub const READY_FOR: Span = Span::minutes(15);
/// A refusal repeated within this is answered with the first one's receipt, so
/// that a caller in a loop does not fill the journal.
pub const REFUSAL_REMEMBERED: Span = Span::seconds(60);
/// Effect keys end up in indexes and on screens.
pub const EFFECT_KEY_BYTES: usize = 1024;
/// Stored results are for replay, not for data.
pub const RESULT_BYTES: usize = 64 * 1024;
/// Error texts are for people.
pub const ERROR_CHARS: usize = 1024;
/// Names are shown whole, on one line.
pub const NAME_CHARS: usize = 255;

/// An error text as it is kept: its first characters, without U+0000, which no
/// backend can store.
#[must_use]
pub fn cut(text: &str) -> String {
    text.chars().filter(|c| *c != '\0').take(ERROR_CHARS).collect()
}

/// Whether a text is a reason or a reference that a person or a remote gives:
/// as long as an error text, without U+0000.
#[must_use]
pub fn is_remark(text: &str) -> bool {
    text.chars().count() <= ERROR_CHARS && !text.contains('\0')
}

/// Whether a text is a result or a body: canonical JSON, at most
/// [`RESULT_BYTES`] long.
#[must_use]
pub fn is_result(text: &str) -> bool {
    text.len() <= RESULT_BYTES && json::read_canonical(text, &Limits::DATA).is_ok()
}

/// Whether a text is a name: 1 to 255 scalar values, no control characters.
#[must_use]
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= NAME_CHARS && !text.chars().any(char::is_control)
}

/// Why a revision does not follow on the newest of its gate or plan, if it does not.
/// One far beyond it would leave no room for those that come after.
#[must_use]
pub fn misses(revision: u64, newest: Option<u64>) -> Option<Code> {
    let newest = newest.unwrap_or(0);
    match () {
        () if revision == 0 || revision > SAFE_INTEGER.unsigned_abs() => Some(Code::OutOfBounds),
        () if revision <= newest => Some(Code::DeliveryOld),
        () if revision - newest > REVISION_STEP => Some(Code::OutOfBounds),
        () => None,
    }
}

/// Whether a text is a resource: like a name, as long as an effect key.
#[must_use]
pub fn is_long_name(text: &str) -> bool {
    (1..=EFFECT_KEY_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
}

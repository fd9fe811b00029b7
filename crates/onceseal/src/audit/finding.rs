//! What an audit found: which row, and what is wrong with it, never a private
//! value.

use std::collections::BTreeSet;

use onceseal_core::stream::StreamId;

/// Findings kept; more are only counted. The first ones in the order of a
/// report say enough, and one wrong constant can break every row.
const KEPT: usize = 1_000;

macro_rules! codes {
    ($($name:ident = $code:literal, $about:literal;)*) => {
        $(#[doc = $about] pub(super) const $name: &str = $code;)*

        /// Every code of a finding or a note, with what it means.
        pub const CODES: &[(&str, &str)] = &[$(($code, $about),)*];
    };
}

codes! {
    INTEGRITY = "integrity", "The database reports a fault of its own.";
    UNREADABLE = "unreadable", "The database cannot read a part of itself.";
    WENT_BACK = "went_back", "The log is not the one that this account has seen.";
    LOG_SHORT = "log_short", "The log ends before the position after which it was to be audited.";
    POSITION_MISSING = "position_missing", "A place of the log is empty.";
    POSITION_INVALID = "position_invalid", "An event stands outside the log.";
    EVENT_STRAY = "event_stray", "A place of the log names an event of no stream, or of another tenant's.";
    COMMAND_BROKEN = "command_broken", "The events of a command are not all there, one after another.";
    STREAM_MISSHAPEN = "stream_misshapen", "A stream's name is not one.";
    STREAM_MISNAMED = "stream_misnamed", "What a stream is about does not lead to its name.";
    STREAM_EMPTY = "stream_empty", "A stream has a row and no event.";
    EVENT_MISSHAPEN = "event_misshapen", "A column of an event does not hold what is written there.";
    EVENT_UNREADABLE = "event_unreadable", "An event does not decode.";
    EVENT_MISSING = "event_missing", "A stream's numbers have a gap.";
    EVENT_ORDER = "event_order", "A later event of a stream stands earlier in the log.";
    EVENT_FOREIGN = "event_foreign", "An event is of another kind than its stream.";
    EVENT_REFUSED = "event_refused", "An event cannot follow on those before it.";
    HASH_DIFFERS = "hash_differs", "An event or the hash before it was changed.";
    SEAL_DIFFERS = "seal_differs", "The private part of an event was changed.";
    RECEIPT_DIFFERS = "receipt_differs", "A terminal answer without receipt, or a receipt of something else.";
    PAYLOAD_MISSING = "payload_missing", "The text that an event names is not there.";
    PAYLOAD_EXTRA = "payload_extra", "A text that no event names.";
    PAYLOAD_DIFFERS = "payload_differs", "A text is not the one its event names.";
    PAYLOAD_UNREADABLE = "payload_unreadable", "A text or its salt is not one.";
    ROW_UNREADABLE = "row_unreadable", "A stream's row does not decode.";
    ROW_DIFFERS = "row_differs", "A stream's row is not what its events come to.";
    HEAD_DIFFERS = "head_differs", "A stream's head is not its last event.";
    LEASE_DIFFERS = "lease_differs", "A lease ends before it was given to, or after its deadline.";
    ATTEMPT_DIFFERS = "attempt_differs", "An action and the effect it holds say different things.";
    APPROVAL_DIFFERS = "approval_differs", "An approval and its action or answers say different things.";
    RUN_DIFFERS = "run_differs", "A run stands where its definition does not have it.";
    TASK_DIFFERS = "task_differs", "A task stands where its plan, its lease or the tasks it waits for do not have it.";
    KEY_MISSING = "key_missing", "A stream or event is not found under its key.";
    KEY_EXTRA = "key_extra", "A key leads to something that is not found under it.";
    KEY_DIFFERS = "key_differs", "A key leads to another event.";
    KEY_REPEATED = "key_repeated", "Two streams have a key that only one can have.";
    LATE_CONTRADICTS = "late_contradicts", "Note: a late report says otherwise than what is recorded.";
    NOT_COVERED = "not_covered", "Note: what this audit cannot say.";
    SETTING = "setting", "Note: a setting that protects is not as it has to be.";
}

/// One thing an audit found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The event's place in the log, where it is about one.
    pub position: Option<u64>,
    /// The stream, where it is about one.
    pub stream: Option<StreamId>,
    /// The event's number in the stream, where it is about one.
    pub sequence: Option<u64>,
    /// A stable code, one of [`CODES`].
    pub code: &'static str,
    /// What is wrong, for people.
    pub sentence: String,
}

impl Finding {
    /// A finding about the store as a whole.
    pub(super) const fn of_store(code: &'static str, sentence: String) -> Finding {
        Finding { position: None, stream: None, sequence: None, code, sentence }
    }

    /// A finding about a place of the log.
    pub(super) fn of_place(code: &'static str, position: i64, sentence: String) -> Finding {
        Finding { position: u64::try_from(position).ok(), ..Finding::of_store(code, sentence) }
    }

    /// That nothing says who made the store.
    pub(super) fn of_no_maker(store: StreamId) -> Finding {
        let sentence = format!(
            "event 1 of {store} is not what the tenant's log begins with: the event that says who made the \
             store was removed or moved"
        );
        Finding { sequence: Some(1), ..Finding::of_stream(EVENT_MISSING, store, sentence) }
    }

    /// A finding about a stream.
    pub(super) fn of_stream(code: &'static str, stream: StreamId, sentence: String) -> Finding {
        Finding { stream: Some(stream), ..Finding::of_store(code, sentence) }
    }
}

/// Findings in the order of a report, each once, the first thousand.
#[derive(Debug, Default)]
pub(super) struct Findings {
    kept: BTreeSet<Finding>,
    dropped: u64,
}

impl Findings {
    pub(super) fn push(&mut self, finding: Finding) {
        self.kept.insert(finding);
        if self.kept.len() > KEPT {
            self.kept.pop_last();
            self.dropped += 1;
        }
    }

    pub(super) fn append(&mut self, other: Findings) {
        self.dropped += other.dropped;
        for finding in other.kept {
            self.push(finding);
        }
    }

    /// The findings, and how many more there were.
    pub(super) fn finish(self) -> (Vec<Finding>, u64) {
        (self.kept.into_iter().collect(), self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_thousand_are_kept_in_order_whatever_comes_when() {
        let mut findings = Findings::default();
        for position in (1..=1_500).rev() {
            findings.push(Finding::of_place(HASH_DIFFERS, position, String::new()));
        }
        let (kept, more) = findings.finish();
        assert_eq!((kept.len(), more), (1_000, 500));
        assert_eq!(
            kept.iter().map(|f| f.position).collect::<Vec<_>>(),
            (1..=1_000).map(Some).collect::<Vec<_>>()
        );
    }

    #[test]
    fn codes_are_told_apart() {
        let codes: BTreeSet<_> = CODES.iter().map(|(code, _)| code).collect();
        assert_eq!(codes.len(), CODES.len());
    }
}

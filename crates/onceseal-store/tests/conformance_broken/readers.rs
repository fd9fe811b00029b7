//! Readers that are broken: lists and look-ups that lose, repeat or fail.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use onceseal_core::code::Code;
use onceseal_core::journal::{Index, Key, Payload};
use onceseal_core::stream::StreamId;
use onceseal_core::view::Loaded;
use onceseal_store::conformance::tamper::{self, Distort};
use onceseal_store::raw::{Entry, Raw, RawKey, Wholes};
use onceseal_store::read::{Counts, Hit, Page, Readers, Rows, Snapshot, StoredEvent};
use onceseal_store::{Parts, StoreError};

use crate::{Place, broken};

broken! {
    looking_up_what_is_not_there_fails: [
        what_is_not_there_reads_as_empty,
    ], |place| with(place, |parts| read(parts, Fails));

    receipts_lead_nowhere: [
        every_end_has_a_receipt_and_every_receipt_its_end,
        a_later_answer_has_a_receipt_of_its_own_and_names_the_first, a_late_word_has_a_receipt_of_its_own,
    ], |place| with(place, |parts| hits(parts, |page, hits| {
        if page.index == Index::Receipt {
            hits.clear();
        }
    }));

    receipts_lead_to_the_event_before: [
        a_later_answer_has_a_receipt_of_its_own_and_names_the_first,
        every_end_has_a_receipt_and_every_receipt_its_end,
    ], |place| with(place, |parts| hits(parts, |page, hits| {
        for hit in hits.iter_mut().filter(|_| page.index == Index::Receipt) {
            hit.sequence -= 1;
        }
    }));

    policies_are_not_found_by_their_hash: [
        a_policy_is_found_by_its_hash_for_ever,
        a_policy_whose_text_is_not_what_its_hash_says_decides_nothing,
    ], |place| with(place, |parts| hits(parts, |page, hits| {
        if page.index == Index::PolicyText {
            hits.clear();
        }
    }));

    actions_are_not_found_by_their_name: [
        actions_are_listed_by_state_and_by_name,
    ], |place| with(place, |parts| hits(parts, |page, hits| {
        if page.index == Index::Name {
            hits.clear();
        }
    }));

    what_is_due_is_found_the_newest_first: [
        what_is_due_is_found_by_its_contract_the_oldest_first,
    ], |place| with(place, |parts| hits(parts, |page, hits| {
        if page.index == Index::Outbox {
            hits.reverse();
        }
    }));

    a_page_is_in_no_order: [
        a_list_is_oldest_first_and_then_as_it_came_to_be, a_list_reads_the_same_from_its_other_end,
    ], |place| with(place, |parts| hits(parts, |_, hits| hits.sort_by_key(|hit| hit.stream)));

    what_is_of_one_moment_is_in_no_order: [
        a_list_is_oldest_first_and_then_as_it_came_to_be,
    ], |place| with(place, |parts| hits(parts, |_, hits| {
        hits.sort_by(|a, b| (&a.key, a.stream).cmp(&(&b.key, b.stream)));
    }));

    there_is_one_end_to_read_from: [
        a_list_reads_the_same_from_its_other_end, a_page_ends_where_its_range_ends,
    ], |place| with(place, |parts| read(parts, Asks(|page| page.newest_first = false)));

    a_page_goes_on_after_its_key: [
        pages_lose_and_repeat_nothing, pages_lose_and_repeat_nothing_while_others_write,
    ], |place| with(place, |parts| hits(parts, |page, hits| {
        if let Some((key, _)) = &page.after {
            hits.retain(|hit| hit.key != *key);
        }
    }));

    a_page_begins_with_the_last_of_the_one_before: [
        pages_lose_and_repeat_nothing_while_others_write,
    ], |place| with(place, |parts| hits(parts, |page, hits| {
        if let (Some((key, stream)), false) = (&page.after, hits.is_empty()) {
            hits.insert(0, Hit { key: key.clone(), stream: *stream, sequence: 0 });
            hits.truncate(page.limit);
        }
    }));

    a_page_ends_before_its_range: [
        a_page_ends_where_its_range_ends, what_ends_by_itself_is_listed_when_it_is_due,
    ], |place| with(place, |parts| hits(parts, |page, hits| hits.retain(|hit| hit.key != page.to)));

    a_stream_is_left_out: [every_stream_is_visited_once], |place| with(place, |parts| read(parts, LeavesOut));

    counts_are_wrong: [counts_are_of_what_is_there], |place| with(place, |parts| read(parts, Miscounts));

    reading_counts_itself: [
        reading_changes_nothing,
    ], |place| with(place, |parts| read(parts, CountsItself(AtomicU64::new(0))));

    a_snapshot_shows_what_is_written_meanwhile: [
        a_snapshot_stays_as_it_was_while_others_write,
    ], |place| with(place, |mut parts| {
        parts.readers = Box::new(Live(parts.readers));
        parts
    });

    the_log_is_ordered_by_stream: [
        the_log_is_every_event_once_in_the_order_of_recording, the_events_of_a_command_stand_together,
    ], |place| with(place, |parts| read(parts, Log(|_, events| {
        events.sort_by_key(|event| (event.stamp.stream, event.stamp.sequence));
    })));

    the_log_begins_with_the_position_asked_after: [
        the_log_reads_the_same_in_pages_of_any_size, ua_095_a_reader_that_follows_positions_misses_nothing,
    ], |place| with(place, |parts| read(parts, Log(|after, events| {
        if after > 0 && !events.is_empty() {
            let again = StoredEvent { position: after, ..events[0].clone() };
            events.insert(0, again);
        }
    })));

    a_position_becomes_visible_after_the_next: [
        ua_095_a_reader_that_follows_positions_misses_nothing,
    ], |place| with(place, |parts| read(parts, Overtaken(AtomicBool::new(false))));

    the_newest_position_is_somebody_elses: [
        the_log_is_every_event_once_in_the_order_of_recording,
    ], |place| with(place, |parts| read(parts, Ahead));

    a_stream_is_read_from_its_second_event_on: [
        a_stream_reads_from_any_of_its_events_on, every_stream_is_one_chain_from_its_genesis,
        every_row_is_the_fold_of_its_stream,
    ], |place| with(place, |parts| read(parts, Beheads));
}

fn with(place: Place, parts: fn(Parts) -> Parts) -> Place {
    Place { parts, ..place }
}

fn read(mut parts: Parts, distort: impl Distort + 'static) -> Parts {
    parts.readers = tamper::readers(parts.readers, distort);
    parts
}

fn hits(parts: Parts, change: fn(&Page, &mut Vec<Hit>)) -> Parts {
    read(parts, Hits(change))
}

struct Hits(fn(&Page, &mut Vec<Hit>));

impl Distort for Hits {
    fn hits(&self, page: &Page, mut hits: Vec<Hit>) -> Result<Vec<Hit>, StoreError> {
        (self.0)(page, &mut hits);
        Ok(hits)
    }
}

struct Asks(fn(&mut Page));

impl Distort for Asks {
    fn asked(&self, page: &Page) -> Page {
        let mut page = page.clone();
        (self.0)(&mut page);
        page
    }
}

struct Log(fn(u64, &mut Vec<StoredEvent>));

impl Distort for Log {
    fn log(&self, after: u64, mut events: Vec<StoredEvent>) -> Result<Vec<StoredEvent>, StoreError> {
        (self.0)(after, &mut events);
        Ok(events)
    }
}

/// What is not there cannot be read.
struct Fails;

fn there<T>(is: bool, found: T) -> Result<T, StoreError> {
    if is { Ok(found) } else { Err(StoreError::new(Code::StoreFailed)) }
}

impl Distort for Fails {
    fn stream(&self, _: &StreamId, loaded: Loaded) -> Result<Loaded, StoreError> {
        there(loaded != Loaded::Absent, loaded)
    }

    fn events(&self, events: Vec<StoredEvent>) -> Result<Vec<StoredEvent>, StoreError> {
        there(!events.is_empty(), events)
    }

    fn text(&self, text: Option<Payload>) -> Result<Option<Payload>, StoreError> {
        there(text.is_some(), text)
    }

    fn hits(&self, _: &Page, hits: Vec<Hit>) -> Result<Vec<Hit>, StoreError> {
        there(!hits.is_empty(), hits)
    }
}

struct LeavesOut;

impl Distort for LeavesOut {
    fn streams(&self, mut streams: Vec<StreamId>) -> Vec<StreamId> {
        if streams.len() > 2 {
            streams.remove(1);
        }
        streams
    }
}

struct Miscounts;

impl Distort for Miscounts {
    fn counts(&self, counts: Counts) -> Counts {
        Counts { events: counts.events / 2, ..counts }
    }
}

struct CountsItself(AtomicU64);

impl Distort for CountsItself {
    fn counts(&self, counts: Counts) -> Counts {
        Counts { keys: counts.keys + self.0.fetch_add(1, Ordering::SeqCst), ..counts }
    }
}

/// Leaves the last but one out, once: it was not committed yet.
struct Overtaken(AtomicBool);

impl Distort for Overtaken {
    fn log(&self, _: u64, mut events: Vec<StoredEvent>) -> Result<Vec<StoredEvent>, StoreError> {
        if events.len() > 1 && !self.0.swap(true, Ordering::SeqCst) {
            events.remove(events.len() - 2);
        }
        Ok(events)
    }
}

struct Ahead;

impl Distort for Ahead {
    fn newest(&self, newest: u64) -> u64 {
        newest + 1
    }
}

struct Beheads;

impl Distort for Beheads {
    fn events(&self, mut events: Vec<StoredEvent>) -> Result<Vec<StoredEvent>, StoreError> {
        if events.len() > 1 {
            events.remove(0);
        }
        Ok(events)
    }
}

/// Every reading is of its own moment.
struct Live(Box<dyn Readers>);

impl Readers for Live {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StoreError> {
        Ok(Box::new(Moments(self.0.as_ref())))
    }

    fn unsafe_settings(&self) -> Result<Vec<String>, StoreError> {
        self.0.unsafe_settings()
    }

    fn close(&self) {
        self.0.close();
    }
}

struct Moments<'a>(&'a dyn Readers);

impl Raw for Moments<'_> {
    fn owner(&self) -> Result<Option<Option<String>>, StoreError> {
        self.0.snapshot()?.owner()
    }

    fn ordinals(&self, after: i64, limit: usize) -> Result<Vec<i64>, StoreError> {
        self.0.snapshot()?.ordinals(after, limit)
    }

    fn wholes(&self, from: i64, to: i64, after: i64, limit: usize) -> Result<Wholes, StoreError> {
        self.0.snapshot()?.wholes(from, to, after, limit)
    }

    fn entries(&self, after: i64, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.0.snapshot()?.entries(after, limit)
    }

    fn raw_keys(&self, after: Option<&RawKey>, limit: usize) -> Result<Vec<RawKey>, StoreError> {
        self.0.snapshot()?.raw_keys(after, limit)
    }

    fn raw_key(&self, key: &Key, ordinal: i64) -> Result<Option<i64>, StoreError> {
        self.0.snapshot()?.raw_key(key, ordinal)
    }
}

impl Rows for Moments<'_> {
    fn stream(&self, stream: &StreamId) -> Result<Loaded, StoreError> {
        self.0.snapshot()?.stream(stream)
    }

    fn payload(&self, stream: &StreamId, sequence: u64) -> Result<Option<Payload>, StoreError> {
        self.0.snapshot()?.payload(stream, sequence)
    }

    fn own(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.snapshot()?.own(key)
    }

    fn keys(&self, page: &Page) -> Result<Vec<Hit>, StoreError> {
        self.0.snapshot()?.keys(page)
    }
}

impl Snapshot for Moments<'_> {
    fn events(&self, stream: &StreamId, from: u64, limit: usize) -> Result<Vec<StoredEvent>, StoreError> {
        self.0.snapshot()?.events(stream, from, limit)
    }

    fn log(&self, after: u64, limit: usize) -> Result<Vec<StoredEvent>, StoreError> {
        self.0.snapshot()?.log(after, limit)
    }

    fn newest(&self) -> Result<u64, StoreError> {
        self.0.snapshot()?.newest()
    }

    fn streams(&self, after: Option<&StreamId>, limit: usize) -> Result<Vec<StreamId>, StoreError> {
        self.0.snapshot()?.streams(after, limit)
    }

    fn counts(&self) -> Result<Counts, StoreError> {
        self.0.snapshot()?.counts()
    }

    fn bytes(&self) -> Result<u64, StoreError> {
        self.0.snapshot()?.bytes()
    }

    fn integrity(&self) -> Result<Vec<String>, StoreError> {
        self.0.snapshot()?.integrity()
    }
}

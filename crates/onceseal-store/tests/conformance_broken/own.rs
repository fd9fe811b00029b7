//! Stores that lose or keep a caller's rows apart from their command.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::journal::{Body, Nothing, Refs};
use onceseal_core::reply::Reply;
use onceseal_core::store::Note;
use onceseal_core::store::event::NoteSealed;
use onceseal_core::stream::{StreamId, StreamKind};
use onceseal_store::backend::{Backend, Changes, Fault, Work};
use onceseal_store::{Options, OwnError, Parts, Store, StoreError};

use crate::break_it::{draft, saving, verdict};
use crate::{Place, broken};

broken! {
    own_rows_are_not_saved: [
        a_row_is_written_with_its_command_and_read_by_the_next, a_row_has_a_key_and_a_size,
        of_many_that_count_at_once_each_counts, a_tenant_does_not_see_the_rows_of_another,
    ], |place| with(place, |parts| saving(parts, |changes| changes.own.clear()));

    own_rows_are_not_saved_in_a_file: [
        rows_are_there_when_the_store_is_opened_again,
    ], |place| with(place, |parts| saving(parts, |changes| changes.own.clear()));

    what_a_caller_undid_is_saved_all_the_same: [
        what_a_caller_undoes_leaves_neither_command_nor_row,
        a_caller_that_panics_or_takes_too_long_leaves_nothing_and_hurts_nobody,
    ], |place| with(place, |mut parts| {
        parts.backend = Box::new(Insists(parts.backend));
        parts
    });

    an_answer_given_again_is_recorded_anew: [
        nothing_is_written_beside_a_refusal_or_an_answer_given_again,
    ], |place| with(place, |parts| verdict(parts, |asked, verdict| {
        if matches!(&verdict.reply, Reply::Run(now) if now.replayed) {
            let stream = StreamId { kind: StreamKind::Note, name: asked.command.id() };
            let body = Body::NoteAppended(Nothing {}, NoteSealed { body: None, source: None });
            verdict.drafts.push(draft(stream, Refs::NONE, body));
        }
    }));
}

fn with(place: Place, parts: fn(Parts) -> Parts) -> Place {
    Place { parts, ..place }
}

/// Saves a row of a caller's after a batch that failed.
struct Insists(Box<dyn Backend>);

impl Backend for Insists {
    fn batch(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        self.0.batch(work).inspect_err(|_| {
            let own = vec![("a".to_owned(), Some(b"two".to_vec()))];
            let mut own = Some(Changes { own, ..Changes::default() });
            // Whether it is saved, the case finds out.
            drop(self.0.batch(&mut |_| Ok(own.take())));
        })
    }

    fn accept_clock(&mut self) {
        self.0.accept_clock();
    }
}

/// Once it is armed: tries everything twice, and does not know what became of the
/// second try.
struct Forgets {
    backend: Box<dyn Backend>,
    is_armed: Arc<AtomicBool>,
}

impl Backend for Forgets {
    fn batch(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        if !self.is_armed.load(Ordering::SeqCst) {
            return self.backend.batch(work);
        }
        self.backend.batch(&mut |loader| {
            // What the first try came to, nobody is told.
            drop(work(loader));
            work(loader)
        })?;
        Err(Fault::Unknown(StoreError::new(Code::CommitUnknown)))
    }

    fn accept_clock(&mut self) {
        self.backend.accept_clock();
    }
}

#[test]
fn what_a_caller_undid_in_a_try_that_was_repeated_is_not_told_of_the_last() {
    let (is_armed, parts) =
        (Arc::new(AtomicBool::new(false)), Parts::memory(&Options::default()).expect("parts"));
    let backend = Box::new(Forgets { backend: parts.backend, is_armed: is_armed.clone() });
    let store = Store::of(Parts { backend, ..parts }).expect("opened");
    is_armed.store(true, Ordering::SeqCst);
    let mut tries = 0;
    let note = Command::Note(Note { body: "1".to_owned(), source: "a test".to_owned() });
    let done: Result<_, OwnError<StoreError>> = store.run_with(note, |_, _| {
        tries += 1;
        if tries == 1 { Err(StoreError::new(Code::Internal)) } else { Ok(()) }
    });
    match done {
        Err(OwnError::Store(error)) => assert_eq!((error.code(), tries), (Code::CommitUnknown, 2)),
        other => panic!("{other:?}"),
    }
}

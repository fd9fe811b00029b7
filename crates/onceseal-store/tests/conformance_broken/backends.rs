//! Backends that are broken: they load or save something else.

use std::collections::BTreeSet;
use std::sync::Arc;

use onceseal_core::action::ActionState;
use onceseal_core::code::Code;
use onceseal_core::effect::EffectState;
use onceseal_core::hash::Hash;
use onceseal_core::journal::{Body, Index, Kind, Row};
use onceseal_core::time::{Span, Timestamp};
use onceseal_core::view::Loaded;
use onceseal_store::backend::{Backend, Fault, Work};
use onceseal_store::conformance::tamper::Tamper;
use onceseal_store::{Parts, StoreError};

use crate::break_it::{effects, finding, loading, saving, tampered, timing};
use crate::{Place, broken};

broken! {
    a_lapsed_reservation_is_handed_over: [
        a_lapsed_reservation_becomes_ambiguous_and_is_never_handed_over,
        a_lapsed_execution_becomes_ambiguous_and_is_never_handed_over,
    ], |place| with(place, |parts| tampered(parts, HandsOver(Timestamp::MIN)));

    a_live_effect_is_handed_over: [
        a_live_key_is_in_progress_until_its_lease_ends, one_of_many_threads_gets_the_key,
    ], |place| with(place, |parts| loading(parts, |stored| forget(stored, |row| row.held())));

    a_committed_effect_is_forgotten: [
        a_committed_key_is_a_duplicate, the_same_wish_is_told_the_first_result_and_receipt,
    ], |place| with(place, |parts| loading(parts, |stored| {
        forget(stored, |row| row.state == EffectState::Committed);
    }));

    an_unknown_effect_is_taken_for_failed: [
        an_ambiguous_key_blocks,
    ], |place| with(place, |parts| loading(parts, |stored| {
        forget(stored, |row| row.state == EffectState::Ambiguous);
    }));

    results_are_dropped: [
        a_result_is_stored_with_its_report, the_same_wish_is_told_the_first_result_and_receipt,
        the_remote_says_committed_while_it_executes_or_is_unknown, every_text_is_the_one_its_event_names,
    ], |place| with(place, |parts| saving(parts, |changes| {
        for event in &mut changes.events {
            if event.stamp.stream.kind == onceseal_core::stream::StreamKind::Effect {
                event.payload = None;
            }
        }
    }));

    texts_are_altered: [
        a_result_is_stored_with_its_report, every_text_is_the_one_its_event_names,
    ], |place| with(place, |parts| saving(parts, |changes| {
        for payload in changes.events.iter_mut().filter(|event| event.event.body.kind() != Kind::PolicyActivated)
            .filter_map(|event| event.payload.as_mut())
        {
            payload.text.push(' ');
        }
    }));

    a_new_attempt_keeps_the_old_error: [
        a_new_attempt_starts_without_the_old_error_and_result, every_row_is_the_fold_of_its_stream,
    ], |place| with(place, |parts| saving(parts, |changes| {
        for (before, row) in effects(changes) {
            if let Some(before) = before.filter(|_| row.held()) {
                row.private.error = before.private.error;
            }
        }
    }));

    a_new_attempt_makes_the_key_young: [
        a_failed_key_is_taken_anew_and_keeps_its_age,
    ], |place| with(place, |parts| saving(parts, |changes| {
        for (_, row) in effects(changes) {
            row.created_at = row.updated_at;
        }
    }));

    a_failed_effect_starts_its_fences_anew: [
        fences_grow_and_never_restart,
    ], |place| with(place, |parts| saving(parts, |changes| {
        for (_, row) in effects(changes) {
            if row.state == EffectState::Failed {
                row.fence = 0;
            }
        }
    }));

    a_late_report_is_the_answer: [
        a_late_report_is_kept_once_and_changes_nothing,
    ], |place| with(place, |parts| saving(parts, |changes| {
        let late = changes.events.iter().any(|event| matches!(event.event.body, Body::EffectLate(..)));
        for (_, row) in effects(changes).filter(|_| late) {
            row.state = EffectState::Committed;
        }
    }));

    late_reports_pile_up: [
        a_late_report_is_kept_once_and_changes_nothing,
    ], |place| with(place, |parts| saving(parts, |changes| effects(changes).for_each(|(_, row)| row.late.clear())));

    renewals_are_lost: [
        a_renewal_is_kept_without_an_event, a_renewal_moves_a_live_lease_and_never_past_the_deadline,
        what_was_renewed_is_renewed_after_reopening,
    ], |place| with(place, |parts| saving(parts, |changes| {
        let written: BTreeSet<_> = changes.events.iter().map(|event| event.stamp.stream).collect();
        changes.rows.retain(|change| written.contains(&change.stream));
    }));

    leases_end_a_moment_early: [
        a_live_key_is_in_progress_until_its_lease_ends, a_lapse_is_recorded_when_the_lease_has_ended_and_once,
        a_begin_after_the_lease_is_refused_and_makes_it_ambiguous, an_approval_permits_nothing_after_its_end,
        a_proposal_waits_to_be_started_for_a_while,
    ], |place| with(place, |parts| loading(parts, |stored| ends(stored, |end| end - Span::micros(1))));

    leases_end_a_moment_late: [
        a_lapsed_reservation_becomes_ambiguous_and_is_never_handed_over,
        a_begin_after_the_lease_is_refused_and_makes_it_ambiguous, an_approval_permits_nothing_after_its_end,
        a_proposal_waits_to_be_started_for_a_while, a_request_ends_with_its_time_and_its_action_with_it,
    ], |place| with(place, |parts| loading(parts, |stored| ends(stored, |end| end + Span::micros(1))));

    time_runs_backwards: [time_never_goes_backwards], |place| with(place, |parts| {
        let mut batches = 0;
        timing(parts, move |now| {
            batches += 1;
            now - Span::seconds(batches)
        })
    });

    one_fast_clock_sets_the_time_of_all: [
        a_fast_clock_sets_the_time_of_what_it_wrote_and_of_nothing_else, time_goes_on_where_a_stream_has_been,
    ], |place| with(place, |parts| tampered(parts, Fastest(Timestamp::MIN)));

    a_stream_forgets_when_it_was: [
        time_goes_on_where_a_stream_has_been, a_fast_clock_sets_the_time_of_what_it_wrote_and_of_nothing_else,
    ], |place| with(place, |parts| loading(parts, |stored| match &mut stored.row {
        Row::Action(row) => row.updated_at = Timestamp::MIN,
        Row::Effect(row) => row.updated_at = Timestamp::MIN,
        _ => {}
    }));

    a_jump_of_the_clock_is_accepted_by_itself: [
        a_clock_that_jumped_is_refused_until_it_is_accepted,
    ], |place| with(place, |mut parts| {
        parts.backend = Box::new(Accepts(parts.backend));
        parts
    });

    requests_are_not_found_by_what_they_ask: [
        identical_proposals_share_one_request,
    ], |place| with(place, |parts| finding(parts, |range, found| nothing_in(Index::Ask, range.index, found)));

    denials_are_not_found_by_what_was_wished: [
        one_no_denies_and_nobody_is_asked_again_before_the_request_ends,
    ], |place| with(place, |parts| finding(parts, |range, found| nothing_in(Index::Denial, range.index, found)));

    refusals_are_not_found_by_what_was_refused: [
        the_same_refusal_within_a_minute_shares_its_receipt,
    ], |place| with(place, |parts| finding(parts, |range, found| nothing_in(Index::Refusal, range.index, found)));

    an_approval_is_used_outside_the_transaction: [
        an_approval_is_used_in_the_transaction_that_takes_the_effect,
    ], |place| with(place, |parts| saving(parts, |changes| {
        let used = |event: &onceseal_core::journal::Recorded| event.event.body.kind() == Kind::ApprovalConsumed;
        let streams: BTreeSet<_> =
            changes.events.iter().filter(|event| used(event)).map(|event| event.stamp.stream).collect();
        changes.events.retain(|event| !used(event));
        changes.rows.retain(|change| !streams.contains(&change.stream));
    }));

    the_second_receipt_hides_the_first: [
        a_later_answer_has_a_receipt_of_its_own_and_names_the_first,
    ], |place| with(place, |parts| saving(parts, |changes| {
        for change in &mut changes.rows {
            if let Row::Action(row) = &mut Arc::make_mut(&mut change.after).row
                && let ActionState::Answered { receipt, first, .. } = &mut row.state {
                    *first = *receipt;
                }
        }
    }));

    keys_are_put_in_and_never_taken_out: [
        effects_are_listed_by_state, approvals_are_listed_by_state, actions_are_listed_by_state_and_by_name,
        what_ends_by_itself_is_listed_when_it_is_due, a_renewal_is_kept_without_an_event,
    ], |place| with(place, |parts| saving(parts, |changes| {
        changes.rows.iter_mut().for_each(|change| change.before = None);
    }));

    times_are_stored_as_milliseconds: [
        every_stream_is_one_chain_from_its_genesis, ua_143_sixteen_writers_make_one_chain_a_stream,
    ], |place| with(place, |parts| saving(parts, |changes| {
        for event in &mut changes.events {
            let micros = event.stamp.at.micros();
            event.stamp.at = Timestamp::from_micros(micros - micros % 1_000).expect("a time");
        }
    }));

    one_salt_serves_all: [
        every_private_part_has_the_seal_of_its_salt_and_text,
    ], |place| with(place, |parts| saving(parts, |changes| {
        for event in &mut changes.events {
            event.sealed = event.sealed.map(|(_, seal)| ([7; 32], seal));
        }
    }));

    a_batch_keeps_only_its_first_command: [
        a_batch_decides_its_commands_one_after_another, a_batch_shows_what_its_own_commands_have_recorded,
        an_unreadable_row_refuses_its_command_alone, a_panic_refuses_its_command_alone,

    ], |place| with(place, |parts| saving(parts, |changes| {
        let first = changes.events.first().map(|event| event.stamp.command);
        changes.events.retain(|event| Some(event.stamp.command) == first);
        let written: BTreeSet<_> = changes.events.iter().map(|event| event.stamp.stream).collect();
        changes.rows.retain(|change| written.contains(&change.stream));
    }));

    saving_is_all_that_is_forgotten: [
        a_command_runs_although_nobody_waits_for_its_answer, a_withdrawn_command_never_runs,
        a_writer_that_is_gone_leaves_nobody_waiting,
    ], |place| with(place, |parts| saving(parts, |changes| {
        // What makes a world is kept, what happens in it is not.
        if changes.rows.iter().any(|change| matches!(change.after.row, Row::Effect(_))) {
            changes.rows.clear();
        }
    }));

    a_failed_save_is_called_unknown: [
        a_failed_save_is_repeated_one_command_at_a_time,
    ], |place| with(place, |mut parts| {
        parts.backend = Box::new(Doubts(parts.backend));
        parts
    });

    a_failed_save_leaves_half_of_it: [
        a_failed_save_leaves_nothing_behind,
    ], |place| with(place, |mut parts| {
        parts.backend = Box::new(Halves(parts.backend));
        parts
    });

    a_batch_waits_for_the_next: [
        a_batch_ends_when_its_time_is_over,
    ], |place| with(place, |mut parts| {
        let decide = parts.decide;
        parts.decide = Arc::new(move |pinned, view, command, now| {
            let mut verdict = decide(pinned, view, command, now)?;
            if let onceseal_core::command::Command::Reserve(_) = command.command {
                verdict.drafts.clear();
            }
            Ok(verdict)
        });
        parts
    });
}

fn with(place: Place, parts: fn(Parts) -> Parts) -> Place {
    Place { parts, ..place }
}

/// Shows another end of whatever ends by itself.
fn ends(stored: &mut onceseal_core::journal::Stored, change: fn(Timestamp) -> Timestamp) {
    match &mut stored.row {
        Row::Effect(row) => row.lease_until = row.lease_until.map(change),
        Row::Approval(row) => row.expires_at = change(row.expires_at),
        Row::Action(row) => {
            if let ActionState::Ready { until } = &mut row.state {
                *until = change(*until);
            }
        }
        _ => {}
    }
}

/// Shows an effect as failed if it is so.
fn forget(
    stored: &mut onceseal_core::journal::Stored,
    is: impl Fn(&onceseal_core::effect::EffectRow) -> bool,
) {
    if let Row::Effect(row) = &mut stored.row
        && is(row)
    {
        row.state = EffectState::Failed;
    }
}

fn nothing_in(index: Index, asked: Index, found: &mut onceseal_store::conformance::tamper::Found) {
    if index == asked {
        found.clear();
    }
}

/// Shows an effect as failed once its lease has ended.
struct HandsOver(Timestamp);

impl Tamper for HandsOver {
    fn now(&mut self, now: Timestamp) -> Timestamp {
        self.0 = now;
        now
    }

    fn loaded(&mut self, _: &onceseal_core::stream::StreamId, mut loaded: Loaded) -> Loaded {
        if let Loaded::Row(stored) = &mut loaded {
            forget(Arc::make_mut(stored), |row| row.held() && !row.live(self.0));
        }
        loaded
    }
}

/// The time is the newest that was ever read.
struct Fastest(Timestamp);

impl Tamper for Fastest {
    fn now(&mut self, now: Timestamp) -> Timestamp {
        now.max(self.0)
    }

    fn loaded(&mut self, _: &onceseal_core::stream::StreamId, loaded: Loaded) -> Loaded {
        if let Loaded::Row(stored) = &loaded {
            self.0 = self.0.max(stored.row.updated_at());
        }
        loaded
    }
}

struct Accepts(Box<dyn Backend>);

impl Backend for Accepts {
    fn batch(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        match self.0.batch(work) {
            Err(Fault::Nothing(error)) if error.code() == Code::ClockJump => {
                self.0.accept_clock();
                self.0.batch(work)
            }
            done => done,
        }
    }

    fn accept_clock(&mut self) {
        self.0.accept_clock();
    }
}

struct Doubts(Box<dyn Backend>);

impl Backend for Doubts {
    fn batch(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        self.0.batch(work).map_err(|_| Fault::Unknown(StoreError::new(Code::CommitUnknown)))
    }

    fn accept_clock(&mut self) {
        self.0.accept_clock();
    }
}

/// Saves what it can and says that it failed.
struct Halves(Box<dyn Backend>);

impl Backend for Halves {
    fn batch(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        let mut failed = false;
        self.0.batch(&mut |loader| {
            let mut changes = work(loader)?;
            if let Some(changes) = &mut changes {
                let mut seen: BTreeSet<Hash> = BTreeSet::new();
                let before = changes.events.len();
                changes.events.retain(|event| seen.insert(event.hash));
                failed = changes.events.len() < before;
            }
            Ok(changes)
        })?;
        if failed { Err(Fault::Nothing(StoreError::new(Code::StoreFailed))) } else { Ok(()) }
    }

    fn accept_clock(&mut self) {
        self.0.accept_clock();
    }
}

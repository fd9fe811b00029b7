//! Rules about leases that are broken, and stores that lose them.

use onceseal_core::command::Command;
use onceseal_core::journal::{Body, Index, Kind, Row};
use onceseal_core::lease::{AcquireLease, LeaseRow};
use onceseal_core::run::Transition;
use onceseal_core::stream::StreamKind;
use onceseal_core::time::{Span, Timestamp};
use onceseal_store::Parts;

use crate::break_it::{finding, loading, rule, saving, verdict};
use crate::{Place, broken};

broken! {
    whoever_holds_a_resource_is_forgotten: [
        one_of_many_threads_holds_a_resource,
        a_path_is_held_with_what_is_above_and_below_it,
        however_much_is_held_below_a_path_is_looked_at,
        a_sweep_beside_takeovers_never_ends_the_fresh_lease,
        a_renewed_lease_is_held_after_reopening,
    ], |place| with(place, |parts| leases(parts, |row| row.holders.clear()));

    a_free_resource_starts_its_fences_anew: [
        a_resource_counts_its_leases_across_openings,
    ], |place| with(place, |parts| leases(parts, |row| {
        if row.holders.is_empty() {
            row.fence = 0;
        }
    }));

    a_sweep_does_not_look_again: [
        a_sweep_beside_takeovers_never_ends_the_fresh_lease,
        a_run_that_somebody_still_holds_is_not_interrupted,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Lapse(stream) = asked.command() else { return asked.ask(sound) };
        let view = asked.row_as(stream, |row| {
            if let Row::Lease(row) = row {
                row.holders.iter_mut().for_each(|holder| holder.until = Timestamp::MIN);
            }
        });
        asked.seeing(&view, sound)
    }));

    what_was_renewed_is_not_kept: [
        what_is_renewed_is_seen_by_the_next_command_of_the_batch,
        a_renewed_lease_is_held_after_reopening,
        leases_that_lapse_are_found_when_they_are_due,
    ], |place| with(place, |parts| verdict(parts, |_, verdict| verdict.renewals.clear()));

    what_is_held_below_is_not_found: [
        a_path_is_held_with_what_is_above_and_below_it,
        however_much_is_held_below_a_path_is_looked_at,
        an_operator_takes_a_path_from_whoever_holds_a_part_of_it,
    ], |place| with(place, |parts| finding(parts, |range, found| {
        if range.index == Index::Below {
            found.clear();
        }
    }));

    a_path_is_a_part_of_nothing: [
        a_path_is_held_with_what_is_above_and_below_it,
        however_much_is_held_below_a_path_is_looked_at,
    ], |place| with(place, |parts| verdict(parts, |_, verdict| {
        for draft in &mut verdict.drafts {
            if let Body::LeaseTaken(data, _) = &mut draft.event.body {
                data.above.clear();
            }
        }
    }));

    an_operator_takes_the_resource_alone: [
        an_operator_takes_a_path_from_whoever_holds_a_part_of_it,
    ], |place| with(place, |parts| verdict(parts, |asked, verdict| {
        if let Command::AcquireLease(acquire) = asked.command() {
            let own = asked.pinned.tenant.lease(&acquire.resource.to_string());
            verdict.drafts.retain(|draft| draft.stream == own || draft.event.body.kind() != Kind::LeasePreempted);
        }
    }));

    outcomes_of_leases_are_forgotten: [
        an_outcome_of_a_lease_is_final_and_outlives_the_next_lease,
    ], |place| with(place, |parts| leases(parts, |row| row.outcomes.clear()));

    a_run_is_interrupted_outside_the_transaction: [
        the_takeover_of_a_run_interrupts_it_in_the_same_transaction,
    ], |place| with(place, |parts| saving(parts, |changes| {
        let interrupts = changes.events.iter().any(|event| event.event.body.kind() == Kind::RunInterrupted);
        if interrupts {
            changes.events.retain(|event| event.stamp.stream.kind != StreamKind::Run);
            changes.rows.retain(|change| change.stream.kind != StreamKind::Run);
        }
    }));

    a_run_is_interrupted_whoever_holds_it: [
        a_run_that_somebody_still_holds_is_not_interrupted,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Lapse(stream) = asked.command() else { return asked.ask(sound) };
        let view = asked.row_as(stream, |row| {
            if let Row::Lease(row) = row {
                row.holders.retain(|holder| holder.until < asked.now);
            }
        });
        asked.seeing(&view, sound)
    }));

    what_is_done_under_a_lease_does_not_look_at_it: [
        nothing_is_changed_under_a_lease_that_was_taken_over,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Transition(step) = asked.command() else { return asked.ask(sound) };
        asked.with(Command::Transition(Transition { under: None, ..step.clone() }), sound)
    }));

    leases_are_found_where_they_once_were_due: [
        leases_that_lapse_are_found_when_they_are_due,
    ], |place| with(place, |parts| saving(parts, |changes| {
        changes.rows.iter_mut().filter(|change| change.stream.kind == StreamKind::Lease)
            .for_each(|change| change.before = None);
    }));

    what_ended_above_is_passed_over: [
        a_clock_that_went_back_revives_no_lease_that_was_taken_over,
    ], |place| with(place, |parts| verdict(parts, |asked, verdict| {
        if let Command::AcquireLease(acquire) = asked.command() {
            let own = asked.pinned.tenant.lease(&acquire.resource.to_string());
            verdict.drafts.retain(|draft| draft.stream == own || draft.event.body.kind() != Kind::LeaseLapsed);
        }
    }));

    every_lease_is_shared_and_lasts_a_day: [
        one_of_many_threads_holds_a_resource,
        the_takeover_of_a_run_interrupts_it_in_the_same_transaction,
        nothing_is_changed_under_a_lease_that_was_taken_over,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::AcquireLease(acquire) = asked.command() else { return asked.ask(sound) };
        let long = AcquireLease { length: Span::hours(24), shared: true, ..(**acquire).clone() };
        asked.with(Command::AcquireLease(Box::new(long)), sound)
    }));
}

/// Leases are loaded otherwise than they are stored.
fn leases(parts: Parts, change: fn(&mut LeaseRow)) -> Parts {
    loading(parts, move |stored| {
        if let Row::Lease(row) = &mut stored.row {
            change(row);
        }
    })
}

fn with(place: Place, parts: fn(Parts) -> Parts) -> Place {
    Place { parts, ..place }
}

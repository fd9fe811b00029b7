//! Rules about tasks that are broken, and stores that lose them.

use onceseal_core::command::Command;
use onceseal_core::journal::{Index, Kind, Row};
use onceseal_core::task::TaskState;
use onceseal_store::Parts;

use crate::break_it::{finding, loading, saving, verdict};
use crate::{Place, broken};

broken! {
    a_task_that_was_taken_is_not_marked: [
        one_of_a_batch_sees_what_the_others_took,
        many_threads_take_each_task_once_and_all_are_verified,
        a_plan_goes_on_across_openings,
    ], |place| with(place, |parts| without(parts, |command| matches!(command, Command::TakeTask(_)), Kind::TaskTaken));

    a_plan_has_room_for_all: [
        one_of_a_batch_sees_what_the_others_took,
    ], |place| with(place, |parts| loading(parts, |stored| {
        if let Row::Plan(row) = &mut stored.row {
            row.capacity = 256;
        }
    }));

    what_waited_is_not_queued: [
        many_threads_take_each_task_once_and_all_are_verified,
        what_waited_is_queued_in_the_transaction_that_verifies,
        a_plan_goes_on_across_openings,
    ], |place| with(place, |parts| without(parts, |command| matches!(command, Command::MoveTask(_)), Kind::TaskQueued));

    whoever_waits_is_not_found: [
        many_threads_take_each_task_once_and_all_are_verified,
        what_waited_is_queued_in_the_transaction_that_verifies,
    ], |place| with(place, |parts| finding(parts, |range, found| {
        if range.index == Index::Dependent {
            found.clear();
        }
    }));

    a_lapse_is_of_the_lease_alone: [
        a_task_that_lapsed_is_found_when_it_is_due_and_is_next,
    ], |place| with(place, |parts| verdict(parts, |asked, verdict| {
        if matches!(asked.command(), Command::Lapse(_)) {
            verdict.drafts.retain(|draft| {
                !matches!(draft.event.body.kind(), Kind::TaskMoved | Kind::TaskQueued)
            });
        }
    }));

    what_lapsed_goes_to_the_end_of_the_line: [
        a_task_that_lapsed_is_found_when_it_is_due_and_is_next,
    ], |place| with(place, |parts| verdict(parts, |_, verdict| {
        for draft in &mut verdict.drafts {
            if let onceseal_core::journal::Body::TaskQueued(data, _) = &mut draft.event.body {
                data.state = TaskState::Queued;
            }
        }
    }));

    whoever_works_on_what_changed_goes_on: [
        a_new_plan_stops_what_changed_and_keeps_what_did_not,
    ], |place| with(place, |parts| without(parts, |command| matches!(command, Command::PlanTasks(_)), Kind::LeaseInterrupted));

    every_plan_begins_anew: [
        a_new_plan_stops_what_changed_and_keeps_what_did_not,
    ], |place| with(place, |parts| loading(parts, |stored| {
        if let Row::Task(row) = &mut stored.row && row.state == TaskState::Verified {
            row.state = TaskState::Closed;
        }
    }));

    a_task_at_work_is_lost_in_a_file: [
        a_plan_goes_on_across_openings,
    ], |place| with(place, |parts| loading(parts, |stored| {
        if let Row::Task(row) = &mut stored.row && row.state.is_worked_on() {
            row.state = TaskState::Queued;
        }
    }));

    a_task_is_saved_without_what_it_frees: [
        what_waited_is_queued_in_the_transaction_that_verifies,
        many_threads_take_each_task_once_and_all_are_verified,
    ], |place| with(place, |parts| saving(parts, |changes| {
        let queued = |it: &onceseal_core::journal::Recorded| it.event.body.kind() == Kind::TaskQueued;
        let streams: Vec<_> = changes.events.iter().filter(|it| queued(it)).map(|it| it.stamp.stream).collect();
        changes.events.retain(|it| !streams.contains(&it.stamp.stream));
        changes.rows.retain(|change| !streams.contains(&change.stream));
    }));
}

/// Nothing of this kind is recorded of these commands.
fn without(parts: Parts, of: fn(&Command) -> bool, kind: Kind) -> Parts {
    verdict(parts, move |asked, verdict| {
        if of(asked.command()) {
            verdict.drafts.retain(|draft| draft.event.body.kind() != kind);
        }
    })
}

fn with(place: Place, parts: fn(Parts) -> Parts) -> Place {
    Place { parts, ..place }
}

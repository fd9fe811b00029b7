//! Rules about deliveries that are broken, and stores that lose them.

use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::journal::{Kind, Row};
use onceseal_core::run::BindDeliveries;
use onceseal_core::stream::{StreamId, StreamKind};

use crate::break_it::{loading, rule, saving, verdict};
use crate::{Place, broken};

broken! {
    what_is_bound_is_read_as_something_else: [
        what_is_bound_stays_and_an_identical_repeat_adds_nothing,
        an_approval_is_used_once_by_however_many_bind_what_it_is_for,
        what_was_bound_is_bound_after_reopening,
    ], |place| with(place, |parts| loading(parts, |stored| {
        if let Row::Delivery(row) = &mut stored.row {
            row.private.receipt = Some(Hash([0; 32]));
        }
    }));

    the_newest_of_a_gate_is_forgotten: [
        one_of_a_batch_sees_what_the_others_bound,
        what_was_bound_is_bound_after_reopening,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::BindDeliveries(bind) = asked.command() else { return asked.ask(sound) };
        let view = asked.row_as(&StreamId::run(bind.run), |row| {
            if let Row::Run(row) = row {
                row.gates.clear();
            }
        });
        asked.seeing(&view, sound)
    }));

    whatever_is_bound_there_is_the_same: [
        one_of_many_threads_binds_a_revision,
        what_is_bound_stays_and_an_identical_repeat_adds_nothing,
        one_of_a_batch_sees_what_the_others_bound,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::BindDeliveries(bind) = asked.command() else { return asked.ask(sound) };
        let [one] = bind.deliveries.as_slice() else { return asked.ask(sound) };
        let stream = asked.pinned.tenant.delivery(bind.run, &one.gate, one.revision);
        let view = asked.row_as(&stream, |row| {
            if let Row::Delivery(row) = row {
                row.private.receipt = Some(one.receipt);
            }
        });
        asked.seeing(&view, sound)
    }));

    an_approval_is_never_used_up: [
        an_approval_is_used_once_by_however_many_bind_what_it_is_for,
        several_are_bound_together_or_none_is,
        what_proves_a_delivery_is_answered_in_the_same_transaction,
    ], |place| with(place, |parts| without(parts, Kind::ApprovalConsumed));

    the_action_of_a_delivery_is_not_answered: [
        what_proves_a_delivery_is_answered_in_the_same_transaction,
    ], |place| with(place, |parts| without(parts, Kind::ActionEnded));

    what_proves_a_delivery_is_saved_without_it: [
        what_proves_a_delivery_is_answered_in_the_same_transaction,
        an_approval_is_used_once_by_however_many_bind_what_it_is_for,
    ], |place| with(place, |parts| saving(parts, |changes| {
        if changes.events.iter().any(|it| it.stamp.stream.kind == StreamKind::Delivery) {
            changes.events.retain(|it| it.stamp.stream.kind != StreamKind::Approval);
            changes.rows.retain(|change| change.stream.kind != StreamKind::Approval);
        }
    }));

    of_several_the_first_is_bound: [
        several_are_bound_together_or_none_is,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::BindDeliveries(bind) = asked.command() else { return asked.ask(sound) };
        let deliveries = bind.deliveries.iter().take(1).cloned().collect();
        let first = BindDeliveries { deliveries, ..(**bind).clone() };
        asked.with(Command::BindDeliveries(Box::new(first)), sound)
    }));
}

fn without(parts: onceseal_store::Parts, kind: Kind) -> onceseal_store::Parts {
    verdict(parts, move |asked, verdict| {
        if matches!(asked.command(), Command::BindDeliveries(_)) {
            verdict.drafts.retain(|draft| draft.event.body.kind() != kind);
        }
    })
}

fn with(place: Place, parts: fn(onceseal_store::Parts) -> onceseal_store::Parts) -> Place {
    Place { parts, ..place }
}

//! Rules about handoffs that are broken, and stores that lose them.

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::handoff::HandoffState;
use onceseal_core::id::HolderId;
use onceseal_core::journal::{Index, Kind, Row};
use onceseal_core::reply::Reply;
use onceseal_store::Parts;

use crate::break_it::{finding, loading, rule, verdict};
use crate::{Place, broken};

broken! {
    that_it_was_accepted_is_not_kept: [
        one_of_many_threads_accepts_a_handoff,
        whoever_accepts_fences_the_old_holder_at_once,
        whoever_is_too_late_to_withdraw_is_told,
        a_handoff_is_accepted_after_reopening_and_its_answer_given_again,
    ], |place| with(place, |parts| without(parts, Kind::HandoffAccepted));

    whoever_accepted_is_forgotten: [
        a_handoff_is_accepted_after_reopening_and_its_answer_given_again,
    ], |place| with(place, |parts| loading(parts, |stored| {
        if let Row::Handoff(row) = &mut stored.row {
            row.holder = row.holder.map(|_| HolderId([0; 16]));
        }
    }));

    a_receipt_is_of_whoever_comes: [
        one_of_many_threads_prepares_a_handoff,
    ], |place| with(place, |parts| verdict(parts, |_, verdict| {
        if matches!(&verdict.reply, Reply::Refused(refusal) if refusal.code == Code::HandoffConflict) {
            verdict.reply = Reply::Done { changed: false };
        }
    }));

    any_number_wait_to_be_accepted: [
        one_of_many_threads_prepares_a_handoff,
        a_handoff_is_accepted_after_reopening_and_its_answer_given_again,
    ], |place| with(place, |parts| finding(parts, |range, found| {
        if range.index == Index::Handoff {
            found.clear();
        }
    }));

    a_handoff_is_of_the_resource_as_it_is: [
        a_handoff_is_of_the_resource_as_it_was,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::AcceptHandoff(accept) = asked.command() else { return asked.ask(sound) };
        let lease = asked.pinned.tenant.lease(&accept.resource.to_string());
        let Some(row) = asked.view.lease(&lease).ok().flatten() else { return asked.ask(sound) };
        let fence = row.fence;
        let view = asked.row_as(&asked.pinned.tenant.handoff(accept.receipt), |row| {
            if let Row::Handoff(row) = row {
                row.fence = fence;
            }
        });
        asked.seeing(&view, sound)
    }));

    what_was_accepted_is_withdrawn: [
        whoever_is_too_late_to_withdraw_is_told,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::WithdrawHandoff(withdraw) = asked.command() else { return asked.ask(sound) };
        let view = asked.row_as(&asked.pinned.tenant.handoff(withdraw.receipt), |row| {
            if let Row::Handoff(row) = row {
                row.state = HandoffState::Prepared;
            }
        });
        asked.seeing(&view, sound)
    }));

    what_is_stale_stays_in_the_way: [
        a_handoff_is_of_the_resource_as_it_was,
    ], |place| with(place, |parts| without(parts, Kind::HandoffWithdrawn));
}

fn without(parts: Parts, kind: Kind) -> Parts {
    verdict(parts, move |_, verdict| verdict.drafts.retain(|draft| draft.event.body.kind() != kind))
}

fn with(place: Place, parts: fn(Parts) -> Parts) -> Place {
    Place { parts, ..place }
}

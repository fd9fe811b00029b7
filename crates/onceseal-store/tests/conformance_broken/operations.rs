//! Rules about operations that are broken, and stores that lose them.

use onceseal_core::action::ActionState;
use onceseal_core::approval::Status;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::EffectState;
use onceseal_core::hash::Hash;
use onceseal_core::id::ActionId;
use onceseal_core::journal::{Body, Index, Row};
use onceseal_core::reply::Reply;
use onceseal_core::stream::{StreamId, StreamKind};
use onceseal_core::time::Timestamp;
use onceseal_core::view::View;

use crate::break_it::{Asked, finding, loading, rule, verdict};
use crate::{Place, broken};

broken! {
    a_dispatch_is_not_looked_for: [
        a_dispatch_queues_its_effect_once, an_operation_waits_across_openings,
    ], |place| with(place, |parts| {
        let unfound = finding(parts, |range, found| {
            if range.index == Index::Scope {
                found.clear();
            }
        });
        // Nor is it met by the way, as the holder of its effect.
        loading(unfound, |stored| {
            if let Row::Action(row) = &mut stored.row
                && let Some(operation) = &mut row.operation
            {
                operation.scope = Hash([0; 32]);
            }
        })
    });

    another_wish_under_its_key_is_the_same: [
        a_dispatch_queues_its_effect_once,
    ], |place| with(place, |parts| verdict(parts, |asked, verdict| {
        let conflict =
            matches!(&verdict.reply, Reply::Refused(refusal) if refusal.code == Code::IdempotencyConflict);
        if conflict && matches!(asked.command(), Command::Dispatch(_)) {
            verdict.reply = Reply::Done { changed: false };
        }
    }));

    what_is_queued_may_be_attempted_by_anybody: [
        a_dispatch_queues_its_effect_once,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Run(run) = asked.command() else { return asked.ask(sound) };
        let Some(key) = run.proposal.effect_key() else { return asked.ask(sound) };
        let view = asked.effect_as(&asked.pinned.tenant.effect(key), |row| {
            if row.state == EffectState::Queued {
                row.state = EffectState::Released;
            }
        });
        asked.seeing(&view, sound)
    }));

    an_approval_is_left_unused_by_a_dispatch: [
        an_approval_is_used_when_the_intent_is_stored,
    ], |place| with(place, |parts| verdict(parts, |asked, verdict| {
        if matches!(asked.command(), Command::Dispatch(_)) {
            verdict.drafts.retain(|draft| !matches!(draft.event.body, Body::ApprovalConsumed(..)));
        }
    }));

    an_approval_for_a_worker_serves_anybody: [
        an_approval_is_used_when_the_intent_is_stored,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Some((_, Some(id))) = asked.run() else { return asked.ask(sound) };
        let view = asked.approval_as(id, |row| row.private.bound.contract = None);
        asked.seeing(&view, sound)
    }));

    an_expired_approval_stops_what_was_accepted: [
        an_approval_is_used_when_the_intent_is_stored,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Claim(claim) = asked.command() else { return asked.ask(sound) };
        let approval = asked.view.action(claim.action).ok().flatten().and_then(|row| row.approval);
        let Some(id) = approval else { return asked.ask(sound) };
        let view = asked.approval_as(id, |row| {
            if row.over(asked.now) || asked.now > row.expires_at {
                row.status = Status::Expired;
            }
        });
        asked.seeing(&view, sound)
    }));

    a_claim_is_handed_out_again: [
        one_of_many_workers_claims_an_operation,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Claim(claim) = asked.command() else { return asked.ask(sound) };
        let view = unclaimed(&asked, claim.action);
        asked.seeing(&view, sound)
    }));

    what_is_given_back_may_be_begun: [
        an_attempt_given_back_leaves_the_operation_queued,
    ], |place| with(place, |parts| verdict(parts, |asked, verdict| {
        if matches!(asked.command(), Command::GiveBack(_)) {
            verdict.drafts.clear();
            verdict.reply = Reply::Done { changed: true };
        }
    }));

    what_is_put_off_is_due: [
        an_attempt_given_back_leaves_the_operation_queued,
    ], |place| with(place, |parts| verdict(parts, |_, verdict| {
        for draft in &mut verdict.drafts {
            if let Body::ActionDelayed(data, _) = &mut draft.event.body {
                data.due = Timestamp::MIN;
            }
        }
    }));

    a_lapsed_claim_counts_as_unknown: [
        a_lapsed_claim_that_had_not_begun_is_given_back,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Lapse(stream) = asked.command() else { return asked.ask(sound) };
        let view = asked.effect_as(stream, |row| row.claimed_from = None);
        asked.seeing(&view, sound)
    }));

    a_cancelled_operation_keeps_its_key: [
        a_cancelled_operation_frees_its_key,
    ], |place| with(place, |parts| verdict(parts, |asked, verdict| {
        if matches!(asked.command(), Command::Cancel(_)) {
            verdict.drafts.retain(|draft| draft.stream.kind != StreamKind::Effect);
        }
    }));

    another_attempt_has_another_key: [
        an_operation_waits_across_openings,
    ], |place| with(place, |parts| loading(parts, |stored| {
        if let Row::Effect(row) = &mut stored.row {
            row.generation += row.fence;
        }
    }));
}

/// The view with an operation as if nobody had claimed it.
fn unclaimed(asked: &Asked<'_>, action: ActionId) -> View {
    let effect = asked.view.action(action).ok().flatten().and_then(|row| row.operation.as_ref());
    let Some(effect) = effect.map(|operation| operation.effect) else { return asked.view.clone() };
    let view = asked.effect_as(&effect, |row| row.state = EffectState::Queued);
    Asked { view: &view, ..*asked }.row_as(&StreamId::action(action), |row| {
        if let Row::Action(row) = row {
            row.state = ActionState::Queued { due: Timestamp::MIN, code: None };
        }
    })
}

fn with(place: Place, parts: fn(onceseal_store::Parts) -> onceseal_store::Parts) -> Place {
    Place { parts, ..place }
}

//! Rules about effects and policies that are broken.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use onceseal_core::action::Run;
use onceseal_core::approval::Source;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::event::Begun;
use onceseal_core::effect::{Begin, EffectState, Finding, Holding, Outcome, Reconcile, Reserve, Settle};
use onceseal_core::journal::{Body, Nothing, Refs, Row};
use onceseal_core::json::{self, Limits};
use onceseal_core::policy::{Activate, ActivePolicy};
use onceseal_core::reply::{Attempt, Reply};
use onceseal_core::stream::StreamKind;
use onceseal_core::time::{Span, Timestamp};
use onceseal_core::view::Halt;

use crate::break_it::{Asked, draft, only, refusal, rule, verdict};
use crate::{Place, broken};

broken! {
    anyone_may_begin: [only_the_holder_may_begin], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Begin(begin) = asked.command() else { return asked.ask(sound) };
        let attempt = holder(&asked, begin.attempt);
        asked.with(Command::Begin(Begin { attempt, ..begin.clone() }), sound)
    }));

    anyone_may_commit_the_effect_of_another: [
        only_the_holder_may_report, a_report_for_an_older_fence_changes_nothing,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Settle(settle) = asked.command() else { return asked.ask(sound) };
        let attempt = holder(&asked, settle.attempt);
        asked.with(Command::Settle(Settle { attempt, ..settle.clone() }), sound)
    }));

    an_effect_is_committed_straight_from_reserved: [
        nothing_is_committed_straight_from_reserved,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Settle(settle) = asked.command() else { return asked.ask(sound) };
        let Holding { effect, action, fence } = settle.attempt;
        let reserved = asked.effect(&effect).is_some_and(|row| row.state == EffectState::Reserved);
        if !reserved || settle.outcome == Outcome::Ambiguous {
            return asked.ask(sound);
        }
        let view = asked.effect_as(&effect, |row| row.state = EffectState::Executing);
        let mut verdict = asked.seeing(&view, sound)?;
        let refs = Refs { action: Some(action), ..Refs::NONE };
        verdict.drafts.insert(0, draft(effect, refs, Body::EffectBegun(Begun { fence }, Nothing {})));
        Ok(verdict)
    }));

    marking_ambiguous_again_is_refused: [
        marking_ambiguous_twice_keeps_the_first_cause, a_repeated_report_is_answered_like_the_first,
    ], |place| with(place, |parts| verdict(parts, |asked, verdict| {
        let again = matches!(verdict.reply, Reply::Settled { state: EffectState::Ambiguous, repeated: true, .. });
        if again && matches!(asked.command(), Command::Settle(_)) {
            verdict.reply = Code::InvalidTransition.into();
        }
    }));

    limits_are_ignored: [attempts_are_limited], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Ok(Some(row)) = asked.view.policy(asked.pinned) else { return asked.ask(sound) };
        let Ok(Some(active)) = asked.pinned.policy(row.active) else { return asked.ask(sound) };
        let text = active.text.replace("\"max_attempts\":2", "\"max_attempts\":1000");
        let document = json::read(text.as_bytes(), &Limits::DATA).expect("a document");
        let mut without = ActivePolicy::compile(&document).expect("a policy");
        without.hash = row.active;
        let mut pinned = asked.pinned.clone();
        pinned.know(row.active, Some(Arc::new(without)));
        Asked { pinned: &pinned, ..asked }.ask(sound)
    }));

    a_holder_is_handed_its_attempt_again: [
        the_callers_own_action_id_never_helps,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Reserve(reserve) = asked.command() else { return asked.ask(sound) };
        let effect = asked.pinned.tenant.effect(&reserve.key);
        match asked.effect(&effect).filter(|row| row.live(asked.now) && row.holder == reserve.action) {
            Some(row) => only(Reply::Attempt(Attempt {
                action: row.holder,
                effect,
                key: row.private.key,
                fence: row.fence,
                lease_until: row.deadline,
                deadline: row.deadline,
                lease: reserve.lease,
                taken_at: asked.now,
                begun: false,
                approval: None,
            })),
            None => asked.ask(sound),
        }
    }));

    a_reservation_begins_by_itself: [
        a_free_key_is_taken_by_the_first_attempt,
    ], |place| with(place, |parts| verdict(parts, |asked, verdict| {
        for draft in &mut verdict.drafts {
            if let (Command::Reserve(_), Body::EffectAcquired(data, _)) = (asked.command(), &mut draft.event.body) {
                data.begun = true;
            }
        }
    }));

    any_lease_and_key_will_do: [
        a_reservation_outside_its_bounds_is_refused,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Reserve(reserve) = asked.command() else { return asked.ask(sound) };
        asked.with(Command::Reserve(Reserve { lease: Span::minutes(2), ..reserve.clone() }), sound)
    }));

    any_lease_of_a_call_will_do: [
        a_call_may_shorten_its_lease_and_never_lengthen_it,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Run(run) = asked.command() else { return asked.ask(sound) };
        asked.with(Command::Run(Box::new(Run { lease: None, ..(**run).clone() })), sound)
    }));

    every_wish_is_the_same: [
        another_wish_under_the_same_key_is_told_of_the_conflict_only,
    ], |place| with(place, |parts| verdict(parts, |_, verdict| {
        if let Some(refusal) = refusal(verdict)
            && refusal.code == Code::EffectKeyConflict {
                refusal.code = Code::Duplicate;
            }
    }));

    what_a_refusal_has_found_is_forgotten: [
        a_lapsed_reservation_becomes_ambiguous_and_is_never_handed_over,
        a_lapsed_execution_becomes_ambiguous_and_is_never_handed_over,
        a_begin_after_the_lease_is_refused_and_makes_it_ambiguous,
        an_expiry_met_on_use_is_kept_although_the_use_is_refused,
        an_answer_after_the_end_is_refused_and_the_end_is_kept,
        a_late_report_is_kept_once_and_changes_nothing,
        what_the_policy_does_not_permit_is_denied_with_its_reason,
        every_end_has_a_receipt_and_every_receipt_its_end,
    ], |place| with(place, |parts| verdict(parts, |_, verdict| {
        if refusal(verdict).is_some() {
            verdict.drafts.clear();
        }
    }));

    a_report_is_judged_by_time: [
        a_report_is_judged_by_its_fence_and_not_by_time, a_report_after_an_unanswered_lapse_is_the_answer,
    ], |place| with(place, |parts| rule(parts, |asked, sound| match asked.command() {
        Command::Settle(settle) if asked.effect(&settle.attempt.effect).is_some_and(|row| !row.live(asked.now)) => {
            only(Code::LeaseLapsed)
        }
        _ => asked.ask(sound),
    }));

    a_repeated_report_is_a_mistake: [
        a_repeated_report_is_answered_like_the_first,
    ], |place| with(place, |parts| verdict(parts, |_, verdict| {
        if matches!(verdict.reply, Reply::Settled { repeated: true, .. }) {
            verdict.reply = Code::InvalidTransition.into();
        }
    }));

    a_renewal_promises_more_than_it_keeps: [
        a_renewal_moves_a_live_lease_and_never_past_the_deadline,
    ], |place| with(place, |parts| verdict(parts, |asked, verdict| {
        if let (Command::Renew(renew), Reply::Renewed { lease_until }) = (asked.command(), &mut verdict.reply) {
            *lease_until = asked.now + renew.lease;
        }
    }));

    a_result_is_cut_where_it_is_too_long: [
        an_error_text_is_cut_and_a_result_over_the_limit_refused,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Settle(settle) = asked.command() else { return asked.ask(sound) };
        let result = settle.result.clone().filter(|text| text.len() <= 65_536);
        asked.with(Command::Settle(Settle { result, ..settle.clone() }), sound)
    }));

    a_sweep_ends_what_still_lives: [
        a_lapse_is_recorded_when_the_lease_has_ended_and_once, a_request_ends_with_its_time_and_its_action_with_it,
    ], |place| with(place, |parts| rule(parts, |asked, sound| match asked.command() {
        Command::Lapse(_) => Asked { now: Timestamp::MAX, ..asked }.ask(sound),
        _ => asked.ask(sound),
    }));

    a_lapse_leaves_its_action_running: [
        a_lapse_ends_the_action_with_a_receipt, a_request_ends_with_its_time_and_its_action_with_it,
    ], |place| with(place, |parts| verdict(parts, |asked, verdict| {
        if matches!(asked.command(), Command::Lapse(_)) {
            verdict.drafts.retain(|draft| draft.stream.kind != StreamKind::Action);
        }
    }));

    what_is_known_can_be_resolved: [
        what_is_known_cannot_be_resolved, a_person_answers_for_an_unknown_outcome_once,
    ], |place| with(place, |parts| rule(parts, |asked, sound| match asked.command() {
        Command::Resolve(resolve)
            if asked.effect(&resolve.effect).is_some_and(|row| row.answered_by.is_some() && !row.held()
                && row.state != EffectState::Ambiguous) =>
        {
            only(Reply::Settled { state: EffectState::Failed, receipt: None, repeated: false })
        }
        _ => asked.ask(sound),
    }));

    only_what_a_sweep_has_met_can_be_resolved: [
        a_lapse_that_nobody_recorded_can_be_resolved,
    ], |place| with(place, |parts| rule(parts, |asked, sound| match asked.command() {
        Command::Resolve(resolve) if asked.effect(&resolve.effect).is_some_and(|row| row.held()) => {
            only(Code::NotAmbiguous)
        }
        _ => asked.ask(sound),
    }));

    the_remote_is_believed_whenever_it_says_absent: [
        the_remote_says_absent_only_once_it_can_no_longer_happen,
    ], |place| with(place, |parts| rule(parts, |asked, sound| match asked.command() {
        Command::Reconcile(remote) if remote.finding == Finding::Absent => {
            asked.with(Command::Reconcile(Reconcile { settle: Span::ZERO, ..remote.clone() }), sound)
        }
        _ => asked.ask(sound),
    }));

    the_remotes_word_is_taken_for_a_persons: [
        the_remote_says_committed_while_it_executes_or_is_unknown,
    ], |place| with(place, |parts| rule(parts, |asked, sound| match asked.command() {
        Command::Reconcile(remote)
            if asked.effect(&remote.effect).is_some_and(|row| row.answered_by != Some(Source::Holder)) =>
        {
            only(Code::NotAmbiguous)
        }
        _ => asked.ask(sound),
    }));

    an_old_policy_comes_back: [
        an_old_policy_does_not_come_back_by_itself,
    ], |place| with(place, |parts| rule(parts, |asked, sound| match asked.command() {
        Command::Activate(activate) => {
            asked.with(Command::Activate(Activate { again: true, ..activate.clone() }), sound)
        }
        _ => asked.ask(sound),
    }));

    a_proposal_is_decided_by_the_policy_it_was_made_under: [
        a_proposal_under_another_policy_is_told_the_active_one,
        the_policy_that_was_activated_last_decides,
        a_policy_activated_in_a_batch_decides_what_follows_in_it,
    ], |place| with(place, |parts| {
        // The first that anything was proposed under, whatever was activated since.
        let first = OnceLock::new();
        rule(parts, move |asked, sound| {
            let Some((run, _)) = asked.run() else { return asked.ask(sound) };
            let first = *first.get_or_init(|| run.proposal.policy());
            let view = asked.row_as(&asked.pinned.tenant.policy(), |row| {
                if let Row::Policy(row) = row {
                    row.active = first;
                }
            });
            asked.seeing(&view, sound)
        })
    });

    what_has_no_policy_is_done: [
        nothing_is_decided_without_a_policy,
    ], |place| with(place, |parts| verdict(parts, |_, verdict| {
        if refusal(verdict).is_some_and(|refusal| refusal.code == Code::PolicyMissing) {
            verdict.reply = Reply::Done { changed: false };
        }
    }));

    what_nobody_knows_is_called_unreadable: [
        a_command_about_what_is_not_there_is_refused_by_name,
        what_nobody_has_taken_cannot_be_begun_renewed_or_reported,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let mut verdict = asked.ask(sound)?;
        let unknown = [Code::ActionUnknown, Code::ApprovalUnknown, Code::EffectUnknown];
        match refusal(&mut verdict) {
            Some(refusal) if unknown.contains(&refusal.code) => Err(Halt::Unreadable),
            _ => Ok(verdict),
        }
    }));

    an_ended_action_has_no_answer: [
        an_ended_action_gives_its_first_answer_again,
    ], |place| with(place, |parts| verdict(parts, |_, verdict| {
        if matches!(verdict.reply, Reply::Ended { .. }) {
            verdict.reply = Code::ActionUnknown.into();
        }
    }));

    a_late_word_has_no_receipt: [
        a_late_word_has_a_receipt_of_its_own,
    ], |place| with(place, |parts| verdict(parts, |_, verdict| {
        if let Some(refusal) = refusal(verdict).filter(|refusal| refusal.code == Code::Fenced) {
            refusal.receipt = None;
        }
    }));

    rules_tire_after_a_thousand_commands: [a_full_queue_is_busy], |place| with(place, |parts| {
        let commands = AtomicUsize::new(0);
        rule(parts, move |asked, sound| match commands.fetch_add(1, Ordering::SeqCst) {
            ..1000 => asked.ask(sound),
            _ => Err(Halt::Unreadable),
        })
    });
}

fn with(place: Place, parts: fn(onceseal_store::Parts) -> onceseal_store::Parts) -> Place {
    Place { parts, ..place }
}

/// Whoever holds it, in place of whoever comes.
fn holder(asked: &Asked<'_>, came: Holding) -> Holding {
    match asked.effect(&came.effect) {
        Some(row) => Holding { action: row.holder, fence: row.fence, ..came },
        None => came,
    }
}

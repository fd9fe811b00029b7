//! Rules about approvals that are broken.

use std::sync::Arc;

use onceseal_core::action::{Reach, Run};
use onceseal_core::approval::event::{Consumed, PersonSealed, Responded};
use onceseal_core::approval::{Answer, Identity, Proof, Response, Said, Status};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::Resolve;
use onceseal_core::id::ApprovalId;
use onceseal_core::journal::{Body, Nothing, Refs, Row};
use onceseal_core::reply::Reply;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Timestamp;
use onceseal_core::view::Loaded;
use onceseal_store::Parts;

use crate::break_it::{Asked, draft, loading, only, refusal, rule, verdict};
use crate::{Place, broken};

broken! {
    an_approval_is_used_whatever_its_hash: [
        an_approval_permits_the_action_it_binds_and_no_other, nothing_runs_before_a_person_has_said_yes,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Some((run, Some(id))) = asked.run() else { return asked.ask(sound) };
        let view = asked.approval_as(id, |row| {
            let bound = &mut row.private.bound;
            bound.action_hash = Some(run.proposal.action_hash());
            bound.effect_key = run.proposal.effect_key().map(str::to_owned);
            bound.rule = run.proposal.rule();
        });
        asked.seeing(&view, sound)
    }));

    an_approval_is_used_whatever_its_expiry: [
        an_approval_permits_nothing_after_its_end, an_expiry_met_on_use_is_kept_although_the_use_is_refused,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Some((_, Some(id))) = asked.run() else { return asked.ask(sound) };
        asked.seeing(&asked.approval_as(id, |row| row.expires_at = Timestamp::MAX), sound)
    }));

    an_approval_is_used_whatever_people_have_said: [
        nothing_runs_before_a_person_has_said_yes, an_unanswered_or_unknown_approval_permits_nothing,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Some((_, Some(id))) = asked.run() else { return asked.ask(sound) };
        if asked.approval(id).is_none_or(|row| row.status != Status::Pending) {
            return asked.ask(sound);
        }
        let view = asked.approval_as(id, |row| {
            (row.status, row.quorum) = (Status::Granted, 0);
        });
        let mut verdict = asked.seeing(&view, sound)?;
        if matches!(verdict.reply, Reply::Attempt(_)) {
            let said = Responded { proof: Proof::Host, said: Said::Yes, status: Status::Granted };
            let body = Body::ApprovalAnswered(said, PersonSealed { person: None, reason: None });
            verdict.drafts.insert(0, draft(StreamId::approval(id), Refs::NONE, body));
        }
        Ok(verdict)
    }));

    // Whether those who come at once share a batch or not.
    an_approval_is_shown_unused_to_everybody: [
        one_of_many_threads_uses_the_approval,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Some((_, Some(id))) = asked.run() else { return asked.ask(sound) };
        let view = asked.approval_as(id, |row| row.status = Status::Granted);
        asked.seeing(&view, sound)
    }));

    an_approval_is_used_again: [
        an_approval_is_used_once, the_first_decision_stands,
    ], |place| with(place, |parts| loading(parts, |stored| {
        if let Row::Approval(row) = &mut stored.row
            && row.status == Status::Consumed {
                row.status = Status::Granted;
            }
    }));

    an_approval_is_used_although_the_effect_is_refused: [
        an_approval_is_still_granted_if_the_effect_is_refused,
    ], |place| with(place, |parts| verdict(parts, |asked, verdict| {
        let Some((_, Some(id))) = asked.run() else { return };
        let granted = asked.approval(id).is_some_and(|row| row.status == Status::Granted);
        let by_key = refusal(verdict).is_some_and(|refusal| refusal.effect.is_some());
        if granted && by_key {
            verdict.drafts.push(used(id));
        }
    }));

    asking_whether_one_may_uses_the_approval: [
        asking_whether_one_may_uses_nothing,
    ], |place| with(place, |parts| verdict(parts, |asked, verdict| {
        let Some((Run { reach: Reach::Ready, .. }, Some(id))) = asked.run() else { return };
        verdict.drafts.push(used(id));
    }));

    approvers_are_counted_when_they_answer_only: [
        approvers_are_counted_again_when_the_approval_is_used,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        if !matches!(asked.command(), Command::Run(_)) {
            return asked.ask(sound);
        }
        let mut view = asked.view.clone();
        for row in granted(&asked) {
            view.load(row, asked_of_nobody(&asked, &row));
        }
        asked.seeing(&view, sound)
    }));

    a_changed_rule_changes_nothing: [
        a_changed_rule_voids_what_was_granted_under_it,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Some((run, Some(id))) = asked.run() else { return asked.ask(sound) };
        asked.seeing(&asked.approval_as(id, |row| row.private.bound.rule = run.proposal.rule()), sound)
    }));

    one_yes_is_a_quorum: [
        a_quorum_counts_different_people, an_answer_given_twice_counts_once,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Answer(answer) = asked.command() else { return asked.ask(sound) };
        asked.seeing(&asked.approval_as(answer.approval, |row| row.quorum = 1), sound)
    }));

    one_person_counts_as_often_as_they_answer: [
        a_quorum_counts_different_people, an_answer_given_twice_counts_once,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Answer(answer) = asked.command() else { return asked.ask(sound) };
        let again = asked.approval(answer.approval).is_some_and(|row| !row.private.responses.is_empty());
        let name = if again { "bob" } else { answer.person.name.as_str() };
        let person = Identity { name: name.to_owned(), ..answer.person.clone() };
        asked.with(Command::Answer(Answer { person, ..answer.clone() }), sound)
    }));

    a_no_is_taken_for_a_yes: [
        one_no_denies_and_nobody_is_asked_again_before_the_request_ends, a_granted_approval_can_be_taken_back,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Answer(answer) = asked.command() else { return asked.ask(sound) };
        asked.with(Command::Answer(Answer { said: Said::Yes, ..answer.clone() }), sound)
    }));

    anybody_answers_whatever_they_were_shown: [
        only_the_entitled_answer_and_only_what_they_were_shown,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Answer(answer) = asked.command() else { return asked.ask(sound) };
        let Some(row) = asked.approval(answer.approval) else { return asked.ask(sound) };
        let person = Identity { proof: Proof::Host, name: "ann".to_owned() };
        let shown = row.private.bound.binding.unwrap_or(answer.shown);
        asked.with(Command::Answer(Answer { person, shown, ..answer.clone() }), sound)
    }));

    the_last_decision_stands: [
        the_first_decision_stands, one_of_many_answers_decides,
    ], |place| with(place, |parts| loading(parts, |stored| {
        if let Row::Approval(row) = &mut stored.row {
            row.status = Status::Pending;
            row.private.responses = Vec::<Response>::new();
        }
    }));

    anybody_resolves: [only_an_operator_resolves_and_says_why], |place| with(place, |parts| {
        rule(parts, |asked, sound| match asked.command() {
            Command::Resolve(resolve) => {
                let person = Identity { proof: Proof::Host, name: "olga".to_owned() };
                asked.with(Command::Resolve(Resolve { person, ..resolve.clone() }), sound)
            }
            _ => asked.ask(sound),
        })
    });

    people_are_asked_about_a_key_that_is_taken: [
        nobody_is_asked_about_a_key_that_would_be_refused,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let mut verdict = asked.ask(sound)?;
        match (asked.run(), refusal(&mut verdict)) {
            (Some((run, None)), Some(refused)) if refused.effect.is_some() => {
                let mut view = asked.view.clone();
                let key = run.proposal.effect_key().unwrap_or_default();
                view.load(asked.pinned.tenant.effect(key), Loaded::Absent);
                asked.seeing(&view, sound)
            }
            _ => Ok(verdict),
        }
    }));

    an_expired_request_may_still_be_answered: [
        an_answer_after_the_end_is_refused_and_the_end_is_kept,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Answer(answer) = asked.command() else { return asked.ask(sound) };
        asked.seeing(&asked.approval_as(answer.approval, |row| row.expires_at = Timestamp::MAX), sound)
    }));

    a_request_never_ends: [
        a_request_ends_with_its_time_and_its_action_with_it, what_ends_by_itself_is_listed_when_it_is_due,
    ], |place| with(place, |parts| rule(parts, |asked, sound| match asked.command() {
        Command::Lapse(_) => only(Reply::Done { changed: false }),
        _ => asked.ask(sound),
    }));

    what_was_denied_can_be_used: [
        an_unanswered_or_unknown_approval_permits_nothing,
    ], |place| with(place, |parts| verdict(parts, |_, verdict| {
        if let Some(refusal) = refusal(verdict).filter(|refusal| refusal.code == Code::ApprovalDenied) {
            refusal.code = Code::ApprovalPending;
        }
    }));
}

fn with(place: Place, parts: fn(Parts) -> Parts) -> Place {
    Place { parts, ..place }
}

fn used(id: ApprovalId) -> onceseal_core::journal::Draft {
    draft(StreamId::approval(id), Refs::NONE, Body::ApprovalConsumed(Consumed {}, Nothing {}))
}

/// The granted approvals that a run may find.
fn granted(asked: &Asked<'_>) -> Vec<StreamId> {
    let Some((run, presented)) = asked.run() else { return Vec::new() };
    let ask = onceseal_core::approval::ask_hash(
        &asked.pinned.tenant,
        &onceseal_core::approval::Asked::of(&run.proposal),
    );
    let range = onceseal_core::view::Range::equal(onceseal_core::journal::Key::of(
        onceseal_core::journal::Index::Ask,
        &[&ask.0],
    ));
    let found = asked.view.range(&range).unwrap_or_default();
    presented.map(StreamId::approval).into_iter().chain(found).collect()
}

fn asked_of_nobody(asked: &Asked<'_>, stream: &StreamId) -> Loaded {
    match asked.view.stored(stream) {
        Ok(Some(stored)) => {
            let mut stored = stored.clone();
            if let Row::Approval(row) = &mut stored.row {
                row.quorum = 0;
            }
            Loaded::Row(Arc::new(stored))
        }
        _ => Loaded::Absent,
    }
}

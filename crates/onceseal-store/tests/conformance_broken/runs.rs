//! Rules about runs that are broken, and stores that lose them.

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::journal::{Body, Index, Row};
use onceseal_core::reply::Reply;

use crate::break_it::{finding, loading, rule, verdict};
use crate::{Place, broken};

broken! {
    a_living_run_is_not_looked_for: [
        a_start_joins_the_run_that_lives_and_follows_the_one_that_ended,
        of_many_starts_at_once_one_makes_the_run,
        a_run_goes_on_by_its_definition_across_openings,
    ], |place| with(place, |parts| {
        let unfound = finding(parts, |range, found| {
            if range.index == Index::Run {
                found.clear();
            }
        });
        loading(unfound, |stored| {
            if let Row::Run(row) = &mut stored.row {
                row.lookup = Hash([0; 32]);
            }
        })
    });

    a_run_is_kept_under_another_key: [
        a_batch_of_starts_makes_one_run,
        a_start_joins_the_run_that_lives_and_follows_the_one_that_ended,
        of_many_starts_at_once_one_makes_the_run,
    ], |place| with(place, |parts| verdict(parts, |_, verdict| {
        for draft in &mut verdict.drafts {
            if let Body::RunStarted(data, _) = &mut draft.event.body {
                data.lookup = Hash([0; 32]);
            }
        }
    }));

    the_one_that_ended_is_forgotten: [
        a_start_joins_the_run_that_lives_and_follows_the_one_that_ended,
    ], |place| with(place, |parts| verdict(parts, |_, verdict| {
        for draft in &mut verdict.drafts {
            if let Body::RunStarted(data, _) = &mut draft.event.body {
                data.previous = None;
            }
        }
    }));

    what_was_answered_is_not_kept: [
        the_same_request_is_answered_as_the_first_time_and_another_is_refused,
        a_run_goes_on_by_its_definition_across_openings,
    ], |place| with(place, |parts| verdict(parts, |_, verdict| {
        verdict.drafts.retain(|draft| !matches!(draft.event.body, Body::RequestAnswered(..)));
    }));

    any_request_is_answered_under_an_id: [
        the_same_request_is_answered_as_the_first_time_and_another_is_refused,
    ], |place| with(place, |parts| verdict(parts, |_, verdict| {
        if matches!(&verdict.reply, Reply::Refused(refusal) if refusal.code == Code::RequestIdConflict) {
            verdict.reply = Reply::Done { changed: false };
        }
    }));

    whatever_ended_goes_on: [
        nothing_follows_that_the_definition_does_not_permit,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Transition(step) = asked.command() else { return asked.ask(sound) };
        let view = asked.row_as(&onceseal_core::stream::StreamId::run(step.run), |row| {
            if let Row::Run(row) = row {
                row.terminal = false;
                row.state = "created".to_owned();
            }
        });
        asked.seeing(&view, sound)
    }));
}

fn with(place: Place, parts: fn(onceseal_store::Parts) -> onceseal_store::Parts) -> Place {
    Place { parts, ..place }
}

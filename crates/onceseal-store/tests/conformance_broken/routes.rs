//! Rules about routes that are broken, and stores that lose them.

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{Outcome, Settle};
use onceseal_core::journal::{Body, Row};
use onceseal_core::operation::event::PersonSaid;
use onceseal_core::reply::Reply;
use onceseal_core::route::RouteState;
use onceseal_core::time::Span;

use crate::break_it::{loading, rule, verdict};
use crate::{Place, broken};

broken! {
    failures_are_not_counted: [
        failures_in_a_row_open_a_circuit_and_a_success_forgets_them,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Settle(settle) = asked.command() else { return asked.ask(sound) };
        asked.with(Command::Settle(Settle { health: None, ..settle.clone() }), sound)
    }));

    a_success_forgets_nothing: [
        failures_in_a_row_open_a_circuit_and_a_success_forgets_them,
        a_probe_closes_the_circuit_or_opens_it_for_longer,
    ], |place| with(place, |parts| verdict(parts, |asked, verdict| {
        let Command::Settle(Settle { outcome: Outcome::Committed, .. }) = asked.command() else { return };
        verdict.drafts.retain(|draft| !matches!(draft.event.body, Body::RouteClosed(..)));
    }));

    an_open_circuit_stops_nothing: [
        what_an_open_circuit_puts_off_is_attempted_later, a_circuit_is_open_across_openings,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Claim(_) = asked.command() else { return asked.ask(sound) };
        let view = asked.row_as(&asked.pinned.tenant.route("https://bank.example"), |row| {
            if let Row::Route(row) = row {
                row.state = RouteState::Closed { failures: 0 };
            }
        });
        asked.seeing(&view, sound)
    }));

    what_a_circuit_stops_is_not_put_off: [
        what_an_open_circuit_puts_off_is_attempted_later,
    ], |place| with(place, |parts| verdict(parts, |_, verdict| {
        if matches!(&verdict.reply, Reply::Refused(refusal) if refusal.code == Code::RouteOpen) {
            verdict.drafts.clear();
        }
    }));

    two_workers_probe_at_once: [
        one_of_many_workers_probes,
    ], |place| with(place, |parts| rule(parts, |asked, sound| {
        let Command::Claim(_) = asked.command() else { return asked.ask(sound) };
        let view = asked.row_as(&asked.pinned.tenant.route("https://bank.example"), |row| {
            if let Row::Route(row) = row
                && let RouteState::Open { probe, .. } = &mut row.state
            {
                *probe = None;
            }
        });
        asked.seeing(&view, sound)
    }));

    the_next_probe_is_never_later: [
        a_probe_closes_the_circuit_or_opens_it_for_longer,
    ], |place| with(place, |parts| verdict(parts, |asked, verdict| {
        for draft in &mut verdict.drafts {
            if let Body::RouteOpened(data, _) = &mut draft.event.body {
                data.until = asked.now + Span::seconds(10);
            }
        }
    }));

    nobody_is_recorded_to_have_closed_a_circuit: [
        a_person_closes_a_circuit,
    ], |place| with(place, |parts| verdict(parts, |_, verdict| {
        for draft in &mut verdict.drafts {
            if let Body::RouteClosed(_, said) = &mut draft.event.body {
                *said = PersonSaid { person: None, reason: None };
            }
        }
    }));

    routes_are_forgotten_in_a_file: [
        a_circuit_is_open_across_openings,
    ], |place| with(place, |parts| loading(parts, |stored| {
        if let Row::Route(row) = &mut stored.row {
            row.state = RouteState::Closed { failures: 0 };
        }
    }));
}

fn with(place: Place, parts: fn(onceseal_store::Parts) -> onceseal_store::Parts) -> Place {
    Place { parts, ..place }
}

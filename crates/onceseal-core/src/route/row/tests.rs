//! The whole state machine of a route, as a table.

use super::*;
use crate::approval::Proof;
use crate::journal::{Nothing, Refs};
use crate::operation::event::PersonSaid;
use crate::route::event::{Closed, Failed, FailedSealed, Opened};
use crate::stream::StreamId;
use crate::time::Span;

const AT: Timestamp = Timestamp::MIN;

fn probe() -> Probe {
    Probe { by: StreamId { kind: StreamKind::Effect, name: [4; 16] }, deadline: AT, fence: 2 }
}

fn open(times: u32, until: Timestamp, probe: Option<Probe>) -> RouteState {
    RouteState::Open { since: AT, times, until, probe }
}

fn states() -> Vec<(&'static str, Option<RouteState>)> {
    vec![
        ("none", None),
        ("closed, 0 failed", Some(RouteState::Closed { failures: 0 })),
        ("closed, 1 failed", Some(RouteState::Closed { failures: 1 })),
        ("open once, cooling down", Some(open(1, AT + Span::seconds(1), None))),
        ("open once, to be probed", Some(open(1, AT, None))),
        ("open once, probed", Some(open(1, AT, Some(probe())))),
    ]
}

fn events() -> Vec<(String, Event)> {
    let person = || PersonSaid { person: None, reason: None };
    let failed =
        |failures| Body::RouteFailed(Failed { failures }, FailedSealed { destination: Some("a".into()) });
    let opened = |times| Body::RouteOpened(Opened { times, until: AT }, Nothing {});
    let closed = |proof| Body::RouteClosed(Closed { proof }, person());
    let bodies = [
        ("1", failed(1)),
        ("2", failed(2)),
        ("1", opened(1)),
        ("2", opened(2)),
        ("", Body::RouteProbed(probe(), Nothing {})),
        ("", closed(None)),
        ("by a person", closed(Some(Proof::Host))),
        (
            "",
            Body::StoreCreated(
                crate::store::event::Created {},
                crate::store::event::CreatedSealed { owner: None },
            ),
        ),
    ];
    let named = |(more, body): (&str, Body)| {
        (format!("{} {more}", body.kind()).trim_end().to_owned(), Event { refs: Refs::NONE, body })
    };
    bodies.into_iter().map(named).collect()
}

fn name(state: &RouteState) -> String {
    match state {
        RouteState::Closed { failures } => format!("closed({failures})"),
        RouteState::Open { times, probe, .. } => {
            format!("open({times}){}", if probe.is_some() { ", probed" } else { "" })
        }
    }
}

#[test]
fn every_state_answers_every_event() {
    let mut table = String::new();
    for (about, before) in states() {
        table += about;
        table.push('\n');
        for (about, event) in events() {
            let row = before.clone().map(|state| RouteRow {
                state,
                created_at: AT,
                updated_at: AT,
                private: RoutePrivate { destination: Some("a".into()) },
            });
            let after = evolve(row, AT, &event).map_or_else(|_| "-".into(), |row| name(&row.state));
            table += &format!("    {about:<26} {after}\n");
        }
    }
    insta::assert_snapshot!(table);
}

//! The whole state machine of a run's stream, as a table. Which move is legal
//! is for its definition to say; here is what may follow in a stream at all.

use super::*;
use crate::journal::Refs;
use crate::run::event::{AskedBy, Named, NamedSealed, Started, StartedSealed};

const AT: Timestamp = Timestamp::MIN;
const ROOT: RootId = RootId([1; 16]);

fn started(provisional: bool) -> Body {
    let data = Started {
        definition: Hash([2; 32]),
        kind: "design".to_owned(),
        lookup: Hash([3; 32]),
        ordinal: 0,
        previous: None,
        provisional,
        root: ROOT,
        state: "created".to_owned(),
    };
    Body::RunStarted(data, StartedSealed { agent: None, key: None, user: None })
}

fn moved(from: &str, to: &str, terminal: bool) -> Body {
    let data = Moved { code: None, from: from.to_owned(), terminal, to: to.to_owned() };
    Body::RunMoved(data, AskedBy { agent: None, user: None })
}

fn after(bodies: &[Body]) -> Option<RunRow> {
    let mut row = None;
    for body in bodies {
        row = Some(evolve(row, AT, &Event { refs: Refs::NONE, body: body.clone() }).ok()?);
    }
    row
}

#[test]
fn every_standing_answers_every_event() {
    let rows = [
        ("none", None),
        ("created", after(&[started(false)])),
        ("created, unnamed", after(&[started(true)])),
        ("running", after(&[started(false), moved("created", "running", false)])),
        ("ended", after(&[started(true), moved("created", "discarded", true)])),
    ];
    let named = Named { lookup: Hash([4; 32]), ordinal: 0, previous: None };
    let events = [
        ("run.started", started(false)),
        ("run.moved from created", moved("created", "paused", false)),
        ("run.moved from running", moved("running", "completed", true)),
        ("run.moved from discarded", moved("discarded", "created", false)),
        ("run.named", Body::RunNamed(named, NamedSealed { agent: None, key: None, user: None })),
        (
            "store.created",
            Body::StoreCreated(
                crate::store::event::Created {},
                crate::store::event::CreatedSealed { owner: None },
            ),
        ),
    ];
    let mut table = String::new();
    for (about, before) in rows {
        table += &format!("{about}\n");
        for (event, body) in &events {
            let row = evolve(before.clone(), AT, &Event { refs: Refs::NONE, body: body.clone() });
            let told = row.map_or_else(
                |_| "-".to_owned(),
                |row| {
                    let marks = [(row.terminal, ", ended"), (row.provisional, ", unnamed")];
                    let marks: String =
                        marks.into_iter().filter_map(|(is, mark)| is.then_some(mark)).collect();
                    format!("{}{marks}", row.state)
                },
            );
            table += &format!("    {event:<26} {told}\n");
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_run_that_ended_is_found_under_its_lookup_no_more() {
    let living = after(&[started(false)]).expect("a row");
    let ended = after(&[started(false), moved("created", "discarded", true)]).expect("a row");
    let found = |row: &RunRow| row.keys().contains(&living_key(row.lookup));
    assert!(found(&living) && !found(&ended));
    let Range { index, from, to, .. } = former_range(ended.lookup);
    assert!(ended.keys().iter().any(|key| key.index == index && (&from..=&to).contains(&&key.bytes)));
}

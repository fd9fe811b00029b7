//! The whole state machine of an effect, as a table.

use super::*;
use crate::effect::event::{
    Acquired, AcquiredSealed, Begun, Known, KnownSealed, Lapsed, Late, Queued, Released, Returned, Settled,
    SettledSealed,
};
use crate::journal::{Nothing, Refs};

const AT: Timestamp = Timestamp::MIN;
/// The fence of every sample row.
const FENCE: u64 = 2;

fn row(state: EffectState, answered_by: Option<Source>) -> EffectRow {
    EffectRow {
        state,
        fence: FENCE,
        holder: ActionId([1; 16]),
        lease_until: Some(AT),
        deadline: AT,
        claimed_from: None,
        generation: 1,
        first_begun_at: None,
        answered_by,
        result_at: None,
        code: None,
        remote: [None; 2],
        late: Vec::new(),
        created_at: AT,
        updated_at: AT,
        private: EffectPrivate::default(),
    }
}

fn rows() -> Vec<(String, EffectRow)> {
    let mut rows = Vec::new();
    for &state in EffectState::ALL {
        let held = matches!(state, EffectState::Reserved | EffectState::Executing);
        if state == EffectState::Ambiguous {
            rows.push(("ambiguous, lapsed".into(), row(state, None)));
            rows.push(("ambiguous, told by its holder".into(), row(state, Some(Source::Holder))));
        } else if state == EffectState::Reserved {
            rows.push(("reserved".into(), row(state, None)));
            for from in [EffectState::Queued, EffectState::Ambiguous] {
                rows.push((
                    format!("reserved, claimed from {from}"),
                    EffectRow { claimed_from: Some(from), ..row(state, None) },
                ));
            }
        } else {
            rows.push((state.to_string(), row(state, (!held).then_some(Source::Person))));
        }
    }
    rows
}

fn events(fence: u64) -> Vec<(String, Body)> {
    let acquired = |begun, again| Acquired { again, begun, deadline: AT, fence, lease_until: AT };
    let report = || SettledSealed { error: None, remote: None, result: None };
    let known = || KnownSealed {
        cause: None,
        evidence: None,
        person: None,
        reason: None,
        remote: None,
        result: None,
    };
    let key = || AcquiredSealed { key: None };
    let mut events = vec![
        ("acquired".into(), Body::EffectAcquired(acquired(false, false), key())),
        ("acquired, begun".into(), Body::EffectAcquired(acquired(true, false), key())),
        ("acquired again".into(), Body::EffectAcquired(acquired(false, true), key())),
        ("queued".into(), Body::EffectQueued(Queued { fence }, key())),
        ("returned".into(), Body::EffectReturned(Returned { fence }, Nothing {})),
        ("released".into(), Body::EffectReleased(Released { fence }, Nothing {})),
        ("begun".into(), Body::EffectBegun(Begun { fence }, Nothing {})),
        ("lapsed".into(), Body::EffectLapsed(Lapsed { fence }, Nothing {})),
    ];
    for &outcome in Outcome::ALL {
        let settled = Settled { code: None, fence, outcome, remote_receipt: None, remote_request: None };
        let remote = Known {
            fence,
            outcome,
            proof: None,
            remote_receipt: None,
            remote_request: None,
            source: Source::Remote,
        };
        let person = Known { source: Source::Person, ..remote.clone() };
        let late = Late { contradicts: false, fence, outcome };
        events.push((format!("settled {outcome}"), Body::EffectSettled(settled, report())));
        events.push((format!("reconciled {outcome}"), Body::EffectReconciled(remote, known())));
        events.push((format!("resolved {outcome}"), Body::EffectResolved(person, known())));
        events.push((format!("late {outcome}"), Body::EffectLate(late, report())));
    }
    events
}

fn after(before: Option<EffectRow>, body: Body) -> Option<EffectRow> {
    let refs = Refs { action: Some(ActionId([3; 16])), ..Refs::NONE };
    evolve(before, 7, AT, &Event { refs, body }).ok()
}

fn table(of: impl Fn(&Option<EffectRow>) -> u64) -> String {
    let mut table = String::new();
    let rows = rows().into_iter().map(|(name, row)| (name, Some(row)));
    for (name, before) in std::iter::once(("none".to_owned(), None)).chain(rows) {
        table += &format!("{name}\n");
        for (event, body) in events(of(&before)) {
            let after = after(before.clone(), body);
            let after = after.map_or_else(|| "-".into(), |row| format!("{}({})", row.state, row.fence));
            table += &format!("    {event:<22} {after}\n");
        }
    }
    table
}

#[test]
fn every_state_answers_every_event_of_its_own_attempt() {
    insta::assert_snapshot!(table(|row| row.as_ref().map_or(1, |row| row.fence)));
}

#[test]
fn every_state_answers_every_event_of_the_next_attempt() {
    insta::assert_snapshot!(table(|row| row.as_ref().map_or(2, |row| row.fence + 1)));
}

#[test]
fn every_state_answers_every_event_of_an_older_attempt() {
    insta::assert_snapshot!(table(|row| row.as_ref().map_or(0, |row| row.fence - 1)));
}

#[test]
fn only_the_present_attempts_fence_moves_a_state() {
    for (name, before) in rows() {
        for fence in [0, 1, FENCE - 1, FENCE + 1, FENCE + 2, u64::MAX] {
            for (event, body) in events(fence) {
                let Some(row) = after(Some(before.clone()), body) else { continue };
                let next = event.starts_with("acquired") && fence == FENCE + 1;
                let late = event.starts_with("late") && fence <= FENCE && row.state == before.state;
                assert!(next || late, "{name}: {event} of fence {fence}");
            }
        }
    }
}

#[test]
fn a_late_word_changes_nothing_but_the_list_of_late_words() {
    for (name, before) in rows() {
        for (event, body) in events(FENCE).into_iter().filter(|(event, _)| event.starts_with("late")) {
            let Some(row) = after(Some(before.clone()), body) else {
                assert!(!before.answered(), "{name}: {event}");
                continue;
            };
            assert_eq!(row.late, [FENCE], "{name}: {event}");
            assert_eq!(EffectRow { late: Vec::new(), ..row }, before, "{name}: {event}");
        }
    }
}

#[test]
fn a_row_remembers_the_last_late_words_and_no_more() {
    let mut row = row(EffectState::Failed, None);
    row.fence = 100;
    for fence in 1..=LATE_KEPT as u64 + 1 {
        let data = Late { contradicts: false, fence, outcome: Outcome::Failed };
        let body = Body::EffectLate(data, SettledSealed { error: None, remote: None, result: None });
        row = after(Some(row), body).expect("it may always come");
    }
    assert_eq!((row.late.len(), row.late.first(), row.late.last()), (64, Some(&2), Some(&65)));
}

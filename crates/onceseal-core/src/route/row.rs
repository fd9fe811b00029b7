//! A route's row and its fold.

use crate::journal::{Body, Event, Key};
use crate::pack::{Corrupt, Pack};
use crate::record::{choice, record};
use crate::route::event::Probe;
use crate::stream::StreamKind;
use crate::time::Timestamp;

choice! {
    /// Where a circuit stands.
    pub enum RouteState {
        /// Attempts are made as usual.
        Closed = 1 { /// How many failed in a row.
            failures: u32 },
        /// Nothing is attempted there but a probe.
        Open = 2 { /// Since when.
            since: Timestamp, /// How often in a row it was opened.
            times: u32, /// It is probed from then on.
            until: Timestamp, /// The newest probe since.
            probe: Option<Probe> },
    }
}

record! {
    /// The private half of a route's row.
    pub struct RoutePrivate {
        /// The destination, as contracts name it.
        destination: Option<String>,
    }
}

/// A route's row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RouteRow {
    /// Where its circuit stands.
    pub state: RouteState,
    /// When something was first recorded of it.
    pub created_at: Timestamp,
    /// When its newest event was recorded.
    pub updated_at: Timestamp,
    /// The private half.
    pub private: RoutePrivate,
}

impl Pack for RouteRow {
    fn pack(&self, out: &mut Vec<u8>) {
        self.state.pack(out);
        self.created_at.pack(out);
        self.updated_at.pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Result<RouteRow, Corrupt> {
        Ok(RouteRow {
            state: Pack::unpack(input)?,
            created_at: Pack::unpack(input)?,
            updated_at: Pack::unpack(input)?,
            private: RoutePrivate { destination: None },
        })
    }
}

/// Number of a state in the index of states.
#[must_use]
pub const fn state_number(state: &RouteState) -> u8 {
    match state {
        RouteState::Closed { .. } => 1,
        RouteState::Open { .. } => 2,
    }
}

impl RouteRow {
    /// The keys it is found under.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        vec![Key::state(StreamKind::Route, state_number(&self.state), self.created_at)]
    }
}

/// The row after one more event.
///
/// # Errors
/// [`Corrupt`] for an event that cannot follow.
pub fn evolve(row: Option<RouteRow>, at: Timestamp, event: &Event) -> Result<RouteRow, Corrupt> {
    let state = next(row.as_ref().map(|row| &row.state), at, &event.body);
    let state = state.ok_or(Corrupt("sequence of a route's events"))?;
    let (created_at, private) = match (row, &event.body) {
        (Some(row), _) => (row.created_at, row.private),
        (None, Body::RouteFailed(_, sealed)) => {
            (at, RoutePrivate { destination: sealed.destination.clone() })
        }
        (None, _) => return Err(Corrupt("first event of a route")),
    };
    Ok(RouteRow { state, created_at, updated_at: at, private })
}

/// The whole table: which state follows on which event, `None` if it cannot.
fn next(state: Option<&RouteState>, at: Timestamp, body: &Body) -> Option<RouteState> {
    use RouteState as S;
    match (state, body) {
        (None, Body::RouteFailed(data, _)) if data.failures == 1 => Some(S::Closed { failures: 1 }),
        (Some(S::Closed { failures }), Body::RouteFailed(data, _)) if data.failures == failures + 1 => {
            Some(S::Closed { failures: data.failures })
        }
        (Some(S::Closed { failures: 1.. }), Body::RouteOpened(data, _)) if data.times == 1 => {
            Some(S::Open { since: at, times: 1, until: data.until, probe: None })
        }
        (Some(S::Open { since, times, probe: Some(_), .. }), Body::RouteOpened(data, _))
            if data.times == times + 1 =>
        {
            Some(S::Open { since: *since, times: data.times, until: data.until, probe: None })
        }
        // Of a probe that died nothing is recorded here: the next one replaces it.
        (Some(S::Open { since, times, until, .. }), Body::RouteProbed(data, _)) if at >= *until => {
            Some(S::Open { since: *since, times: *times, until: *until, probe: Some(data.clone()) })
        }
        (Some(S::Closed { failures: 1.. }), Body::RouteClosed(data, _)) if data.proof.is_none() => {
            Some(S::Closed { failures: 0 })
        }
        (Some(S::Open { probe, .. }), Body::RouteClosed(data, _))
            if data.proof.is_some() || probe.is_some() =>
        {
            Some(S::Closed { failures: 0 })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;

//! What must hold of the route that all tools go: nothing is attempted while its
//! circuit is open but one probe at a time.

use onceseal_core::command::Command;
use onceseal_core::effect::{EffectState, Holding};
use onceseal_core::journal::Row;
use onceseal_core::reply::{Attempt, Reply};
use onceseal_core::route::{CloseRoute, RouteState};
use onceseal_core::time::Timestamp;

use crate::calls::identity;
use crate::world::World;

pub(crate) const DESTINATION: &str = "https://remote.example";

/// The attempts made while the circuit was open.
#[derive(Default)]
pub(crate) struct Probes(Vec<Holding>);

/// Until when the circuit is open, if it is.
pub(crate) fn open(world: &World<'_>) -> Option<Timestamp> {
    match world.row(&world.pinned.tenant.route(DESTINATION))? {
        Row::Route(row) => match row.state {
            RouteState::Open { until, .. } => Some(until),
            RouteState::Closed { .. } => None,
        },
        other => panic!("no route: {other:?}"),
    }
}

impl Probes {
    /// An attempt was handed out while the circuit was so.
    pub(crate) fn handed_out(
        &mut self,
        world: &World<'_>,
        attempt: &Attempt,
        open: Option<Timestamp>,
    ) -> Result<(), String> {
        let Some(until) = open else { return Ok(()) };
        let Some(Row::Effect(row)) = world.row(&attempt.effect) else { panic!("no effect") };
        let holding = Holding::from(attempt);
        // What is made again while it still may be does not wait for the circuit.
        if row.claimed_from == Some(EffectState::Ambiguous) && !is_the_probe(world, holding) {
            return Ok(());
        }
        if world.now < until {
            return Err(format!("an attempt is made though the circuit is open until {until}"));
        }
        if self.0.iter().any(|probe| lives(world, *probe)) {
            return Err("two probes are under way at once".to_owned());
        }
        self.0.push(holding);
        Ok(())
    }

    /// A person closes it, whatever is under way.
    pub(crate) fn close(&mut self, world: &mut World<'_>) {
        let (person, reason) = (identity("os:owner"), "looked".to_owned());
        let close = CloseRoute { destination: DESTINATION.to_owned(), person, reason };
        if let Reply::Done { changed: true } = world.run(Command::CloseRoute(close)) {
            self.0.clear();
        }
    }
}

fn is_the_probe(world: &World<'_>, attempt: Holding) -> bool {
    match world.row(&world.pinned.tenant.route(DESTINATION)) {
        Some(Row::Route(row)) => matches!(&row.state, RouteState::Open { probe: Some(probe), .. }
            if (probe.by, probe.fence) == (attempt.effect, attempt.fence)),
        _ => false,
    }
}

fn lives(world: &World<'_>, attempt: Holding) -> bool {
    match world.row(&attempt.effect) {
        Some(Row::Effect(row)) => row.fence == attempt.fence && row.live(world.now),
        _ => false,
    }
}

//! What must be so in every state, whatever led to it.

use onceseal_core::journal::Row;
use onceseal_core::stream::StreamId;

use crate::ghost::{ALONE, FENCES, FINAL, Grant, KEPT, OUTCOME, OVER, Over, RUN};
use crate::ledger::{now, ticks};
use crate::protocol::{Protocol, State};
use crate::steps::OUTCOMES;

impl Protocol {
    pub(crate) fn judge(&self, state: &mut State) {
        let found = [self.alone(state), self.leases(state), self.run(state), self.handed(state)];
        if let Some(promise) = found.into_iter().flatten().next() {
            state.breaks(promise);
        }
    }

    /// Whom the store believes at this moment.
    fn alone(&self, state: &State) -> Option<&'static str> {
        let live = |of: usize| {
            let row = state.ledger.lease(&self.streams[of]);
            row.into_iter().flat_map(|row| row.live(now())).map(move |holder| (of, holder))
        };
        for resource in 0..self.resources.len() {
            for (_, one) in live(resource) {
                let mut others = self.touched(resource).flat_map(live);
                let is_other = |of, fence| (of, fence) != (resource, one.fence);
                if others.any(|(of, other)| is_other(of, other.fence) && !(one.shared && other.shared)) {
                    return Some(ALONE);
                }
            }
        }
        None
    }

    fn leases(&self, state: &State) -> Option<&'static str> {
        for (stream, grants) in self.streams.iter().zip(&state.grants) {
            let row = state.ledger.lease(stream);
            if row.map_or(0, |row| row.fence) != grants.last().map_or(0, |grant| grant.fence) {
                return Some(FENCES);
            }
            for grant in grants {
                let kept = row.and_then(|row| row.lease(grant.fence));
                let as_told = |grant: &Grant| {
                    kept.is_some_and(|kept| {
                        (kept.holder, kept.shared, ticks(kept.until))
                            == (self.holder(grant), grant.shared, grant.until)
                    })
                };
                match grant.over {
                    Over::No if grant.live(0) && !as_told(grant) => return Some(KEPT),
                    Over::No => {}
                    _ if kept.is_some_and(|kept| now() <= kept.until) => return Some(OVER),
                    Over::With(outcome) if !self.keeps(state, stream, grant.fence, outcome) => {
                        return Some(OUTCOME);
                    }
                    _ => {}
                }
            }
        }
        None
    }

    /// Whether an outcome is there, by its fence.
    fn keeps(&self, state: &State, stream: &StreamId, fence: u64, outcome: usize) -> bool {
        let row = state.ledger.lease(stream);
        let kept = row.and_then(|row| row.outcomes.iter().find(|kept| kept.fence == fence));
        let text = kept.and_then(|kept| state.ledger.text(stream, kept.sequence));
        text == Some(OUTCOMES[outcome])
    }

    fn run(&self, state: &State) -> Option<&'static str> {
        let Row::Run(row) = &state.ledger.get(&StreamId::run(self.run_id()?))?.row else { return Some(RUN) };
        let told = &state.run;
        let is_as_told = (row.state.as_str(), row.code.is_some(), row.terminal)
            == (told.state, told.interrupted, told.ended());
        match told.ended() {
            _ if is_as_told => None,
            true => Some(FINAL),
            false => Some(RUN),
        }
    }
}

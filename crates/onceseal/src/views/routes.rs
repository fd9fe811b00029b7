//! Routes at which nothing is attempted as usual.

use onceseal_core::journal::Row;
use onceseal_core::route::{RouteRow, RouteState};
use onceseal_core::stream::{StreamId, StreamKind};

use super::Filter;
use crate::control::Control;
use crate::error::Error;

/// Rows read at once.
const PAGE: usize = 1_000;

/// Routes at which nothing is attempted but a probe.
#[derive(Debug, Clone, Default)]
pub struct Stopped {
    /// Those whose circuit is open.
    pub open: Vec<RouteRow>,
    /// Those that cannot be read: nothing at all is attempted there.
    pub unreadable: Vec<StreamId>,
}

impl Control {
    /// The routes whose circuit is open, or may be.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn stopped_routes(&self) -> Result<Stopped, Error> {
        let (mut stopped, mut filter) = (Stopped::default(), Filter::default());
        loop {
            let page = self.list(StreamKind::Route, &filter, PAGE)?;
            stopped.unreadable.extend(page.unreadable);
            stopped.open.extend(page.items.into_iter().filter_map(|(_, row)| match row {
                Row::Route(row) if matches!(row.state, RouteState::Open { .. }) => Some(row),
                _ => None,
            }));
            filter.after = page.next;
            if filter.after.is_none() {
                return Ok(stopped);
            }
        }
    }
}

//! The database's clock, for whoever looks for what is due between two batches.

use std::sync::Arc;

use crate::clock::{Clock, Reading};

/// A host's clock, with the wall's set as the database's was when it was opened:
/// good enough for looking, and never for deciding.
#[derive(Clone)]
pub(crate) struct DatabaseClock {
    host: Arc<dyn Clock>,
    opened: Reading,
    of_host: Reading,
}

impl DatabaseClock {
    /// Of this host, for a database whose clock shows this now.
    pub(crate) fn beside(host: Arc<dyn Clock>, database_us: i64) -> Arc<dyn Clock> {
        let (opened, of_host) = (host.of_database(database_us), host.now());
        Arc::new(DatabaseClock { host, opened, of_host })
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> Reading {
        let host = self.host.now();
        // A host's wall clock that is set anew is of no concern; one that is moved by
        // hand moves this one.
        let ahead = self.opened.wall_us.saturating_sub(self.of_host.wall_us);
        let passed = host.boot_us.saturating_sub(self.of_host.boot_us);
        let wall_us = match ahead {
            0 => host.wall_us,
            _ => self.opened.wall_us.saturating_add(passed),
        };
        Reading { wall_us, boot_us: host.boot_us }
    }

    fn of_database(&self, wall_us: i64) -> Reading {
        self.host.of_database(wall_us)
    }
}

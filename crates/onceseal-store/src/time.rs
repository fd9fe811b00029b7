//! The time of a batch: read after its locks were held, never backwards.

use std::sync::Arc;

use onceseal_core::code::Code;
use onceseal_core::time::Timestamp;

use crate::clock::{Clock, ClockWatch, Reading};
use crate::error::StoreError;

/// A host clock as batches use it.
pub(crate) struct BatchClock {
    clock: Arc<dyn Clock>,
    watch: ClockWatch,
    last: i64,
}

impl BatchClock {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> BatchClock {
        let watch = ClockWatch::new(clock.now());
        BatchClock { clock, watch, last: 0 }
    }

    /// The time of a batch: the larger of this reading and the last one.
    pub(crate) fn read(&mut self) -> Result<Timestamp, StoreError> {
        self.take(self.clock.now())
    }

    /// The same from a database's clock, in microseconds since 1970.
    #[cfg(feature = "postgres")]
    pub(crate) fn read_of(&mut self, database_us: i64) -> Result<Timestamp, StoreError> {
        self.take(self.clock.of_database(database_us))
    }

    fn take(&mut self, reading: Reading) -> Result<Timestamp, StoreError> {
        let wall =
            self.watch.check(reading).map_err(|jump| StoreError::with(Code::ClockJump, jump.to_string()))?;
        self.last = self.last.max(wall);
        Timestamp::from_micros(self.last)
            .ok_or_else(|| StoreError::with(Code::ClockJump, "outside 1970 to 9999"))
    }

    pub(crate) fn accept(&mut self) {
        let reading = self.clock.now();
        self.watch.accept(reading);
        self.last = 0;
    }
}

//! What is recorded of a route.

use crate::approval::Proof;
use crate::record::record;
use crate::stream::StreamId;
use crate::time::Timestamp;

record! {
    /// An attempt could not reach its destination, or that could take on no more.
    pub struct Failed {
        /// How many did in a row.
        failures: u32,
    }
}

record! {
    /// Private part of a failure.
    pub struct FailedSealed {
        /// The destination, on the stream's first event.
        destination: Option<String>,
    }
}

record! {
    /// Nothing is attempted there for a while.
    pub struct Opened {
        /// How often in a row: so often, and each time for longer.
        times: u32,
        /// The next attempt, the probe, is made from then on.
        until: Timestamp,
    }
}

record! {
    /// One attempt is made, to see whether the destination answers.
    pub struct Probe {
        /// The effect that is attempted, or the lease under which an endpoint is.
        by: StreamId,
        /// The attempt ends here, however often it is renewed.
        deadline: Timestamp,
        /// Its number.
        fence: u64,
    }
}

record! {
    /// Attempts are made as usual, and failures are counted from none.
    pub struct Closed {
        /// How the person was proven, if it was a person's word.
        proof: Option<Proof>,
    }
}

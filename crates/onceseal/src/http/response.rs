//! A response, and what its status says about the effect.

use std::collections::BTreeSet;
use std::fmt;

use hyper::header::HeaderMap;

use super::exchange::Answer;
use crate::executed::Outcome;

/// A response that came to its end, or to the limit of its body.
///
/// Its `Debug` form shows neither header values nor the body.
#[derive(Clone)]
#[non_exhaustive]
pub struct Response {
    /// The status code, 100 to 999.
    pub status: u16,
    /// The body as it came, not decompressed.
    pub body: Vec<u8>,
    /// Whether the body was longer than the client keeps.
    pub truncated: bool,
    /// Whether a proxy could have written it: it came through one without TLS.
    pub relayed: bool,
    /// How many bytes were written to the socket, TLS included.
    pub sent: u64,
    headers: HeaderMap,
}

impl Response {
    pub(super) fn new(answer: Answer, relayed: bool, sent: u64) -> Self {
        let Answer { status, headers, body, truncated } = answer;
        Self { status, body, truncated, relayed, sent, headers }
    }

    /// The first value of a header, whatever bytes it consists of.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.get(name).map(|value| value.as_bytes())
    }

    /// What the status says about the effect: 2xx is committed, a status in
    /// `not_executed_on` is not executed unless the response is
    /// [`relayed`](Self::relayed), and everything else, redirects included, is
    /// unknown. A 2xx in `not_executed_on` has no meaning.
    #[must_use]
    pub fn outcome(&self, not_executed_on: &BTreeSet<u16>) -> Outcome {
        let code = || format!("status_{}", self.status);
        match self.status {
            200..=299 => Outcome::Committed,
            status if !self.relayed && not_executed_on.contains(&status) => {
                Outcome::NotExecuted { code: code() }
            }
            _ => Outcome::Unknown { code: code() },
        }
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("body", &format_args!("[{} bytes]", self.body.len()))
            .field("truncated", &self.truncated)
            .field("relayed", &self.relayed)
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}

//! The shipped HTTP client: one request on one connection.
//!
//! Invariant: a request is said to be not executed only if no byte was written
//! to any socket for it. Bytes are counted below TLS, over the whole attempt:
//! those of a TLS handshake count, because what was sent after them cannot be
//! told apart any more once the connection is lost.
//!
//! Every attempt opens one connection and closes it afterwards. Nothing is
//! sent a second time, no redirect is followed, no cookie is kept, no body is
//! decompressed, and no proxy is taken from the environment. Nothing is left
//! running when [`Client::send`] returns or is dropped: no byte is written
//! after that.
//!
//! Through a [`Proxy`] no error is *not executed*: a proxy is another program
//! that may have sent the request on. Statuses that came through a plain proxy
//! may be the proxy's own words, and are not *not executed* either; those
//! inside a TLS tunnel are the remote's.
//!
//! # What a response says
//! A complete response is judged by its status ([`Response::outcome`]). A
//! response that breaks off is an error, and so unknown, although its status
//! is known: a server that fails halfway can say so in no other way. A body
//! over the limit is cut and marked: the server was still answering, and the
//! caller chose not to read on, so the status stands.
//! A body that ends with a plain connection's end, without a length, cannot be
//! told from one that breaks off; over TLS it can, and is.
//!
//! # As an executor
//! ```no_run
//! use std::collections::BTreeSet;
//!
//! use onceseal::http::{Client, Request};
//! use onceseal::{Control, Principal};
//!
//! # async fn example(control: Control) -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::builder().build()?;
//! // By which this remote says that it did nothing.
//! let not_executed_on = BTreeSet::from([409, 422]);
//! control
//!     .action("refund")
//!     .arg("payment_id", "txn_1")
//!     .by(Principal::agent("support-agent"))
//!     .execute(|call| async move {
//!         let request = Request::new("POST", "https://bank.example/refunds")
//!             .header("Idempotency-Key", call.effect_key().unwrap_or_default())
//!             .body(onceseal::core::json::canonical(&call.args().clone().into()));
//!         client.run(request, &not_executed_on).await
//!     })
//!     .await?;
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use onceseal_core::json::Object;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;

pub use self::builder::{Builder, SetupError};
use self::connect::{Tls, connect};
pub use self::error::{InvalidRequest, SendError, SendErrorKind, Sent};
use self::exchange::exchange;
pub(crate) use self::local::Local;
pub use self::proxy::Proxy;
use self::request::Ready;
pub use self::request::Request;
pub use self::response::Response;
use self::wire::Wire;
use crate::executed::Executed;

mod builder;
mod connect;
mod error;
mod exchange;
mod local;
mod proxy;
mod request;
mod response;
mod wire;

/// Largest body of a request, in bytes: as large as a payload may be.
pub const REQUEST_BODY_MAX: usize = 8 * 1024 * 1024;
/// Largest sum of names and values of a request's headers, in bytes: more is
/// refused by every common server.
pub const REQUEST_HEADERS_MAX: usize = 64 * 1024;
/// Largest body of a response that is kept unless said otherwise, in bytes.
pub const RESPONSE_BODY: usize = 1024 * 1024;
/// How long looking up the name and connecting may take, unless said
/// otherwise.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the whole attempt may take, unless said otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// Sends requests, each on a connection of its own. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    /// `None` if there is no root certificate to trust.
    tls: Option<Arc<ClientConfig>>,
    proxy: Option<Proxy>,
    local: Local,
    connect_timeout: Duration,
    timeout: Duration,
    response_body: usize,
}

impl Client {
    /// A client to be configured.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Sends one request and reads its response. An executor that passes its
    /// error on by `?` leaves the outcome unknown, whatever the error says;
    /// [`Client::run`] does not.
    ///
    /// Dropping the future closes the connection; unless it was never polled,
    /// nobody then knows whether the request was executed.
    ///
    /// # Errors
    /// [`SendError`], which says whether a byte left.
    ///
    /// # Panics
    /// Outside a Tokio runtime, or inside one without I/O or time enabled.
    pub async fn send(&self, request: Request) -> Result<Response, SendError> {
        let before = |kind| SendError { kind, sent: Sent::Nothing, status: None };
        let ready =
            request.ready(self.proxy.as_ref()).map_err(|invalid| before(SendErrorKind::Invalid(invalid)))?;
        // Also where a proxy looks names up.
        if !self.local.permits_name(&ready.target.host) {
            return Err(before(SendErrorKind::LocalDestination));
        }
        let tls = match (ready.target.secure.clone(), &self.tls) {
            (None, _) => None,
            (Some(name), Some(config)) => Some((TlsConnector::from(Arc::clone(config)), name)),
            (Some(_), None) => return Err(before(SendErrorKind::NoRootCertificates)),
        };
        let relayed = self.proxy.is_some() && tls.is_none();
        let wire = Arc::new(Wire::default());
        let answer = timeout(self.timeout, self.attempt(ready, tls, &wire)).await;
        let kind = match answer {
            Ok(Ok(answer)) => return Ok(Response::new(answer, relayed, wire.written())),
            Ok(Err(kind)) => kind,
            Err(_) => SendErrorKind::Timeout,
        };
        let sent = match wire.written() {
            bytes if self.proxy.is_some() => Sent::ToProxy(bytes),
            0 => Sent::Nothing,
            bytes => Sent::Bytes(bytes),
        };
        Err(SendError { kind, sent, status: wire.status() })
    }

    /// [`Client::send`] as an executor: `{"status":…}` of a 2xx, or why there is
    /// none. Statuses in `not_executed_on` say that nothing was done, see
    /// [`Response::outcome`].
    ///
    /// # Errors
    /// [`Failure`](crate::Failure), by [`Response::outcome`] and
    /// [`SendError::outcome`].
    ///
    /// # Panics
    /// As [`Client::send`].
    pub async fn run(&self, request: Request, not_executed_on: &BTreeSet<u16>) -> Executed {
        match self.send(request).await {
            Ok(response) => {
                let mut answered = Object::new();
                answered.insert("status", response.status);
                let message = format!("the remote answered with status {}", response.status);
                response.outcome(not_executed_on).executed(answered, message)
            }
            Err(error) => error.outcome().executed((), error.to_string()),
        }
    }

    async fn attempt(
        &self,
        ready: Ready,
        tls: Option<Tls>,
        wire: &Arc<Wire>,
    ) -> Result<exchange::Answer, SendErrorKind> {
        let stream = connect(self, &ready.target, tls, Arc::clone(wire)).await?;
        exchange(stream, ready.request, self.response_body, wire).await
    }
}

//! Why there is no response, and what left before that.
//!
//! Invariant: no message shows a path, a query, a header's value or a body.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use thiserror::Error;

use super::{REQUEST_BODY_MAX, REQUEST_HEADERS_MAX};
use crate::executed::Outcome;

/// There is no whole response.
#[derive(Debug)]
#[non_exhaustive]
pub struct SendError {
    /// What went wrong.
    pub kind: SendErrorKind,
    /// What had left by then.
    pub sent: Sent,
    /// The status, if the response had begun. It decides nothing.
    pub status: Option<u16>,
}

/// What had left when the attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// No byte: it was not executed, and will not be.
    Nothing,
    /// So many bytes, TLS included: nobody knows whether it was executed.
    Bytes(u64),
    /// It was to go through a proxy, to which so many bytes, possibly none,
    /// were written: nobody knows whether it was executed.
    ToProxy(u64),
}

/// What went wrong.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SendErrorKind {
    /// The request cannot be sent as it is.
    #[error("the request is not valid: {0}")]
    Invalid(InvalidRequest),
    /// TLS was asked for and there is nobody to trust.
    #[error("this machine has no root certificates; install them or give one")]
    NoRootCertificates,
    /// The host's name, or the proxy's, could not be looked up.
    #[error("the host's name could not be looked up")]
    NameLookup(#[source] io::Error),
    /// The host leads to this machine or its link, which was not permitted.
    #[error(
        "the destination is this machine or on its link; list its host as one that may be, if that is meant"
    )]
    LocalDestination,
    /// None of the host's addresses accepted a connection.
    #[error("no connection could be made")]
    Connect(#[source] io::Error),
    /// Looking up and connecting took longer than allowed.
    #[error("no connection could be made in time")]
    ConnectTimeout,
    /// The attempt took longer than allowed.
    #[error("the attempt took longer than allowed")]
    Timeout,
    /// The proxy answered this status instead of opening a tunnel.
    #[error("the proxy refused to open a tunnel, with status {0}")]
    ProxyRefused(u16),
    /// The TLS handshake failed.
    #[error("the tls handshake failed")]
    Tls(#[source] io::Error),
    /// The connection broke, or what came is not HTTP.
    #[error("the exchange broke off")]
    Exchange(#[source] Box<dyn StdError + Send + Sync>),
}

/// Why a request cannot be sent as it is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidRequest {
    /// The URL cannot be read.
    #[error("its url is not an absolute http or https url in printable ASCII; percent-encode the rest")]
    Url,
    /// The URL contains a user's name or password.
    #[error("its url contains credentials; give them in a header")]
    Credentials,
    /// The URL's host cannot be the name of a certificate.
    #[error("its host is not a host name or an address")]
    Host,
    /// The method is not a token, or is CONNECT.
    #[error("its method is not one that can be sent")]
    Method,
    /// A header's name is not a token.
    #[error("the name of its header {position} is not a token")]
    HeaderName {
        /// Which header, counted from 1.
        position: usize,
    },
    /// A header's value contains something else than printable ASCII, spaces
    /// and tabs.
    #[error("the value of its header {position} is not printable ASCII in one line")]
    HeaderValue {
        /// Which header, counted from 1.
        position: usize,
    },
    /// A header that the client sets itself: it would change how the message
    /// or the connection ends, or where it goes.
    #[error("its header {position} is one that the client sets itself")]
    ReservedHeader {
        /// Which header, counted from 1.
        position: usize,
    },
    /// The headers are larger than [`REQUEST_HEADERS_MAX`].
    #[error("its headers are larger than {REQUEST_HEADERS_MAX} bytes")]
    HeadersTooLarge,
    /// The body is larger than [`REQUEST_BODY_MAX`].
    #[error("its body is larger than {REQUEST_BODY_MAX} bytes")]
    BodyTooLarge,
}

impl SendError {
    /// What the error says about the effect: not executed if nothing had left,
    /// else unknown.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let code = self.kind.code().to_owned();
        match self.sent {
            Sent::Nothing => Outcome::NotExecuted { code },
            Sent::Bytes(_) | Sent::ToProxy(_) => Outcome::Unknown { code },
        }
    }
}

impl SendErrorKind {
    /// A short code for the journal.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid_request",
            Self::NoRootCertificates => "no_root_certificates",
            Self::NameLookup(_) => "name_lookup",
            Self::LocalDestination => "local_destination",
            Self::Connect(_) => "connect",
            Self::ConnectTimeout => "connect_timeout",
            Self::Timeout => "timeout",
            Self::ProxyRefused(_) => "proxy_refused",
            Self::Tls(_) => "tls",
            Self::Exchange(_) => "broken_exchange",
        }
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.kind, self.sent)
    }
}

impl StdError for SendError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        // The kind itself is in the message.
        self.kind.source()
    }
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing was sent, so it was not executed"),
            Self::Bytes(bytes) => write!(
                f,
                "{bytes} bytes had been sent, so nobody knows whether it was executed; ask the remote"
            ),
            Self::ToProxy(_) => f.write_str(
                "it was to go through a proxy, so nobody knows whether it was executed; ask the remote",
            ),
        }
    }
}

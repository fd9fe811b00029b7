//! The proxy that requests go through, when one is set.

use std::fmt;

use hyper::Uri;
use hyper::header::HeaderValue;

use super::SetupError;
use super::request::Target;

/// A forward proxy, reached without TLS. Requests over TLS go through a tunnel
/// (CONNECT), others are handed to it whole (absolute form, RFC 9112, 3.2.2).
#[derive(Clone)]
pub struct Proxy {
    pub(super) target: Target,
    pub(super) credentials: Option<HeaderValue>,
}

impl Proxy {
    /// The proxy at `http://host:port`; without a port, 80.
    ///
    /// # Errors
    /// [`SetupError::ProxyUrl`] for anything else, such as a path or
    /// credentials.
    pub fn new(url: &str) -> Result<Self, SetupError> {
        let uri: Uri = url.parse().map_err(|_| SetupError::ProxyUrl)?;
        let target = Target::of(&uri).map_err(|_| SetupError::ProxyUrl)?;
        if target.secure.is_some() || uri.path() != "/" || uri.query().is_some() {
            return Err(SetupError::ProxyUrl);
        }
        Ok(Self { target, credentials: None })
    }

    /// The value of the header `Proxy-Authorization`, such as `Basic …`. It is
    /// sent to the proxy only.
    ///
    /// # Errors
    /// [`SetupError::ProxyCredentials`] if it cannot be a header's value.
    pub fn authorization(mut self, value: &str) -> Result<Self, SetupError> {
        let mut value = HeaderValue::from_str(value).map_err(|_| SetupError::ProxyCredentials)?;
        value.set_sensitive(true);
        self.credentials = Some(value);
        Ok(self)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("host", &self.target.host).field("port", &self.target.port).finish()
    }
}

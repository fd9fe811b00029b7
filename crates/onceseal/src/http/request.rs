//! One request, and its reading before anything is sent.
//!
//! Invariant: a [`Ready`] request has no part that could end a line or change
//! where the message ends.

use std::fmt;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Uri};
use tokio_rustls::rustls::pki_types::ServerName;

use super::{InvalidRequest, Proxy, REQUEST_BODY_MAX, REQUEST_HEADERS_MAX};

/// One request. It is looked at when it is sent: what is wrong with it is then
/// an error before anything has left.
///
/// Its `Debug` form shows no path, query, header value or body: they may be
/// secrets.
#[derive(Clone)]
pub struct Request {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Bytes,
}

/// Where a request goes.
#[derive(Clone)]
pub(super) struct Target {
    /// Without the brackets of an IPv6 address.
    pub(super) host: String,
    pub(super) port: u16,
    /// The name to check the certificate for, if TLS is asked for.
    pub(super) secure: Option<ServerName<'static>>,
    /// The host and the port as the URL had them.
    pub(super) authority: HeaderValue,
}

/// A request that can be sent.
pub(super) struct Ready {
    pub(super) target: Target,
    pub(super) request: hyper::Request<Full<Bytes>>,
}

/// Set by the client: the frame of the message and of the connection.
const RESERVED: [HeaderName; 11] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
];

impl Request {
    /// A request without headers and body. The URL is absolute, `http` or
    /// `https`.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        Self { method: method.into(), url: url.into(), headers: Vec::new(), body: Bytes::new() }
    }

    /// Adds a header; one name can be given several times.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body, at most [`REQUEST_BODY_MAX`] bytes.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Bytes::from(body.into());
        self
    }

    /// Whether it is one that can be sent; answers to which host, without the
    /// brackets of an IPv6 address.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn check(self) -> Result<String, InvalidRequest> {
        Ok(self.ready(None)?.target.host)
    }

    pub(super) fn ready(self, proxy: Option<&Proxy>) -> Result<Ready, InvalidRequest> {
        // Stricter than the parser, which lets some of it through.
        if !self.url.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidRequest::Url);
        }
        let uri: Uri = self.url.parse().map_err(|_| InvalidRequest::Url)?;
        let target = Target::of(&uri)?;
        let method: Method = self.method.parse().map_err(|_| InvalidRequest::Method)?;
        if method == Method::CONNECT {
            return Err(InvalidRequest::Method);
        }
        let mut headers = headers(&self.headers)?;
        if self.body.len() > REQUEST_BODY_MAX {
            return Err(InvalidRequest::BodyTooLarge);
        }
        headers.insert(header::HOST, target.authority.clone());
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        headers
            .entry(header::USER_AGENT)
            .or_insert(HeaderValue::from_static(concat!("onceseal/", env!("CARGO_PKG_VERSION"))));
        let plain_proxy = proxy.filter(|_| target.secure.is_none());
        if let Some(credentials) = plain_proxy.and_then(|proxy| proxy.credentials.clone()) {
            headers.insert(header::PROXY_AUTHORIZATION, credentials);
        }
        let mut request = hyper::Request::new(Full::new(self.body));
        *request.method_mut() = method;
        *request.headers_mut() = headers;
        *request.uri_mut() = if plain_proxy.is_some() { uri } else { origin_form(&uri) };
        Ok(Ready { target, request })
    }
}

impl Target {
    pub(super) fn of(uri: &Uri) -> Result<Self, InvalidRequest> {
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(InvalidRequest::Url),
        };
        let authority = uri.authority().ok_or(InvalidRequest::Url)?;
        if authority.as_str().contains('@') {
            return Err(InvalidRequest::Credentials);
        }
        // A port that is no number would otherwise silently be the default.
        let port = match authority.as_str().strip_prefix(authority.host()) {
            Some("") if secure => 443,
            Some("") => 80,
            Some(_) => authority.port_u16().ok_or(InvalidRequest::Url)?,
            None => return Err(InvalidRequest::Url),
        };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = secure.then(|| ServerName::try_from(host.clone())).transpose();
        let secure = name.map_err(|_| InvalidRequest::Host)?;
        let authority = HeaderValue::from_str(authority.as_str()).map_err(|_| InvalidRequest::Url)?;
        Ok(Self { host, port, secure, authority })
    }
}

fn headers(given: &[(String, String)]) -> Result<HeaderMap, InvalidRequest> {
    let size: usize = given.iter().map(|(name, value)| name.len() + value.len()).sum();
    if size > REQUEST_HEADERS_MAX {
        return Err(InvalidRequest::HeadersTooLarge);
    }
    let mut headers = HeaderMap::new();
    for (position, (name, value)) in (1..).zip(given) {
        let name: HeaderName = name.parse().map_err(|_| InvalidRequest::HeaderName { position })?;
        if RESERVED.contains(&name) {
            return Err(InvalidRequest::ReservedHeader { position });
        }
        let value = HeaderValue::from_str(value).map_err(|_| InvalidRequest::HeaderValue { position })?;
        headers.try_append(name, value).map_err(|_| InvalidRequest::HeadersTooLarge)?;
    }
    Ok(headers)
}

fn origin_form(uri: &Uri) -> Uri {
    uri.path_and_query().cloned().map_or_else(Uri::default, Uri::from)
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("headers", &names)
            .field("body", &format_args!("[{} bytes]", self.body.len()))
            .finish_non_exhaustive()
    }
}

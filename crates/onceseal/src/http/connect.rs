//! Opening the one connection of an attempt.
//!
//! Invariant: the addresses of a name are tried one after another, and the
//! first that accepts is the only one that anything is written to. They are the
//! addresses that were looked at: a name is not looked up a second time.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper::header::{self, HeaderValue};
use hyper::upgrade::{self, Upgraded};
use hyper::{Method, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::exchange::{broken, drive};
use super::local::Local;
use super::request::Target;
use super::wire::{Counted, Wire};
use super::{Client, InvalidRequest, Proxy, SendErrorKind};

/// A connection to speak HTTP on.
pub(super) type Stream = Box<dyn Duplex>;

/// How to speak TLS, and the name that the certificate must have.
pub(super) type Tls = (TlsConnector, ServerName<'static>);

pub(super) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// Connects to the proxy, or to the target if there is none, and then asks for
/// the tunnel and speaks TLS if the request needs them.
pub(super) async fn connect(
    client: &Client,
    target: &Target,
    tls: Option<Tls>,
    wire: Arc<Wire>,
) -> Result<Stream, SendErrorKind> {
    let (first, local) = match &client.proxy {
        Some(proxy) => (&proxy.target, &Local::Any),
        None => (target, &client.local),
    };
    let tcp = timeout(client.connect_timeout, tcp(first, local))
        .await
        .map_err(|_| SendErrorKind::ConnectTimeout)??;
    let tcp = Counted::new(tcp, wire);
    let Some((connector, name)) = tls else { return Ok(Box::new(tcp)) };
    let stream: Stream = match &client.proxy {
        Some(proxy) => Box::new(tunnel(tcp, tunnel_request(proxy, target)?).await?),
        None => Box::new(tcp),
    };
    Ok(Box::new(connector.connect(name, stream).await.map_err(SendErrorKind::Tls)?))
}

async fn tcp(target: &Target, local: &Local) -> Result<TcpStream, SendErrorKind> {
    let addresses: Vec<_> =
        lookup_host((target.host.as_str(), target.port)).await.map_err(SendErrorKind::NameLookup)?.collect();
    if !local.permits(&target.host, addresses.iter().map(SocketAddr::ip)) {
        return Err(SendErrorKind::LocalDestination);
    }
    let stream = TcpStream::connect(&addresses[..]).await.map_err(SendErrorKind::Connect)?;
    // One request: there is nothing to wait for before sending it.
    stream.set_nodelay(true).map_err(SendErrorKind::Connect)?;
    Ok(stream)
}

/// The request to a proxy for a tunnel to `target` (RFC 9110, 9.3.6).
fn tunnel_request(proxy: &Proxy, target: &Target) -> Result<hyper::Request<Empty<Bytes>>, SendErrorKind> {
    let invalid = || SendErrorKind::Invalid(InvalidRequest::Host);
    let to = if target.host.contains(':') {
        format!("[{}]:{}", target.host, target.port)
    } else {
        format!("{}:{}", target.host, target.port)
    };
    let mut request = hyper::Request::new(Empty::new());
    *request.method_mut() = Method::CONNECT;
    request.headers_mut().insert(header::HOST, HeaderValue::from_str(&to).map_err(|_| invalid())?);
    *request.uri_mut() = Uri::try_from(to).map_err(|_| invalid())?;
    if let Some(credentials) = &proxy.credentials {
        request.headers_mut().insert(header::PROXY_AUTHORIZATION, credentials.clone());
    }
    Ok(request)
}

async fn tunnel(
    tcp: Counted,
    request: hyper::Request<Empty<Bytes>>,
) -> Result<TokioIo<Upgraded>, SendErrorKind> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(tcp)).await.map_err(broken)?;
    let talk = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        if !response.status().is_success() {
            return Err(SendErrorKind::ProxyRefused(response.status().as_u16()));
        }
        upgrade::on(response).await.map_err(broken)
    };
    drive(connection.with_upgrades(), talk).await.map(TokioIo::new)
}

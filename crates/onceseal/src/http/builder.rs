//! Configuring a client.

use std::sync::Arc;
use std::time::Duration;

use rustls_native_certs::load_native_certs;
use thiserror::Error;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::local::Local;
use super::{CONNECT_TIMEOUT, Client, Proxy, RESPONSE_BODY, TIMEOUT};

/// Configures a [`Client`].
#[derive(Debug)]
pub struct Builder {
    roots: Vec<CertificateDer<'static>>,
    proxy: Option<Proxy>,
    local: Local,
    connect_timeout: Duration,
    timeout: Duration,
    response_body: usize,
}

/// Why a client or a proxy could not be configured.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A root certificate is not an X.509 certificate in DER.
    #[error("a root certificate cannot be read; give it in DER form")]
    RootCertificate(#[source] rustls::Error),
    /// TLS could not be set up.
    #[error("tls could not be set up")]
    Tls(#[source] rustls::Error),
    /// The proxy's URL is not `http://host:port`.
    #[error("the proxy's url is not of the form http://host:port; credentials are given apart")]
    ProxyUrl,
    /// The proxy's credentials contain a character that a header cannot have.
    #[error("the proxy's credentials contain a character that a header cannot have")]
    ProxyCredentials,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            roots: Vec::new(),
            proxy: None,
            local: Local::Any,
            connect_timeout: CONNECT_TIMEOUT,
            timeout: TIMEOUT,
            response_body: RESPONSE_BODY,
        }
    }
}

impl Builder {
    /// How long looking up the name and connecting may take together; default
    /// [`CONNECT_TIMEOUT`].
    #[must_use]
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.connect_timeout = time;
        self
    }

    /// How long the whole attempt may take, from the name look-up to the last
    /// byte of the response; default [`TIMEOUT`].
    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = time;
        self
    }

    /// How many bytes of a response's body are kept; default
    /// [`RESPONSE_BODY`].
    #[must_use]
    pub fn response_body(mut self, bytes: usize) -> Self {
        self.response_body = bytes;
        self
    }

    /// Sends everything through a proxy.
    #[must_use]
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = Some(proxy);
        self
    }

    /// Refuses, before a byte is written, to connect to this machine or its link:
    /// loopback, link-local and unspecified addresses, whatever name leads to
    /// them, but for these hosts, named as URLs name them. Unless said, every
    /// address is connected to.
    ///
    /// The proxy itself may be local, and looks up the names that go through it:
    /// what they lead to is its matter.
    #[must_use]
    pub fn refuse_local_except(mut self, hosts: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        self.local = Local::only(hosts);
        self
    }

    /// Trusts one more root, an X.509 certificate in DER, beside those of the
    /// machine.
    #[must_use]
    pub fn root_certificate(mut self, der: impl Into<Vec<u8>>) -> Self {
        self.roots.push(der.into().into());
        self
    }

    /// The client. The machine's root certificates are read here, once. If
    /// there are none, requests over TLS are refused before anything is sent.
    ///
    /// # Errors
    /// [`SetupError::RootCertificate`] and [`SetupError::Tls`].
    pub fn build(self) -> Result<Client, SetupError> {
        let mut roots = RootCertStore::empty();
        // What cannot be read there is not trusted, and that is all.
        roots.add_parsable_certificates(load_native_certs().certs);
        for root in self.roots {
            roots.add(root).map_err(SetupError::RootCertificate)?;
        }
        let tls = if roots.is_empty() { None } else { Some(Arc::new(config(roots)?)) };
        Ok(Client {
            tls,
            proxy: self.proxy,
            local: self.local,
            connect_timeout: self.connect_timeout,
            timeout: self.timeout,
            response_body: self.response_body,
        })
    }
}

fn config(roots: RootCertStore) -> Result<ClientConfig, SetupError> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(SetupError::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

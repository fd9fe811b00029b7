//! Making a connection: the hosts of an address one after another, each within its
//! time, so that one that is frozen does not keep anybody from the next.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use onceseal_core::code::Code;
use tokio::time::timeout;
use tokio_postgres::tls::{MakeTlsConnect, NoTlsStream};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::failure::{Failure, unreachable};
use super::url::CONNECT;
use crate::error::StoreError;

/// What makes a connection, without what drives it: for whoever is driven himself,
/// and would keep the driver from its end.
#[derive(Clone)]
pub(super) struct Dialling {
    /// How each of the hosts is connected to, one of them at least.
    hosts: Vec<Config>,
    tls: Option<MakeRustlsConnect>,
    /// Which of them was reached last: it is tried first.
    last: Arc<AtomicUsize>,
}

/// What a client's statements go over, once somebody polls it.
pub(super) enum Wire {
    Plain(Box<Connection<Socket, NoTlsStream>>),
    Encrypted(Box<Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>>),
}

impl Wire {
    /// The next thing that the server says unasked; `None` at its end. Polling it
    /// drives the connection.
    pub(super) fn poll_message(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<AsyncMessage, Error>>> {
        match self {
            Wire::Plain(connection) => connection.poll_message(context),
            Wire::Encrypted(connection) => connection.poll_message(context),
        }
    }

    /// Drives the connection to its end; what it fails with, the client is told.
    pub(super) async fn drive(mut self) {
        while let Some(Ok(_)) = poll_fn(|context| self.poll_message(context)).await {}
    }
}

impl Dialling {
    pub(super) fn new(hosts: Vec<Config>, tls: Option<MakeRustlsConnect>) -> Dialling {
        Dialling { hosts, tls, last: Arc::default() }
    }

    /// The same at other hosts.
    pub(super) fn at(self, hosts: Vec<Config>) -> Dialling {
        Dialling::new(hosts, self.tls)
    }

    /// How long it may take until none is reached.
    pub(super) fn within(&self) -> Duration {
        self.hosts.iter().map(time_of).sum()
    }

    /// A connection to the first of the hosts that takes writes.
    pub(super) async fn dial(&self) -> Result<(Client, Wire), Failure> {
        let mut failures = Vec::new();
        let last = self.last.load(Ordering::Relaxed);
        let others = (0..self.hosts.len()).filter(|n| *n != last);
        for n in std::iter::once(last).chain(others) {
            let host = &self.hosts[n];
            match timeout(time_of(host), self.reach(host)).await {
                Ok(Ok(reached)) => {
                    self.last.store(n, Ordering::Relaxed);
                    return Ok(reached);
                }
                Ok(Err(error)) => failures.push((n + 1, refused(error))),
                Err(_) => failures.push((n + 1, Failure::Lost(unreachable("it does not answer")))),
            }
        }
        failures.sort_by_key(|(n, _)| *n);
        Err(each(failures))
    }

    async fn reach(&self, host: &Config) -> Result<(Client, Wire), Error> {
        Ok(match self.tls.clone() {
            Some(tls) => {
                let (client, connection) = host.connect(tls).await?;
                (client, Wire::Encrypted(Box::new(connection)))
            }
            None => {
                let (client, connection) = host.connect(NoTls).await?;
                (client, Wire::Plain(Box::new(connection)))
            }
        })
    }
}

fn time_of(host: &Config) -> Duration {
    host.get_connect_timeout().copied().unwrap_or(CONNECT)
}

/// Whoever could not connect at all is told the server's own reason where that
/// helps; no answer of it quotes a password.
fn refused(error: Error) -> Failure {
    let is_of_tls = error.code().is_none() && error.to_string().contains("TLS");
    let source = std::error::Error::source(&error);
    let what = match source.and_then(|source| source.downcast_ref::<io::Error>()) {
        _ if !is_of_tls => return error.into(),
        None => "it offers no encryption",
        Some(io) => match io.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            None => return error.into(),
            Some(rustls::Error::InvalidCertificate(_)) => {
                "its certificate is not trusted, or not one for this host name"
            }
            Some(_) => "it does not agree on how to encrypt",
        },
    };
    Failure::Failed(StoreError::with(Code::StoreRefused, what))
}

/// Why none of the hosts was reached: the reason of each. Where one of them may be
/// reached later, that may help.
fn each(failures: Vec<(usize, Failure)>) -> Failure {
    let may_pass = failures.iter().any(|(_, failure)| matches!(failure, Failure::Lost(_)));
    let told: Vec<_> = failures.into_iter().map(|(n, failure)| (n, failure.told())).collect();
    let details = told.iter().map(|(n, error)| match told.len() {
        1 => error.detail().to_owned(),
        _ => format!("host {n}: {}", error.detail()),
    });
    let detail = details.collect::<Vec<_>>().join("; ");
    match (may_pass, told.first()) {
        (false, Some((_, error))) => Failure::Failed(StoreError::with(error.code(), detail)),
        _ => Failure::Lost(unreachable(detail)),
    }
}

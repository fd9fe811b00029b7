//! How connections are made: to the server that takes writes, with the settings
//! that protect, and to one that has not forgotten what it acknowledged.

use std::io::BufReader;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join;
use onceseal_core::code::Code;
use onceseal_core::hash::Hash;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio_postgres::types::Type;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::announcing::News;
use super::dialling::Dialling;
use super::driver::Driver;
use super::failure::{Failure, unreachable};
use super::link::Link;
use super::schema::{MIGRATIONS, Migrations};
use super::server::Server;
use super::statements::{BEGIN, SETTLE, Statements};
use super::url::{PostgresUrl, Roots};
use crate::error::StoreError;
use crate::wait::wait_for;

/// Beyond the time that the hosts are given: for their names to be found.
const CONNECT: Duration = Duration::from_secs(10);

/// Makes connections to one store.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(super) url: PostgresUrl,
    pub(super) sql: Arc<Statements>,
    pub(super) driver: Arc<Driver>,
    pub(super) migrations: Migrations,
    dialling: Dialling,
    last: Arc<Mutex<Option<Committed>>>,
    pub(super) news: Arc<News>,
}

/// An event that this process was told is committed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Committed {
    pub(super) stream: i64,
    pub(super) sequence: i64,
    pub(super) hash: Hash,
}

impl Connector {
    pub(crate) fn new(url: PostgresUrl) -> Result<Connector, StoreError> {
        let tls = url.tls.as_ref().map(tls).transpose()?;
        let dialling = Dialling::new(url.hosts(), tls);
        let sql = Arc::new(Statements::new(&url.schema));
        let driver = Driver::start()?;
        let (last, news) = (Arc::default(), Arc::default());
        Ok(Connector { url, sql, driver, migrations: MIGRATIONS, dialling, last, news })
    }

    fn last(&self) -> MutexGuard<'_, Option<Committed>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers that this is committed: whoever does not have it has gone back. Others
    /// are told before long.
    pub(super) fn committed(&self, committed: Committed) {
        *self.last() = Some(committed);
        self.news.add();
    }

    /// What makes a connection to wherever the address leads.
    pub(super) fn dialling(&self) -> Dialling {
        self.dialling.clone()
    }

    /// What makes a connection to the server itself, where the address says how.
    pub(super) fn direct(&self) -> Option<Dialling> {
        let hosts = self.url.direct()?;
        Some(self.dialling.clone().at(hosts))
    }

    /// A connection to a server that is as it has to be.
    pub(super) fn connect(&self) -> Result<Link, Failure> {
        Ok(self.examined()?.0)
    }

    /// The same to act: what is there is not lost by a failover any more.
    pub(super) fn connect_to_act(&self) -> Result<Link, Failure> {
        let (link, server) = self.examined()?;
        if server.waits_in_vain() {
            // A commit would keep its session until the standby is back, and more would follow.
            return Err(Failure::Lost(unreachable("its commits wait for a standby, and none follows")));
        }
        if !server.synchronous.is_empty() {
            let settled = link.wait(async {
                link.run(BEGIN).await?;
                let (sent, committed) = join(link.rows(SETTLE, &[]), link.run("COMMIT")).await;
                sent.and(committed)
            });
            settled.map_err(|failure| match link.is_silent() {
                true => Failure::Lost(unreachable("its commits wait for a standby that does not answer")),
                false => failure,
            })?;
        }
        Ok(link)
    }

    fn examined(&self) -> Result<(Link, Server), Failure> {
        let link = self.bare()?;
        let server = self.server(&link)?;
        server.or_refuse()?;
        link.looked_at(server.since_us);
        let last = *self.last();
        if let Some(Committed { stream, sequence, hash }) = last {
            let found =
                link.wait(link.rows(&link.sql.recorded, &[(&stream, Type::INT8), (&sequence, Type::INT8)]))?;
            let has = found.first().and_then(|row| row.try_get::<_, &[u8]>(1).ok()) == Some(&hash.0[..]);
            if !has {
                // A standby that was not waited for has taken the place of the server.
                return Err(Failure::Failed(StoreError::new(Code::StoreWentBack)));
            }
        }
        Ok((link, server))
    }

    /// Whether a connection is made so; why not.
    pub(super) fn reaches(&self, dialling: Dialling) -> Result<(), String> {
        let dialled = self.dialled(dialling).map(drop);
        dialled.map_err(|failure| failure.told().detail().to_owned())
    }

    /// A connection to whatever server there is.
    pub(super) fn bare(&self) -> Result<Link, Failure> {
        self.dialled(self.dialling())
    }

    fn dialled(&self, dialling: Dialling) -> Result<Link, Failure> {
        let (sql, within) = (self.sql.clone(), dialling.within() + CONNECT);
        let connected = self.driver.spawn(async move { Link::dial(&dialling, sql).await });
        let abort = connected.abort_handle();
        match wait_for(within, connected) {
            Some(Ok(link)) => link,
            Some(Err(_)) => Err(Failure::Lost(unreachable("connecting to it failed"))),
            None => {
                abort.abort();
                Err(Failure::Lost(unreachable("it does not answer")))
            }
        }
    }
}

fn tls(roots: &Roots) -> Result<MakeRustlsConnect, StoreError> {
    let failed = |what: &str| StoreError::with(Code::StoreFailed, what);
    let mut store = rustls::RootCertStore::empty();
    match roots {
        Roots::System => {
            // One that does not parse is none of a server of ours, or its absence is told.
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Roots::File(path) => {
            let file = std::fs::File::open(path).map_err(|_| failed("sslrootcert cannot be read"))?;
            for certificate in CertificateDer::pem_reader_iter(BufReader::new(file)) {
                let certificate = certificate.map_err(|_| failed("sslrootcert holds no certificates"))?;
                store.add(certificate).map_err(|_| failed("sslrootcert holds no certificates"))?;
            }
        }
    }
    if store.is_empty() {
        return Err(failed("there is no certificate to check the server's against; set sslrootcert"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|_| failed("no version of TLS"))?
        .with_root_certificates(store)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

//! What a server is to be like.

use std::fmt::Write;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use super::{Postgres, certificate, template};

/// Whether the server speaks TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tls {
    None,
    Offered,
    Required,
}

/// What a server is to be like: see [`Postgres::with`].
#[derive(Debug, Clone)]
pub struct Setup {
    settings: Vec<(String, String)>,
    on_disk: bool,
    afresh: bool,
    tls: Tls,
    also_on: Option<Ipv4Addr>,
}

impl Setup {
    pub(super) fn new(settings: &[(&str, &str)]) -> Setup {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Setup { settings: settings.collect(), on_disk: false, afresh: false, tls: Tls::None, also_on: None }
    }

    /// Keeps the data on a disk, not in memory: slower, as production is.
    #[must_use]
    pub fn on_disk(self) -> Setup {
        Setup { on_disk: true, ..self }
    }

    /// Makes the data anew, so that its system identifier is no other
    /// server's; servers are copies of one template otherwise.
    #[must_use]
    pub fn afresh(self) -> Setup {
        Setup { afresh: true, ..self }
    }

    /// Offers TLS, for `localhost` and 127.0.0.1, by a certificate that
    /// [`Postgres::authority`] signed.
    #[must_use]
    pub fn tls(self) -> Setup {
        Setup { tls: Tls::Offered, ..self }
    }

    /// Refuses whoever connects by TCP without TLS.
    #[must_use]
    pub fn tls_only(self) -> Setup {
        Setup { tls: Tls::Required, ..self }
    }

    /// Listens on this address too, and lets in who comes from its /24:
    /// [`Network::address`](crate::Network::address).
    #[must_use]
    pub fn also_on(self, address: Ipv4Addr) -> Setup {
        Setup { also_on: Some(address), ..self }
    }

    /// Starts the server.
    ///
    /// # Panics
    /// If PostgreSQL is not installed, or does not start: with its log.
    #[must_use]
    #[track_caller]
    pub fn start(self) -> Postgres {
        let (afresh, tls) = (self.afresh, self.tls);
        Postgres::from(self, |daemon| {
            let password = if afresh { template::initialize(daemon) } else { template::copy(daemon) };
            if tls != Tls::None {
                certificate::issue(daemon);
            }
            password
        })
    }

    /// The directory below which the server gets its own.
    pub(super) fn place(&self) -> PathBuf {
        // What is there is meant to outlive a restart, so it is not in memory.
        if self.on_disk { "/var/tmp".into() } else { memory() }
    }

    /// Its `postgresql.conf`.
    pub(super) fn configuration(&self, directory: &Path, port: u16) -> String {
        let mut addresses = Ipv4Addr::LOCALHOST.to_string();
        if let Some(address) = self.also_on {
            write!(addresses, ",{address}").expect("a string");
        }
        let own = [
            ("listen_addresses", addresses),
            ("port", port.to_string()),
            ("unix_socket_directories", directory.display().to_string()),
            ("fsync", "on".to_owned()),
            ("full_page_writes", "on".to_owned()),
            // Kept below the directory, which is removed after a kill too.
            ("dynamic_shared_memory_type", "mmap".to_owned()),
            ("timezone", "UTC".to_owned()),
            ("log_timezone", "UTC".to_owned()),
            ("log_line_prefix", "%m [%p] %q%a %d ".to_owned()),
            ("ssl", (if self.tls == Tls::None { "off" } else { "on" }).to_owned()),
            ("ssl_cert_file", certificate::CERTIFICATE.to_owned()),
            ("ssl_key_file", certificate::KEY.to_owned()),
        ];
        let given = self.settings.iter().map(|(name, value)| (name.as_str(), value));
        // The last one counts, so what is given may change what is ours.
        let all = own.iter().map(|(name, value)| (*name, value)).chain(given);
        all.fold(String::new(), |mut text, (name, value)| {
            writeln!(text, "{name} = '{}'", value.replace('\'', "''")).expect("a string");
            text
        })
    }

    /// Its `pg_hba.conf`. By its socket only those come who may enter its
    /// directory.
    pub(super) fn access(&self) -> String {
        let host = if self.tls == Tls::Required { "hostssl" } else { "host" };
        let also = self.also_on.map(|address| format!("{address}/24"));
        let mut text = String::from("local all,replication all trust\n");
        for network in ["127.0.0.1/32".to_owned()].into_iter().chain(also) {
            writeln!(text, "{host} all,replication all {network} scram-sha-256").expect("a string");
        }
        text
    }
}

/// A directory in memory, if there is one with a gibibyte left.
pub(super) fn memory() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let left = rustix::fs::statvfs(memory).map(|space| space.f_bavail.saturating_mul(space.f_frsize));
    if left.is_ok_and(|left| left > 1 << 30) { memory.to_owned() } else { std::env::temp_dir() }
}

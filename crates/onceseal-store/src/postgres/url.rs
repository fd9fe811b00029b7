//! The address of a store: `postgres://user:password@host:port,host:port/database?…`.

mod read;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

pub use read::UrlError;

/// How long a host may take to let somebody in before the next is tried.
pub(super) const CONNECT: Duration = Duration::from_secs(3);
/// How long sent bytes may go without an acknowledgement.
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);
/// Where a store on PostgreSQL is.
///
/// As libpq's address, with `schema` beside its parameters (default
/// `onceseal`). Of several hosts the one that takes writes is used. `sslmode` is
/// `verify-full` or `disable`: encrypted and with a certificate that is checked
/// against `sslrootcert` or the system's, or not encrypted. It is `disable` where
/// none is said and all hosts are on this machine, else `verify-full`. `listen` says
/// where the server itself is reached, to hear of others' commits: `yes`, or hosts as
/// in the address, in front of which it has a pooler.
#[derive(Clone)]
pub struct PostgresUrl {
    pub(super) config: Config,
    pub(super) schema: String,
    /// The certificates to check against, where it is encrypted.
    pub(super) tls: Option<Roots>,
    listen: Option<Listen>,
}

/// Where a connection comes to the server itself.
#[derive(Clone)]
enum Listen {
    /// At the address.
    Here,
    /// At these hosts, beside a pooler.
    At(Box<Config>),
}

/// Who vouches for a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Roots {
    System,
    File(PathBuf),
}

impl PostgresUrl {
    /// Whether a text is meant to be such an address.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    /// The same store on a schema of another name.
    ///
    /// # Errors
    /// A name that is none.
    pub fn with_schema(self, schema: &str) -> Result<PostgresUrl, UrlError> {
        let plain = |b: u8| b.is_ascii_lowercase() || b == b'_';
        let name = schema.as_bytes();
        let is_name = (1..=63).contains(&name.len())
            && name.first().copied().is_some_and(plain)
            && name.iter().all(|b| plain(*b) || b.is_ascii_digit())
            && !schema.starts_with("pg_");
        if is_name {
            Ok(PostgresUrl { schema: schema.to_owned(), ..self })
        } else {
            Err(UrlError::new("names a schema that is not [a-z_][a-z0-9_]{0,62}, or one of PostgreSQL's own"))
        }
    }

    /// The same with this password, if it has none.
    #[must_use]
    pub fn or_password(mut self, password: &str) -> PostgresUrl {
        if self.config.get_password().is_none() {
            self.config.password(password);
        }
        self
    }

    /// Whether all of it is on this machine.
    pub(super) fn is_here(&self) -> bool {
        is_here(&self.config, self.listen.as_ref())
    }

    /// How the server itself is connected to, where that is said: the same database,
    /// role and password.
    pub(super) fn direct(&self) -> Option<Vec<Config>> {
        Some(match self.listen.as_ref()? {
            Listen::Here => self.hosts(),
            Listen::At(hosts) => self.at(hosts),
        })
    }

    /// How each of the hosts is connected to.
    pub(super) fn hosts(&self) -> Vec<Config> {
        self.at(&self.config)
    }

    /// How each of these hosts is connected to: always the server that takes writes,
    /// with signs of life; the rest as the address says.
    fn at(&self, hosts: &Config) -> Vec<Config> {
        let said = &self.config;
        let mut each = Config::new();
        if let Some(user) = said.get_user() {
            each.user(user);
        }
        if let Some(password) = said.get_password() {
            each.password(password);
        }
        if let Some(database) = said.get_dbname() {
            each.dbname(database);
        }
        if let Some(options) = said.get_options() {
            each.options(options);
        }
        each.application_name(said.get_application_name().unwrap_or("onceseal"))
            .connect_timeout(said.get_connect_timeout().copied().unwrap_or(CONNECT))
            .ssl_mode(if self.tls.is_some() { SslMode::Require } else { SslMode::Disable })
            .ssl_negotiation(said.get_ssl_negotiation())
            .channel_binding(said.get_channel_binding())
            .target_session_attrs(TargetSessionAttrs::ReadWrite)
            .tcp_user_timeout(UNACKNOWLEDGED)
            .keepalives_idle(Duration::from_secs(10));
        let ports = hosts.get_ports();
        let one = |(n, host): (usize, &Host)| {
            let mut one = each.clone();
            match host {
                Host::Tcp(name) => one.host(name),
                #[cfg(unix)]
                Host::Unix(path) => one.host_path(path),
            };
            if let Some(address) = hosts.get_hostaddrs().get(n) {
                one.hostaddr(*address);
            }
            one.port(ports.get(n).or_else(|| ports.first()).copied().unwrap_or(5432));
            one
        };
        hosts.get_hosts().iter().enumerate().map(one).collect()
    }

    /// What tells this store from others, without anything secret.
    #[must_use]
    pub fn identity(&self) -> String {
        let mut identity = String::from("postgres");
        for (n, host) in self.config.get_hosts().iter().enumerate() {
            let host = match host {
                Host::Tcp(name) => name.clone(),
                #[cfg(unix)]
                Host::Unix(path) => path.display().to_string(),
            };
            let ports = self.config.get_ports();
            let port = ports.get(n).or_else(|| ports.first()).copied().unwrap_or(5432);
            identity.push_str(&format!("\0{host}:{port}"));
        }
        let database = self.config.get_dbname().or_else(|| self.config.get_user()).unwrap_or_default();
        identity.push_str(&format!("\0{database}\0{}", self.schema));
        identity
    }
}

/// For people, without what is secret: hosts, database and schema.
impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let identity = self.identity();
        let mut parts: Vec<&str> = identity.split('\0').skip(1).collect();
        let (schema, database) = (parts.pop().unwrap_or_default(), parts.pop().unwrap_or_default());
        write!(f, "postgres://{}/{database}, schema {schema}", parts.join(","))
    }
}

/// Without the password.
impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresUrl").field("store", &self.identity()).field("tls", &self.tls).finish()
    }
}

fn is_here(config: &Config, listen: Option<&Listen>) -> bool {
    let is_direct_here = match listen {
        Some(Listen::At(hosts)) => hosts.get_hosts().iter().all(is_loopback),
        Some(Listen::Here) | None => true,
    };
    let are_addresses_here = config.get_hostaddrs().iter().all(std::net::IpAddr::is_loopback);
    is_direct_here && are_addresses_here && config.get_hosts().iter().all(is_loopback)
}

fn is_loopback(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

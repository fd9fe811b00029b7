//! The address of a store: `postgres://user:password@host:port,host:port/database?…`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// How long a host may take to answer before the next is tried.
const CONNECT: Duration = Duration::from_secs(3);
/// How long sent bytes may go without an acknowledgement.
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);
/// The schema where none is named.
const SCHEMA: &str = "onceseal";

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
    pub(super) config: tokio_postgres::Config,
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
    At(Box<tokio_postgres::Config>),
}

/// Who vouches for a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Roots {
    System,
    File(PathBuf),
}

/// Why an address cannot be used. It quotes nothing, since there may be a
/// password in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the address of the PostgreSQL store {0}")]
pub struct UrlError(&'static str);

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
            Err(UrlError("names a schema that is not [a-z_][a-z0-9_]{0,62}, or one of PostgreSQL's own"))
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
    pub(super) fn direct(&self) -> Option<tokio_postgres::Config> {
        let hosts = match self.listen.as_ref()? {
            Listen::Here => return Some(self.config.clone()),
            Listen::At(hosts) => hosts,
        };
        let mut direct = (**hosts).clone();
        if let Some(user) = self.config.get_user() {
            direct.user(user);
        }
        if let Some(password) = self.config.get_password() {
            direct.password(password);
        }
        if let Some(database) = self.config.get_dbname() {
            direct.dbname(database);
        }
        set_up(&mut direct, &self.config);
        Some(direct)
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

impl FromStr for PostgresUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<PostgresUrl, UrlError> {
        if !PostgresUrl::is_meant(text) {
            return Err(UrlError("begins with postgres://"));
        }
        let (address, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut rest, mut schema, mut mode, mut roots) = (Vec::new(), SCHEMA.to_owned(), None, None);
        let mut listen = None;
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let decoded = || decode(value).ok_or(UrlError("has a % that is not followed by two hex digits"));
            match name {
                "schema" => schema = decoded()?,
                "sslmode" => mode = Some(decoded()?),
                "sslrootcert" => roots = Some(PathBuf::from(decoded()?)),
                "listen" => listen = Some(listen_at(&decoded()?)?),
                // Always the one that takes writes.
                "target_session_attrs" => {}
                _ => rest.push(parameter),
            }
        }
        let address =
            if rest.is_empty() { address.to_owned() } else { format!("{address}?{}", rest.join("&")) };
        let mut config: tokio_postgres::Config = address
            .parse()
            .map_err(|_| UrlError("cannot be read; it is postgres://user:password@host:port/database"))?;
        if config.get_hosts().is_empty() {
            return Err(UrlError("names no host"));
        }
        let is_here = is_here(&config, listen.as_ref());
        let tls = match (mode.as_deref(), roots) {
            (None, None) if is_here => None,
            (Some("disable"), _) => None,
            (None | Some("require" | "verify-full"), Some(file)) => Some(Roots::File(file)),
            (None | Some("require" | "verify-full"), None) => Some(Roots::System),
            (Some("verify-ca"), _) => {
                return Err(UrlError("says sslmode=verify-ca; say verify-full, which checks the name too"));
            }
            (Some("prefer" | "allow"), _) => {
                return Err(UrlError(
                    "says that encryption may be left out by whoever is in between; say sslmode=verify-full or sslmode=disable",
                ));
            }
            (Some(_), _) => return Err(UrlError("has an sslmode that is not verify-full or disable")),
        };
        config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_application_name().is_none() {
            config.application_name("onceseal");
        }
        let said = config.clone();
        set_up(&mut config, &said);
        PostgresUrl { config, schema: String::new(), tls, listen }.with_schema(&schema)
    }
}

/// Hosts and ports as they stand in an address.
fn listen_at(text: &str) -> Result<Listen, UrlError> {
    const WRONG: UrlError = UrlError("has a listen that is not yes or host:port,host:port");
    if text == "yes" {
        return Ok(Listen::Here);
    }
    if text.is_empty() || text.contains(['@', '/', '?']) {
        return Err(WRONG);
    }
    let hosts = format!("postgres://{text}").parse().map_err(|_| WRONG)?;
    Ok(Listen::At(Box::new(hosts)))
}

/// What every connection has: always the server that takes writes, and signs of life;
/// the rest as the address says.
fn set_up(config: &mut tokio_postgres::Config, said: &tokio_postgres::Config) {
    config.ssl_mode(said.get_ssl_mode());
    if let Some(options) = said.get_options() {
        config.options(options);
    }
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    config.tcp_user_timeout(UNACKNOWLEDGED).keepalives_idle(Duration::from_secs(10));
    if let Some(timeout) = said.get_connect_timeout() {
        config.connect_timeout(*timeout);
    }
    if let Some(name) = said.get_application_name() {
        config.application_name(name);
    }
}

fn is_here(config: &tokio_postgres::Config, listen: Option<&Listen>) -> bool {
    let is_direct_here = match listen {
        Some(Listen::At(hosts)) => hosts.get_hosts().iter().all(is_loopback),
        Some(Listen::Here) | None => true,
    };
    is_direct_here && config.get_hosts().iter().all(is_loopback)
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

/// Percent-encoded text (RFC 3986, section 2.1).
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'%' {
            bytes.push(byte);
            rest = after;
            continue;
        }
        let digits = std::str::from_utf8(after.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).ok()
}

/// Without the password.
impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresUrl").field("store", &self.identity()).field("tls", &self.tls).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<PostgresUrl, UrlError> {
        text.parse()
    }

    #[test]
    fn the_schema_is_ours_and_the_rest_is_libpqs() {
        let url =
            read("postgres://u:p@db-1:6000,db-2:6001/app?schema=seal&connect_timeout=7&sslmode=disable")
                .expect("read");
        assert_eq!(url.schema, "seal");
        assert_eq!(url.config.get_ports(), [6000, 6001]);
        assert_eq!(url.config.get_connect_timeout(), Some(&Duration::from_secs(7)));
        assert_eq!(url.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        assert_eq!(url.identity(), "postgres\0db-1:6000\0db-2:6001\0app\0seal");
        assert_eq!(read("postgres://u@localhost/app").map(|url| url.schema), Ok("onceseal".to_owned()));
    }

    #[test]
    fn the_server_itself_is_where_the_address_says() {
        let direct = |listen: &str| {
            let url = format!("postgres://u@pool:6432/app?schema=seal{listen}&sslmode=disable");
            read(&url).expect("read").or_password("p").direct()
        };
        assert_eq!(direct(""), None);
        let same = direct("&listen=yes").expect("the same");
        assert_eq!((same.get_ports(), same.get_dbname()), (&[6432][..], Some("app")));
        let beside = direct("&connect_timeout=7&listen=db-1:6000,[::1]:6001").expect("beside it");
        let hosts = [Host::Tcp("db-1".to_owned()), Host::Tcp("::1".to_owned())];
        assert_eq!((beside.get_hosts(), beside.get_ports()), (&hosts[..], &[6000, 6001][..]));
        assert_eq!((beside.get_user(), beside.get_password()), (Some("u"), Some(&b"p"[..])));
        assert_eq!((beside.get_dbname(), beside.get_ssl_mode()), (Some("app"), SslMode::Disable));
        assert_eq!(beside.get_connect_timeout(), Some(&Duration::from_secs(7)));
        assert_eq!(beside.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        let (with, without) = ("postgres://u@db/a?listen=yes", "postgres://u@db/a");
        assert_eq!(read(with).map(|url| url.identity()), read(without).map(|url| url.identity()));
    }

    #[test]
    fn what_leaves_this_machine_is_encrypted_unless_somebody_says_otherwise() {
        let tls = |text: &str| read(text).map(|url| url.tls);
        assert_eq!(tls("postgres://u@127.0.0.1/a"), Ok(None));
        assert_eq!(tls("postgres://u@localhost,[::1]/a"), Ok(None));
        assert_eq!(tls("postgres://u@db/a"), Ok(Some(Roots::System)));
        assert_eq!(tls("postgres://u@localhost,db/a"), Ok(Some(Roots::System)));
        assert_eq!(tls("postgres://u@db/a?sslmode=disable"), Ok(None));
        let file = Ok(Some(Roots::File(PathBuf::from("/etc/ca.pem"))));
        assert_eq!(tls("postgres://u@db/a?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem"), file);
        // Also what is only listened to.
        assert_eq!(tls("postgres://u@127.0.0.1:6432/a?listen=db"), Ok(Some(Roots::System)));
        for mode in ["prefer", "allow", "verify-ca", "of course"] {
            assert!(tls(&format!("postgres://u@db/a?sslmode={mode}")).is_err(), "{mode}");
        }
    }

    #[test]
    fn no_mistake_quotes_the_address() {
        for text in [
            "mysql://u:secret@db/a",
            "postgres://u:secret@db/a?schema=Nope",
            "postgres://u:secret@db/a?schema=pg_catalog",
            "postgres://u:secret@db/a?schema=%zz",
            "postgres://u:secret@db:no/a",
            "postgres://u:secret@db/a?sslmode=prefer",
            "postgres://u:secret@db/a?unheard=of",
            "postgres:///a",
            "postgres://u:secret@db/a?listen=no/where",
            "postgres://u:secret@db/a?listen=other:secret@db",
            "postgres://u:secret@db/a?listen=db:port",
            "postgres://u:secret@db/a?listen",
        ] {
            let error = read(text).map(drop).expect_err(text).to_string();
            assert!(!error.contains("secret") && error.starts_with("the address"), "{error}");
        }
        let url = read("postgres://u:secret@db/a").expect("read");
        assert!(!format!("{url:?}").contains("secret"));
    }
}

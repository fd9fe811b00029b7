//! Reading an address. What is wrong with one is said without quoting it.

use std::borrow::Cow;
use std::path::PathBuf;
use std::str::FromStr;

use tokio_postgres::Config;

use super::{Listen, PostgresUrl, Roots, is_here};

/// Parameters that are taken as libpq takes them.
const PASSED: [&str; 11] = [
    "user",
    "password",
    "dbname",
    "host",
    "hostaddr",
    "port",
    "options",
    "application_name",
    "connect_timeout",
    "channel_binding",
    "sslnegotiation",
];
/// The schema where none is named.
const SCHEMA: &str = "onceseal";

/// Why an address cannot be used. It quotes nothing, since there may be a
/// password in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the address of the PostgreSQL store {0}")]
pub struct UrlError(Cow<'static, str>);

impl UrlError {
    pub(super) const fn new(what: &'static str) -> UrlError {
        UrlError(Cow::Borrowed(what))
    }
}

impl FromStr for PostgresUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<PostgresUrl, UrlError> {
        if !PostgresUrl::is_meant(text) {
            return Err(UrlError::new("begins with postgres://"));
        }
        if decode(text).is_none() {
            return Err(UrlError::new("has a % that is not followed by two hex digits"));
        }
        let (address, query) = text.split_once('?').unwrap_or((text, ""));
        check_ports(hosts_of(address))?;
        let (mut rest, mut schema, mut mode, mut roots) = (Vec::new(), SCHEMA.to_owned(), None, None);
        let mut listen = None;
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let decoded =
                || decode(value).ok_or(UrlError::new("has a % that is not followed by two hex digits"));
            match name {
                "schema" => schema = decoded()?,
                "sslmode" => mode = Some(decoded()?),
                "sslrootcert" => roots = Some(PathBuf::from(decoded()?)),
                "listen" => listen = Some(listen_at(&decoded()?)?),
                // Always the one that takes writes, in the order in which they stand.
                "target_session_attrs" | "load_balance_hosts" => {}
                _ if PASSED.contains(&name) => rest.push(parameter),
                _ => return Err(unknown(name)),
            }
        }
        let address =
            if rest.is_empty() { address.to_owned() } else { format!("{address}?{}", rest.join("&")) };
        let config: Config = address.parse().map_err(|_| UNREADABLE)?;
        if config.get_hosts().is_empty() {
            return Err(UrlError::new("names no host"));
        }
        let is_here = is_here(&config, listen.as_ref());
        let tls = match (mode.as_deref(), roots) {
            (None, None) if is_here => None,
            (Some("disable"), _) => None,
            (None | Some("require" | "verify-full"), Some(file)) => Some(Roots::File(file)),
            (None | Some("require" | "verify-full"), None) => Some(Roots::System),
            (Some("verify-ca"), _) => {
                return Err(UrlError::new(
                    "says sslmode=verify-ca; say verify-full, which checks the name too",
                ));
            }
            (Some("prefer" | "allow"), _) => {
                return Err(UrlError::new(
                    "says that encryption may be left out by whoever is in between; say sslmode=verify-full or sslmode=disable",
                ));
            }
            (Some(_), _) => return Err(UrlError::new("has an sslmode that is not verify-full or disable")),
        };
        PostgresUrl { config, schema: String::new(), tls, listen }.with_schema(&schema)
    }
}

/// Hosts and ports as they stand in an address.
fn listen_at(text: &str) -> Result<Listen, UrlError> {
    const WRONG: UrlError = UrlError::new("has a listen that is not yes or host:port,host:port");
    if text == "yes" {
        return Ok(Listen::Here);
    }
    if text.is_empty() || text.contains(['@', '/', '?']) {
        return Err(WRONG);
    }
    let hosts = format!("postgres://{text}").parse().map_err(|_| WRONG)?;
    Ok(Listen::At(Box::new(hosts)))
}

/// The hosts and ports of an address.
fn hosts_of(address: &str) -> &str {
    let after = address.split_once("://").map_or(address, |(_, after)| after);
    let authority = after.split_once('/').map_or(after, |(authority, _)| authority);
    authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts)
}

const UNREADABLE: UrlError = UrlError::new(
    "cannot be read; it is postgres://user:password@host:port/database?parameter=value, where @ : / ? # and % in a \
     user or password are written %40 %3A %2F %3F %23 %25",
);

fn check_ports(hosts: &str) -> Result<(), UrlError> {
    for host in hosts.split(',') {
        // A colon within brackets is one of IPv6.
        let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
        if let Some((_, port)) = after.rsplit_once(':')
            && port.parse::<u16>().map_or(true, |port| port == 0)
        {
            return Err(UrlError::new(
                "has a port that is no number from 1 to 65535; in a password @ : / ? # and % are written %40 %3A %2F %3F %23 %25",
            ));
        }
    }
    Ok(())
}

/// A parameter that is not taken, with its name unless it may be something else.
fn unknown(name: &str) -> UrlError {
    let is_name = name.len() <= 32 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    let name = if is_name { format!(", {name}") } else { String::new() };
    UrlError(format!("has a parameter that is not known{name}; schema, sslmode, sslrootcert, listen and connect_timeout are").into())
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

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
        let hosts = url.hosts();
        assert_eq!(hosts.iter().map(|host| host.get_ports()[0]).collect::<Vec<_>>(), [6000, 6001]);
        for host in &hosts {
            assert_eq!(host.get_connect_timeout(), Some(&Duration::from_secs(7)));
            assert_eq!(host.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        }
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
        assert_eq!(same, read("postgres://u:p@pool:6432/app?sslmode=disable").expect("read").hosts());
        let both = direct("&connect_timeout=7&listen=db-1:6000,[::1]:6001").expect("beside it");
        let reached = both.iter().map(|one| (one.get_hosts()[0].clone(), one.get_ports()[0]));
        let hosts = [(Host::Tcp("db-1".to_owned()), 6000), (Host::Tcp("::1".to_owned()), 6001)];
        assert_eq!(reached.collect::<Vec<_>>(), hosts);
        let beside = &both[1];
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
        assert_eq!(tls("postgres://u@localhost/a?hostaddr=192.0.2.1"), Ok(Some(Roots::System)));
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
            "postgres://u:se%cret@db/a",
            "postgres://u:0/secret@db/a",
            "postgres://u:secret@db:70000/a",
            "postgres://u:secret@db/a?Secret secret=1",
        ] {
            let error = read(text).map(drop).expect_err(text).to_string();
            assert!(!error.contains("secret") && error.starts_with("the address"), "{error}");
        }
        let url = read("postgres://u:secret@db/a").expect("read");
        assert!(!format!("{url:?}").contains("secret"));
    }

    #[test]
    fn a_mistake_says_which_part_it_is_in() {
        let told = |text: &str| read(text).map(drop).expect_err(text).to_string();
        for (text, part) in [
            ("postgres://u:p@db:543x/a", "port"),
            ("postgres://u:p/w@db/a", "%2F"),
            ("postgres://u:p@db/a?shema=x", "shema"),
            ("postgres://u:p%4@db/a", "%"),
            ("postgres://u:p@db/a?sslmode=on", "sslmode"),
            ("postgres://u:p@db/a?listen=no/where", "listen"),
        ] {
            assert!(told(text).contains(part), "{text}: {}", told(text));
        }
    }
}

//! One server for many tests: each gets a database of its own.

use std::env;
use std::sync::OnceLock;

use crate::postgres::Postgres;
use crate::psql::Psql;

/// The environment variable that names the server all tests share: the address
/// of its database `postgres`, for a superuser.
pub const SHARED: &str = "ONCESEAL_TEST_POSTGRES";

/// The server that tests share, where they change nothing that others see.
#[derive(Debug)]
pub struct Shared {
    psql: Psql,
    /// Where nobody named one: ours, which ends with this process.
    _own: Option<Postgres>,
}

/// The server that [`SHARED`] names, or else one of this process.
///
/// # Panics
/// If none is named, and none can be started.
pub fn server() -> &'static Shared {
    static SERVER: OnceLock<Shared> = OnceLock::new();
    SERVER.get_or_init(|| match env::var(SHARED) {
        Ok(url) => Shared { psql: named(&url), _own: None },
        Err(_) => {
            let own = Postgres::start();
            Shared { psql: named(&own.url("postgres")), _own: Some(own) }
        }
    })
}

fn named(url: &str) -> Psql {
    let (address, options) = url.split_at(url.find('?').unwrap_or(url.len()));
    let database = address.rfind('/').expect("an address ends with a database") + 1;
    Psql::new(&address[..database], options)
}

impl Shared {
    /// An empty database, for as long as the value lives.
    ///
    /// # Panics
    /// If the server says no.
    #[track_caller]
    pub fn new_database(&'static self) -> Database {
        Database { name: self.psql.new_database(), server: self }
    }

    /// The address of a database, for a superuser.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        self.psql.url(database)
    }

    /// Runs statements one by one: their rows, with `|` between columns.
    ///
    /// # Panics
    /// If one fails.
    #[track_caller]
    pub fn sql(&self, database: &str, text: &str) -> String {
        self.psql.sql(database, text)
    }
}

/// A database on the shared server, dropped with its connections.
#[derive(Debug)]
pub struct Database {
    name: String,
    server: &'static Shared,
}

impl Database {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address, for a superuser.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.psql.url(&self.name)
    }

    /// Runs statements one by one: their rows, with `|` between columns.
    ///
    /// # Panics
    /// If one fails.
    #[track_caller]
    pub fn sql(&self, text: &str) -> String {
        self.server.psql.sql(&self.name, text)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A test that fails must say why it failed, not that this did too.
        let _ = self.server.psql.run("postgres", &format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}

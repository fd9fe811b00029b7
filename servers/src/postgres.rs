//! A PostgreSQL that is thrown away: durable as in production, on loopback
//! only, with a password, and with an order of texts that is not that of bytes.

mod certificate;
mod setup;
mod standby;
mod template;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

pub use setup::Setup;
pub use template::{TEMPLATE, template};

use crate::daemon::Daemon;
use crate::psql::Psql;
use crate::until::until;
use crate::{chance, program};

/// The superuser of every server.
pub(crate) const SUPERUSER: &str = "onceseal";

/// How a server is told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// When the last client has left.
    Smart,
    /// Now, rolling back what is open.
    Fast,
    /// Like a crash: it recovers when it starts again.
    Immediate,
}

impl Shutdown {
    fn signal(self) -> Signal {
        match self {
            Shutdown::Smart => Signal::TERM,
            Shutdown::Fast => Signal::INT,
            Shutdown::Immediate => Signal::QUIT,
        }
    }
}

/// The server. It ends, and its directory goes, with the value.
///
/// Its methods panic when the server does not do what they say.
#[derive(Debug)]
pub struct Postgres {
    setup: Setup,
    daemon: Daemon,
    port: u16,
    password: String,
    psql: Psql,
}

impl Postgres {
    /// Starts one as [`Setup`] has it without being told.
    #[must_use]
    #[track_caller]
    pub fn start() -> Postgres {
        Postgres::with(&[]).start()
    }

    /// One with these settings in its `postgresql.conf`, still to be started.
    #[must_use]
    pub fn with(settings: &[(&str, &str)]) -> Setup {
        Setup::new(settings)
    }

    /// A server whose data `fill` puts into `data`, and says the password of.
    #[track_caller]
    fn from(setup: Setup, fill: impl FnOnce(&Daemon) -> String) -> Postgres {
        let daemon = Daemon::new(&setup.place(), "postgres");
        let password = fill(&daemon);
        let mut server = Postgres { setup, daemon, port: 0, password, psql: Psql::new("", "") };
        // Between finding a port free and listening there another may take it.
        let started = (0..10).any(|_| {
            server.port = chance::port();
            server.try_start()
        });
        assert!(started, "no port is free: {}", server.log());
        let socket = format!("?host={}&port={}", server.directory().display(), server.port);
        server.psql = Psql::new(&format!("postgres://{SUPERUSER}@/"), &socket);
        server
    }

    /// Starts the server, if its port is free.
    #[track_caller]
    fn try_start(&self) -> bool {
        self.daemon.write("data/postgresql.conf", &self.setup.configuration(self.directory(), self.port));
        self.daemon.write("data/pg_hba.conf", &self.setup.access());
        let before = self.log().len();
        let program = program::postgres_directory().join("postgres");
        self.daemon.start(self.daemon.command(&program).arg("-D").arg("data"));
        let pid = self.pid().to_string();
        until("PostgreSQL takes connections", || {
            if let Some(status) = self.daemon.ended() {
                let log = self.log();
                assert!(log[before..].contains("Address already in use"), "PostgreSQL: {status}\n{log}");
                return Some(false);
            }
            // The eighth line says how far the server of the first one is.
            let text = std::fs::read_to_string(self.data().join("postmaster.pid")).ok()?;
            let mut lines = text.lines();
            let is_ours = lines.next() == Some(&pid);
            let state = lines.nth(6)?.trim();
            (is_ours && matches!(state, "ready" | "standby")).then_some(true)
        })
    }

    /// The address of a database, for the superuser, by TCP.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        self.url_at(Ipv4Addr::LOCALHOST, database)
    }

    /// The same from [another host](crate::Host), by an address that the
    /// server [also listens on](Setup::also_on).
    #[must_use]
    pub fn url_at(&self, address: Ipv4Addr, database: &str) -> String {
        format!("postgres://{SUPERUSER}:{}@{address}:{}/{database}", self.password, self.port)
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The superuser's password.
    #[must_use]
    pub fn password(&self) -> &str {
        &self.password
    }

    /// The pid of the server's first process.
    #[must_use]
    #[track_caller]
    pub fn pid(&self) -> u32 {
        self.daemon.pid()
    }

    /// The server's own directory: its socket, its log, its `data`.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.daemon.directory()
    }

    fn data(&self) -> PathBuf {
        self.directory().join("data")
    }

    /// The certificate by which clients know the server: [`Setup::tls`].
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.data().join(certificate::AUTHORITY)
    }

    /// What the server has logged.
    #[must_use]
    pub fn log(&self) -> String {
        self.daemon.log()
    }

    /// Makes an empty database of a name that no other has: its address.
    #[must_use]
    #[track_caller]
    pub fn new_database(&self) -> String {
        self.url(&self.psql.new_database())
    }

    /// Runs statements one by one: their rows, with `|` between columns.
    #[track_caller]
    pub fn sql(&self, database: &str, text: &str) -> String {
        self.psql.sql(database, text)
    }

    /// Sets a setting of the running server, and waits until it took it.
    #[track_caller]
    pub fn set(&self, name: &str, value: &str) {
        let before = self.sql("postgres", "SELECT pg_conf_load_time()");
        let value = value.replace('\'', "''");
        self.sql("postgres", &format!("ALTER SYSTEM SET {name} = '{value}'; SELECT pg_reload_conf()"));
        let newer = format!("SELECT pg_conf_load_time() > '{before}'");
        until("the server reads its settings", || (self.sql("postgres", &newer) == "t").then_some(()));
    }

    /// Ends every connection to a database.
    #[track_caller]
    pub fn terminate_backends(&self, database: &str) {
        let others = format!(
            "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity \
             WHERE datname = '{database}' AND pid <> pg_backend_pid()"
        );
        self.sql("postgres", &others);
    }

    /// Stops the server; its data stays.
    #[track_caller]
    pub fn stop(&self, how: Shutdown) {
        self.daemon.stop(how.signal());
    }

    /// Kills every process of the server at once, as the loss of its host would.
    pub fn kill(&self) {
        self.daemon.kill();
    }

    /// Starts the server again that was stopped or killed, on the same port.
    #[track_caller]
    pub fn start_again(&self) {
        assert!(self.try_start(), "port {} was taken meanwhile", self.port);
    }

    /// Stops the server, and starts it again.
    #[track_caller]
    pub fn restart(&self, how: Shutdown) {
        self.stop(how);
        self.start_again();
    }

    /// Halts every process of the server: connections stay open, and nothing
    /// answers.
    pub fn freeze(&self) {
        self.daemon.signal_all(Signal::STOP);
    }

    /// Lets a server go on that was frozen.
    pub fn thaw(&self) {
        self.daemon.signal_all(Signal::CONT);
    }
}

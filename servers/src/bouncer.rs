//! PgBouncer in transaction mode: few sessions at the server, many clients,
//! and no transaction in the session of the one before.

use std::fmt::Write;
use std::net::{Ipv4Addr, TcpStream};

use rustix::process::Signal;

use crate::daemon::Daemon;
use crate::postgres::{Postgres, SUPERUSER};
use crate::until::until;
use crate::{chance, program};

/// A PgBouncer before a server. It ends with the value.
#[derive(Debug)]
pub struct Bouncer {
    daemon: Daemon,
    port: u16,
    user: String,
    password: String,
}

impl Bouncer {
    /// Starts one before a server, with three sessions per database there.
    ///
    /// # Panics
    /// If PgBouncer is not installed, or does not start: with its log.
    #[must_use]
    #[track_caller]
    pub fn start(server: &Postgres) -> Bouncer {
        Bouncer::with(server, server.port(), &[])
    }

    /// The same with settings of `[pgbouncer]`, reaching the server by another
    /// port: that of a [`Wire`](crate::Wire) to it.
    ///
    /// # Panics
    /// If PgBouncer is not installed, or does not start: with its log.
    #[must_use]
    #[track_caller]
    pub fn with(server: &Postgres, port: u16, settings: &[(&str, &str)]) -> Bouncer {
        Bouncer::between(SUPERUSER, server.password(), &format!("127.0.0.1:{port}"), settings)
    }

    /// Starts one before the server with this address, as [`Shared`](crate::Shared)
    /// has one, with settings of `[pgbouncer]`.
    ///
    /// # Panics
    /// If PgBouncer is not installed, or does not start: with its log. If the address
    /// does not name a user, a password, a host and a port.
    #[must_use]
    #[track_caller]
    pub fn before(url: &str, settings: &[(&str, &str)]) -> Bouncer {
        let parts = || {
            let (_, rest) = url.split_once("://")?;
            let (login, rest) = rest.split_once('@')?;
            Some((login.split_once(':')?, rest.split_once('/')?.0))
        };
        let ((user, password), server) = parts().expect("an address with a user, a password and a host");
        Bouncer::between(user, password, server, settings)
    }

    fn between(user: &str, password: &str, server: &str, settings: &[(&str, &str)]) -> Bouncer {
        let daemon = Daemon::new(&std::env::temp_dir(), "bouncer");
        daemon.write("users", &format!("\"{user}\" \"{password}\"\n"));
        let (user, password) = (user.to_owned(), password.to_owned());
        let mut bouncer = Bouncer { daemon, port: 0, user, password };
        let started = (0..10).any(|_| {
            bouncer.port = chance::port();
            bouncer.daemon.write("bouncer.ini", &bouncer.configuration(server, settings));
            bouncer.try_start()
        });
        assert!(started, "no port is free: {}", bouncer.log());
        bouncer
    }

    fn configuration(&self, server: &str, settings: &[(&str, &str)]) -> String {
        let (host, port) = server.rsplit_once(':').expect("a host and a port");
        let mut text = format!("[databases]\n* = host={host} port={port}\n[pgbouncer]\n");
        let (directory, port) = (self.daemon.directory().display().to_string(), self.port.to_string());
        let own = [
            ("listen_addr", "127.0.0.1"),
            ("listen_port", &port),
            ("unix_socket_dir", &directory),
            ("auth_type", "scram-sha-256"),
            ("auth_file", "users"),
            ("pool_mode", "transaction"),
            ("default_pool_size", "3"),
            ("max_client_conn", "500"),
            ("ignore_startup_parameters", "extra_float_digits,options"),
            // A server that comes back is to be found at once.
            ("server_login_retry", "1"),
        ];
        for (name, value) in own.iter().chain(settings) {
            writeln!(text, "{name} = {value}").expect("a string");
        }
        text
    }

    #[track_caller]
    fn try_start(&self) -> bool {
        let before = self.log().len();
        self.daemon.start(self.daemon.command(&program::need("pgbouncer")).arg("bouncer.ini"));
        until("PgBouncer takes connections", || {
            if let Some(status) = self.daemon.ended() {
                let log = self.log();
                assert!(log[before..].contains("Address already in use"), "PgBouncer: {status}\n{log}");
                return Some(false);
            }
            TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).ok().map(|_| true)
        })
    }

    /// The address of a database, for the server's superuser.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{}:{}@127.0.0.1:{}/{database}", self.user, self.password, self.port)
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        self.daemon.log()
    }

    /// Ends it with all its connections at once, and starts it again on the
    /// same port.
    ///
    /// # Panics
    /// If it does not start.
    #[track_caller]
    pub fn restart(&self) {
        self.daemon.stop(Signal::TERM);
        assert!(self.try_start(), "port {} was taken meanwhile", self.port);
    }
}

//! A second server that follows the first, and may take its place.

use super::{Postgres, SUPERUSER};
use crate::until::until;
use crate::{chance, program};

impl Postgres {
    /// Starts a standby on this host that follows the server, and answers
    /// reads. A synchronous one has what was committed before the commit is
    /// answered: while it is away, no commit is.
    #[must_use]
    #[track_caller]
    pub fn standby(&self, synchronous: bool) -> Postgres {
        let name = format!("standby_{}", chance::text());
        let standby = Postgres::from(self.setup.clone(), |daemon| {
            let source = format!(
                "host=127.0.0.1 port={} user={SUPERUSER} password={} application_name={name}",
                self.port, self.password
            );
            let mut command = daemon.command(&program::postgres_directory().join("pg_basebackup"));
            command.args(["-D", "data", "-d", &source, "-c", "fast", "-X", "stream", "--no-sync", "-R"]);
            command.args(["-C", "-S", &name]);
            program::run(&mut command);
            // What it follows may wait for a standby; it has none.
            let path = daemon.directory().join("data/postgresql.auto.conf");
            let copied = std::fs::read_to_string(path).expect("settings");
            daemon.write("data/postgresql.auto.conf", &format!("{copied}synchronous_standby_names = ''\n"));
            self.password.clone()
        });
        if synchronous {
            self.set("synchronous_standby_names", &name);
        }
        let state = format!("SELECT sync_state FROM pg_stat_replication WHERE application_name = '{name}'");
        let reached = if synchronous { "sync" } else { "async" };
        until("the standby follows", || (self.sql("postgres", &state) == reached).then_some(()));
        standby
    }

    /// Makes a standby a server of its own, which writes.
    #[track_caller]
    pub fn promote(&self) {
        assert_eq!(self.sql("postgres", "SELECT pg_promote(true, 60)"), "t", "{}", self.log());
    }
}

//! Servers, hosts and poolers, and what befalls them.

use std::fmt;
use std::path::Path;
use std::process::Command;

use onceseal_servers::{Bouncer, Host, Network, Postgres, Shutdown};

use crate::chance::Chance;

/// What befalls a store with clients at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The server stops as in a crash, and recovers.
    Restart,
    /// One of its sessions is ended.
    Terminate,
    /// The server is lost, and the standby that commits waited for takes its place.
    Failover,
    /// The server answers nothing any more though it is there, and the standby that
    /// commits waited for takes its place.
    Freeze,
    /// A host is cut off, and joined again; the hosts' clocks are up to 20 minutes apart.
    Partition,
    /// The pooler between half of the clients and the server starts again.
    Pooler,
    /// The server is lost, and a standby that commits did not wait for takes its place.
    Lost,
}

impl Fault {
    /// Those that nothing acknowledged may be lost by.
    pub const ALL: [Fault; 6] =
        [Fault::Restart, Fault::Terminate, Fault::Failover, Fault::Freeze, Fault::Partition, Fault::Pooler];

    const fn word(self) -> &'static str {
        match self {
            Fault::Restart => "restart",
            Fault::Terminate => "terminate",
            Fault::Failover => "failover",
            Fault::Freeze => "freeze",
            Fault::Partition => "partition",
            Fault::Pooler => "pooler",
            Fault::Lost => "lost",
        }
    }

    /// Reads the printed form.
    #[must_use]
    pub fn parse(word: &str) -> Option<Fault> {
        Fault::ALL.into_iter().chain([Fault::Lost]).find(|fault| fault.word() == word)
    }

    /// Whether it can be had here: another host needs root.
    #[must_use]
    pub fn available(self) -> bool {
        self != Fault::Partition || Network::available()
    }

    /// How often it can befall one store.
    pub(super) const fn most(self) -> usize {
        match self {
            Fault::Failover | Fault::Freeze | Fault::Lost => 1,
            Fault::Restart | Fault::Terminate | Fault::Partition | Fault::Pooler => usize::MAX,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// The database's name.
const DATABASE: &str = "siege";

/// A store's server, and the ways to it.
pub(super) struct Ground {
    fault: Fault,
    server: Postgres,
    standby: Option<Postgres>,
    bouncer: Option<Bouncer>,
    hosts: Vec<Host>,
    cut: usize,
}

impl Ground {
    /// For so many processes.
    pub(super) fn new(fault: Fault, processes: usize) -> Ground {
        // A host's clock is one of a few, the first two furthest apart.
        const MINUTES: [i32; 4] = [10, -10, 3, 0];
        let network = (fault == Fault::Partition).then(Network::new);
        let host = |n: usize| network.as_ref().map(|net| net.host().with_clock(MINUTES[n % MINUTES.len()]));
        let setup = Postgres::with(&[("max_connections", "200")]);
        let server = match &network {
            Some(network) => setup.also_on(network.address()).start(),
            None => setup.start(),
        };
        server.sql("postgres", &format!("CREATE DATABASE {DATABASE}"));
        let has_standby = matches!(fault, Fault::Failover | Fault::Freeze | Fault::Lost);
        let standby = has_standby.then(|| server.standby(fault != Fault::Lost));
        let bouncer = (fault == Fault::Pooler).then(|| Bouncer::start(&server));
        Ground { fault, server, standby, bouncer, hosts: (0..processes).filter_map(host).collect(), cut: 0 }
    }

    /// Where the store is for us.
    pub(super) fn own(&self) -> String {
        let first = self.server.url(DATABASE);
        match &self.standby {
            Some(standby) => first.replace(
                &format!(":{}/", self.server.port()),
                &format!(":{},127.0.0.1:{}/", self.server.port(), standby.port()),
            ),
            None => first,
        }
    }

    /// Where it is for the `n`th process, and how that is started.
    pub(super) fn way(&self, n: usize, program: &Path) -> (String, Command) {
        match (self.hosts.get(n), &self.bouncer) {
            (Some(host), _) => {
                let url = self.server.url_at(host.network().address(), DATABASE);
                (format!("{url}?sslmode=disable"), host.command(program))
            }
            (None, Some(bouncer)) if n.is_multiple_of(2) => (bouncer.url(DATABASE), Command::new(program)),
            (None, _) => (self.own(), Command::new(program)),
        }
    }

    /// It happens.
    pub(super) fn strike(&mut self, chance: &mut Chance) {
        match self.fault {
            Fault::Restart => self.server.restart(Shutdown::Immediate),
            Fault::Terminate => {
                let one = format!(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE datname = '{DATABASE}' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1"
                );
                self.server.sql("postgres", &one);
            }
            Fault::Failover => self.server.kill(),
            Fault::Freeze => self.server.freeze(),
            Fault::Lost => {
                // What is committed from now on is on the one server only.
                self.standby.as_ref().expect("a standby").stop(Shutdown::Immediate);
            }
            Fault::Partition => {
                self.cut = usize::try_from(chance.below(self.hosts.len() as u64)).unwrap_or(0);
                self.hosts[self.cut].disconnect();
            }
            Fault::Pooler => self.bouncer.as_ref().expect("a pooler").restart(),
        }
    }

    /// Whether others go on while it lasts.
    pub(super) const fn lasts(&self) -> bool {
        matches!(self.fault, Fault::Partition | Fault::Lost)
    }

    /// It is over: everybody could be served again.
    pub(super) fn mend(&mut self) {
        match self.fault {
            Fault::Failover | Fault::Freeze => self.standby.as_ref().expect("a standby").promote(),
            Fault::Lost => {
                self.server.kill();
                let standby = self.standby.as_ref().expect("a standby");
                standby.start_again();
                standby.promote();
            }
            Fault::Partition => self.hosts[self.cut].reconnect(),
            Fault::Restart | Fault::Terminate | Fault::Pooler => {}
        }
    }
}

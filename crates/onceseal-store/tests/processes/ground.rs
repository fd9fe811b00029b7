//! Where the stores are that many processes have in their hands, and where these run.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::sync::atomic::{AtomicUsize, Ordering};

use onceseal_servers::{Database, Host, Network, Postgres, server};
use onceseal_store::{Options, PostgresUrl, Store};

/// Where stores are made, and processes that reach them.
pub(crate) struct Ground {
    kind: Kind,
    /// Where processes run, unless here.
    hosts: Vec<Host>,
    stores: AtomicUsize,
}

enum Kind {
    /// One SQLite file for all.
    File(tempfile::TempDir),
    /// One for each.
    FileForEach(tempfile::TempDir),
    /// One schema of a server.
    Server(Database),
    /// The same, and how the others reach the database.
    Hosts { own: String, others: String, _server: Box<Postgres> },
}

/// A store that is not there yet.
pub(crate) struct Place<'a> {
    ground: &'a Ground,
    own: String,
    others: Vec<String>,
}

impl Ground {
    fn new(kind: Kind, hosts: Vec<Host>) -> Ground {
        Ground { kind, hosts, stores: AtomicUsize::new(0) }
    }

    /// SQLite.
    pub(crate) fn file() -> Option<Ground> {
        Some(Ground::new(Kind::File(tempfile::tempdir().expect("a directory")), Vec::new()))
    }

    /// Every process has a store of its own: what no scenario may take for one.
    pub(crate) fn file_for_each() -> Ground {
        Ground::new(Kind::FileForEach(tempfile::tempdir().expect("a directory")), Vec::new())
    }

    /// PostgreSQL, with all processes on this host.
    pub(crate) fn server() -> Option<Ground> {
        Some(Ground::new(Kind::Server(server().new_database()), Vec::new()))
    }

    /// PostgreSQL, with each process on a host of its own; `None` where there can be no
    /// other hosts.
    pub(crate) fn hosts() -> Option<Ground> {
        if !Network::available() {
            eprintln!("not run: it needs root, and network namespaces");
            return None;
        }
        let network = Network::new();
        let hosts = (0..8).map(|_| network.host()).collect();
        let server = Postgres::with(&[]).also_on(network.address()).start();
        let own = server.new_database();
        let (_, name) = own.rsplit_once('/').expect("a database");
        let others = server.url_at(network.address(), name);
        Some(Ground::new(Kind::Hosts { own, others, _server: Box::new(server) }, hosts))
    }

    /// Where a new store is to be.
    pub(crate) fn place(&self) -> Place<'_> {
        let n = self.stores.fetch_add(1, Ordering::Relaxed);
        let schema = |url: &str| format!("{url}?sslmode=disable&schema=s{n}");
        let (own, others) = match &self.kind {
            Kind::File(directory) => {
                let file = empty(directory.path(), &format!("db{n}"));
                (file.clone(), vec![file])
            }
            Kind::FileForEach(directory) => {
                let file = |at| empty(directory.path(), &format!("db{n}-{at}"));
                (file(8), (0..8).map(file).collect())
            }
            Kind::Server(database) => (schema(&database.url()), vec![schema(&database.url())]),
            Kind::Hosts { own, others, .. } => (schema(own), vec![schema(others)]),
        };
        Place { ground: self, own, others }
    }
}

impl Place<'_> {
    /// The store.
    pub(crate) fn open(&self) -> Store {
        open(&self.own)
    }

    /// The store that is there, for reading alone.
    pub(crate) fn open_reader(&self) -> Store {
        let options = Options::default();
        let opened = match PostgresUrl::is_meant(&self.own) {
            true => Store::postgres_reader(self.own.parse().expect("an address"), &options),
            false => Store::sqlite_reader(PathBuf::from(&self.own), &options),
        };
        opened.expect("opened").expect("it is there")
    }

    /// Where the file is, if it is one.
    pub(crate) fn path(&self) -> &Path {
        Path::new(&self.own)
    }

    /// This program, to be run as the `n`th process, and where the store is for it.
    pub(crate) fn program(&self, n: usize) -> (Program, &str) {
        let own = std::env::current_exe().expect("this program");
        let program = match self.ground.hosts.get(n) {
            Some(host) => host.command(own),
            None => Program::new(own),
        };
        (program, &self.others[n % self.others.len()])
    }
}

fn empty(directory: &Path, name: &str) -> String {
    let path = directory.join(name);
    File::create_new(&path).expect("an empty file");
    path.to_str().expect("text").to_owned()
}

/// The store at a path or an address.
pub(crate) fn open(place: &str) -> Store {
    let options = Options::default();
    let opened = match PostgresUrl::is_meant(place) {
        true => Store::postgres(place.parse().expect("an address"), &options),
        false => Store::sqlite(PathBuf::from(place), &options),
    };
    opened.expect("opened")
}

//! Another host on this machine: a network namespace, joined to a bridge that
//! stands for the network between hosts. For root only.

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::chance;
use crate::program::{find, need, run};
use crate::watchdog::Watchdog;

/// The network between this machine and its [`Host`]s. It goes with the last
/// of them.
#[derive(Debug, Clone)]
pub struct Network(Arc<Bridge>);

#[derive(Debug)]
struct Bridge {
    name: String,
    /// Of 198.18.0.0/15, which is set apart for tests and reaches nowhere.
    subnet: [u8; 2],
    hosts: AtomicU8,
    _watchdog: Watchdog,
}

fn ip(arguments: &[&str]) -> Command {
    let mut command = Command::new(need("ip"));
    command.args(arguments);
    command
}

impl Network {
    /// Whether we may make one.
    #[must_use]
    pub fn available() -> bool {
        rustix::process::geteuid().is_root()
            && find("ip").is_some()
            && Command::new("unshare").args(["--net", "true"]).status().is_ok_and(|status| status.success())
    }

    /// Makes one.
    ///
    /// # Panics
    /// If it is not [`available`](Self::available).
    #[must_use]
    #[track_caller]
    pub fn new() -> Network {
        assert!(Network::available(), "a network of hosts needs root, and `ip` of iproute2");
        // The name says the subnet, so who has the name has the subnet.
        let made = (0..1000).find_map(|_| {
            let subnet = [u8::from(chance::below(2) == 1) + 18, u8::try_from(chance::below(256)).ok()?];
            let name = format!("seal-{}-{}", subnet[0], subnet[1]);
            let mut link = ip(&["link", "add", &name, "type", "bridge", "forward_delay", "0"]);
            link.output().expect("ip").status.success().then_some((name, subnet))
        });
        let (name, subnet) = made.expect("no bridge can be made");
        let watchdog = Watchdog::new("ip link delete \"$1\"", &name);
        let network =
            Network(Arc::new(Bridge { name, subnet, hosts: AtomicU8::new(1), _watchdog: watchdog }));
        let name = &network.0.name;
        run(&mut ip(&["address", "add", &format!("{}/24", network.address()), "dev", name]));
        run(&mut ip(&["link", "set", name, "up"]));
        network
    }

    /// The address under which hosts reach this machine.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.at(1)
    }

    fn at(&self, number: u8) -> Ipv4Addr {
        let [high, low] = self.0.subnet;
        Ipv4Addr::new(198, high, low, number)
    }

    /// Joins a new host to the network.
    ///
    /// # Panics
    /// If that fails.
    #[must_use]
    #[track_caller]
    pub fn host(&self) -> Host {
        let number = self.0.hosts.fetch_add(1, Ordering::Relaxed) + 1;
        assert!(number < 100, "a network has at most 98 hosts");
        let name = format!("{}-{number}", self.0.name);
        run(&mut ip(&["netns", "add", &name]));
        let watchdog = Watchdog::new(LEAVE, &name);
        let (address, network) = (self.at(number), self.clone());
        let host = Host { name, address, network, clock: None, _watchdog: watchdog };
        let (name, address) = (&host.name, format!("{}/24", host.address));
        run(&mut ip(&["link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name]));
        run(&mut ip(&["-n", name, "address", "add", &address, "dev", "eth0"]));
        for device in ["lo", "eth0"] {
            run(&mut ip(&["-n", name, "link", "set", device, "up"]));
        }
        run(&mut ip(&["link", "set", name, "up"]));
        host.reconnect();
        host
    }
}

impl Default for Network {
    fn default() -> Network {
        Network::new()
    }
}

/// Debian's libfaketime, for programs of many threads.
fn faketime() -> Option<PathBuf> {
    let machines = fs::read_dir("/usr/lib").ok()?.flatten();
    machines
        .map(|machine| machine.path().join("faketime/libfaketimeMT.so.1"))
        .find(|library| library.is_file())
}

/// Removes a host, then what runs there: who has no name for it any more does
/// not enter it meanwhile. Last, what libfaketime keeps for those killed.
const LEAVE: &str = r#"
exec 3<"/run/netns/$1"
ip link delete "$1"
ip netns delete "$1"
inside() {
  for process in /proc/[0-9]*; do
    if [ "$process/ns/net" -ef /proc/$$/fd/3 ]; then echo "${process#/proc/}"; fi
  done
}
while ids=$(inside) && [ -n "$ids" ]; do kill -s KILL $ids; sleep 0.01; done
for kept in /dev/shm/faketime_shm_*; do
  id=${kept##*_}
  [ -e "/proc/$id/cwd" ] || rm -f "$kept" "/dev/shm/sem.faketime_sem_$id"
done
"#;

/// Runs a program under another clock: `$1` is the library, `$2` the offset.
/// The process before us of this pid may have been killed: what the library
/// kept for it would keep this one from starting.
const UNDER_CLOCK: &str = r#"
rm -f "/dev/shm/faketime_shm_$$" "/dev/shm/sem.faketime_sem_$$"
export LD_PRELOAD="$1" FAKETIME="$2" FAKETIME_DONT_FAKE_MONOTONIC=1
shift 2
exec "$@"
"#;

/// A host on a [`Network`]. What runs there is killed with the value.
#[derive(Debug)]
pub struct Host {
    name: String,
    address: Ipv4Addr,
    network: Network,
    clock: Option<(PathBuf, i32)>,
    _watchdog: Watchdog,
}

impl Host {
    /// The same host with its wall clock off by so many minutes; clocks that
    /// only run are right.
    ///
    /// It is libfaketime that does it, so only who asks the C library sees it.
    /// The standard library does; rustix does if it is built with
    /// `--features rustix/use-libc`.
    ///
    /// # Panics
    /// If libfaketime is not installed.
    #[must_use]
    #[track_caller]
    pub fn with_clock(self, minutes: i32) -> Host {
        let library = faketime().expect("`faketime` is not installed; ./test installs what tests need");
        Host { clock: Some((library, minutes)), ..self }
    }

    /// The host's address.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The network it is on.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// A program, to be run on the host.
    #[must_use]
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = ip(&["netns", "exec", &self.name]);
        if let Some((library, minutes)) = &self.clock {
            command.args(["sh", "-c", UNDER_CLOCK, "clock"]).arg(library).arg(format!("{minutes:+}m"));
        }
        command.arg(program);
        command
    }

    /// Pulls the host's cable at the other end: whatever is sent is lost, and
    /// neither side is told.
    ///
    /// # Panics
    /// If that fails.
    #[track_caller]
    pub fn disconnect(&self) {
        run(&mut ip(&["link", "set", &self.name, "nomaster"]));
    }

    /// Plugs the cable in again.
    ///
    /// # Panics
    /// If that fails.
    #[track_caller]
    pub fn reconnect(&self) {
        run(&mut ip(&["link", "set", &self.name, "master", &self.network.0.name]));
    }
}

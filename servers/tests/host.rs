//! Other hosts as tests get them.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use onceseal_servers::{Host, Network, Postgres, until};

/// A question to the server from a host, answered within two seconds.
fn ask(host: &Host, url: &str) -> bool {
    let mut psql = host.command("psql");
    psql.args(["-X", "-At", "-c", "SELECT 1", url]).env("PGCONNECT_TIMEOUT", "2");
    psql.output().expect("psql").stdout == b"1\n"
}

/// Whether the tests can run here.
fn available() -> bool {
    let available = Network::available();
    if !available {
        eprintln!("not run: it needs root, and network namespaces");
    }
    available
}

#[test]
fn hosts_reach_the_server_and_each_other_unless_they_are_disconnected() {
    if !available() {
        return;
    }
    let network = Network::new();
    let (one, other) = (network.host(), network.host());
    let server = Postgres::with(&[]).also_on(network.address()).start();
    let url = server.url_at(network.address(), "postgres");
    assert!(ask(&one, &url) && ask(&other, &url), "{}", server.log());
    assert!(!ask(&one, &server.url("postgres")), "loopback is each host's own");
    one.disconnect();
    assert!(!ask(&one, &url) && ask(&other, &url));
    one.reconnect();
    until("it is found again", || ask(&one, &url).then_some(()));

    let mut asleep = one.command("sleep").arg("600").spawn().expect("sleep");
    let began = Instant::now();
    drop(one);
    assert!(!asleep.wait().expect("waited").success(), "what runs there is killed");
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(ask(&other, &url));
    let name = format!("/run/netns/seal-{}-{}", network.address().octets()[1], network.address().octets()[2]);
    drop((other, network));
    assert!(!Path::new(&format!("{name}-2")).exists());
    let bridge = name.replace("/run/netns", "/sys/class/net");
    assert!(!Path::new(&bridge).exists(), "{bridge}");
}

#[test]
fn the_clock_of_a_host_is_its_own() {
    if !available() {
        return;
    }
    let network = Network::new();
    let epoch = || SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_secs();
    for minutes in [-10, 0, 10] {
        let host = network.host().with_clock(minutes);
        let output = host.command("date").arg("+%s").output().expect("date");
        let said: u64 = String::from_utf8(output.stdout).expect("text").trim().parse().expect("a number");
        let off = i64::try_from(said).expect("a time") - i64::try_from(epoch()).expect("a time");
        assert!((off - i64::from(minutes) * 60).abs() < 10, "{minutes}: {off}");

        let mut asleep = host.command("sleep").arg("600").spawn().expect("sleep");
        let kept = format!("/dev/shm/faketime_shm_{}", asleep.id());
        until("it runs", || Path::new(&kept).exists().then_some(()));
        drop(host);
        asleep.wait().expect("waited");
        assert!(!Path::new(&kept).exists(), "{kept}");
    }
}

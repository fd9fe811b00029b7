//! Other hosts as tests get them.

use std::time::{Duration, Instant};

use onceseal_servers::{Host, Network, Postgres, until};

/// A question to the server from a host, answered within two seconds.
fn ask(host: &Host, url: &str) -> bool {
    let mut psql = host.command("psql");
    psql.args(["-X", "-At", "-c", "SELECT 1", url]).env("PGCONNECT_TIMEOUT", "2");
    psql.output().expect("psql").stdout == b"1\n"
}

#[test]
fn hosts_reach_the_server_and_each_other_unless_they_are_disconnected() {
    if !Network::available() {
        eprintln!("not run: it needs root, and network namespaces");
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
    assert!(!std::path::Path::new(&format!("{name}-2")).exists());
    let bridge = name.replace("/run/netns", "/sys/class/net");
    assert!(!std::path::Path::new(&bridge).exists(), "{bridge}");
}

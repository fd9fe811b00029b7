//! PgBouncer as tests get it.

use std::process::Command;

use onceseal_servers::Direction::ToServer;
use onceseal_servers::{Bouncer, Postgres, Wire, until};

fn ask(url: &str, question: &str) -> String {
    let output = Command::new("psql").args(["-X", "-At", "-c", question, url]).output().expect("psql");
    String::from_utf8([output.stdout, output.stderr].concat()).expect("text").trim().to_owned()
}

#[test]
fn few_sessions_serve_many_clients() {
    let server = Postgres::start();
    let bouncer = Bouncer::start(&server);
    let url = bouncer.url("postgres");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(ask(&url, "SELECT pg_sleep(0.05)"), ""));
        }
    });
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE client_addr IS NOT NULL";
    let count: u32 = server.sql("postgres", sessions).parse().expect("a number");
    assert!((1..=3).contains(&count), "{count}");
}

#[test]
fn it_comes_back_as_the_server_does() {
    let server = Postgres::start();
    let bouncer = Bouncer::start(&server);
    let url = bouncer.url("postgres");
    assert_eq!(ask(&url, "SELECT 1"), "1");
    bouncer.restart();
    assert_eq!(ask(&url, "SELECT 2"), "2");
    server.kill();
    server.start_again();
    until("the server is found again", || (ask(&url, "SELECT 3") == "3").then_some(()));
}

#[test]
fn it_may_reach_the_server_by_a_wire() {
    let server = Postgres::start();
    let wire = Wire::to(server.port());
    let bouncer = Bouncer::with(&server, wire.port(), &[("default_pool_size", "1")]);
    assert_eq!(ask(&bouncer.url("postgres"), "SELECT 1"), "1");
    assert!(wire.count(ToServer) > 0, "{}", bouncer.log());
}

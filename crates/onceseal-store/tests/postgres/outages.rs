//! Servers that go away, come back, or are replaced by another; and hosts whose
//! clocks are wrong.

use std::path::Path;
use std::sync::Arc;
use std::thread;

use onceseal_core::code::Code;
use onceseal_core::time::Span;
use onceseal_servers::{Bouncer, Postgres, Shutdown, server, until};
use onceseal_store::clock::{Clock, Reading, SystemClock};

use crate::base::*;
use crate::cutting::under_load;

fn name_of(address: &str) -> &str {
    address.rsplit('/').next().expect("a name")
}

#[test]
fn ua_091_work_goes_on_by_itself_when_the_server_is_there_again() {
    let server = Postgres::start();
    let address = server.new_database();
    let (store, direct) = (open(&address, "one"), open(&address, "direct"));
    under_load(&store, &direct, |some_more| {
        for how in [Shutdown::Fast, Shutdown::Immediate] {
            some_more();
            server.restart(how);
            // Whoever was in the middle of something goes on, and others begin.
            (0..5).for_each(|_| some_more());
        }
    });
    attempt(store.run(reserve("after", 1)));
}

/// Makes a server one that only follows, as after a failover.
fn demote(server: &Postgres) {
    server.stop(Shutdown::Fast);
    std::fs::write(Path::new(server.directory()).join("data/standby.signal"), "").expect("written");
    server.start_again();
}

#[test]
fn p05_a_pooler_does_not_hide_that_what_was_acknowledged_is_lost() {
    let server = Postgres::start();
    let address = server.new_database();
    let bouncer = Bouncer::start(&server);
    let store = open(&bouncer.url(name_of(&address)), "one");
    attempt(store.run(reserve("k", 1)));
    // The connection to the pooler outlives the server, and leads to another one.
    server.restart(Shutdown::Immediate);
    attempt(store.run(reserve("other", 1)));
    server.restart(Shutdown::Immediate);
    psql(&address, "DELETE FROM onceseal.events");
    refused(store.run(reserve("k", 2)), Code::StoreWentBack);
}

#[test]
fn ua_109_behind_a_pooler_what_meets_a_standby_is_asked_again_until_it_takes_writes() {
    let server = Postgres::with(&[("log_statement", "all")]).start();
    let address = server.new_database();
    let bouncer = Bouncer::start(&server);
    let store = open(&bouncer.url(name_of(&address)), "one");
    attempt(store.run(reserve("before", 1)));
    demote(&server);
    let before = server.log().len();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| store.run(reserve("k", 1)));
        // Whether a new connection may write, or in an old one.
        let asked = |log: &str| log.contains("READ WRITE") || log.contains("SHOW transaction_read_only");
        until("the standby is asked", || asked(&server.log()[before..]).then_some(()));
        server.promote();
        assert_eq!(attempt(waiting.join().expect("no panic")).fence, 1);
    });
    for key in ["before", "k"] {
        assert_eq!(events_of(&store, key).len(), 1);
    }
    assert_sound(&store);
}

#[test]
fn ua_113_behind_a_pooler_clients_share_one_session_and_leave_nothing_in_it() {
    let database = server().new_database();
    let bouncer = Bouncer::before(&database.url(), &[("default_pool_size", "1")]);
    let address = bouncer.url(database.name());
    let stores = ["one", "two"].map(|name| open(&address, name));
    for n in 0..10 {
        let taken = started(&stores[n % 2], &format!("k {n}"), 1);
        assert_eq!(code(&stores[(n + 1) % 2].run(failed(&taken))), None);
        assert_eq!(events_of(&stores[n % 2], &format!("k {n}")).len(), 3);
    }
    let left = "SELECT (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_listening_channels()), \
                current_setting('lock_timeout'), current_setting('statement_timeout')";
    assert_eq!(psql(&address, left), "0|0|0|0");
    assert_sound(&stores[0]);
}

#[test]
fn ua_109_a_server_that_takes_no_writes_for_a_while_is_asked_again() {
    let server = Postgres::with(&[("log_connections", "on")]).start();
    let address = server.new_database();
    let store = open(&address, "one");
    attempt(store.run(reserve("before", 1)));
    server.set("default_transaction_read_only", "on");
    server.terminate_backends(name_of(&address));
    let connections = || server.log().matches("connection authorized").count();
    let before = connections();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| store.run(reserve("k", 1)));
        until("it is asked more than once", || (connections() > before + 2).then_some(()));
        server.set("default_transaction_read_only", "off");
        assert_eq!(attempt(waiting.join().expect("no panic")).fence, 1);
    });
    assert_eq!(events_of(&store, "k").len(), 1);
    assert_sound(&store);
}

#[test]
fn ua_109_after_a_failover_commands_go_to_the_server_that_takes_writes() {
    let primary = Postgres::start();
    let standby = primary.standby(true);
    let address = primary.new_database();
    let (first, second) = (primary.port(), standby.port());
    let hosts = format!("127.0.0.1:{first},127.0.0.1:{second}");
    let store = open(&address.replace(&format!("127.0.0.1:{first}"), &hosts), "one");
    let taken = started(&store, "before", 1);
    primary.kill();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| store.run(reserve("k", 1)));
        standby.promote();
        assert_eq!(attempt(waiting.join().expect("no panic")).fence, 1);
    });
    // What was acknowledged is there as well.
    refused(store.run(reserve("before", 2)), Code::InProgress);
    assert_eq!(code(&store.run(failed(&taken))), None);
    assert_sound(&store);
}

#[test]
fn ua_112_a_lease_outlives_the_sessions_and_the_process_of_its_holder() {
    let database = server().new_database();
    let (one, two) = (open(&database, "one"), open(&database, "two"));
    let taken = started(&one, "k", 1);
    let end = "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity \
               WHERE application_name = 'one' AND datname = current_database()";
    assert_ne!(database.sql(end), "0");
    refused(two.run(reserve("k", 2)), Code::InProgress);
    assert_eq!(code(&one.run(renew(&taken))), None, "who holds it goes on");
    one.close();
    refused(two.run(reserve("k", 2)), Code::InProgress);
    let again = open(&database, "one");
    assert_eq!(code(&again.run(failed(&taken))), None);
    assert_eq!(attempt(two.run(reserve("k", 2))).fence, 2);
    assert_sound(&two);
}

/// A host's clock that is wrong.
struct Wrong(i64);

impl Clock for Wrong {
    fn now(&self) -> Reading {
        let right = SystemClock.now();
        Reading { wall_us: right.wall_us + self.0, ..right }
    }
}

#[test]
fn ua_098_only_the_databases_time_decides_though_hosts_differ_by_twenty_minutes() {
    let database = server().new_database();
    let ten = Span::minutes(10).as_micros();
    let ahead = open_with(&database, "ahead", Arc::new(Wrong(ten)));
    let behind = open_with(&database, "behind", Arc::new(Wrong(-ten)));
    let before = now(&database);
    let first = attempt(ahead.run(reserve_for("of ahead", 1, Span::minutes(1))));
    let second = attempt(behind.run(reserve_for("of behind", 2, Span::minutes(1))));
    for store in [&ahead, &behind] {
        for key in ["of ahead", "of behind"] {
            refused(store.run(reserve(key, 3)), Code::InProgress);
        }
    }
    let short = attempt(behind.run(reserve_for("short", 2, Span::seconds(1))));
    let end = short.lease_until.micros();
    until("the lease ends", || (now(&database) > end).then_some(()));
    for store in [&ahead, &behind] {
        refused(store.run(reserve("short", 3)), Code::Ambiguous);
    }
    let after = now(&database);
    for event in log(&ahead).into_iter().skip(1) {
        let at = event.stamp.at.micros();
        assert!((before..=after).contains(&at), "{at} is not between {before} and {after}");
    }
    for attempt in [first, second] {
        let until = attempt.lease_until.micros() - Span::minutes(1).as_micros();
        assert!((before..=after).contains(&until), "{until}");
    }
    for store in [&ahead, &behind] {
        let apart = store.now().micros() - now(&database);
        assert!(apart.abs() < Span::minutes(1).as_micros(), "who looks for what is due is {apart} us off");
    }
    assert_sound(&behind);
}

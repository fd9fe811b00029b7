//! Hints of commits: who waits hears of them and need not look, they are few, and
//! the last commit is always told of.

use std::thread;
use std::time::{Duration, Instant};

use onceseal_servers::{Bouncer, Postgres, server, until};
use onceseal_store::{Hints, Options, PostgresUrl, Store};

use crate::base::*;

const MINUTE: Duration = Duration::from_secs(60);

/// The address with where to listen.
fn listening(place: &impl Place, at: &str) -> String {
    let address = place.address();
    let sign = if address.contains('?') { '&' } else { '?' };
    format!("{address}{sign}listen={at}")
}

/// Hears of something that it had not heard of.
#[track_caller]
fn hears(hints: &Hints, before: u64) -> u64 {
    hints.wait(before, MINUTE);
    let heard = hints.count();
    assert!(heard > before, "a minute passed");
    heard
}

/// Waits until a store listens: whoever begins to may have missed something, and is
/// told so.
fn listens(store: &Store) {
    hears(store.hints(), 0);
}

/// How many sessions listen to a database.
fn sessions(place: &impl Place) -> String {
    let sql =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'";
    psql(place, sql)
}

/// Follows the log by hints alone, until it has come to a position.
fn follow(store: &Store, position: u64) {
    let began = Instant::now();
    loop {
        let heard = store.hints().count();
        if store.read(|snapshot| snapshot.newest()).expect("read") >= position {
            break;
        }
        store.hints().wait(heard, MINUTE);
        assert!(began.elapsed() < MINUTE, "it was not told of the last commit");
    }
}

/// Listens as anybody may.
struct Ear(Session);

impl Ear {
    fn new(place: &impl Place) -> Ear {
        let mut session = Session::open(place);
        session.sql("LISTEN onceseal");
        Ear(session)
    }

    /// What it has heard since it was asked: which tenants.
    fn heard(&mut self) -> Vec<String> {
        let said = self.0.sql("SELECT 'asked'");
        let told = said.lines().filter_map(|line| line.split_once("with payload \""));
        told.filter_map(|(_, rest)| rest.split_once('"')).map(|(tenant, _)| tenant.to_owned()).collect()
    }
}

#[test]
fn who_waits_hears_of_what_others_commit_and_of_no_other_tenant() {
    let database = server().new_database();
    let two = open(&database, "two");
    let other = Options { tenant: "other".to_owned(), ..Options::default() };
    let other = Store::postgres(named(&database, "other"), &other).expect("opened");
    let one = open(&listening(&database, "yes"), "one");
    let url: PostgresUrl = listening(&database, "yes").parse().expect("an address");
    let reader = Store::postgres_reader(url, &Options::default()).expect("opened").expect("one");
    assert_eq!(sessions(&database), "0", "nobody waits yet");
    for store in [&one, &reader] {
        listens(store);
    }
    assert_eq!(sessions(&database), "2");

    let mut ear = Ear::new(&database);
    let before = [&one, &reader].map(|store| store.hints().count());
    assert_eq!(code(&other.run(note("x"))), None);
    until("others are told of it", || (ear.heard() == ["2"]).then_some(()));
    assert_eq!([&one, &reader].map(|store| store.hints().count()), before, "it is none of theirs");
    attempt(two.run(reserve("k", 1)));
    for (store, before) in [&one, &reader].into_iter().zip(before) {
        hears(store.hints(), before);
    }
    // One whose address says nothing of it hears nothing, and waits as long as it is told to.
    let heard = two.hints().count();
    two.hints().wait(heard, Duration::from_millis(1));
    assert_eq!((heard, two.hints().count()), (0, 0));
}

#[test]
fn what_changed_nothing_is_not_told_of() {
    let database = server().new_database();
    let one = open(&database, "one");
    let mut ear = Ear::new(&database);
    let taken = started(&one, "k", 1);
    one.close();
    let before = ear.heard().len();
    let two = open(&database, "two");
    assert_eq!(code(&two.run(renew(&taken))), None);
    refused(two.run(reserve("k", 2)), onceseal_core::code::Code::InProgress);
    two.close();
    assert!(before > 0 && ear.heard().is_empty());
}

#[test]
fn commits_are_told_of_together_and_the_last_one_always() {
    let database = server().new_database();
    let (one, two) = (open(&listening(&database, "yes"), "one"), open(&database, "two"));
    listens(&one);
    let mut ear = Ear::new(&database);
    let (mut committed, began) = (log(&two).len() as u64, Instant::now());
    for burst in 1..=12 {
        let tickets: Vec<_> =
            (0..burst * 8).map(|n| two.submit(note(&format!("{burst} {n}"))).expect("submitted")).collect();
        committed += tickets.len() as u64;
        thread::scope(|scope| {
            let follower = scope.spawn(|| follow(&one, committed));
            tickets.into_iter().for_each(|ticket| assert_eq!(code(&ticket.wait()), None));
            follower.join().expect("no panic");
        });
    }
    // Two commits, of which the first is told of at once, and its end right after them.
    assert_eq!((code(&two.run(note("x"))), code(&two.run(note("y")))), (None, None));
    two.close();
    follow(&one, committed + 2);
    // Beside twenty a second: the first of each, and the last.
    let most = began.elapsed().as_millis() / 50 + 3;
    let told = ear.heard().len();
    assert!(told > 0 && told as u128 <= most, "{told} of {committed}, at most {most}");
}

#[test]
fn behind_a_pooler_the_server_itself_is_listened_to() {
    let server = Postgres::start();
    let address = server.new_database();
    let bouncer = Bouncer::start(&server);
    let pooled = bouncer.url(address.rsplit('/').next().expect("a name"));
    let one = open(&listening(&pooled, &format!("127.0.0.1:{}", server.port())), "one");
    let two = open(&pooled, "two");
    listens(&one);
    let before = one.hints().count();
    attempt(two.run(reserve("k", 1)));
    hears(one.hints(), before);
    assert_eq!(sessions(&address), "1");
}

#[test]
fn who_was_cut_off_listens_again_and_nobody_else_notices() {
    let database = server().new_database();
    let (one, two) = (open(&listening(&database, "yes"), "one"), open(&database, "two"));
    listens(&one);
    let end = "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity \
               WHERE datname = current_database() AND query LIKE 'LISTEN %'";
    for n in 0..3 {
        let before = one.hints().count();
        assert_eq!(psql(&database, end), "1");
        // It may have missed something, and is told so once it listens again.
        let again = hears(one.hints(), before);
        attempt(two.run(reserve(&n.to_string(), 1)));
        hears(one.hints(), again);
    }
    // Whoever tells has connections of its own, which may be dead as well.
    let before = one.hints().count();
    psql(&database, &end.replace("query LIKE 'LISTEN %'", "application_name = 'two'"));
    attempt(two.run(reserve("last", 1)));
    hears(one.hints(), before);
    one.close();
    until("it listens no more", || (sessions(&database) == "0").then_some(()));
}

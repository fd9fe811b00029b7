//! Connections that are lost: at each byte of an exchange, and at any moment
//! under load. Who is told of something has it, and has it once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::reply::Reply;
use onceseal_servers::Direction::{self, ToClient, ToServer};
use onceseal_servers::{Database, Wire, server, until};
use onceseal_store::{Hints, Parts, Store, StoreError};

use crate::base::*;

/// Far from COMMIT and its answer, one byte of so many is cut, another one in each
/// test; every byte where this variable is set.
const EVERY: &str = "ONCESEAL_TEST_EVERY_BYTE";
const STRIDES: [u64; 2] = [61, 17];

/// An address by way of a wire, and the wire.
fn wired(database: &Database) -> (String, Wire) {
    let address = database.url();
    let port = address.rsplit_once(':').expect("a port").1;
    let port = port.split('/').next().expect("a port").to_owned();
    let wire = Wire::to(port.parse().expect("a port"));
    (address.replace(&format!(":{port}/"), &format!(":{}/", wire.port())), wire)
}

#[test]
fn a_commit_that_goes_on_after_its_connection_is_waited_for() {
    // What holds its locks alone, and what makes only what nobody knows of.
    for command in [reserve("k", 1), note("a")] {
        let database = server().new_database();
        let (address, wire) = wired(&database);
        let silent = Parts { hints: Hints::none(), ..parts(&address, "one") };
        let store = Store::of(silent).expect("opened");
        attempt(store.run(reserve("before", 1)));
        let before = log(&store).len();
        let mut holds = Session::open(&database);
        psql(
            &database,
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS \
             $$BEGIN PERFORM pg_advisory_xact_lock(42); RETURN NULL; END$$; \
             CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON onceseal.events \
             DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()",
        );
        holds.lock(42);
        let mut ticket = store.submit(command).expect("submitted");
        until_waiting(&database, "one", 1);
        wire.close_all();
        // Whoever looks does not find it yet, and may not say so before it has ended.
        until_waiting(&database, "one", 2);
        assert!(answer_of(&mut ticket).is_none());
        holds.unlock(42);
        assert_eq!(code(&ticket.wait()), None);
        let direct = open(&database, "direct");
        assert!(log(&direct).len() > before);
        let commands: Vec<_> = log(&direct)[before..].iter().map(|stored| stored.stamp.command).collect();
        assert!(commands.windows(2).all(|two| two[0] == two[1]), "recorded once: {commands:?}");
    }
}

/// Loses the connection at byte after byte of a command's exchange. `prepare`
/// makes the command for a key, and its events are counted when it is done.
fn cut_everywhere(first: u64, events: usize, prepare: impl Fn(&Store, &str) -> Command) {
    let database = server().new_database();
    let (address, wire) = wired(&database);
    // What others are told beside a commit would be counted with it.
    let silent = Parts { hints: Hints::none(), ..parts(&address, "one") };
    let (store, direct) = (Store::of(silent).expect("opened"), open(&database, "direct"));
    // What is counted is an exchange on a connection that is there.
    attempt(store.run(reserve("before", 1)));
    let mut keys = (0..).map(|n| format!("key {n:06}"));
    for direction in [ToServer, ToClient] {
        let key = keys.next().expect("endless");
        let command = prepare(&store, &key);
        let before = wire.count(direction);
        assert_eq!(code(&store.run(command)), None);
        let total = wire.count(direction) - before;
        let (mut cuts, offsets) = (0, offsets(first, total, direction));
        for bytes in offsets.iter().copied() {
            let key = keys.next().expect("endless");
            let command = prepare(&store, &key);
            wire.cut_after(direction, bytes);
            let answer = store.run(command);
            cuts += usize::from(!wire.will_cut());
            wire.mend();
            assert_eq!(code(&answer), None, "{direction:?} cut after {bytes} of {total}: {answer:?}");
            assert_eq!(events_of(&direct, &key).len(), events, "{direction:?} cut after {bytes} of {total}");
        }
        // What is sent is not always as long to the byte.
        assert!(cuts + 5 >= offsets.len(), "{cuts} of {}", offsets.len());
    }
    assert_sound(&direct);
}

/// What stands near COMMIT, and of the rest one byte in each stride.
fn offsets(first: u64, total: u64, direction: Direction) -> Vec<u64> {
    let stride = if std::env::var_os(EVERY).is_some() { 1 } else { STRIDES[direction as usize] };
    // COMMIT has 12 bytes, and what is answered to it and to the insert before it some 60.
    let near = total - if direction == ToServer { 24 } else { 80 };
    (0..=total).filter(|bytes| *bytes >= near || bytes % stride == first % stride).collect()
}

#[test]
fn what_is_taken_is_taken_once_wherever_its_connection_is_lost() {
    cut_everywhere(11, 1, |_, key| reserve(key, 1));
}

#[test]
fn what_is_reported_is_recorded_once_wherever_its_connection_is_lost() {
    cut_everywhere(37, 3, |store, key| failed(&started(store, key, 1)));
}

#[test]
fn what_is_renewed_is_renewed_wherever_its_connection_is_lost() {
    cut_everywhere(73, 2, |store, key| renew(&started(store, key, 1)));
}

/// Takes keys on several threads until `harm` is done, which may wait until some
/// more were answered; then what each was told is compared with what is there.
pub(crate) fn under_load(store: &Store, direct: &Store, harm: impl FnOnce(&dyn Fn())) {
    let (done, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let some_more = || {
        let before = answered.load(Ordering::SeqCst);
        until("some more are answered", || (answered.load(Ordering::SeqCst) > before + 4).then_some(()));
    };
    let told = thread::scope(|scope| {
        let threads: Vec<_> = (0..4_u8)
            .map(|thread| {
                let (done, answered) = (&done, &answered);
                scope.spawn(move || {
                    let mut told: Vec<(String, Result<Reply, StoreError>)> = Vec::new();
                    for n in 0.. {
                        if done.load(Ordering::SeqCst) {
                            break;
                        }
                        let key = format!("{thread} {n}");
                        told.push((key.clone(), store.run(reserve(&key, thread))));
                        let shared = format!("shared {n}");
                        told.push((shared.clone(), store.run(reserve(&shared, thread))));
                        answered.fetch_add(2, Ordering::SeqCst);
                    }
                    told
                })
            })
            .collect();
        harm(&some_more);
        done.store(true, Ordering::SeqCst);
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
    });
    assert!(told.len() > 40, "there was load");
    let mut by_key: BTreeMap<String, Vec<Result<Reply, StoreError>>> = BTreeMap::new();
    for (key, answer) in told {
        by_key.entry(key).or_default().push(answer);
    }
    for (key, answers) in by_key {
        let there = events_of(direct, &key).len();
        let count = |is_so: &dyn Fn(&Result<Reply, StoreError>) -> bool| {
            answers.iter().filter(|answer| is_so(answer)).count()
        };
        // Who is told that it is not known looks himself.
        let unknown = count(&|answer| code(answer) == Some(Code::CommitUnknown));
        let expected = count(&|answer| answer.is_ok()).min(1);
        assert!(there == expected || unknown > 0 && there <= 1, "{key} is there {there} times: {answers:?}");
        let handed_out = count(&|answer| code(answer).is_none());
        assert!(handed_out == there || unknown > 0 && handed_out < there, "{key}: {answers:?}");
    }
    assert_sound(direct);
}

#[test]
fn everybody_is_told_the_truth_while_connections_are_cut_again_and_again() {
    let database = server().new_database();
    let (address, wire) = wired(&database);
    let (store, direct) = (open(&address, "one"), open(&database, "direct"));
    under_load(&store, &direct, |_| {
        // Connecting takes some 1,500 bytes, a batch some 10,000: the search for a lost
        // commit is cut as well.
        for n in 0..60_u64 {
            let direction = if n % 2 == 0 { ToServer } else { ToClient };
            wire.cut_after(direction, n * 7_919 % 9_000);
            until("the wire is cut", || (!wire.will_cut()).then_some(()));
        }
    });
}

#[test]
fn everybody_is_told_the_truth_while_the_server_ends_sessions_at_any_moment() {
    let database = server().new_database();
    let (store, direct) = (open(&database, "one"), open(&database, "direct"));
    under_load(&store, &direct, |some_more| {
        let mut session = Session::open(&database);
        let mut ended = 0;
        while ended < 60 {
            some_more();
            let sql = "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity \
                       WHERE application_name = 'one' AND datname = current_database() \
                       ORDER BY state = 'idle', random() LIMIT 1) AS one";
            ended += session.sql(sql).parse::<u64>().expect("a number");
        }
    });
}

//! Stores that watch what they decide, sessions of plain SQL, and what the
//! tests say to both, in few words.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command as Program, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use onceseal_core::action::{Action, Principal, Proposal, Reach, Run};
use onceseal_core::code::Code;
use onceseal_core::command::{Command, Stamped};
use onceseal_core::decide::evolve;
use onceseal_core::effect::{Begin, Holding, Outcome, Renew, Reserve, Settle};
use onceseal_core::id::ActionId;
use onceseal_core::journal::{Row, chain_hash, open_text};
use onceseal_core::json::{self, Limits, Object};
use onceseal_core::policy::{Activate, ActivePolicy};
use onceseal_core::reply::{Attempt, Reply};
use onceseal_core::store::Note;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Span;
use onceseal_core::view::{Halt, Loaded, View};
use onceseal_servers::{Database, until};
use onceseal_store::clock::Clock;
use onceseal_store::conformance::Gate;
use onceseal_store::read::StoredEvent;
use onceseal_store::{Options, Parts, PostgresUrl, Store, StoreError, Ticket};

/// Where a database is.
pub(crate) trait Place {
    fn address(&self) -> String;
}

impl Place for Database {
    fn address(&self) -> String {
        self.url()
    }
}

impl Place for String {
    fn address(&self) -> String {
        self.clone()
    }
}

/// The address of a database for a process of this name.
pub(crate) fn named(place: &impl Place, name: &str) -> PostgresUrl {
    let address = place.address();
    let sign = if address.contains('?') { '&' } else { '?' };
    format!("{address}{sign}application_name={name}").parse().expect("an address")
}

/// Runs statements, as somebody who knows nothing of us.
pub(crate) fn psql(place: &impl Place, text: &str) -> String {
    let mut psql = Program::new("psql");
    psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &place.address(), "-c", text]);
    let done = psql.output().expect("psql");
    assert!(done.status.success(), "{text}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("text").trim_end().to_owned()
}

/// What the server's clock shows, in microseconds since 1970.
pub(crate) fn now(place: &impl Place) -> i64 {
    let now = psql(place, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8");
    now.parse().expect("a number")
}

/// A store as another process would have it.
pub(crate) fn open(place: &impl Place, name: &str) -> Store {
    Store::of(parts(place, name)).expect("opened")
}

pub(crate) fn open_with(place: &impl Place, name: &str, clock: Arc<dyn Clock>) -> Store {
    let options = Options { clock, ..Options::default() };
    Store::postgres(named(place, name), &options).expect("opened")
}

pub(crate) fn parts(place: &impl Place, name: &str) -> Parts {
    Parts::postgres(named(place, name), &Options::default()).expect("opened")
}

/// A store whose commands gather into one batch while its gate is shut.
pub(crate) fn gated(parts: Parts) -> (Store, Gate) {
    let gate = Gate::default();
    let backend = gate.before(parts.backend);
    (Store::of(Parts { backend, ..parts }).expect("opened"), gate)
}

/// Runs these in one batch, in this order.
pub(crate) fn together(store: &Store, gate: &Gate, commands: Vec<Command>) -> Vec<Result<Reply, StoreError>> {
    gate.shut();
    // The writer takes what is there when it comes: one that changes nothing.
    let first = store.submit(Command::Lapse(store.tenant().effect("nothing"))).expect("submitted");
    gate.await_writer();
    let tickets: Vec<_> =
        commands.into_iter().map(|command| store.submit(command).expect("submitted")).collect();
    gate.open();
    drop(first.wait());
    tickets.into_iter().map(|ticket| ticket.wait()).collect()
}

/// A store that has this done whenever it decides, with all locks of the round
/// held and before anything is saved.
pub(crate) fn watched(
    place: &impl Place,
    name: &str,
    watch: impl Fn(&View, &Stamped) -> Result<(), Halt> + Send + Sync + 'static,
) -> Store {
    Store::of(watching(parts(place, name), watch)).expect("opened")
}

pub(crate) fn watching(
    mut parts: Parts,
    watch: impl Fn(&View, &Stamped) -> Result<(), Halt> + Send + Sync + 'static,
) -> Parts {
    let decide = parts.decide;
    parts.decide = Arc::new(move |pinned, view, command, now| {
        watch(view, command)?;
        decide(pinned, view, command, now)
    });
    parts
}

/// A store that stops, once, while it decides who gets this key.
pub(crate) fn stopping(place: &impl Place, name: &str, key: &'static str) -> (Store, Latch) {
    let latch = Latch::default();
    let inside = latch.clone();
    let store = watched(place, name, move |_, command| {
        if is_about(command, key) {
            inside.pass();
        }
        Ok(())
    });
    (store, latch)
}

/// Whether somebody wants this key.
pub(crate) fn is_about(command: &Stamped, key: &str) -> bool {
    matches!(&command.command, Command::Reserve(reserve) if reserve.key == key)
}

/// Where somebody stops until it is opened.
#[derive(Clone, Default)]
pub(crate) struct Latch(Arc<(Mutex<(bool, bool)>, Condvar)>);

impl Latch {
    pub(crate) fn pass(&self) {
        self.change(|state| state.0 = true);
        self.wait(|state| state.1);
    }

    /// Waits until somebody stands there.
    pub(crate) fn reached(&self) {
        self.wait(|state| state.0);
    }

    pub(crate) fn open(&self) {
        self.change(|state| state.1 = true);
    }

    fn change(&self, change: impl FnOnce(&mut (bool, bool))) {
        change(&mut self.0.0.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.1.notify_all();
    }

    fn wait(&self, is_so: impl Fn(&(bool, bool)) -> bool) {
        let state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.0.1.wait_while(state, |state| !is_so(state)).unwrap_or_else(PoisonError::into_inner));
    }
}

/// Opened also where a test fails: nobody is left standing.
pub(crate) struct Opens(pub(crate) Latch);

impl Drop for Opens {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// A session of plain SQL that stays open; what it holds goes with it.
pub(crate) struct Session {
    process: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Session {
    pub(crate) fn open(place: &impl Place) -> Session {
        let mut process = Program::new("psql")
            .args(["-X", "-q", "-A", "-t", "-d", &place.address()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("psql");
        let stdin = process.stdin.take();
        let lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        let mut session = Session { process, stdin, lines };
        session.sql("SET application_name = 'plain'");
        session
    }

    /// Runs statements: their rows.
    pub(crate) fn sql(&mut self, text: &str) -> String {
        let stdin = self.stdin.as_mut().expect("open");
        writeln!(stdin, "{text};\n\\echo -- done").expect("said");
        stdin.flush().expect("said");
        let rows = self.lines.by_ref().map(|line| line.expect("text"));
        rows.take_while(|line| line != "-- done").collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn lock(&mut self, number: i64) {
        self.sql(&format!("SELECT pg_advisory_lock({number})"));
    }

    pub(crate) fn unlock(&mut self, number: i64) {
        assert_eq!(self.sql(&format!("SELECT pg_advisory_unlock({number})")), "t");
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.stdin.take());
        drop(self.process.wait());
    }
}

/// The numbers by which the server knows locks, as found in its own list.
pub(crate) struct Numbers {
    store: Store,
    seen: Arc<Mutex<BTreeSet<i64>>>,
}

impl Numbers {
    pub(crate) fn of(place: &impl Place) -> Numbers {
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let (found, url) = (Arc::clone(&seen), place.address());
        let store = watched(place, "numbers", move |_, command| {
            if !matches!(command.command, Command::Reserve(_)) {
                return Ok(());
            }
            let sql = "SELECT (l.classid::int8 << 32) | l.objid::int8 FROM pg_locks l \
                       JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory' AND l.granted \
                       AND l.mode = 'ExclusiveLock' AND a.application_name = 'numbers' \
                       AND a.datname = current_database()";
            let rows = psql(&url, sql);
            let numbers = rows.lines().map(|line| line.parse::<i64>().expect("a number"));
            *found.lock().expect("unharmed") = numbers.collect();
            // Nothing is to be recorded of it.
            Err(Halt::Unreadable)
        });
        Numbers { store, seen }
    }

    fn held_for(&self, key: &str) -> BTreeSet<i64> {
        refused(self.store.run(reserve(key, 0)), Code::Corrupt);
        self.seen.lock().expect("unharmed").clone()
    }

    /// The lock that whoever wants a key takes alone.
    pub(crate) fn key(&self, key: &str) -> i64 {
        let others = self.held_for("the key of nobody");
        let mut own = self.held_for(key).into_iter().filter(|number| !others.contains(number));
        let number = own.next().expect("a lock");
        assert_eq!(own.next(), None, "one lock is the key's");
        number
    }

    /// The lock of whoever appends to the log.
    pub(crate) fn sequencer(&self) -> i64 {
        let (one, other) = (self.held_for("one key"), self.held_for("another key"));
        let both: Vec<&i64> = one.intersection(&other).collect();
        assert_eq!(both.len(), 1, "{both:?}");
        *both[0]
    }
}

/// Whether so many sessions of this process wait for an advisory lock.
pub(crate) fn is_waiting(place: &impl Place, name: &str, sessions: usize) -> bool {
    let sql = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}' \
         AND datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'advisory'"
    );
    psql(place, &sql) == sessions.to_string()
}

/// Waits until it is so.
pub(crate) fn until_waiting(place: &impl Place, name: &str, sessions: usize) {
    until("it waits for a lock", || is_waiting(place, name, sessions).then_some(()));
}

/// Its answer, if it has one.
pub(crate) fn answer_of(ticket: &mut Ticket) -> Option<Result<Reply, StoreError>> {
    match std::pin::Pin::new(ticket).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

pub(crate) fn action(n: u8) -> ActionId {
    ActionId([n; 16])
}

pub(crate) fn reserve(key: &str, by: u8) -> Command {
    reserve_for(key, by, Span::minutes(2))
}

pub(crate) fn reserve_for(key: &str, by: u8, lease: Span) -> Command {
    Command::Reserve(Reserve { key: key.to_owned(), action: action(by), lease })
}

pub(crate) fn begin(attempt: &Attempt) -> Command {
    Command::Begin(Begin { attempt: Holding::from(attempt), lease: Span::minutes(2) })
}

pub(crate) fn renew(attempt: &Attempt) -> Command {
    Command::Renew(Renew { attempt: Holding::from(attempt), lease: Span::minutes(5) })
}

pub(crate) fn failed(attempt: &Attempt) -> Command {
    Command::Settle(Settle::new(Holding::from(attempt), Outcome::Failed))
}

pub(crate) fn note(text: &str) -> Command {
    Command::Note(Note { body: format!("\"{text}\""), source: "a test".to_owned() })
}

/// A policy by which `pay` is decided so, and olga is an operator.
pub(crate) fn policy(decision: &str) -> Arc<ActivePolicy> {
    let text = r#"{"schema":"onceseal.policy/v1","groups":{"ops":["host:olga"]},"operators":["ops"],
                   "actions":{"pay":{"decision":"DECISION"}}}"#;
    let text = text.replace("DECISION", decision);
    let document = json::read(text.as_bytes(), &Limits::DATA).expect("a document");
    Arc::new(ActivePolicy::compile(&document).expect("a policy"))
}

pub(crate) fn activate(policy: &Arc<ActivePolicy>, again: bool) -> Command {
    Command::Activate(Activate { policy: Arc::clone(policy), again, person: None })
}

pub(crate) fn proposal(
    store: &Store,
    policy: &ActivePolicy,
    name: &str,
    arguments: Object,
) -> Result<Proposal, String> {
    let action = Action {
        name: name.to_owned(),
        arguments,
        principal: Principal { agent: "bot".to_owned(), user: None },
        environment: Action::DEFAULT_ENVIRONMENT.to_owned(),
        resource: None,
    };
    Proposal::prepare(store.tenant(), policy, action).map_err(|error| error.to_string())
}

pub(crate) fn run(proposal: Proposal) -> Command {
    let (reach, lease, deadline) = (Reach::Executing, None, None);
    Command::Run(Box::new(Run { proposal, action: None, approval: None, reach, lease, deadline }))
}

pub(crate) fn attempt(answer: Result<Reply, StoreError>) -> Attempt {
    match answer {
        Ok(Reply::Attempt(attempt)) => attempt,
        other => panic!("not an attempt: {other:?}"),
    }
}

/// An attempt whose executor may run.
pub(crate) fn started(store: &Store, key: &str, by: u8) -> Attempt {
    let taken = attempt(store.run(reserve(key, by)));
    assert_eq!(code(&store.run(begin(&taken))), None);
    taken
}

/// The code of a refusal or failure.
pub(crate) fn code(answer: &Result<Reply, StoreError>) -> Option<Code> {
    match answer {
        Ok(Reply::Refused(refusal)) => Some(refusal.code),
        Ok(_) => None,
        Err(error) => Some(error.code()),
    }
}

#[track_caller]
pub(crate) fn refused(answer: Result<Reply, StoreError>, expected: Code) {
    assert_eq!(code(&answer), Some(expected), "{answer:?}");
}

pub(crate) fn events(store: &Store, stream: &StreamId) -> Vec<StoredEvent> {
    store.read(|snapshot| snapshot.events(stream, 1, usize::MAX)).expect("read")
}

pub(crate) fn events_of(store: &Store, key: &str) -> Vec<StoredEvent> {
    events(store, &store.tenant().effect(key))
}

pub(crate) fn log(store: &Store) -> Vec<StoredEvent> {
    store.read(|snapshot| snapshot.log(0, usize::MAX)).expect("read")
}

/// A row as its events make it, with the leases as they were renewed, which no
/// event tells.
fn renewed(row: Option<Row>, stored: &Row) -> Option<Row> {
    match (row?, stored) {
        (Row::Effect(mut row), Row::Effect(stored)) => {
            row.lease_until = row.lease_until.max(stored.lease_until);
            Some(Row::Effect(row))
        }
        (Row::Lease(mut row), Row::Lease(stored)) => {
            for (holder, stored) in row.holders.iter_mut().zip(&stored.holders) {
                holder.until = holder.until.max(stored.until);
            }
            Some(Row::Lease(row))
        }
        (row, _) => Some(row),
    }
}

/// Every stream is one chain and its row the fold of it; the log has each event
/// once, without a gap, and those of a stream in their order.
pub(crate) fn assert_sound(store: &Store) {
    let log = log(store);
    let mut logged: BTreeMap<StreamId, u64> = BTreeMap::new();
    for (position, event) in (1..).zip(&log) {
        assert_eq!(event.position, position, "the log has no gap");
        let before = logged.insert(event.stamp.stream, event.stamp.sequence).unwrap_or(0);
        assert_eq!(event.stamp.sequence, before + 1, "{} in the log", event.stamp.stream);
    }
    let streams = store.read(|snapshot| snapshot.streams(None, usize::MAX)).expect("read");
    assert_eq!(streams.len(), logged.len(), "every stream has events in the log");
    for stream in streams {
        let (mut prior, mut row) = (store.tenant().genesis(&stream), None);
        let events = events(store, &stream);
        assert_eq!(logged.get(&stream), Some(&(events.len() as u64)), "{stream}");
        for (sequence, event) in (1..).zip(events) {
            assert_eq!(event.stamp.sequence, sequence, "{stream}");
            let body = event.event.expect("it decodes");
            let text = open_text(&event.stamp, &body, prior, event.seal);
            assert_eq!(chain_hash(&text), event.hash, "event {sequence} of {stream}");
            row = Some(evolve(&stream, row, sequence, event.stamp.at, &body).expect("it follows"));
            prior = event.hash;
        }
        let found = store.read(|snapshot| snapshot.stream(&stream)).expect("read");
        let Loaded::Row(stored) = found else { panic!("{stream} has no row") };
        let row = renewed(row, &stored.row);
        assert_eq!((stored.head.hash, Some(&stored.row)), (prior, row.as_ref()), "{stream}");
    }
}

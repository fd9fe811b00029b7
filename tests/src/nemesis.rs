//! Servers that fail under load: what clients of several processes were told
//! could have happened one after another, and is there afterwards.

pub mod client;
mod fleet;
mod ground;
mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use onceseal::audit::{AuditOptions, audit};
use onceseal::config::{Settings, StoreAddress};
use onceseal::store::place::Surroundings;
use onceseal::{Control, Opening};
use onceseal_core::command::Command;
use onceseal_core::journal::{Row, Stored};
use onceseal_core::json::{self, Limits};
use onceseal_core::policy::{Activate, ActivePolicy};
use onceseal_store::read::row_of;
use onceseal_store::{Options, Store};
use rustix::time::{ClockId, clock_gettime};

pub use self::ground::Fault;
pub use self::report::Report;

use self::client::{Orders, key};
use self::fleet::{Fleet, Told};
use self::ground::Ground;
use self::report::Strike;
use crate::chance::Chance;
use crate::history::{self, Answer, Call, Moment, Operation};

/// What clients ask for.
const ACTION: &str = "pay";
/// Who resolves what nobody knows.
const OPERATOR: &str = "olga";
const POLICY: &str = r#"{
    "schema": "onceseal.policy/v1",
    "groups": {"ops": ["host:olga"]},
    "operators": ["ops"],
    "actions": {"pay": {"effect": "pay:{effect}", "decision": "allow", "lease": "60s", "deadline": "30m"}}
}"#;

/// How a process of clients ends that was told what the store does not have.
pub const WENT_BACK: u8 = 3;

/// How much is tried.
#[derive(Debug, Clone)]
pub struct Size {
    /// Operations that are answered at least.
    pub operations: u64,
    /// Processes of clients.
    pub processes: usize,
    /// Clients of each.
    pub clients: u64,
    /// How often the fault comes, where it can come more than once.
    pub strikes: usize,
}

/// The clock that only runs, in microseconds: the same for all processes of this machine.
#[must_use]
pub fn clock() -> Moment {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1_000
}

/// Runs clients against a store that the fault befalls. `program` is one that
/// [serves](client::serve) when it is told `client` and the orders.
///
/// # Panics
/// If it cannot be set up.
#[must_use]
pub fn run(fault: Fault, program: &Path, seed: u64, size: &Size) -> Report {
    let mut ground = Ground::new(fault, size.processes);
    let directory = tempfile::tempdir().expect("a directory");
    let own = ground.own();
    activate(&own);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let ahead = i64::try_from(since.as_micros()).expect("in range") - clock();
    // Several meet at each effect.
    let effects = (size.processes as u64 * size.clients / 4).max(1);
    let orders = Orders { url: String::new(), number: 0, clients: size.clients, effects, seed, ahead };
    let fleet = Fleet::start(&ground, program, directory.path(), size.processes, &orders);
    let (mut chance, mut strikes, mut broken) = (Chance::of(!seed), Vec::new(), Vec::new());
    let n = size.strikes.min(fault.most());
    let between = size.operations / (n as u64 + 1);
    for _ in 0..n {
        if !fleet.await_operations(between) {
            broken.push("nothing was answered for long before a fault".to_owned());
        }
        let from = clock() + ahead;
        ground.strike(&mut chance);
        // Whoever is not struck goes on.
        if ground.lasts() && !fleet.await_operations(between / 4) {
            broken.push("nothing was answered for long during a fault".to_owned());
        }
        ground.mend();
        strikes.push(Strike { from, to: clock() + ahead });
    }
    // Whoever notices that the store went back asks no more.
    if fault != Fault::Lost && !fleet.await_operations(between) {
        broken.push("nothing was answered for long after the last fault".to_owned());
    }
    let ended = fleet.end();
    broken.extend(ended.broken);
    let mut report = Report::new(fault, seed, &ended.told, &strikes, broken);
    report.noticed = ended.noticed;
    report.broken.extend(compare(&own, ended.told, ahead, size.processes));
    report.broken.extend(look(&own, directory.path()));
    report
}

fn open(url: &str) -> Store {
    // One that may lose what was acknowledged is a fault too.
    let options = Options { asynchronous_standby: true, ..Options::default() };
    Store::postgres(url.parse().expect("an address"), &options).expect("opened")
}

fn activate(url: &str) {
    let document = json::read(POLICY.as_bytes(), &Limits::DATA).expect("JSON");
    let policy = Arc::new(ActivePolicy::compile(&document).expect("a policy"));
    let activated = open(url).run(Command::Activate(Activate { policy, again: false, person: None }));
    activated.expect("activated");
}

/// Holds what was told of each effect against what an effect can be, and against what
/// is there in the end.
fn compare(url: &str, told: Vec<Told>, ahead: Moment, processes: usize) -> Vec<String> {
    let mut effects: BTreeMap<String, Vec<Operation>> = BTreeMap::new();
    for Told { effect, operation, .. } in told {
        effects.entry(effect).or_default().push(operation);
    }
    let store = open(url);
    for (n, (effect, operations)) in effects.iter_mut().enumerate() {
        let invoked = clock() + ahead;
        let stream = store.tenant().effect(&key(effect));
        let row = store.read(|snapshot| Ok(row_of(snapshot.stream(&stream)?))).expect("readable");
        let is = row.map(|Stored { row, .. }| match row {
            Row::Effect(row) => (row.state, row.fence),
            other => panic!("no effect: {other:?}"),
        });
        let (id, answered) = (u64::MAX - n as u64, Some(clock() + ahead));
        operations.push(Operation { id, invoked, answered, call: Call::Read, answer: Answer::Is(is) });
    }
    let wrong = |(effect, operations): (&String, &Vec<Operation>)| {
        let failed = history::check(operations).err()?;
        let around: String = failed.around.iter().map(|operation| format!("\n    {operation}")).collect();
        Some(format!("{effect}: {:?} of {} operations explains{around}", failed.why, operations.len()))
    };
    let effects: Vec<_> = effects.iter().collect();
    let parts = effects.chunks(effects.len().div_ceil(processes.max(1)).max(1));
    std::thread::scope(|scope| {
        let threads: Vec<_> = parts
            .map(|part| scope.spawn(move || part.iter().copied().filter_map(wrong).collect::<Vec<_>>()))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// What an audit finds.
fn look(url: &str, directory: &Path) -> Option<String> {
    let at = |name: &str| Some(directory.join(name).into_os_string());
    let surroundings = Surroundings {
        state: None,
        home: at("home"),
        xdg_state_home: at("state"),
        ..Surroundings::of_process(PathBuf::from(directory))
    };
    let settings =
        Settings { store: Some(StoreAddress::parse(url).expect("an address")), ..Settings::default() };
    let opening = Opening::new(settings).expect("a working directory");
    let control = Control::found(&Opening { surroundings, sweep: false, ..opening }).expect("a store");
    let report = audit(&control, &AuditOptions::default()).expect("audited");
    (!report.is_clean()).then(|| format!("the audit is not clean: {}", report.to_json()))
}

//! Route health of the cadence worker broker, as circuits: ours open after some
//! failures, and pause for longer each time.

use std::collections::BTreeMap;

use onceseal_core::action::ActionRow;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{Holding, Outcome, Settle};
use onceseal_core::id::ActionId;
use onceseal_core::journal::Row;
use onceseal_core::operation::{GiveBack, Next};
use onceseal_core::reply::{Attempt, Reply};
use onceseal_core::route::{Health, OPENS_AFTER, RouteState};
use onceseal_core::stream::StreamId;
use onceseal_core::time::{Span, Timestamp};
use serde_json::Value as Vector;

use crate::calls::{call, settle};
use crate::executor::Real;
use crate::operating::claimed;
use crate::vectors;
use crate::world::World;

const POLICY: &str = "
schema: onceseal.policy/v1
actions:
  ask: { effect: 'ask:{id}', decision: allow }
";
const TOOL: &str = r#"{"name":"ask","destination":"https://models.example","lease":"30s"}"#;
/// There is no value that says so.
const NO_VALUE: &str = "no such value";

/// Group, case, what comes out here, and the design's reason.
const ADAPTED: &[(&str, usize, &str, &str)] = &[
    ("select", 3, NO_VALUE, "an open circuit says until when"),
    (
        "transitions",
        0,
        "healthy, open, healthy",
        "while a circuit is open only its probe says something of it: other attempts began before",
    ),
    (
        "transitions",
        1,
        "healthy, open, open",
        "a circuit opens after several failures in a row: one may be chance",
    ),
    (
        "transitions",
        2,
        "half-open, over after 30 s",
        "a probe is an attempt: it is over when it is reported or its lease ends",
    ),
    ("attemptBoundsMs", 0, "10", "the first pause is short, and each that follows twice as long"),
    ("attemptBoundsMs", 1, "5", "a budget of attempts is an operation's, and a circuit counts failures"),
    ("attemptBoundsMs", 2, CONTRACT, BOUNDS),
    ("attemptBoundsMs", 3, CONTRACT, BOUNDS),
    ("attemptBoundsMs", 4, CONTRACT, BOUNDS),
    ("attemptBoundsMs", 5, CONTRACT, BOUNDS),
];
const CONTRACT: &str = "as its contract says";
const BOUNDS: &str = "how long an attempt may take is the lease and the deadline of its contract";
const BOUND: [&str; 6] = ["cooldown", "attemptsPerRoute", "connect", "firstResponse", "idle", "total"];

impl World<'_> {
    pub(crate) fn action(&self, id: ActionId) -> &ActionRow {
        match self.row(&StreamId::action(id)) {
            Some(Row::Action(row)) => row,
            other => panic!("no action {id}: {other:?}"),
        }
    }
}

/// A destination, and operations that go there.
struct Circuit {
    world: World<'static>,
    operations: Vec<ActionId>,
    contract: onceseal_core::hash::Hash,
}

impl Circuit {
    fn new() -> Circuit {
        let mut world = World::new(&Real, POLICY);
        let contract = world.declare(TOOL);
        Circuit { world, operations: Vec::new(), contract }
    }

    /// An operation that nobody has claimed.
    fn operation(&mut self) -> ActionId {
        let n = self.operations.len();
        let order =
            self.world.order(call("ask", &format!("{{\"id\":{n}}}")), self.contract, &format!("key {n}"));
        let id = self.world.accepted(&order);
        self.operations.push(id);
        id
    }

    fn attempt(&mut self) -> Attempt {
        let id = self.operation();
        self.world.begun(id).0
    }

    /// One that has not begun, and can be given back.
    fn claim(&mut self) -> Attempt {
        let id = self.operation();
        claimed(self.world.claim(id, false)).0
    }

    fn report(&mut self, attempt: &Attempt, is_well: bool) {
        let (outcome, health) = match is_well {
            true => (Outcome::Committed, Health::Well),
            false => (Outcome::Failed, Health::Ill { spread: 127 }),
        };
        let again = Some(Span::ZERO);
        let report = Settle { again, health: Some(health), ..settle(Holding::from(attempt), outcome) };
        self.world.run(Command::Settle(report));
    }

    fn state(&self) -> RouteState {
        match self.world.row(&self.world.pinned.tenant.route("https://models.example")) {
            Some(Row::Route(row)) => row.state.clone(),
            _ => RouteState::Closed { failures: 0 },
        }
    }

    fn told(&self) -> &'static str {
        match self.state() {
            RouteState::Closed { .. } => "healthy",
            RouteState::Open { probe: Some(_), .. } => "half-open",
            RouteState::Open { probe: None, .. } => "open",
        }
    }

    /// Open, until this moment; an attempt that began before is under way.
    fn open(&mut self) -> (Timestamp, Attempt) {
        let earlier = self.attempt();
        for _ in 0..OPENS_AFTER {
            let attempt = self.attempt();
            self.report(&attempt, false);
        }
        match self.state() {
            RouteState::Open { until, .. } => (until, earlier),
            other => panic!("not open: {other:?}"),
        }
    }

    /// Half open: a probe is under way, or is about to be.
    fn probing(&mut self, begun: bool) -> Attempt {
        self.world.now = self.open().0;
        let probe = if begun { self.attempt() } else { self.claim() };
        assert_eq!(self.told(), "half-open");
        probe
    }

    /// What becomes of the next attempt.
    fn select(&mut self) -> &'static str {
        let id = self.operation();
        match self.world.claim(id, true) {
            Reply::Claimed(..) => self.told(),
            Reply::Refused(refusal) if refusal.code == Code::RouteOpen => "skip",
            other => panic!("{other:?}"),
        }
    }

    fn give_back(&mut self, attempt: &Attempt) {
        let next = Next::Later { after: Span::seconds(60), code: Code::CannotTell };
        let given_back =
            self.world.run(Command::GiveBack(GiveBack { attempt: Holding::from(attempt), next }));
        assert!(!matches!(given_back, Reply::Refused(_)), "{given_back:?}");
    }
}

/// So long before or after.
fn moved(at: Timestamp, case: &Vector, of: &str) -> Timestamp {
    let millis = |value: &Vector| value.as_i64().expect("milliseconds");
    let by = millis(&case["now"]) - millis(&case["health"][of]);
    Timestamp::from_micros(at.micros() + by * 1_000).expect("a moment")
}

fn select(case: &Vector) -> String {
    let mut circuit = Circuit::new();
    let health = &case["health"];
    match health["state"].as_str().expect("a state") {
        "healthy" => {}
        "open" if health["retryAt"].is_null() => return NO_VALUE.to_owned(),
        "open" => circuit.world.now = moved(circuit.open().0, case, "retryAt"),
        _ => {
            let probe = circuit.probing(health["probeInFlight"] == true);
            circuit.world.now = match health["probeInFlight"] == true {
                true => moved(probe.lease_until, case, "probeExpiresAt"),
                false => {
                    circuit.give_back(&probe);
                    circuit.world.now
                }
            };
        }
    }
    circuit.select().to_owned()
}

/// What one word says of a circuit that is closed, open, and half open.
fn from_any(is_well: bool) -> String {
    let mut states = Vec::new();
    for from in ["closed", "open", "half-open"] {
        let mut circuit = Circuit::new();
        let attempt = match from {
            "closed" => circuit.attempt(),
            "open" => circuit.open().1,
            _ => circuit.probing(true),
        };
        circuit.report(&attempt, is_well);
        states.push(circuit.told());
    }
    states.join(", ")
}

fn transition(at: usize) -> String {
    let mut circuit = Circuit::new();
    match at {
        0 => from_any(true),
        1 => from_any(false),
        2 => {
            let probe = circuit.probing(true);
            let RouteState::Open { until, .. } = circuit.state() else { panic!("it is open") };
            assert_eq!(until, circuit.world.now, "until when is as it was");
            let over = probe.lease_until.since(circuit.world.now);
            format!("half-open, over after {} s", over.as_micros() / 1_000_000)
        }
        3 => {
            let probe = circuit.probing(false);
            circuit.give_back(&probe);
            circuit.select().to_owned() + " at once"
        }
        _ => {
            let attempt = circuit.claim();
            circuit.give_back(&attempt);
            circuit.told().to_owned()
        }
    }
}

fn told(at: usize, case: &Vector) -> String {
    let state = |value: &Vector| value["state"].as_str().expect("a state").to_owned();
    match at {
        0 | 1 => vec![state(&case["to"]); 3].join(", "),
        2 => {
            let millis =
                case["to"]["probeExpiresAt"].as_u64().expect("a moment") - case["now"].as_u64().expect("now");
            format!("{}, over after {} s", state(&case["to"]), millis / 1_000)
        }
        // It may be probed again from that moment.
        3 => {
            assert_eq!((state(&case["to"]).as_str(), &case["to"]["retryAt"]), ("open", &case["now"]));
            "half-open at once".to_owned()
        }
        _ => {
            assert_eq!(case["to"], "unchanged");
            state(&case["from"])
        }
    }
}

/// In seconds, or as it is counted.
fn bound(name: &str) -> String {
    match name {
        "cooldown" => {
            let mut circuit = Circuit::new();
            let (until, _) = circuit.open();
            (until.since(circuit.world.now).as_micros() as f64 / 1e6).round().to_string()
        }
        "attemptsPerRoute" => OPENS_AFTER.to_string(),
        _ => CONTRACT.to_owned(),
    }
}

#[test]
fn the_route_health_of_the_reference() {
    let vectors = vectors();
    let health = &vectors["routeHealth"];
    let list = |name: &str| health[name].as_array().expect("cases").iter().enumerate();
    let mut cases = Vec::new();
    cases.extend(list("select").map(|(at, case)| {
        ("select", at, select(case), case["result"].as_str().expect("a result").to_owned())
    }));
    cases.extend(list("transitions").map(|(at, case)| ("transitions", at, transition(at), told(at, case))));
    let bounds = health["attemptBoundsMs"].as_object().expect("bounds");
    assert!(bounds.len() == BOUND.len() && BOUND.iter().all(|name| bounds.contains_key(*name)));
    cases.extend(BOUND.iter().enumerate().map(|(at, name)| {
        let millis = bounds[*name].as_u64().expect("a number");
        let told = if *name == "attemptsPerRoute" { millis } else { millis / 1_000 };
        ("attemptBoundsMs", at, bound(name), told.to_string())
    }));
    let mut tally: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for (group, at, found, told) in cases {
        let tally = tally.entry(group).or_default();
        match ADAPTED.iter().find(|(of, number, ..)| (*of, *number) == (group, at)) {
            Some((.., here, reason)) => {
                assert_eq!(found, *here, "{group} {at}: {reason}");
                assert_ne!(found, told, "{group} {at} needs no adapting");
                tally.1 += 1;
            }
            None => {
                assert_eq!(found, told, "{group} {at}");
                tally.0 += 1;
            }
        }
    }
    println!("routeHealth: passed and adapted: {tally:?}");
    let every = BTreeMap::from([("select", (5, 1)), ("transitions", (2, 3)), ("attemptBoundsMs", (0, 6))]);
    assert_eq!(tally, every, "no case is skipped");
}

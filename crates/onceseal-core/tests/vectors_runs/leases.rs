//! Leases of the cadence run store, as leases on one resource, `run/…`: an
//! operation id is whoever holds it. Its milliseconds are seconds here, since no
//! lease is shorter than one.

use std::collections::BTreeMap;

use onceseal_core::approval::{Identity, Proof};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::id::HolderKey;
use onceseal_core::journal::{Body, Row};
use onceseal_core::lease::{AcquireLease, CommitLease, InterruptLease, Lease, Preempt, RenewLease, Resource};
use onceseal_core::reply::{LeaseNow, Reply};
use onceseal_core::run::{BindDeliveries, Towards, Transition};
use onceseal_core::time::{Span, Timestamp};
use serde_json::{Value as Vector, json};

use crate::executor::Real;
use crate::playing::{Adapted, POLICY, Play, expected, named};
use crate::vectors;
use crate::world::{World, noon};

const OWN: &str = "whoever holds a resource gets what it has";
const OBJECT: &str = "an outcome is an object: the lease is not given up with anything else";
const APART: &str = "request ids are apart from leases";
const NOT_KNOWN: &str = "a holder is no operation id: any text names one, and nothing is known of it";
const OPEN: &str = "whether a store is open is no rule: a closed one answers before any rule is asked";

const ADAPTED: &[Adapted] = &[
    (
        "clock going back after lazy expiry",
        3,
        "null",
        "an inspection is a read: a lapse that nobody recorded is not yet a fact",
    ),
    ("commit of unusual outcomes", 3, "operation-outcome-invalid", OBJECT),
    ("commit of unusual outcomes", 4, "running until 1050", OBJECT),
    ("commit of unusual outcomes", 5, "R1 op T1 until 1050", OWN),
    ("commit of unusual outcomes", 6, "operation-outcome-invalid", OBJECT),
    ("commit of unusual outcomes", 7, "running until 1050", OBJECT),
    (
        "re-acquire after commit wipes the outcome",
        4,
        r#"running until 1051, kept {"done":true}"#,
        "an outcome is final, and kept by the fence of its lease",
    ),
    (
        "argument errors",
        3,
        "R1 op T1 until 1.5",
        "a length is a span of microseconds: one and a half is not unusual",
    ),
    ("argument errors", 4, "R1 op T1 until 1.5", OWN),
    ("argument errors", 7, "operation-already-running", NOT_KNOWN),
    ("argument errors", 8, "invalid-lease-ttl", NOT_KNOWN),
    ("argument errors", 9, "null", "an inspection reads the resource alone, and nobody ever held it"),
    ("argument errors", 10, "null", NOT_KNOWN),
    (
        "fenced transition",
        5,
        "R1 validating-delivery 3",
        "the lapse of a run's lease interrupts the run, which is an event",
    ),
    ("operation id collision: transition steals a lease row", 3, "null", APART),
    ("operation id collision: lease erases a replay record", 3, "R1 paused 2", APART),
    ("operation id collision: lease erases a replay record", 4, "R1 paused 2 a", APART),
    ("commit by lease then transition with same id", 3, "R1 paused 2", APART),
    ("closed store", 2, "R1 created 1", OPEN),
    ("closed store", 3, "R1 op T1 until 50", OPEN),
    ("closed store", 5, "0", OPEN),
];

fn holder(operation: &Vector) -> HolderKey {
    let operation = operation.as_str().expect("an operation id");
    let mut id = [0; 16];
    id.copy_from_slice(&Hash::of("an operation id as a holder\n", &[operation.as_bytes()]).0[..16]);
    HolderKey(id)
}

/// A length; there is no negative one.
fn length(value: &Vector) -> Span {
    let seconds = value.as_f64().expect("a number").max(0.0);
    Span::from_std(std::time::Duration::from_secs_f64(seconds))
}

fn seconds(at: Timestamp) -> String {
    let micros = at.since(noon()).as_micros();
    match micros % 1_000_000 {
        0 => (micros / 1_000_000).to_string(),
        _ => format!("{}.{}", micros / 1_000_000, micros / 100_000 % 10),
    }
}

struct Leases<'r> {
    play: Play<'r>,
    clock: Timestamp,
    /// Those handed out, by the names that steps give them.
    saved: BTreeMap<String, Lease>,
    tokens: Vec<[u8; 16]>,
    asserted: usize,
}

impl<'r> Leases<'r> {
    fn new() -> Leases<'r> {
        let play = Play { world: World::new(&Real, POLICY), runs: BTreeMap::new() };
        Leases { play, clock: noon(), saved: BTreeMap::new(), tokens: Vec::new(), asserted: 0 }
    }

    fn lease(&self, name: &Vector) -> Lease {
        self.saved[name.as_str().expect("a name").trim_start_matches('$')].clone()
    }

    fn run(&mut self, command: Command) -> Reply {
        // A store never reads a clock to an earlier moment than it has read.
        self.play.world.now = self.play.world.now.max(self.clock);
        self.play.world.run(command)
    }

    /// A step, and what comes of it in the reference's words.
    fn take(&mut self, step: &Vector) -> String {
        let (call, args) = (step["call"].as_str().expect("a call"), &step["args"]);
        self.clock = noon() + length(&step["now"]);
        let reply = match call {
            "status" => return self.play.standing(self.play.run_of(&args[0])),
            "startRun" | "transition" | "bindDelivery" => return self.about_a_run(call, &args[0]),
            "inspectOperation" => return self.inspect(args),
            "assertLease" => return self.assert(&args[0]),
            "recoverExpiredLeases" => return self.sweep(),
            "close" => return "null".to_owned(),
            "acquireLease" => self.acquire(&args[0]),
            "renewLease" => {
                let (lease, length) = (self.lease(&args[0]), length(&args[1]));
                self.run(Command::RenewLease(RenewLease { lease, length }))
            }
            "commitLease" => {
                let undefined = args[1] == "<undefined>";
                let outcome = if undefined { String::new() } else { args[1].to_string() };
                let lease = self.lease(&args[0]);
                match self.run(Command::CommitLease(CommitLease { lease, outcome: outcome.clone() })) {
                    Reply::Done { changed: true } => return outcome,
                    reply => reply,
                }
            }
            "interruptLease" => {
                let lease = self.lease(&args[0]);
                self.run(Command::InterruptLease(InterruptLease { lease }))
            }
            other => panic!("no call {other}"),
        };
        match reply {
            Reply::Lease(now) => self.handed_out(step, *now),
            Reply::Done { changed: true } => "null".to_owned(),
            Reply::Refused(refusal) => named(refusal.code, refusal.detail.as_deref()),
            other => panic!("{other:?}"),
        }
    }

    fn handed_out(&mut self, step: &Vector, now: LeaseNow) -> String {
        let LeaseNow { lease, until, .. } = now;
        if let Some(name) = step["saveAs"].as_str() {
            self.saved.insert(name.to_owned(), lease.clone());
        }
        if !self.tokens.contains(&lease.token()) {
            self.tokens.push(lease.token());
        }
        let token = self.tokens.iter().position(|token| *token == lease.token()).expect("it was put there");
        let (run, _) =
            self.play.runs.iter().find(|(_, run)| Resource::Run(**run) == lease.resource).expect("a run");
        let own = self.play.world.pinned.tenant.holder(holder(&json!("op")));
        assert_eq!(lease.holder, own, "nobody else is handed one");
        format!("{run} op T{} until {}", token + 1, seconds(until))
    }

    /// Starts, moves and deliveries.
    fn about_a_run(&mut self, call: &str, of: &Vector) -> String {
        let command = self.play.command(call, of);
        let under = of.get("lease").map(|name| self.lease(name));
        let command = match command {
            Command::Transition(step) => Command::Transition(Transition { under, ..step }),
            Command::BindDeliveries(bind) => {
                Command::BindDeliveries(Box::new(BindDeliveries { under, ..*bind }))
            }
            other => other,
        };
        self.play.world.now = self.play.world.now.max(self.clock);
        self.play.said(command)
    }

    fn acquire(&mut self, of: &Vector) -> Reply {
        let acquire = AcquireLease {
            resource: Resource::Run(self.play.run_of(&of["runId"])),
            holder: holder(&of["operationId"]),
            length: length(&of["ttlMs"]),
            // The reference's two ways of asking are alike among one holder's.
            shared: false,
            preempt: None,
        };
        if of["preempt"] != true {
            return self.run(Command::AcquireLease(Box::new(acquire)));
        }
        let mut by = |name: &str| {
            let person = Identity { proof: Proof::Os, name: name.to_owned() };
            let preempt = Some(Preempt { person, reason: "stuck".to_owned() });
            self.run(Command::AcquireLease(Box::new(AcquireLease { preempt, ..acquire.clone() })))
        };
        let refused = by("somebody");
        assert!(matches!(&refused, Reply::Refused(why) if why.code == Code::NotOperator), "{refused:?}");
        by("owner")
    }

    /// Whether a lease is live: a move under it to nowhere gets past it, or does
    /// not, and leaves nothing.
    fn assert(&mut self, name: &Vector) -> String {
        self.asserted += 1;
        let of = json!({"runId": "R1", "to": "nowhere", "operationId": format!("assert-{}", self.asserted)});
        let Command::Transition(step) = self.play.command("transition", &of) else { panic!("a move") };
        assert_eq!(step.to, Towards::State("nowhere".to_owned()));
        let under = Some(self.lease(name));
        match self.run(Command::Transition(Transition { under, ..step })) {
            Reply::Refused(why) if why.code == Code::StateUnknown => "null".to_owned(),
            Reply::Refused(why) => named(why.code, None),
            other => panic!("{other:?}"),
        }
    }

    /// What a reader learns at this moment of the newest lease that somebody had.
    fn inspect(&self, args: &Vector) -> String {
        let world = &self.play.world;
        let holder = world.pinned.tenant.holder(holder(&args[1]));
        let resource = Resource::Run(self.play.run_of(&args[0]));
        let stream = world.pinned.tenant.lease(&resource.to_string());
        let Some(Row::Lease(row)) = world.row(&stream) else { return "null".to_owned() };
        let events = world.events.iter().filter(|recorded| recorded.stamp.stream == stream);
        let mut newest = events.filter_map(|recorded| match &recorded.event.body {
            Body::LeaseTaken(data, _) if data.holder == holder => Some(data.fence),
            _ => None,
        });
        let Some(fence) = newest.next_back() else { return "null".to_owned() };
        let outcome = |sequence| {
            let at = |it: &&onceseal_core::journal::Recorded| {
                (it.stamp.stream, it.stamp.sequence) == (stream, sequence)
            };
            world.events.iter().find(at).and_then(|event| event.payload.clone()).expect("an outcome").text
        };
        let state = match row.live(self.clock).find(|live| live.fence == fence) {
            Some(live) => format!("running until {}", seconds(live.until)),
            None if row.outcomes.iter().any(|kept| kept.fence == fence) => "committed".to_owned(),
            None => "interrupted".to_owned(),
        };
        let kept = row.outcomes.iter().map(|kept| format!(", kept {}", outcome(kept.sequence)));
        [state].into_iter().chain(kept).collect()
    }

    fn sweep(&mut self) -> String {
        let rows = self.play.world.rows.iter();
        let held = rows.filter(|(_, stored)| matches!(stored.row, Row::Lease(_)));
        let held: Vec<_> = held.map(|(stream, _)| *stream).collect();
        let swept = held.into_iter().map(|stream| self.run(Command::Lapse(stream)));
        swept.filter(|reply| *reply == Reply::Done { changed: true }).count().to_string()
    }
}

/// What the reference says of a step.
fn told(step: &Vector) -> String {
    let ok = &step["expect"]["ok"];
    match step["call"].as_str().expect("a call") {
        _ if step["expect"]["error"].is_string() => expected(step),
        "acquireLease" | "renewLease" => {
            let text = |member: &str| ok[member].as_str().expect("a text").to_owned();
            let (run, operation, token) = (text("runId"), text("operationId"), text("token"));
            format!("{run} {operation} {token} until {}", ok["expiresAt"])
        }
        "inspectOperation" if ok.is_object() => {
            let until = ok["expiresAt"].as_u64().map(|until| format!(" until {until}")).unwrap_or_default();
            format!("{}{until}", ok["state"].as_str().expect("a state"))
        }
        "startRun" | "status" | "transition" => expected(step),
        _ => ok.to_string(),
    }
}

#[test]
fn the_leases_of_the_reference() {
    let vectors = vectors();
    let scenarios = vectors["leases"]["scenarios"].as_array().expect("scenarios");
    let (mut passed, mut adapted) = (0, 0);
    for scenario in scenarios {
        let name = scenario["name"].as_str().expect("a name");
        let mut leases = Leases::new();
        for (at, step) in scenario["steps"].as_array().expect("steps").iter().enumerate() {
            let recorded = leases.play.world.events.len();
            let (found, told) = (leases.take(step), told(step));
            match ADAPTED.iter().find(|(of, number, ..)| (*of, *number) == (name, at)) {
                Some((.., here, reason)) => {
                    assert_eq!(found, *here, "{name}, step {at}: {reason}");
                    assert_ne!(found, told, "{name}, step {at} needs no adapting");
                    adapted += 1;
                }
                None => {
                    assert_eq!(found, told, "{name}, step {at}: {step}");
                    passed += 1;
                }
            }
            // A lease that is over may be recorded as over by whoever meets it.
            if step["call"] == "inspectOperation" || step["call"] == "assertLease" && found == "ok" {
                assert_eq!(leases.play.world.events.len(), recorded, "{name}, step {at} records nothing");
            }
        }
        leases.play.world.check();
    }
    println!("leases: {passed} steps of {} scenarios passed, {adapted} adapted", scenarios.len());
    assert_eq!(adapted, ADAPTED.len(), "every adaptation is needed");
}

#[test]
fn the_boundary_of_the_reference() {
    let vectors = vectors();
    let boundary = vectors["leases"]["boundary"].as_array().expect("moments");
    for moment in boundary {
        let now = match moment["at"].as_str().expect("a moment") {
            "expiresAt - 1" => 1049,
            "expiresAt" => 1050,
            "expiresAt + 1" => 1051,
            other => panic!("no moment {other}"),
        };
        let mut leases = Leases::new();
        let start = json!({"stage": "abel-implement", "change": "c", "operationId": "start"});
        leases.take(&json!({"now": 0, "call": "startRun", "args": [start]}));
        let acquire = json!({"runId": "R1", "operationId": "op", "ttlMs": 50});
        leases.take(&json!({"now": 1000, "call": "acquireLease", "args": [acquire], "saveAs": "l"}));
        let found = leases.take(&json!({"now": now, "call": "assertLease", "args": ["$l"]}));
        assert_eq!(found == "null", moment["live"] == true, "{moment}: {found}");
    }
    println!("leases: {} moments passed, 0 adapted", boundary.len());
    assert_eq!(boundary.len(), 3);
}

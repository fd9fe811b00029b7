//! Scenarios of several calls, played against the rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use onceseal_core::action::{Action, Principal};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::id::{RootId, RunId};
use onceseal_core::journal::Row;
use onceseal_core::reply::Reply;
use onceseal_core::run::{
    BindChange, BindDeliveries, Definition, Delivery, StartRun, Subject, Towards, Transition,
};
use onceseal_core::stream::StreamId;
use serde_json::{Value as Vector, json};

use crate::executor::Real;
use crate::vectors;
use crate::world::World;

pub(super) const POLICY: &str = "schema: onceseal.policy/v1\nactions: {}\n";

/// Scenario, step, what comes out here, and the design's reason.
pub(super) type Adapted = (&'static str, usize, &'static str, &'static str);

const ADAPTED: &[Adapted] = &[
    (
        "design terminal run is re-keyed",
        3,
        "R1 created 1",
        "a request id is of its scope for ever: the first answer is given again",
    ),
    (
        "replay of the first start after re-key creates a further run",
        2,
        "R1 created 1",
        "a request id is of its scope for ever: the first answer is given again",
    ),
    ("bind to a taken change", 3, "R2 created 2", "a run that ended gives its key up in its terminal event"),
    (
        "bind on an unknown run",
        1,
        "run-not-found",
        "the run is looked for first, since a replay is answered before anything else is judged",
    ),
    (
        "order of argument checks in start",
        1,
        "invalid-change",
        "a kind is a definition, which the caller has or has not: there is none that is unknown",
    ),
];

/// The reference's name of a refusal.
pub(super) fn named(code: Code, reason: Option<&str>) -> String {
    let code = match code {
        Code::RunUnknown => "run-not-found",
        Code::ChangeInvalid => "invalid-change",
        Code::ChangeTaken => "change-run-already-exists",
        Code::RequestIdInvalid => "invalid-operation-id",
        Code::StateUnknown => "event-integrity-state-mismatch",
        Code::OutOfBounds => "invalid-lease-ttl",
        Code::LeaseHeld => "operation-already-running",
        Code::LeaseFenced => "lease-fenced",
        Code::OutcomeInvalid => "operation-outcome-invalid",
        Code::TransitionForbidden => {
            return format!("invalid-run-transition:{}", reason.expect("a reason").replace(" > ", ":"));
        }
        other => panic!("the reference has no name for {other}"),
    };
    code.to_owned()
}

/// A definition that is built in, with gates that ask for no proof: what proves a
/// delivery there is a fact of another journal.
pub(super) fn definition(kind: &str) -> Arc<Definition> {
    let found = Definition::built_in().into_iter().find(|found| found.kind() == kind).expect("built in");
    let text = found.text().replace(r#"{"proof":"required"}"#, r#"{"proof":"none"}"#);
    Arc::new(Definition::restore(&text).expect("a definition"))
}

pub(super) fn digest(hex: &str) -> Option<Hash> {
    Hash::parse(&format!("sha256:{hex}"))
}

/// What is bound, if there is such a value.
pub(super) fn delivery(of: &Vector) -> Option<Delivery> {
    let (gate, proof) = (of["gate"].as_str()?.to_owned(), &of["approvalProof"]);
    let revision = of["revision"].as_u64()?;
    let named = |member: &str| match proof[member].as_str() {
        Some(hex) => digest(hex).map(Some),
        None => Some(None),
    };
    let (contract, record) = (named("contractHash")?, named("recordHash")?);
    let receipt = digest(of["receiptHash"].as_str()?)?;
    Some(Delivery { gate, revision, receipt, contract, record, approval: None })
}

pub(super) struct Play<'r> {
    pub(super) world: World<'r>,
    /// Ours, by the reference's names.
    pub(super) runs: BTreeMap<String, RunId>,
}

impl Play<'_> {
    pub(super) fn run_of(&self, value: &Vector) -> RunId {
        self.runs.get(value.as_str().expect("a run")).copied().unwrap_or(RunId([0xee; 16]))
    }

    pub(super) fn name_of(&mut self, run: RunId) -> String {
        if let Some((name, _)) = self.runs.iter().find(|(_, known)| **known == run) {
            return name.clone();
        }
        let name = format!("R{}", self.runs.len() + 1);
        self.runs.insert(name.clone(), run);
        name
    }

    pub(super) fn command(&self, call: &str, of: &Vector) -> Command {
        let text = |member: &str| of[member].as_str().unwrap_or_default().to_owned();
        let (request, principal) = (text("operationId"), Principal::agent("engine"));
        match call {
            "startRun" => {
                // The kinds of the reference's two stages; an unknown one takes either.
                let kind = if of["stage"] == "abel-design" { "design" } else { "delivery" };
                let definition = definition(kind);
                let subject = match of["change"].as_str() {
                    Some(change) => Subject::Change(change.to_owned()),
                    None => Subject::Provisional(digest(&text("provisionalKey")).expect("a digest")),
                };
                let root = RootId([1; 16]);
                Command::StartRun(Box::new(StartRun { root, definition, subject, request, principal }))
            }
            "bindChange" => {
                let (run, change) = (self.run_of(&of["runId"]), text("change"));
                Command::BindChange(BindChange { run, change, request, principal })
            }
            "transition" => {
                let (run, to) = (self.run_of(&of["runId"]), Towards::State(text("to")));
                let code = of["code"].as_str().map(str::to_owned);
                Command::Transition(Transition { run, to, code, request, principal, under: None })
            }
            "bindDelivery" => {
                let delivery = delivery(of).expect("a delivery");
                Command::BindDeliveries(Box::new(self.binding(of, vec![delivery])))
            }
            other => panic!("no call {other}"),
        }
    }

    /// Binds these, as one request: the first one's.
    pub(super) fn binding(&self, of: &Vector, deliveries: Vec<Delivery>) -> BindDeliveries {
        let request = of["operationId"].as_str().unwrap_or_default().to_owned();
        let (run, principal) = (self.run_of(&of["runId"]), Principal::agent("engine"));
        let environment = Action::DEFAULT_ENVIRONMENT.to_owned();
        BindDeliveries { run, deliveries, environment, request, principal, under: None }
    }

    /// What comes out here, in the reference's words.
    fn take(&mut self, step: &Vector) -> String {
        let (call, first) = (step["call"].as_str().expect("a call"), &step["args"][0]);
        match call {
            "status" => self.standing(self.run_of(first)),
            _ => self.said(self.command(call, first)),
        }
    }

    /// What is answered to a command about a run, in the reference's words.
    pub(super) fn said(&mut self, command: Command) -> String {
        let reply = self.world.run(command);
        self.heard(reply)
    }

    pub(super) fn heard_of(&mut self, call: &str, of: &Vector) -> String {
        let command = self.command(call, of);
        self.said(command)
    }

    pub(super) fn heard(&mut self, reply: Reply) -> String {
        match reply {
            Reply::Run(now) if now.replayed => {
                let name = self.name_of(now.answered.run);
                format!("{name} {} {}", now.answered.state, now.answered.sequence)
            }
            Reply::Run(now) => self.standing(now.answered.run),
            Reply::Refused(refusal) => named(refusal.code, refusal.detail.as_deref()),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn standing(&mut self, run: RunId) -> String {
        let name = self.name_of(run);
        let stored = &self.world.rows[&StreamId::run(run)];
        let Row::Run(row) = &stored.row else { panic!("no run: {stored:?}") };
        let code = row.code.as_ref().map(|code| format!(" {code}")).unwrap_or_default();
        format!("{name} {} {}{code}", row.state, stored.head.sequence)
    }
}

pub(super) fn expected(step: &Vector) -> String {
    if let Some(error) = step["expect"]["error"].as_str() {
        return error.to_owned();
    }
    let now = &step["expect"]["ok"];
    let code = now["pauseCode"].as_str().map(|code| format!(" {code}")).unwrap_or_default();
    let text = |member: &str| now[member].as_str().unwrap_or_else(|| panic!("no {member} in {now}"));
    format!("{} {} {}{code}", text("runId"), text("state"), now["sequence"])
}

#[test]
fn the_lookup_keys_of_the_reference() {
    let vectors = vectors();
    let cases = vectors["lookupKeys"]["cases"].as_array().expect("cases");
    let mut adapted = 0;
    for case in cases {
        let mut input = case["input"].clone();
        let has = |member: &str| input[member].is_string();
        if has("change") == has("provisionalKey") {
            // A run is about one or the other: there is no value for both or neither.
            assert_eq!(case["error"], "invalid-run-lookup-key");
            adapted += 1;
            continue;
        }
        let unnamed = input["provisionalKey"].as_str().filter(|_| !has("change"));
        if unnamed.is_some_and(|unnamed| digest(unnamed).is_none()) {
            // What is no digest is no subject either.
            assert_eq!(case["error"], "invalid-provisional-key");
            adapted += 1;
            continue;
        }
        input["operationId"] = "s1".into();
        let mut play = Play { world: World::new(&Real, POLICY), runs: BTreeMap::new() };
        let command = play.command("startRun", &input);
        let found = match play.world.run(command) {
            Reply::Run(now) => match &play.world.rows[&StreamId::run(now.answered.run)].row {
                Row::Run(row) => row.private.key.clone().expect("a key"),
                other => panic!("{other:?}"),
            },
            Reply::Refused(refusal) => named(refusal.code, None),
            other => panic!("{other:?}"),
        };
        let told = case["key"].as_str().or(case["error"].as_str()).expect("an outcome");
        assert_eq!(found, told, "{}", case["name"]);
    }
    println!("lookupKeys: {} passed, {adapted} adapted", cases.len() - adapted);
    assert_eq!(adapted, 2);
}

#[test]
fn the_scenarios_of_the_reference() {
    let vectors = vectors();
    let mut used = 0;
    for section in ["runIdentity", "idempotency"] {
        let (mut passed, mut adapted) = (0, 0);
        for scenario in vectors[section]["scenarios"].as_array().expect("scenarios") {
            let name = scenario["name"].as_str().expect("a name");
            let mut play = Play { world: World::new(&Real, POLICY), runs: BTreeMap::new() };
            let steps = scenario["steps"].as_array().expect("steps");
            for (at, step) in steps.iter().enumerate() {
                let (found, told) = (play.take(step), expected(step));
                match ADAPTED.iter().find(|(of, number, ..)| (*of, *number) == (name, at)) {
                    Some((.., here, reason)) => {
                        assert_eq!(found, *here, "{name}, step {at}: {reason}");
                        assert_ne!(found, told, "{name}, step {at} needs no adapting");
                        (used, adapted) = (used + 1, adapted + 1);
                    }
                    None => {
                        assert_eq!(found, told, "{name}, step {at}: {step}");
                        passed += 1;
                    }
                }
            }
            play.world.check();
        }
        println!("{section}: {passed} steps passed, {adapted} adapted");
    }
    assert_eq!(used, ADAPTED.len(), "every adaptation is needed");
    assert_eq!(vectors["lookupKeys"]["uniqueness"], json!(["root_hash", "stage", "lookup_key"]));
}

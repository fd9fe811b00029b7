//! A store, its clock, its remote, and the steps of a scenario in our words.

use std::collections::BTreeMap;
use std::sync::Arc;

use onceseal::core::action::{ActionRow, Principal};
use onceseal::core::approval::Said;
use onceseal::core::command::Command;
use onceseal::core::effect::EffectRow;
use onceseal::core::hash::Hash;
use onceseal::core::id::{ActionId, ApprovalId};
use onceseal::core::journal::{Body, Row};
use onceseal::core::json::{self, Limits, Object, Value as Json};
use onceseal::core::operation::Claim;
use onceseal::core::reply::Reply;
use onceseal::core::stream::StreamKind;
use onceseal::core::time::Span;
use onceseal::fault::{self, point};
use onceseal::operations::{CallIdentity, Dispatching, Operations, Package, Tool};
use onceseal::store::clock::{Clock, ManualClock, Reading};
use onceseal::views::Filter;
use onceseal::{AuditOptions, Control, Error, audit};
use serde_json::Value;

use crate::drafts::{TENANT, TOOL, World, contract};
use crate::steps::Came;
use crate::support::{Home, answer, policy};
use crate::vectors::text;

const POLICY: &str = "
schema: onceseal.policy/v1
groups: { reviewers: ['host:human-reviewer-1'] }
actions:
  create_refund_draft:
    approval: { ttl: 60s, approvers: [reviewers] }
    decision: approve
";

/// How long a request for approval may be answered and used.
const TTL: i64 = 60;

pub(crate) struct Scene {
    pub(crate) home: Home,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) control: Control,
    pub(crate) world: World,
    pub(crate) operations: Operations,
    pub(crate) revisions: BTreeMap<String, String>,
    /// Their references and ours, which are keyed.
    pub(crate) references: BTreeMap<String, String>,
    /// Where the store is to fail.
    pub(crate) failing: Option<String>,
    /// Calls that were made to have other approvals.
    pub(crate) prepared: usize,
}

impl Scene {
    pub(crate) async fn new(steps: &[Value]) -> Scene {
        let first = steps.iter().filter_map(|step| step["now"].as_i64()).min().expect("a moment");
        // Requests are made some time before they are used.
        let start = first.clamp(2 * TTL, 253_402_000_000) - 2 * TTL;
        let clock = Arc::new(ManualClock::new(Reading { wall_us: start * 1_000_000, boot_us: 0 }));
        let home = Home::new();
        let control = open(&home, &clock).await;
        control.activate(policy(POLICY), false, None).await.expect("active");
        let world = World::new(clock.clone());
        let revisions = BTreeMap::new();
        let operations = declared(&control, &world, &revisions).await;
        let (references, failing, prepared) = (BTreeMap::new(), None, 0);
        Scene { home, clock, control, world, operations, revisions, references, failing, prepared }
    }

    /// It is this second now.
    fn at(&self, second: i64) {
        let second = second.clamp(0, 253_402_200_000);
        let by = second * 1_000_000 - self.clock.now().wall_us;
        match by < 0 {
            true => self.clock.step_wall(by),
            false => self.clock.advance(by),
        }
    }

    pub(crate) async fn step(&mut self, step: &Value) -> Came {
        let now = step["now"].as_i64().expect("a moment");
        match text(step, "op") {
            "dispatch" => self.dispatch(step, now).await,
            "query" => {
                self.at(now);
                self.query(step).await
            }
            "process" => {
                self.at(now);
                self.work().await
            }
            "claim" => {
                self.at(now);
                self.claim(step).await
            }
            "audit" => {
                let control = self.control.clone();
                let report = tokio::task::spawn_blocking(move || audit(&control, &AuditOptions::default()));
                match report.await.expect("no panic") {
                    Ok(report) => Came::Audited(report.is_clean()),
                    Err(error) => Came::Failed(error),
                }
            }
            other => {
                self.arrange(other, step).await;
                Came::Arranged
            }
        }
    }

    async fn dispatch(&mut self, step: &Value, now: i64) -> Came {
        let approvals = match self.approvals(step, now).await {
            Ok(approvals) => approvals,
            Err(error) => return Came::Failed(error),
        };
        self.at(now);
        let valid = step["approval"].is_null() || step["approval"] == "valid";
        self.arm(step);
        let told = self.sent(step, &approvals).tell().await;
        let asked = told.as_ref().ok().and_then(|package| match package.answer() {
            Err(Error::ApprovalNeeded { approval, .. }) => Some(*approval),
            _ => None,
        });
        let told = match asked.filter(|_| valid) {
            Some(approval) => {
                self.say_yes(approval).await.expect("answered");
                self.world.outside().lookups = 0;
                if self.failing.as_deref() == Some("outbox_insert") {
                    fault::arm(point::BEFORE_COMMIT, 1, fault::Action::Fail);
                }
                self.sent(step, &[approval]).tell().await
            }
            None => told,
        };
        let crashed = step["failure"].is_string() && told.is_err() && self.failing.is_none();
        fault::disarm();
        match told {
            Ok(package) => Came::Told(Box::new(package)),
            // Whoever asks after the crash is told what stands.
            Err(_) if crashed => match self.sent(step, &approvals).tell().await {
                Ok(package) => Came::Told(Box::new(package)),
                Err(error) => Came::Failed(error),
            },
            Err(error) => Came::Failed(error),
        }
    }

    /// Sets the failures of this dispatch.
    fn arm(&self, step: &Value) {
        let failed = || Err(onceseal::store::StoreError::new(onceseal::core::code::Code::StoreFailed));
        match step["failure"].as_str() {
            Some("after_intent_commit") => fault::on(point::AFTER_INTENT_COMMIT, failed),
            Some("after_claim") => fault::on(point::AFTER_CLAIM, failed),
            Some("after_downstream_commit") => fault::on(point::AFTER_DOWNSTREAM_COMMIT, failed),
            _ => {}
        }
    }

    fn sent(&self, step: &Value, approvals: &[ApprovalId]) -> Dispatching {
        self.sending(&step["call"], &step["principal"], approvals).at_once()
    }

    fn sending(&self, call: &Value, principal: &Value, approvals: &[ApprovalId]) -> Dispatching {
        let step = serde_json::json!({ "call": call, "principal": principal });
        let sending = self.sending_of(&self.operations, &step);
        approvals.iter().fold(sending, |sending, id| sending.approval(*id))
    }

    async fn say_yes(&self, approval: ApprovalId) -> Result<(), Error> {
        answer(&self.control, approval, "human-reviewer-1", Said::Yes).await
    }

    /// The approvals that a step gives, made as its mode or list says.
    async fn approvals(&mut self, step: &Value, now: i64) -> Result<Vec<ApprovalId>, Error> {
        let made = match &step["approval"] {
            Value::String(mode) if mode == "expired" => {
                vec![serde_json::json!({"set": {"expires_at": now - 1}})]
            }
            Value::Array(made) => made.clone(),
            _ => return Ok(Vec::new()),
        };
        let (mut approvals, mut own) = (Vec::new(), None);
        for made in made {
            let expires = made["set"]["expires_at"].as_i64().unwrap_or(now + TTL);
            self.at((expires - TTL).min(now));
            let (mut call, mut principal) = (step["call"].clone(), step["principal"].clone());
            if let Some(other) = made["for_call"].as_object() {
                for (name, value) in other {
                    call[if name == "key" { "idempotency_key" } else { name }] = value.clone();
                }
                call["call_id"] = "call-other".into();
            }
            if let Some(other) = made["for_principal"].as_object() {
                self.world.outside().allowed = Some(vec!["ORDER-7".to_owned()]);
                for (name, value) in other {
                    principal[name] = value.clone();
                }
            }
            // One wish is asked for once; whoever asks again is told of the same.
            let again = made["for_call"].is_null() && made["for_principal"].is_null();
            let approval = match own.filter(|_| again) {
                Some(approval) => approval,
                None => match self.sending(&call, &principal, &[]).send().await {
                    Err(Error::ApprovalNeeded { approval, .. }) => approval,
                    Err(error) => return Err(error),
                    Ok(now) => panic!("accepted without approval: {now:?}"),
                },
            };
            self.world.outside().allowed = None;
            own = again.then_some(approval);
            self.prepared += usize::from(!again);
            match made["set"]["approver_id"].as_str() {
                Some(person) => {
                    let said = answer(&self.control, approval, person, Said::Yes).await;
                    assert!(said.is_err(), "{person} is no approver");
                }
                // A second yes changes nothing.
                None => self.say_yes(approval).await?,
            }
            approvals.push(approval);
        }
        Ok(approvals)
    }

    async fn query(&mut self, step: &Value) -> Came {
        let theirs = text(step, "status_ref");
        let ours = self.references.get(theirs).map_or(theirs, String::as_str);
        let call = &step["call"];
        let expected = Hash::parse(&format!("sha256:{}", text(step, "expected_request_sha256")));
        let asking = self.operations.ask(text(call, "name"), identity(call), ours);
        let mut asking = asking.args(arguments(call)).by(host(&step["principal"]));
        if let Some(expected) = expected {
            asking = asking.expecting(expected);
        }
        if self.failing.as_deref() == Some("outbox_delivered") {
            // The first command asks, the second records what was found.
            fault::arm(point::BEFORE_COMMIT, 2, fault::Action::Fail);
        }
        let told = asking.tell().await;
        fault::disarm();
        told.map_or_else(Came::Failed, |package| Came::Told(Box::new(package)))
    }

    /// A worker comes by, and whoever looks for lapsed leases before it.
    async fn work(&self) -> Came {
        let before = self.operation_rows();
        let control = self.control.clone();
        let swept =
            tokio::task::spawn_blocking(move || onceseal::sweep(control.store())).await.expect("no panic");
        let worked = match swept {
            Ok(_) => self.operations.worker().run_dry(std::future::pending()).await,
            Err(error) => Err(error.into()),
        };
        match worked {
            Ok(drained) if drained.failed == 0 => Came::Worked { before, after: self.operation_rows() },
            Ok(_) => Came::Failed(Error::Unexpected),
            Err(error) => Came::Failed(error),
        }
    }

    async fn claim(&self, step: &Value) -> Came {
        let theirs = text(step, "status_ref");
        let ours = self.references.get(theirs).map_or(theirs, String::as_str);
        let action = match self.control.operation(ours).await {
            Ok(action) => action,
            Err(error) => return Came::Failed(error),
        };
        let seconds = step["lease_seconds"].as_i64().unwrap_or(30);
        let lease = Some(u32::try_from(seconds).map_or(Span::ZERO, Span::seconds));
        let contract = self.operations.tool(TOOL).expect("the tool").digest();
        let claim = Command::Claim(Claim { action, contract, lease, begin: false, absent: None });
        let control = self.control.clone();
        let reply = tokio::task::spawn_blocking(move || control.store().run(claim)).await.expect("no panic");
        reply.map_or_else(|error| Came::Failed(error.into()), |reply| Came::Claimed(Box::new(reply)))
    }

    /// Where the store is.
    pub(crate) fn database(&self) -> std::path::PathBuf {
        self.home.dir.path().join("state").join("onceseal.db")
    }

    /// The tools of another program on the same store.
    pub(crate) async fn another(&self) -> Result<Operations, Error> {
        let control = opened(&self.home, &self.clock).await?;
        Ok(declared(&control, &self.world, &self.revisions).await)
    }

    /// The tools as this program has them.
    pub(crate) const fn tools(&self) -> &Operations {
        &self.operations
    }

    /// An approval of what a step dispatches.
    pub(crate) async fn approved(&self, step: &Value) -> ApprovalId {
        match self.sending_of(&self.operations, step).send().await {
            Err(Error::ApprovalNeeded { approval, .. }) => {
                self.say_yes(approval).await.expect("answered");
                approval
            }
            other => panic!("nobody is asked: {other:?}"),
        }
    }

    /// A worker.
    pub(crate) fn worker(&self) -> onceseal::operations::Worker {
        self.operations.worker()
    }

    /// The dispatch of a step, without what happens after it.
    pub(crate) fn sending_of(&self, operations: &Operations, step: &Value) -> Dispatching {
        let call = &step["call"];
        let sending = operations.dispatch(text(call, "name")).args(arguments(call));
        sending.by(host(&step["principal"])).call(identity(call))
    }

    /// The operations in the order in which they were accepted.
    pub(crate) fn operation_rows(&self) -> Vec<(ActionId, ActionRow, Option<EffectRow>)> {
        let listed = self.control.list(StreamKind::Action, &Filter::default(), 100);
        let listed = listed.map(|page| page.items).unwrap_or_default();
        let rows = listed.into_iter().filter_map(|(stream, row)| match row {
            Row::Action(row) => {
                let operation = row.operation.clone()?;
                let effect = self.control.effect_at(&operation.effect).ok().flatten();
                Some((ActionId(stream.name), row, effect))
            }
            _ => None,
        });
        rows.collect()
    }

    pub(crate) fn call_bindings(&self) -> usize {
        let log = self.control.log(0, usize::MAX).expect("readable");
        let bound = log.iter().filter_map(|event| event.event.as_ref());
        bound.filter(|event| matches!(event.body, Body::CallBound(..))).count()
    }

    /// Whether nothing was done twice: the remote was asked for each of its drafts
    /// once, since it can be asked what it has.
    pub(crate) fn once(&self) -> Result<(), String> {
        let outside = self.world.outside();
        match outside.drafts.values().find(|(_, asked)| *asked != 1) {
            None => Ok(()),
            Some((draft, asked)) => Err(format!("{draft:?} was asked for {asked} times")),
        }
    }
}

pub(crate) async fn open(home: &Home, clock: &Arc<ManualClock>) -> Control {
    opened(home, clock).await.expect("a store")
}

async fn opened(home: &Home, clock: &Arc<ManualClock>) -> Result<Control, Error> {
    let mut opening = home.opening(clock.clone());
    opening.settings.tenant = TENANT.to_owned();
    tokio::task::spawn_blocking(move || Control::found(&opening)).await.expect("no panic")
}

pub(crate) async fn declared(
    control: &Control,
    world: &World,
    revisions: &BTreeMap<String, String>,
) -> Operations {
    let old = Tool::new(&contract(&BTreeMap::new()), world.clone()).expect("a contract");
    let new = Tool::new(&contract(revisions), world.clone()).expect("a contract");
    Operations::of(control, [old, new]).await.expect("declared").directory(world.clone())
}

fn host(principal: &Value) -> Principal {
    Principal { agent: "host".to_owned(), user: Some(text(principal, "subject_id").to_owned()) }
}

fn identity(call: &Value) -> CallIdentity {
    let of = |name| text(call, name).to_owned();
    CallIdentity {
        provider: of("provider"),
        api_family: of("api_family"),
        adapter_revision: of("adapter_revision"),
        response_id: of("response_id"),
        call_id: of("call_id"),
        operation_id: of("operation_id"),
        idempotency_key: call["idempotency_key"].as_str().map(str::to_owned),
    }
}

fn arguments(call: &Value) -> Object {
    match json::read(call["arguments"].to_string().as_bytes(), &Limits::DATA) {
        Ok(Json::Object(arguments)) => arguments,
        other => panic!("no arguments: {other:?}"),
    }
}

/// A package as the vectors have it.
pub(crate) fn plain(package: &Package) -> Value {
    serde_json::from_str(&json::canonical(package.document())).expect("JSON")
}

/// A claim that was handed out.
pub(crate) fn is_claimed(reply: &Reply) -> bool {
    matches!(reply, Reply::Claimed(..))
}

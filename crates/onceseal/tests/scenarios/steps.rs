//! What came of a step, held against what is told of it.

use onceseal::Error;
use onceseal::core::action::{ActionRow, ActionState, Answer};
use onceseal::core::code::Code;
use onceseal::core::effect::{EffectRow, EffectState};
use onceseal::core::id::ActionId;
use onceseal::core::reply::Reply;
use onceseal::operations::Package;
use serde_json::{Value, json};

use crate::adapted::Instead;
use crate::scene::{Scene, is_claimed, plain};
use crate::vectors::text;

type Rows = Vec<(ActionId, ActionRow, Option<EffectRow>)>;

/// What came of a step.
pub(crate) enum Came {
    Told(Box<Package>),
    Failed(Error),
    Worked { before: Rows, after: Rows },
    Claimed(Box<Reply>),
    Audited(bool),
    Arranged,
}

impl Came {
    /// How it differs from what the vectors tell, if it does.
    pub(crate) fn differs(&self, expect: &Value, after: &Value, scene: &Scene) -> Option<String> {
        let differs = match self {
            Came::Arranged => None,
            Came::Failed(error) => {
                expect["raises"].is_null().then(|| format!("failed: {error}, told {expect}"))
            }
            Came::Told(package) => told(package, expect, scene),
            Came::Worked { before, after } => {
                worked(before, after, expect["returns"].as_str().unwrap_or("a failure"))
            }
            Came::Claimed(reply) => claimed(reply, expect),
            Came::Audited(clean) => {
                let passed = expect["passed"].as_bool();
                (Some(*clean) != passed).then(|| format!("audit {clean}, told {passed:?}"))
            }
        };
        differs.or_else(|| stands(after, scene))
    }

    /// How it differs from what is expected instead.
    pub(crate) fn differs_adapted(&self, instead: &Instead, expect: &Value, scene: &Scene) -> Option<String> {
        let came = self.word();
        match instead {
            Instead::Is(word) => (came != *word).then(|| format!("came {came}, expected {word}")),
            Instead::Later(_) => self.differs(expect, &Value::Null, scene),
            Instead::NotDoneAgain | Instead::Unplayed => None,
        }
    }

    /// Keeps which reference of ours stands for theirs.
    pub(crate) fn learn(&self, expect: &Value, scene: &mut Scene) {
        let Came::Told(package) = self else { return };
        let ours = &plain(package)["protected_audit"]["downstream"]["status_ref"];
        let theirs = &expect["downstream"]["status_ref"];
        if let (Some(ours), Some(theirs)) = (ours.as_str(), theirs.as_str()) {
            scene.references.entry(theirs.to_owned()).or_insert_with(|| ours.to_owned());
        }
    }

    /// In a word.
    pub(crate) fn word(&self) -> String {
        match self {
            Came::Told(package) => package.code().map_or("OK", |code| code.as_str()).to_owned(),
            Came::Failed(error) => error.code().to_owned(),
            Came::Worked { before, after } if before == after => "nothing".to_owned(),
            Came::Worked { after, .. } => after.last().map_or("nothing", |(_, row, _)| name(row)).to_owned(),
            Came::Claimed(reply) => match &**reply {
                Reply::Refused(refusal) => refusal.code.as_str().to_owned(),
                reply if is_claimed(reply) => "claimed".to_owned(),
                _ => "not claimed".to_owned(),
            },
            Came::Audited(clean) => if *clean { "clean" } else { "found" }.to_owned(),
            Came::Arranged => "arranged".to_owned(),
        }
    }
}

fn name(row: &ActionRow) -> &'static str {
    match row.state {
        ActionState::Queued { .. } => "queued",
        ActionState::Running { .. } => "running",
        ActionState::Parked { code: Code::AuthorizationDenied } => "parked: authorization_denied",
        ActionState::Parked { code: Code::BusinessRuleViolation } => "parked: business_rule_violation",
        ActionState::Parked { .. } => "parked",
        ActionState::Ended { result: Answer::Committed, .. } => "committed",
        ActionState::Answered { result: Answer::Committed, .. } => "committed",
        _ => "other",
    }
}

fn told(package: &Package, expect: &Value, scene: &Scene) -> Option<String> {
    if !expect["raises"].is_null() {
        return Some(format!("told {package:?} instead of failing"));
    }
    let problems = package.problems();
    if !problems.is_empty() {
        return Some(format!("the package does not hold: {problems:?}"));
    }
    let document = plain(package);
    let (model, audit) = (&document["model_result"], &document["protected_audit"]);
    let error = &model["error"];
    let came = json!({
        "code": package.code().map_or("OK", |code| code.as_str()),
        "status": model["status"],
        "outcome": model["execution"]["outcome"],
        "delivery": model["execution"]["delivery"],
        "category": error["category"],
        "recovery": error["recovery"].as_str().unwrap_or("none"),
        "retry_after_ms": error["retry_after_ms"],
        "data": model["data"],
        "provenance": model["provenance"],
        "request_sha256": audit["binding"]["request_sha256"],
    });
    for (name, came) in came.as_object().expect("an object") {
        if *came != expect[name] {
            return Some(format!("{name} is {came}, told {}", expect[name]));
        }
    }
    let (ours, theirs) = (&audit["downstream"], &expect["downstream"]);
    for name in ["receipt_id", "request_id"] {
        if ours[name] != theirs[name] {
            return Some(format!("{name} is {}, told {}", ours[name], theirs[name]));
        }
    }
    // References are keyed: the same one stands for the same one.
    let known = theirs["status_ref"].as_str().and_then(|theirs| scene.references.get(theirs));
    match (ours["status_ref"].as_str(), known) {
        (Some(ours), Some(known)) if ours != known => Some(format!("another reference: {ours}")),
        (ours, _) if ours.is_some() != theirs["status_ref"].is_string() => {
            Some(format!("the reference is {ours:?}, told {}", theirs["status_ref"]))
        }
        _ => None,
    }
}

fn worked(before: &Rows, after: &Rows, returns: &str) -> Option<String> {
    let Some((_, row, _)) = after.last() else { return Some("there is no operation".to_owned()) };
    let came = match returns {
        "succeeded" => name(row) == "committed",
        "not_claimed" => before == after,
        "authorization_denied" => name(row) == "parked: authorization_denied",
        "business_rule_denied" => name(row) == "parked: business_rule_violation",
        _ => false,
    };
    (!came).then(|| format!("{} instead of {returns}", name(row)))
}

fn claimed(reply: &Reply, expect: &Value) -> Option<String> {
    if !expect["raises"].is_null() {
        return (!matches!(reply, Reply::Refused(_))).then(|| format!("{reply:?} instead of failing"));
    }
    (is_claimed(reply) == expect["claim"].is_null()).then(|| format!("{reply:?}, told {}", expect["claim"]))
}

/// Whether the store and the remote stand as told.
fn stands(after: &Value, scene: &Scene) -> Option<String> {
    if after.is_null() {
        return None;
    }
    let rows = scene.operation_rows();
    let committed = |row: &ActionRow| name(row) == "committed";
    let counts = json!({
        "call_bindings": scene.call_bindings() - scene.prepared,
        "operations": rows.len(),
        "outbox": rows.len(),
        "downstream_receipts": scene.world.outside().drafts.len(),
        "local_receipts": rows.iter().filter(|(_, row, _)| committed(row)).count(),
    });
    if counts != after["counts"] {
        return Some(format!("there are {counts}, told {}", after["counts"]));
    }
    let theirs = after["operations"].as_array()?.iter().zip(after["outbox"].as_array()?);
    for ((theirs, outbox), (_, row, effect)) in theirs.zip(&rows) {
        let effect = effect.as_ref()?;
        let state = match (name(row), effect.state) {
            ("committed", EffectState::Committed) => "succeeded",
            ("queued", EffectState::Queued) => "pending",
            _ => "processing",
        };
        if state != text(theirs, "state") {
            return Some(format!("{state} ({}, {}), told {theirs}", name(row), effect.state));
        }
        let settled = effect.updated_at.micros() / 1_000_000;
        if state == "succeeded" && theirs["completed_at"].as_i64() != Some(settled) {
            return Some(format!("completed at {settled}, told {}", theirs["completed_at"]));
        }
        if outbox["attempt_count"].as_u64() != Some(effect.fence) {
            return Some(format!("{} attempts, told {}", effect.fence, outbox["attempt_count"]));
        }
        let lease = effect.lease_until.map(|until| until.micros() / 1_000_000).filter(|_| effect.held());
        if lease != outbox["lease_until"].as_i64() {
            return Some(format!("leased until {lease:?}, told {}", outbox["lease_until"]));
        }
    }
    None
}

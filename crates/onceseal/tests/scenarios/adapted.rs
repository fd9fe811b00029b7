//! Where Onceseal departs from the reference, and why.

use serde_json::Value;

/// A step that comes out otherwise.
pub(crate) struct Adapted {
    pub(crate) reason: &'static str,
    pub(crate) instead: Instead,
}

/// What is expected instead.
pub(crate) enum Instead {
    /// This, in a word.
    Is(&'static str),
    /// What is told, so many seconds later.
    Later(i64),
    /// Whatever it is, nothing is done again.
    NotDoneAgain,
    /// There is nothing that could be called so.
    Unplayed,
}

use Instead::{Is, Later, NotDoneAgain, Unplayed};

const INCLUSIVE: &str =
    "the end of a lease and of an approval is inclusive (design 30, Different on purpose)";
const SETTLES: &str =
    "a remote is asked once it is done with an attempt: `settle` after the lease (design 30)";
const PARKED: &str =
    "what is refused before it begins is parked, and goes on when a person says so (design 30)";
const CONTRACTS: &str = "work goes on, and is replayed, under the contract stored with it (design 30)";
const PROVEN: &str =
    "approvals are stored and proven, not passed: none exists that nobody may give (design 20)";
const ASKED: &str = "asking for an approval is recorded before it is given (design 20)";
const UNNAMED: &str =
    "workers draw their own ids, leases come from the contract, points are hooks (design 30)";
const BOUNDED: &str =
    "moments end in 9999 for every library, and a clock that jumps stops everything (design 60)";
const ROWS: &str =
    "rows are a fold of a chained journal, which audit rebuilds: every change is found (design 50)";
const REMOTES: &str = "the remote's ledger is the remote's own, which no audit of ours reads (design 50)";
const TELLS: &str = "what cannot be told now delays, and the model is told to come back (design 30)";
const EXECUTORS: &str =
    "an executor that fails leaves an unknown outcome, which is told, not raised (design 30)";
const UNKNOWN: &str =
    "a tool that is not declared has no revisions, whatever the reference registers (design 30)";
const WISHES: &str =
    "an approval is bound to the wish: its action, key and contract, whichever call asked (P01)";

pub(crate) fn adapted(scenario: &str, at: usize, step: &Value) -> Option<Adapted> {
    let op = step["op"].as_str().expect("an operation");
    let (reason, instead) = match (scenario, at) {
        ("registered read tool is refused here", 0) => (UNKNOWN, Is("UNKNOWN_TOOL")),
        ("role revoked before the worker" | "worker: access taken away then given back", 3) => {
            (PARKED, Is("parked: authorization_denied"))
        }
        ("worker: access taken away then given back", 5 | 6) => (PARKED, Is("nothing")),
        ("worker: order no longer paid", 2) => (PARKED, Is("parked: business_rule_violation")),
        ("worker: order no longer paid", 3) => (PARKED, Is("OUTCOME_UNKNOWN")),
        ("worker: order no longer paid", 4) => (PARKED, Is("nothing")),
        ("third look-up decides the worker" | "resolver gives nobody at the worker", 1) => {
            (PARKED, Is("OUTCOME_UNKNOWN"))
        }
        ("resolver returns unsorted roles", 1) => (TELLS, Is("RATE_LIMIT")),
        ("resource decision raises: escapes unwrapped", 1) => (TELLS, Is("RATE_LIMIT")),
        (name, 1) if name.starts_with("resolver answer: ") && !name.ends_with("32_roles") => {
            (TELLS, Is("RATE_LIMIT"))
        }
        ("approval edge: expires at now", 0) => (INCLUSIVE, Is("OK")),
        ("approval edge: expires at the last portable second", 0) => (BOUNDED, Is("OUTCOME_UNKNOWN")),
        ("approval edge: past the last portable second", 0) => (BOUNDED, Is("OK")),
        ("approval by an unlisted approver", 0) => (PROVEN, Is("APPROVAL_REQUIRED")),
        ("blank approval id", 0) => (PROVEN, Is("OK")),
        ("approval for another provider", 0) => (WISHES, Is("OK")),
        ("failure after claim", 3)
        | ("failure after downstream commit, recovered by redelivery", 2)
        | ("redelivery against changed receipt ids: not compared", 2)
        | ("fault: downstream insert fails", 4) => (SETTLES, Later(3)),
        ("failure after claim", 4) => (SETTLES, Is("OK")),
        ("fault: downstream insert fails", 1 | 2) => (EXECUTORS, Is("OUTCOME_UNKNOWN")),
        ("fault: outbox insert fails", 1) => (ASKED, Is("store_failed")),
        ("fault: delivery update fails", 2) => (EXECUTORS, Is("store_failed")),
        ("dispatch controls checked before reservation", 0 | 1) => (UNNAMED, Unplayed),
        ("dispatch controls checked before reservation", 3) => (UNNAMED, Is("OUTCOME_UNKNOWN")),
        ("unknown failure name", 0) => (UNNAMED, Unplayed),
        ("time edges of dispatch", _) => (BOUNDED, NotDoneAgain),
        ("claim argument errors", 1..=3) => (UNNAMED, Unplayed),
        ("claim argument errors", 6..) => (BOUNDED, NotDoneAgain),
        ("claim unknown or malformed reference", 4) => (UNNAMED, Is("nothing")),
        ("claim unknown or malformed reference", _) => (UNNAMED, Is("operation_unknown")),
        (name, 2) if name.starts_with("worker: drift of ") => (CONTRACTS, Is("committed")),
        (name, at) if name.contains(": drift of ") => match op {
            "audit" => (CONTRACTS, Is("clean")),
            // Another meaning of the request is another request, as it is told.
            "dispatch" | "query" if at < 2 => return None,
            "dispatch" if means_another(name) && at == 4 => (CONTRACTS, Is("CALL_ID_CONFLICT")),
            // The worker has carried it out meanwhile, under its own contract.
            "query" if means_another(name) && name.starts_with("worker") => {
                (CONTRACTS, Is("STATUS_CONFLICT"))
            }
            "dispatch" if means_another(name) && at == 5 => (CONTRACTS, Is("IDEMPOTENCY_CONFLICT")),
            "dispatch" | "query" if means_another(name) => return None,
            "dispatch" | "query" => (CONTRACTS, Is("OK")),
            _ => return None,
        },
        (name, at) if at > 0 && (name.starts_with("tamper") || name.starts_with("rows deleted")) => {
            let remotes = name.contains("downstream");
            match op {
                "audit" if remotes => (REMOTES, Is("clean")),
                "audit" => (ROWS, Is("found")),
                "dispatch" | "query" | "process" => (if remotes { REMOTES } else { ROWS }, NotDoneAgain),
                _ => return None,
            }
        }
        (name, 2) if name.starts_with("redelivery against a changed") => (REMOTES, NotDoneAgain),
        ("stored reference changed, asked by the changed one", 2) => (ROWS, NotDoneAgain),
        ("journal mode changed behind its back", 2) => (ROWS, Is("clean")),
        ("operation back to pending while outbox is processing is not audited", 2) => (ROWS, Is("found")),
        _ => return None,
    };
    Some(Adapted { reason, instead })
}

/// Whether the revision that changes decides what a request means.
fn means_another(scenario: &str) -> bool {
    ["input", "output", "effect"].iter().any(|part| scenario.contains(&format!("drift of {part}")))
}

//! The cases of the persistent tool runtime that the core answers: how calls
//! and requests are named and checked.
//!
//! A case is run as it stands, or it is adapted with the reason beside it.

use onceseal_core::hash::BlindingKey;
use onceseal_core::json::{Limits, canonical, read};
use onceseal_core::operation::{CallIdentity, Purpose, Revisions, Scope, principal_ref};
use serde_json::Value as Vector;

#[path = "support/vectors.rs"]
mod vectors;

use vectors::{text, vectors};

/// How many cases passed as they stand, and how many adapted.
#[derive(Default)]
struct Tally(usize, usize);

impl Tally {
    fn print(&self, section: &str, cases: usize) {
        println!("{section}: {} passed, {} adapted", self.0, self.1);
        assert_eq!(self.0 + self.1, cases, "{section}: no case is skipped");
    }
}

fn call(value: &Vector) -> CallIdentity {
    let of = |name| text(value, name).to_owned();
    CallIdentity {
        provider: of("provider"),
        api_family: of("api_family"),
        adapter_revision: of("adapter_revision"),
        response_id: of("response_id"),
        call_id: of("call_id"),
        operation_id: of("operation_id"),
        idempotency_key: value["idempotency_key"].as_str().map(str::to_owned),
    }
}

fn hex(hash: onceseal_core::hash::Hash) -> String {
    hash.to_string().trim_start_matches("sha256:").to_owned()
}

#[test]
fn the_digest_cases_of_the_reference() {
    let (vectors, mut tally) = (vectors(), Tally::default());
    let cases = vectors["digests"].as_array().expect("cases");
    let key = BlindingKey([7; 32]);
    let mut references: Vec<(String, String)> = Vec::new();
    for case in cases {
        let (principal, made, contract) = (&case["principal"], &case["call"], &case["tool_contract"]);
        let (tenant, subject) = (text(principal, "tenant_id"), text(principal, "subject_id"));
        let call = call(made);
        let arguments = read(made["arguments"].to_string().as_bytes(), &Limits::DATA).expect("arguments");
        let revisions = Revisions {
            input: text(contract, "input_schema_revision"),
            output: text(contract, "output_schema_revision"),
            effect: text(contract, "effect_revision"),
        };
        let idempotency = call.idempotency_key.clone().unwrap_or_default();
        let scope = Scope { tenant, subject, tool: text(made, "name"), key: &idempotency };
        let request = scope.request(&canonical(&arguments), revisions);
        assert_eq!(hex(request), text(case, "request_sha256"), "{}", case["name"]);
        assert_eq!(principal_ref(tenant, subject), text(case, "principal_ref"));
        for purpose in [Purpose::Dispatch, Purpose::QueryStatus] {
            let expected = text(&case["call_fingerprint"][purpose.as_str()], "sha256");
            assert_eq!(hex(call.fingerprint(purpose, request)), expected, "{}", case["name"]);
        }
        if let Some(derived) = case["status_query"].as_object() {
            let asked = call.status_query(text(case, "status_ref"));
            assert_eq!(asked.call_id, derived["call_id"].as_str().expect("text"));
            assert_eq!(asked.response_id, derived["response_id"].as_str().expect("text"));
            references.push((scope.status_ref(&key, request), text(case, "status_ref").to_owned()));
        }
        tally.0 += 1;
    }
    // References are keyed here, so that nobody can guess a key from one: they are
    // equal exactly where the reference's are.
    for (ours, theirs) in &references {
        for (others, their_others) in &references {
            assert_eq!(ours == others, theirs == their_others);
        }
        assert!(ours.starts_with("status_") && ours.len() == theirs.len());
    }
    tally.print("digests", cases.len());
}

#[test]
fn the_host_context_cases_of_the_reference() {
    let (vectors, mut tally) = (vectors(), Tally::default());
    let cases = vectors["host_context"].as_array().expect("cases");
    for case in cases {
        let name = text(case, "name");
        let accepted = case["accepted"].as_bool().expect("a boolean");
        // The store's clock says the time, and a resolver the roles: neither is taken
        // from the caller, so neither can be wrong.
        let not_said = name.starts_with("now ") || name.contains("role");
        // A tool's name is checked where the tool is looked for.
        let elsewhere = name == "blank name";
        let ours = call(&case["call"]).check().is_ok();
        if not_said || elsewhere {
            assert!(ours, "{name}: nothing else is wrong with it");
            tally.1 += usize::from(!accepted);
            tally.0 += usize::from(accepted);
        } else {
            assert_eq!(ours, accepted, "{name}");
            tally.0 += 1;
        }
    }
    tally.print("host_context", cases.len());
}

//! Hashes beside the runs of the cadence run store. Where it hashes canonical
//! JSON, ours is the same text; where it frames values by their lengths, ours
//! stand behind a line that says what they are.

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::handoff::{Giver, PrepareHandoff};
use onceseal_core::json::{self, Limits};
use onceseal_core::lease::Resource;
use onceseal_core::reply::Reply;
use serde_json::{Value as Vector, json};
use sha2::{Digest, Sha256};

use crate::calls::identity;
use crate::executor::Real;
use crate::playing::{POLICY, digest};
use crate::world::World;
use crate::{hex, vectors};

/// SHA-256 of our canonical text of a value.
fn canonical(value: &Vector) -> String {
    let value = json::read(value.to_string().as_bytes(), &Limits::DATA).expect("a value");
    hex(&Sha256::digest(json::canonical(&value)))
}

#[test]
fn the_facts_of_designs_are_hashed_alike() {
    let vectors = vectors();
    let design = &vectors["satelliteHashes"]["designFacts"];
    let facts = design["facts"].as_array().expect("facts");
    for (at, fact) in facts.iter().enumerate() {
        let mut record = fact.clone();
        let parts = record.as_object_mut().expect("an object");
        parts.retain(|name, _| !["payload", "recordHash"].contains(&name.as_str()));
        parts.insert("runId".to_owned(), design["runId"].clone());
        parts.insert("sequence".to_owned(), (at + 1).into());
        assert_eq!(canonical(&fact["payload"]), fact["canonicalHash"].as_str().expect("a hash"));
        assert_eq!(canonical(&record), fact["recordHash"].as_str().expect("a hash"), "{record}");
    }
    println!("designFacts: {} passed, 0 adapted", 2 * facts.len());
}

#[test]
fn the_fingerprint_of_a_route_is_hashed_alike() {
    let vectors = vectors();
    let route = &vectors["satelliteHashes"]["routeFingerprint"];
    assert_eq!(canonical(&route["route"]), route["fingerprint"].as_str().expect("a hash"));
    println!("routeFingerprint: 1 passed, 0 adapted");
}

#[test]
fn a_handoff_is_prepared_on_the_facts_of_the_reference_and_on_no_others() {
    let vectors = vectors();
    let of = &vectors["satelliteHashes"]["bootstrap"];
    let facts = json!({
        "acceptanceFacts": of["acceptanceFactsSorted"], "workspaceManifestHash": of["workspaceManifestHash"]
    });
    assert_eq!(canonical(&facts), of["acceptanceHash"].as_str().expect("a hash"));
    let text = json::canonical(&json::read(facts.to_string().as_bytes(), &Limits::DATA).expect("a value"));
    let mut world = World::new(&Real, POLICY);
    let receipt = digest(of["inputs"]["receiptHash"].as_str().expect("a hash")).expect("a digest");
    let mut prepare = |facts: &str| {
        let resource = Resource::parse("name/control").expect("a resource");
        let by = Giver::Operator { person: identity("os:owner"), reason: "cut over".to_owned() };
        let (facts, principal) = (facts.to_owned(), Principal::agent("bootstrap"));
        let prepare = PrepareHandoff { resource, receipt, facts, by, principal };
        world.run(Command::PrepareHandoff(Box::new(prepare)))
    };
    assert_eq!(prepare(&text), Reply::Done { changed: true });
    assert_eq!(prepare(&text), Reply::Done { changed: false }, "the same again is as it was");
    let other = prepare(&text.replace("Bun check", "Bun test"));
    assert!(matches!(&other, Reply::Refused(why) if why.code == Code::HandoffConflict), "{other:?}");
    let unsorted = facts.to_string().replace("\"acceptanceFacts\":", "\"acceptanceFacts\": ");
    assert!(matches!(&prepare(&unsorted), Reply::Refused(why) if why.code == Code::FactsInvalid));
    // Ours is named by its receipt alone.
    for id in ["handoffId", "handoffIdWithoutAcceptance"] {
        assert!(of[id].as_str().expect("an id").starts_with("handoff-"));
    }
    println!("bootstrap: 1 passed, 2 adapted: a handoff is named by its receipt, once and for ever");
}

#[test]
fn the_events_of_a_ledger_are_values_with_one_text_here() {
    let vectors = vectors();
    let events = vectors["satelliteHashes"]["taskLedger"]["events"].as_array().expect("events");
    for event in events {
        let text = event["eventJson"].as_str().expect("a text");
        let value = json::read(text.as_bytes(), &Limits::DATA).expect("a value");
        let ours = json::canonical(&value);
        assert_eq!(
            serde_json::from_str::<Vector>(&ours).ok(),
            serde_json::from_str(text).ok(),
            "the same value"
        );
        assert_ne!(ours, text, "needs no adapting");
        // In whatever order its members stand, the text is this one.
        let again = json::read(ours.as_bytes(), &Limits::DATA).expect("a value");
        assert_eq!(json::canonical(&again), ours);
    }
    println!(
        "taskLedger: 0 passed, {} adapted: members have one order, and a fact of a task is an event of its stream",
        events.len()
    );
    assert_eq!(events.len(), 2);
}

#[test]
fn values_that_only_differ_in_where_they_are_parted_have_different_hashes() {
    let vectors = vectors();
    let cases = vectors["satelliteHashes"]["lengthPrefixed"]["cases"].as_array().expect("cases");
    let mut hashes = Vec::new();
    for case in cases {
        let values: Vec<String> = case["values"]
            .as_array()
            .expect("values")
            .iter()
            .map(|value| value.as_str().expect("a text").to_owned())
            .collect();
        // Ours part values by writing them as canonical JSON.
        let ours = canonical(&json!(values));
        assert_ne!(ours, case["hash"].as_str().expect("a hash"), "needs no adapting");
        hashes.push(ours);
    }
    let count = hashes.len();
    hashes.sort();
    hashes.dedup();
    assert_eq!((hashes.len(), count), (4, 4), "none is another's");
    println!(
        "lengthPrefixed: 0 passed, {count} adapted: values are parted by canonical JSON, not by lengths"
    );
}

//! The receipt's document for each kind of terminal answer. Ids, hashes and
//! salts are numbered in the order in which they appear; everything else is
//! as it is printed.

use std::collections::BTreeMap;
use std::fmt::Write;

use onceseal::core::approval::Said;
use onceseal::core::hash::Hash;
use onceseal::core::id::ReceiptId;
use onceseal::core::journal::{chain_hash, seal_hash};
use onceseal::core::json::{self, Value};
use onceseal::{Error, Failure, Principal, Proposing};

use crate::support::{World, host, needed, never};

const MINUTE: i64 = 60_000_000;

/// One member a line, one event a line, with ids and hashes numbered.
fn shown(document: &Value) -> String {
    let mut text = String::new();
    for (name, value) in document.as_object().expect("an object").iter() {
        if name != "events" {
            writeln!(text, "{name}: {}", json::canonical(value)).expect("text");
        }
    }
    let events = document.as_object().and_then(|o| o.get("events")).and_then(Value::as_list);
    for event in events.expect("events") {
        let member = |name: &str| event.as_object().and_then(|o| o.get(name)).expect("a member");
        let position = json::canonical(member("position"));
        writeln!(text, "event {position}: {}", json::canonical(member("open"))).expect("text");
        writeln!(text, "   sealed: {}", json::canonical(member("sealed"))).expect("text");
    }
    numbered(&text)
}

/// Runs of 32 or more hex digits, numbered by what stands before them.
fn numbered(text: &str) -> String {
    let (mut out, mut rest, mut seen) = (String::new(), text, BTreeMap::new());
    while let Some(start) = rest.find(|c: char| c.is_ascii_hexdigit()) {
        let run = rest[start..].find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len() - start);
        let (before, hex) = (&rest[..start], &rest[start..start + run]);
        out.push_str(before);
        if run >= 32 {
            let number = seen.len() + 1;
            write!(out, "#{}", seen.entry(hex.to_owned()).or_insert(number)).expect("text");
        } else {
            out.push_str(hex);
        }
        rest = &rest[start + run..];
    }
    out + rest
}

/// The same on each store; printed for the snapshot, and checked by itself.
async fn snapshot(name: &str, scene: impl AsyncFn(&World) -> ReceiptId) {
    let mut texts = Vec::new();
    for world in World::both().await {
        let id = scene(&world).await;
        let document = world.control.receipt(id).expect("readable").expect("there");
        verify(&document);
        texts.push(shown(&document));
    }
    assert_eq!(texts[0], texts[1], "both stores tell the same");
    insta::assert_snapshot!(name, texts[0]);
}

/// Every event can be checked by whoever has the document alone.
fn verify(document: &Value) {
    let events = document.as_object().and_then(|o| o.get("events")).and_then(Value::as_list);
    for event in events.expect("events") {
        let member = |name: &str| event.as_object().and_then(|o| o.get(name)).expect("a member");
        let open = json::canonical(member("open"));
        assert_eq!(member("hash").as_text(), Some(chain_hash(&open).to_string().as_str()));
        if let (Some(salt), sealed) = (member("salt").as_text(), member("sealed")) {
            let mut bytes = [0; 32];
            onceseal::core::hash::read_hex(salt, &mut bytes).expect("hex");
            let seal = member("open").as_object().and_then(|open| open.get("seal")).and_then(Value::as_text);
            let seal = Hash::parse(seal.expect("a seal"));
            assert_eq!(seal, Some(seal_hash(&bytes, &json::canonical(sealed))));
        }
    }
}

fn refund(world: &World, amount: i64) -> Proposing {
    let principal = Principal::agent("bot").on_behalf_of("cy");
    world.pay("o-1", amount).arg("note", "as asked").by(principal)
}

/// The receipt that an error names.
fn named<T: std::fmt::Debug>(result: Result<T, Error>) -> ReceiptId {
    match result.expect_err("an error") {
        Error::Unknown { receipt: Some(id), .. } | Error::NotExecuted { receipt: Some(id), .. } => id,
        other => other.refusal().and_then(|refusal| refusal.receipt).expect("a receipt"),
    }
}

#[tokio::test]
async fn committed_with_an_approval_of_a_person() {
    snapshot("committed", async |world| {
        let (_, approval) = needed(refund(world, 2_000).execute(never).await);
        world.clock.advance(MINUTE);
        world.answer(approval, "ann", Said::Yes).await.expect("counted");
        world.clock.advance(MINUTE);
        let clock = world.clock.clone();
        let receipt = refund(world, 2_000).execute(|_| async move {
            clock.advance(1_500_000);
            Ok::<_, Failure>("re_1")
        });
        receipt.await.expect("committed").id.expect("a receipt")
    })
    .await;
}

#[tokio::test]
async fn failed_by_the_executors_word() {
    snapshot("failed", async |world| {
        named(
            refund(world, 5)
                .execute(|_| async {
                    let (code, message) = (Some("card_declined".to_owned()), "the bank said no".to_owned());
                    Err::<(), _>(Failure::NotExecuted { code, message })
                })
                .await,
        )
    })
    .await;
}

#[tokio::test]
async fn ambiguous_by_a_lost_answer() {
    snapshot("ambiguous", async |world| {
        named(refund(world, 5).execute(|_| async { Err::<(), _>(Failure::unknown("reset by peer")) }).await)
    })
    .await;
}

#[tokio::test]
async fn denied_by_the_policy() {
    snapshot("denied_by_policy", async |world| named(refund(world, 9_999).execute(never).await)).await;
}

#[tokio::test]
async fn denied_by_a_person() {
    snapshot("denied_by_person", async |world| {
        let (action, approval) = needed(refund(world, 2_000).execute(never).await);
        world.answer(approval, "ann", Said::No).await.expect("counted");
        let row = world.control.action_row(action).expect("readable").expect("there");
        row.receipt().expect("a receipt")
    })
    .await;
}

#[tokio::test]
async fn blocked_as_a_duplicate() {
    snapshot("blocked", async |world| {
        refund(world, 5).execute(|_| async { Ok::<_, Failure>("re_1") }).await.expect("committed");
        named(refund(world, 5).execute(never).await)
    })
    .await;
}

#[tokio::test]
async fn answered_by_a_person() {
    snapshot("answered", async |world| {
        let lost = refund(world, 5).execute(|_| async { Err::<(), _>(Failure::unknown("reset by peer")) });
        assert!(lost.await.is_err());
        world.clock.advance(MINUTE);
        let word = ("it is in the bank's list".to_owned(), Some("statement 7".to_owned()));
        let reply = world.control.resolve("pay:o-1", None, true, word.0, word.1, host("ann")).await;
        match reply.expect("resolved") {
            onceseal::core::reply::Reply::Settled { receipt: Some(id), .. } => id,
            other => panic!("{other:?}"),
        }
    })
    .await;
}

#[tokio::test]
async fn late_after_a_person_had_answered() {
    snapshot("late", async |world| {
        let (control, clock) = (world.control.clone(), world.clock.clone());
        let result = refund(world, 5).execute(|_| async move {
            clock.advance(6 * MINUTE);
            let word = control.resolve("pay:o-1", None, false, "not in the list".into(), None, host("ann"));
            word.await.expect("resolved");
            Ok::<_, Failure>("re_1")
        });
        named(result.await)
    })
    .await;
}

#[tokio::test]
async fn redacted_arguments_are_marked_and_the_hashes_over_them_withheld() {
    snapshot("redacted", async |world| {
        let call = refund(world, 5).arg("card", "4242424242424242");
        let receipt = call.execute(|_| async { Ok::<_, Failure>("charged 4242424242424242") }).await;
        receipt.expect("committed").id.expect("a receipt")
    })
    .await;
}

#[tokio::test]
async fn a_refusal_repeated_within_a_minute_is_answered_with_the_first_receipt() {
    for world in World::both().await {
        let refused = async || {
            let error = refund(&world, 9_999).execute(never).await.expect_err("denied");
            let refusal = error.refusal().expect("a refusal").clone();
            (refusal.receipt.expect("a receipt"), refusal.repeated)
        };
        let (first, repeated) = refused().await;
        assert!(!repeated);
        world.clock.advance(MINUTE);
        assert_eq!(refused().await, (first, true));
        world.clock.advance(1);
        let (second, repeated) = refused().await;
        assert!(!repeated && second != first);
    }
}

#[tokio::test]
async fn receipts_are_listed_by_pages_in_both_directions() {
    for world in World::both().await {
        for n in 0..7 {
            let done = world.pay(&format!("o{n}"), 5).execute(|_| async { Ok::<_, Failure>(()) }).await;
            done.expect("committed");
        }
        for newest_first in [false, true] {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let page = world.control.receipts(after, newest_first, 3).expect("readable");
                let Some((last, _)) = page.last() else { break };
                after = Some(*last);
                found.extend(page.into_iter().map(|(id, _)| id));
            }
            assert_eq!(found.len(), 7);
            let ordered = |two: &[ReceiptId]| (two[0] < two[1]) != newest_first;
            assert!(found.windows(2).all(ordered), "{found:?}");
        }
        assert_eq!(world.control.receipt(ReceiptId([0xee; 16])).expect("readable"), None);
    }
}

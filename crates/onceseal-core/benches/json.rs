//! How fast one action is read and written in canonical form.

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use onceseal_core::json::{Limits, canonical, read};

/// About 1 KB as clients send it: members in their own order, white space,
/// escapes, texts beyond ASCII, nested lists and objects.
const ACTION: &str = r#"{
  "name": "stripe.refund", "tenant": "default", "environment": "production",
  "principal": {"user": "user:ada@example.com", "agent": "support-agent-7"},
  "resource": "payment:pi_3QKx8cLk2eZvKYlo1h2Jd9aB",
  "arguments": {
    "payment_id": "pi_3QKx8cLk2eZvKYlo1h2Jd9aB", "amount": 4599, "currency": "eur",
    "reason": "requested_by_customer", "note": "Kunde möchte die Bestellung zurückgeben, \"zu groß\" \u2013 siehe Ticket.\nKein Ersatz gewünscht.",
    "lines": [
      {"sku": "SHOE-42-BLK", "quantity": 1, "unit_amount": 3999, "tax": 760, "taxable": true},
      {"sku": "SHIP-EXPRESS", "quantity": 1, "unit_amount": 600, "tax": 114, "taxable": false}
    ],
    "metadata": {"ticket": "SUP-20931", "channel": "email", "order": "ORD-2026-11-004821", "priority": null},
    "notify": {"customer": true, "address": "kunde@example.com", "locale": "de-DE"},
    "receipt_url": "https://pay.example.com/receipts/3QKx8cLk2eZvKYlo1h2Jd9aB?lang=de", "attempts": [0, 1, 2, 3]
  }
}"#;

fn main() {
    println!("one action has {} bytes, {} in canonical form", ACTION.len(), written().len());
    divan::main();
}

fn written() -> String {
    canonical(&read(ACTION.as_bytes(), &Limits::ACTION).expect("an action"))
}

#[divan::bench]
fn read_and_canonical(bencher: Bencher) {
    bencher
        .counter(ItemsCount::new(1_u32))
        .counter(BytesCount::of_str(ACTION))
        .bench(|| canonical(&read(black_box(ACTION.as_bytes()), &Limits::ACTION).expect("an action")));
}

#[divan::bench]
fn read_and_canonical_of_stored_text(bencher: Bencher) {
    let stored = written();
    bencher
        .counter(ItemsCount::new(1_u32))
        .counter(BytesCount::of_str(&stored))
        .bench(|| canonical(&read(black_box(stored.as_bytes()), &Limits::ACTION).expect("an action")));
}

#[divan::bench]
fn read_only(bencher: Bencher) {
    bencher
        .counter(ItemsCount::new(1_u32))
        .bench(|| read(black_box(ACTION.as_bytes()), &Limits::ACTION).expect("an action"));
}

#[divan::bench]
fn canonical_only(bencher: Bencher) {
    let value = read(ACTION.as_bytes(), &Limits::ACTION).expect("an action");
    bencher.counter(ItemsCount::new(1_u32)).bench(|| canonical(black_box(&value)));
}

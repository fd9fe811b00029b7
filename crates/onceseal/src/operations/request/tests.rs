//! What requests say of their destination.

use super::*;
use crate::executed::Outcome;

fn remote(url: &str) -> Remote {
    let text = format!(r#"{{"url":"{url}","not_executed_on":[402,503]}}"#);
    match json::read(text.as_bytes(), &Limits::DATA).expect("it reads") {
        Value::Object(document) => Remote::parse(&document).expect("a remote"),
        other => panic!("no document: {other:?}"),
    }
}

#[test]
fn a_destination_is_scheme_host_and_port_in_one_form() {
    for (url, destination) in [
        ("https://Bank.Example/refunds/{id}", "https://bank.example"),
        ("https://bank.example:443?id={id}", "https://bank.example"),
        ("https://bank.example:80/", "https://bank.example:80"),
        ("http://bank.example:80#a", "http://bank.example"),
        ("http://[2001:db8::1]:8080/x", "http://[2001:db8::1]:8080"),
        ("http://bank.example", "http://bank.example"),
    ] {
        assert_eq!(remote(url).destination(), destination, "{url}");
    }
}

#[test]
fn what_cannot_be_reached_or_is_overloaded_counts_and_no_definite_no_does() {
    let client = Client::builder().build().expect("a client");
    let reached = remote("https://bank.example").with(client);
    let not_executed = |code: &str| Outcome::NotExecuted { code: code.to_owned() };
    let unknown = |code: &str| Outcome::Unknown { code: code.to_owned() };
    for (outcome, expected) in [
        (not_executed("connect"), Some(false)),
        (not_executed("connect_timeout"), Some(false)),
        (not_executed("name_lookup"), Some(false)),
        (unknown("timeout"), Some(false)),
        (unknown("deadline"), Some(false)),
        (unknown("broken_exchange"), Some(false)),
        (unknown("status_500"), Some(false)),
        (unknown("status_599"), Some(false)),
        (unknown("status_429"), Some(false)),
        (unknown("status_404"), Some(true)),
        (unknown("status_302"), Some(true)),
        (not_executed("status_402"), Some(true)),
        (not_executed("status_503"), Some(true)),
        (not_executed("not_filled"), None),
        (not_executed("invalid_request"), None),
        (not_executed("no_root_certificates"), None),
    ] {
        let failure = outcome.executed(Value::Null, "").expect_err("it failed");
        assert_eq!(reached.reached(&failure), expected, "{failure:?}");
    }
    assert_eq!(reached.reached(&Failure::unknown("")), None, "nothing is said");
}

//! The whole state machine of an approval, as a table.

use super::*;
use crate::approval::event::{Consumed, Expired, PersonSealed, Requested, Responded, Revoked};
use crate::journal::{Nothing, Refs};

const AT: Timestamp = Timestamp::MIN;

fn row(status: Status) -> ApprovalRow {
    ApprovalRow {
        status,
        action: ActionId([1; 16]),
        expires_at: AT,
        quorum: 1,
        proofs: vec![Proof::Host],
        consumed_by: None,
        revoked: None,
        created_at: AT,
        updated_at: AT,
        private: UNKNOWN,
    }
}

fn events() -> Vec<(String, Body)> {
    let person = || PersonSealed { person: Some("host:ada".into()), reason: None };
    let requested = Requested { expires_at: AT, proofs: vec![Proof::Host], quorum: 1 };
    let mut events = vec![("requested".into(), Body::ApprovalRequested(requested, UNKNOWN.bound.clone()))];
    for &said in Said::ALL {
        for &status in Status::ALL {
            let data = Responded { proof: Proof::Host, said, status };
            events.push((format!("answered {said}, {status}"), Body::ApprovalAnswered(data, person())));
        }
    }
    events.push(("expired".into(), Body::ApprovalExpired(Expired {}, Nothing {})));
    for &reason in Revoke::ALL {
        let data = Revoked { proof: Some(Proof::Host), reason };
        events.push((format!("revoked {reason}"), Body::ApprovalRevoked(data, person())));
    }
    events.push(("consumed".into(), Body::ApprovalConsumed(Consumed {}, Nothing {})));
    events
}

#[test]
fn every_status_answers_every_event() {
    let refs = Refs { action: Some(ActionId([2; 16])), ..Refs::NONE };
    let mut table = String::new();
    for before in std::iter::once(None).chain(Status::ALL.iter().copied().map(Some)) {
        table += before.map_or("none", Status::as_str);
        table.push('\n');
        for (name, body) in events() {
            let after = evolve(before.map(row), AT, &Event { refs: refs.clone(), body });
            let after = after.map_or_else(|_| "-".into(), |row| row.status.to_string());
            table += &format!("    {name:<24} {after}\n");
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn an_approver_who_takes_it_back_has_said_no_and_others_have_said_nothing() {
    for (name, body) in events() {
        let Ok(row) = evolve(Some(row(Status::Granted)), AT, &Event { refs: Refs::NONE, body }) else {
            continue;
        };
        let said: Vec<_> = row.private.responses.iter().map(|response| response.said).collect();
        let expected: &[Said] = if name == "revoked approver" { &[Said::No] } else { &[] };
        assert_eq!(said, expected, "{name}");
    }
}

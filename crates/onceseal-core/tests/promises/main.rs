//! The promises of the rules, each in its own words, on the real functions.
//!
//! One module per concept. Tests that prove a promise are named after it
//! (`p01_…`), those that answer a user's report after that (`ua_046_…`).

#[path = "../support/calls.rs"]
mod calls;
#[path = "../support/doing.rs"]
mod doing;
#[path = "../support/executor.rs"]
mod executor;
#[path = "../support/world.rs"]
mod world;

mod answers;
mod asking;
mod attempts;
mod binding;
mod damaged;
mod delivering;
mod dispatching;
mod ending;
mod endpoints;
mod handing_over;
mod hashes;
mod having;
mod holding;
mod operating;
mod outcomes;
mod people;
mod plans;
mod policy_change;
mod querying;
mod receipts_of_remotes;
mod recovering;
mod refusals;
mod routes;
mod running;
mod single_use;
mod tasks;
mod tools;
mod turns;

use calls::{Call, call, identity};
use executor::Real;
use onceseal_core::action::ActionRow;
use onceseal_core::approval::Revocation;
use onceseal_core::command::Command;
use onceseal_core::id::{ActionId, ApprovalId};
use onceseal_core::journal::Row;
use onceseal_core::reply::{Refusal, Reply};
use onceseal_core::stream::StreamId;
use world::World;

/// A payment that a person must approve.
const PAY: &str = r#"
schema: onceseal.policy/v1
actions:
  pay:
    effect: "pay:{id}"
    incidental: [note]
    approval: { ttl: 15m }
    lease: 2m
    decision: approve
  read: { decision: allow }
  send: { effect: "send:{id}", lease: 2m, decision: allow }
"#;

fn pay_world() -> World<'static> {
    World::new(&Real, PAY)
}

fn pay(amount: u32) -> Call {
    call("pay", &format!(r#"{{"amount":{amount},"id":1}}"#))
}

fn send(id: u32) -> Call {
    call("send", &format!(r#"{{"id":{id}}}"#))
}

/// The refusal.
#[track_caller]
fn refused(reply: Reply) -> Refusal {
    match reply {
        Reply::Refused(refusal) => *refusal,
        other => panic!("not refused: {other:?}"),
    }
}

impl World<'_> {
    /// An action's row.
    fn action(&self, id: ActionId) -> &ActionRow {
        match self.row(&StreamId::action(id)) {
            Some(Row::Action(row)) => row,
            other => panic!("no action {id}: {other:?}"),
        }
    }

    /// Takes an approval back.
    fn revoke(&mut self, approval: ApprovalId, person: &str) -> Reply {
        self.run(Command::Revoke(Revocation { approval, person: identity(person) }))
    }
}

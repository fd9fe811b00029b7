//! Whatever is done about operations.

use onceseal::core::code::Code;
use onceseal::core::command::Command;
use onceseal::core::effect::{Holding, Outcome, Settle};
use onceseal::core::json::{self, Limits, Value};
use onceseal::core::operation::{
    CallIdentity, Cancel, Claim, Dispatch, GiveBack, Next, Postpone, Query, Retry, Revisions, Scope,
};
use onceseal::core::reply::Reply;
use onceseal::core::route::{CloseRoute, Health, OPENS_AFTER};
use onceseal::core::time::Span;
use onceseal::core::tool::{Declare, Tool};
use proptest::prelude::*;

use super::{World, chosen};
use crate::sample::host;

/// One thing done about operations; numbers choose among what there is.
#[derive(Debug, Clone)]
pub(super) enum Doing {
    Declare { contract: u8 },
    Retire { contract: u8 },
    Dispatch { name: &'static str, id: u8, contract: u8, call: u8, permitted: bool },
    Claim { action: u8, contract: u8, begin: bool },
    GiveBack { park: bool },
    Postpone { action: u8 },
    Query { reference: u8, id: u8, call: u8 },
    Retry { action: u8 },
    Cancel { action: u8 },
    CloseRoute,
}

pub(super) fn doing() -> impl Strategy<Value = Doing> {
    let name = prop_oneof![Just("pay"), Just("ship"), Just("ping"), Just("wipe")];
    prop_oneof![
        3 => (0..4u8).prop_map(|contract| Doing::Declare { contract }),
        1 => (0..4u8).prop_map(|contract| Doing::Retire { contract }),
        6 => (name, 0..4u8, 0..4u8, 0..8u8, any::<bool>()).prop_map(|(name, id, contract, call, permitted)| {
            Doing::Dispatch { name, id, contract, call, permitted }
        }),
        8 => (any::<u8>(), 0..4u8, any::<bool>()).prop_map(|(action, contract, begin)| {
            Doing::Claim { action, contract, begin }
        }),
        3 => any::<bool>().prop_map(|park| Doing::GiveBack { park }),
        1 => any::<u8>().prop_map(|action| Doing::Postpone { action }),
        2 => (any::<u8>(), 0..4u8, 0..8u8).prop_map(|(reference, id, call)| Doing::Query { reference, id, call }),
        2 => any::<u8>().prop_map(|action| Doing::Retry { action }),
        1 => any::<u8>().prop_map(|action| Doing::Cancel { action }),
        1 => Just(Doing::CloseRoute),
    ]
}

/// Contracts of `pay` and `ship`: nothing is made again, or with the same key,
/// or once the remote has been asked, or only where a business rule permits; at
/// a destination that has a circuit, or at none.
fn contract_of(which: u8) -> Tool {
    let text = match which {
        0 => r#"{"name":"pay","destination":"bank"}"#,
        1 => r#"{"name":"pay","destination":"bank","recovery":"same_key","key_ttl":"1h"}"#,
        2 => r#"{"name":"pay","recovery":"ask","settle":"2m"}"#,
        _ => r#"{"name":"ship","business_rule":"in stock","recovery":"ask","settle":"2m"}"#,
    };
    match json::read(text.as_bytes(), &Limits::DATA).expect("it reads") {
        Value::Object(document) => Tool::compile(&document).expect("a contract"),
        _ => unreachable!("an object"),
    }
}

fn identity(id: u8, call: u8) -> CallIdentity {
    CallIdentity {
        provider: "openai".to_owned(),
        api_family: "responses".to_owned(),
        adapter_revision: "openai-responses-v1".to_owned(),
        response_id: "resp".to_owned(),
        call_id: format!("call {call}"),
        operation_id: "op".to_owned(),
        idempotency_key: Some(format!("key {}", id / 2)),
    }
}

impl World<'_> {
    pub(super) fn operation(&self, doing: Doing) -> Option<Command> {
        let action = |number| chosen(&self.actions, number);
        let (person, reason) = (host("ann"), "looked".to_owned());
        Some(match doing {
            Doing::Declare { contract: which } => {
                Command::Declare(Declare::Activate(std::sync::Arc::new(contract_of(which))))
            }
            Doing::Retire { contract: which } => {
                let tool = contract_of(which);
                Command::Declare(Declare::Retire { name: tool.contract.identity.name, contract: tool.digest })
            }
            Doing::Dispatch { name, id, contract: which, call, permitted } => {
                Command::Dispatch(Box::new(Dispatch {
                    proposal: self.proposal(name, id),
                    contract: contract_of(which).digest,
                    call: identity(id, call),
                    approvals: Vec::new(),
                    permitted: permitted.then_some(true),
                }))
            }
            Doing::Claim { action: number, contract: which, begin } => {
                let action = action(number)?;
                // A worker usually knows under which contract.
                let row = self.control.action_row(action).expect("readable");
                let known = row.and_then(|row| row.operation).map(|operation| operation.contract);
                let contract = known.unwrap_or_else(|| contract_of(which).digest);
                let absent = self.absent.filter(|(asked, _)| *asked == action).map(|(_, at)| at);
                Command::Claim(Claim { action, contract, lease: None, begin, absent })
            }
            Doing::GiveBack { park } => {
                let code = Code::AuthorizationDenied;
                let after = Span::seconds(30);
                let attempt = self.attempts.last().map(Holding::from)?;
                let next = if park { Next::Park { code } } else { Next::Later { after, code } };
                Command::GiveBack(GiveBack { attempt, next })
            }
            Doing::Postpone { action: number } => {
                let (after, code) = (Span::seconds(30), Code::TooEarly);
                Command::Postpone(Postpone { action: action(number)?, after, code })
            }
            Doing::Query { reference, id, call } => {
                let (tenant, arguments) =
                    (&self.control.store().tenant().name, format!(r#"{{"id":"{id}"}}"#));
                let scope = Scope { tenant, subject: "bot", tool: "pay", key: "any" };
                let revisions = Revisions { input: "v1", output: "v1", effect: "v1" };
                Command::Query(Box::new(Query {
                    subject: "bot".to_owned(),
                    tool: "pay".to_owned(),
                    call: identity(id, call),
                    status_ref: chosen(&self.references, reference)?,
                    request: scope.request(&arguments, revisions),
                    expected: scope.request(&arguments, revisions),
                }))
            }
            Doing::Retry { action: number } => {
                Command::Retry(Retry { action: action(number)?, person, reason })
            }
            Doing::Cancel { action: number } => {
                Command::Cancel(Cancel { action: action(number)?, person, reason })
            }
            Doing::CloseRoute => {
                Command::CloseRoute(CloseRoute { destination: "bank".to_owned(), person, reason })
            }
        })
    }

    /// Attempts what is due as often as opens a circuit, and reaches nothing.
    pub(super) fn outage(&self) {
        let store = self.control.store();
        for _ in 0..OPENS_AFTER {
            for number in 0..=u8::try_from(self.actions.len()).unwrap_or(u8::MAX) {
                let claim = self.operation(Doing::Claim { action: number, contract: 0, begin: true });
                let Some(claim) = claim else { return };
                let Reply::Claimed(attempt, _) = store.run(claim).expect("an answer") else { continue };
                let settle = Settle {
                    code: Some("connect".to_owned()),
                    health: Some(Health::Ill { spread: 0 }),
                    again: Some(Span::ZERO),
                    ..Settle::new(Holding::from(&*attempt), Outcome::Failed)
                };
                store.run(Command::Settle(settle)).expect("an answer");
                break;
            }
        }
    }
}

//! Whatever is done about runs.

use std::sync::Arc;

use onceseal::Principal;
use onceseal::core::action::Action;
use onceseal::core::command::Command;
use onceseal::core::handoff::{AcceptHandoff, Giver, PrepareHandoff, WithdrawHandoff};
use onceseal::core::hash::Hash;
use onceseal::core::id::{HolderKey, RootId, RunId};
use onceseal::core::lease::{AcquireLease, CommitLease, InterruptLease, Preempt, RenewLease, Resource};
use onceseal::core::run::{
    BindChange, BindDeliveries, Definition, Delivery, StartRun, Subject, Towards, Transition,
};
use onceseal::core::time::Span;
use proptest::prelude::*;

use super::{World, chosen};
use crate::sample::host;

/// One thing done about runs; numbers choose among what there is.
#[derive(Debug, Clone)]
pub(super) enum Going {
    Start { change: Option<u8>, request: u8 },
    Run { run: u8, request: u8 },
    Bind { run: u8, change: u8, request: u8 },
    Move { run: u8, state: u8, request: u8 },
    Ask { run: u8, command: u8, request: u8 },
    Deliver { run: u8, revision: u8, receipt: u8, request: u8 },
    Take { resource: u8, holder: u8, shared: bool, preempt: bool },
    Renew { lease: u8 },
    Commit { lease: u8 },
    GiveUp { lease: u8 },
    HandOver { lease: u8, receipt: u8 },
    Accept { lease: u8, receipt: u8, holder: u8 },
    Withdraw { lease: u8, receipt: u8 },
}

pub(super) fn going() -> impl Strategy<Value = Going> {
    let request = 0..16u8;
    prop_oneof![
        3 => (proptest::option::of(0..3u8), request.clone())
            .prop_map(|(change, request)| Going::Start { change, request }),
        2 => (any::<u8>(), request.clone()).prop_map(|(run, request)| Going::Run { run, request }),
        1 => (any::<u8>(), 0..3u8, request.clone())
            .prop_map(|(run, change, request)| Going::Bind { run, change, request }),
        2 => (any::<u8>(), any::<u8>(), request.clone())
            .prop_map(|(run, state, request)| Going::Move { run, state, request }),
        2 => (any::<u8>(), 1..4u8, 0..2u8, request.clone())
            .prop_map(|(run, revision, receipt, request)| Going::Deliver { run, revision, receipt, request }),
        2 => (any::<u8>(), any::<u8>(), request)
            .prop_map(|(run, command, request)| Going::Ask { run, command, request }),
        4 => (any::<u8>(), 0..3u8, any::<bool>(), proptest::bool::weighted(0.2))
            .prop_map(|(resource, holder, shared, preempt)| Going::Take { resource, holder, shared, preempt }),
        1 => any::<u8>().prop_map(|lease| Going::Renew { lease }),
        1 => any::<u8>().prop_map(|lease| Going::Commit { lease }),
        1 => any::<u8>().prop_map(|lease| Going::GiveUp { lease }),
        2 => (any::<u8>(), 0..8u8).prop_map(|(lease, receipt)| Going::HandOver { lease, receipt }),
        2 => (any::<u8>(), 0..8u8, 0..3u8)
            .prop_map(|(lease, receipt, holder)| Going::Accept { lease, receipt, holder }),
        1 => (any::<u8>(), 0..8u8).prop_map(|(lease, receipt)| Going::Withdraw { lease, receipt }),
    ]
}

/// `design`, with a gate more that asks for no proof.
fn design() -> Definition {
    let design = Definition::built_in().into_iter().find(|found| found.kind() == "design");
    let text = design.expect("built in").text().to_owned();
    let text = text.replace(r#""gates":{"#, r#""gates":{"free":{"proof":"none"},"#);
    Definition::restore(&text).expect("a definition")
}

fn simple() -> Definition {
    Definition::built_in().into_iter().find(|found| found.kind() == "simple").expect("built in")
}

impl World<'_> {
    pub(super) fn going(&self, going: Going) -> Option<Command> {
        let principal = Principal::agent("bot");
        let request = |number: u8| format!("r{number}");
        let step = |run: RunId, to: Towards, number: u8| {
            let (principal, request) = (principal.clone(), request(number));
            Command::Transition(Transition { run, to, code: None, request, principal, under: None })
        };
        Some(match going {
            Going::Start { change, request: number } => {
                let unnamed = || Subject::Provisional(Hash([0xbb; 32]));
                let subject = change.map_or_else(unnamed, |change| Subject::Change(format!("c{change}")));
                let definition = if change.is_none_or(|change| change == 0) { design() } else { simple() };
                let (definition, request) = (Arc::new(definition), request(number));
                let start = StartRun { root: RootId([1; 16]), definition, subject, request, principal };
                Command::StartRun(Box::new(start))
            }
            Going::Run { run, request } => {
                step(chosen(&self.runs, run)?, Towards::State("running".to_owned()), request)
            }
            Going::Bind { run, change, request: number } => {
                let (change, request) = (format!("c{change}"), request(number));
                Command::BindChange(BindChange { run: chosen(&self.runs, run)?, change, request, principal })
            }
            Going::Move { run, state, request } => {
                let states: Vec<_> = design().states().keys().cloned().collect();
                step(chosen(&self.runs, run)?, Towards::State(chosen(&states, state)?), request)
            }
            Going::Deliver { run, revision, receipt, request: number } => {
                let delivery = Delivery {
                    gate: "free".to_owned(),
                    revision: u64::from(revision),
                    receipt: Hash([receipt; 32]),
                    contract: None,
                    record: None,
                    approval: None,
                };
                let bind = BindDeliveries {
                    run: chosen(&self.runs, run)?,
                    deliveries: vec![delivery],
                    environment: Action::DEFAULT_ENVIRONMENT.to_owned(),
                    request: request(number),
                    principal,
                    under: None,
                };
                Command::BindDeliveries(Box::new(bind))
            }
            Going::Take { resource, holder, shared, preempt } => {
                let root = RootId([1; 16]);
                let named = ["name/a", "name/b"].map(str::to_owned);
                let paths = ["a", "a/b", "a/b/c"].map(|path| format!("root/{root}/path/{path}"));
                let runs = self.runs.iter().map(|run| format!("run/{run}"));
                let all: Vec<String> = named.into_iter().chain(paths).chain(runs).collect();
                let resource = Resource::parse(&chosen(&all, resource)?)?;
                let preempt = preempt.then(|| Preempt { person: host("ann"), reason: "stuck".to_owned() });
                let (holder, length) = (HolderKey([holder; 16]), Span::minutes(5));
                Command::AcquireLease(Box::new(AcquireLease { resource, holder, length, shared, preempt }))
            }
            Going::Renew { lease } => Command::RenewLease(RenewLease {
                lease: chosen(&self.leases, lease)?,
                length: Span::minutes(9),
            }),
            Going::Commit { lease } => {
                let (lease, outcome) = (chosen(&self.leases, lease)?, "{}".to_owned());
                Command::CommitLease(CommitLease { lease, outcome })
            }
            Going::GiveUp { lease } => {
                Command::InterruptLease(InterruptLease { lease: chosen(&self.leases, lease)? })
            }
            Going::HandOver { lease, receipt } => {
                let lease = chosen(&self.leases, lease)?;
                let (resource, receipt) = (lease.resource.clone(), Hash([receipt; 32]));
                let (facts, by) = ("{}".to_owned(), Giver::Holder(lease));
                Command::PrepareHandoff(Box::new(PrepareHandoff { resource, receipt, facts, by, principal }))
            }
            Going::Accept { lease, receipt, holder } => {
                let resource = chosen(&self.leases, lease)?.resource;
                let (receipt, holder, length) =
                    (Hash([receipt; 32]), HolderKey([holder; 16]), Span::minutes(5));
                Command::AcceptHandoff(AcceptHandoff { resource, receipt, holder, length, principal })
            }
            Going::Withdraw { lease, receipt } => {
                let resource = chosen(&self.leases, lease)?.resource;
                let by = Giver::Operator { person: host("ann"), reason: "not now".to_owned() };
                let receipt = Hash([receipt; 32]);
                Command::WithdrawHandoff(WithdrawHandoff { resource, receipt, by })
            }
            Going::Ask { run, command, request } => {
                let name = chosen(&["cancel", "resume", "discard", "rebind"], command)?;
                step(chosen(&self.runs, run)?, Towards::Command(name.to_owned()), request)
            }
        })
    }
}

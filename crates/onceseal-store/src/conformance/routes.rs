//! Routes: a destination that does not answer is left alone for a while.

use onceseal_core::action::ActionState;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{Holding, Outcome, Settle};
use onceseal_core::hash::Hash;
use onceseal_core::id::ActionId;
use onceseal_core::journal::{Body, Row};
use onceseal_core::json::{self, Limits, Value};
use onceseal_core::reply::{Attempt, Reply};
use onceseal_core::route::{CloseRoute, Health, OPENS_AFTER, RouteState};
use onceseal_core::time::{Span, Timestamp};
use onceseal_core::tool::{Declare, Tool};

use super::operations::to_claim;
use super::world::{World, code, host, pay, to_settle};
use super::{Failure, Subject, Verdict, ensure, ensure_eq, suite, take};

suite! { "routes":
    failures_in_a_row_open_a_circuit_and_a_success_forgets_them
    what_an_open_circuit_puts_off_is_attempted_later
    one_of_many_workers_probes
    a_probe_closes_the_circuit_or_opens_it_for_longer
    a_person_closes_a_circuit
    ; durable:
    a_circuit_is_open_across_openings
}

const BANK: &str = "https://bank.example";

fn declare(world: &World<'_>) -> Result<Hash, Failure> {
    let text = format!(r#"{{"name":"pay","destination":"{BANK}"}}"#);
    let Value::Object(document) = json::read(text.as_bytes(), &Limits::DATA).map_err(Failure::new)? else {
        return Err(Failure::new("a contract is an object"));
    };
    let tool = Tool::compile(&document).map_err(Failure::new)?;
    let digest = tool.digest;
    world.command(Command::Declare(Declare::Activate(tool.into())))?;
    Ok(digest)
}

fn report(attempt: &Attempt, outcome: Outcome) -> Command {
    let Command::Settle(settle) = to_settle(Holding::from(attempt), outcome) else { unreachable!() };
    let health = (outcome != Outcome::Committed).then_some(Health::Ill { spread: 0 });
    Command::Settle(Settle { health, again: Some(Span::ZERO), ..settle })
}

fn fail(world: &World<'_>, action: ActionId, contract: Hash) -> Result<(), Failure> {
    let (attempt, _) = world.claim(action, contract, true)?;
    world.command(report(&attempt, Outcome::Failed))?;
    Ok(())
}

fn route(world: &World<'_>) -> Result<Option<RouteState>, Failure> {
    let stream = world.store.tenant().route(BANK);
    let found = world.store.read(|snapshot| snapshot.stream(&stream))?;
    Ok(crate::read::row_of(found).and_then(|stored| match stored.row {
        Row::Route(row) => Some(row.state),
        _ => None,
    }))
}

fn until(world: &World<'_>) -> Result<Timestamp, Failure> {
    Ok(take!(route(world)?, Some(RouteState::Open { until, .. }) => until, "the circuit is open"))
}

/// Until when it is open, once it is.
fn open(world: &World<'_>, action: ActionId, contract: Hash) -> Result<Timestamp, Failure> {
    for _ in 0..OPENS_AFTER {
        fail(world, action, contract)?;
    }
    until(world)
}

fn failures_in_a_row_open_a_circuit_and_a_success_forgets_them(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let tool = declare(&world)?;
    let action = world.dispatch(&pay("a"), tool)?.action;
    for _ in 1..OPENS_AFTER {
        fail(&world, action, tool)?;
    }
    let (attempt, _) = world.claim(action, tool, true)?;
    world.command(report(&attempt, Outcome::Committed))?;
    ensure_eq!(route(&world)?, Some(RouteState::Closed { failures: 0 }), "a success forgets them");
    let stream = world.store.tenant().route(BANK);
    let recorded = world.events(&stream)?.len();
    let (other, third) = (world.dispatch(&pay("b"), tool)?.action, world.dispatch(&pay("c"), tool)?.action);
    let (attempt, _) = world.claim(other, tool, true)?;
    world.command(report(&attempt, Outcome::Committed))?;
    ensure_eq!(world.events(&stream)?.len(), recorded, "a success while it is closed writes nothing");
    open(&world, third, tool)?;
    Ok(())
}

fn what_an_open_circuit_puts_off_is_attempted_later(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let tool = declare(&world)?;
    let (first, other) = (world.dispatch(&pay("a"), tool)?.action, world.dispatch(&pay("b"), tool)?.action);
    let until = open(&world, first, tool)?;
    let refused = world.command(to_claim(other, tool, true))?;
    ensure_eq!(code(&refused), Some(Code::RouteOpen), "nothing is attempted there");
    let due = take!(world.action(other)?.state,
        ActionState::Queued { due, code: Some(Code::RouteOpen) } => due, "it is put off");
    ensure_eq!(due, until, "until it is probed");
    ensure_eq!(world.effect(&world.effect_of("pay:b"))?.fence, 0, "no attempt is counted");
    world.pass(until.since(world.now()));
    ensure_eq!(world.claim(other, tool, true)?.0.fence, 1, "then it is attempted");
    Ok(())
}

fn one_of_many_workers_probes(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let tool = declare(&world)?;
    let mut actions = Vec::new();
    for id in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        actions.push(world.dispatch(&pay(id), tool)?.action);
    }
    let until = open(&world, actions[0], tool)?;
    world.pass(until.since(world.now()));
    let answers = std::thread::scope(|scope| {
        let claim = |action: &ActionId| {
            let claim = to_claim(*action, tool, true);
            scope.spawn(|| world.store.run(claim))
        };
        let workers: Vec<_> = actions.iter().map(claim).collect();
        workers.into_iter().map(|worker| worker.join()).collect::<Result<Vec<_>, _>>()
    });
    let mut probes = 0;
    for answer in answers.map_err(|_| Failure::new("no worker panics"))? {
        match answer? {
            Reply::Claimed(..) => probes += 1,
            reply => ensure_eq!(code(&reply), Some(Code::RouteOpen), "the others are put off"),
        }
    }
    ensure_eq!(probes, 1, "one of them has the probe");
    Ok(())
}

fn a_probe_closes_the_circuit_or_opens_it_for_longer(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let tool = declare(&world)?;
    let action = world.dispatch(&pay("a"), tool)?.action;
    let first = open(&world, action, tool)?.since(world.now());
    world.pass(first);
    fail(&world, action, tool)?;
    ensure_eq!(until(&world)?.since(world.now()), first.times(2), "a probe that fails opens it for longer");
    world.pass(first.times(2));
    let (probe, _) = world.claim(action, tool, true)?;
    world.command(report(&probe, Outcome::Committed))?;
    ensure_eq!(route(&world)?, Some(RouteState::Closed { failures: 0 }), "one that succeeds closes it");
    Ok(())
}

fn a_person_closes_a_circuit(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let tool = declare(&world)?;
    let action = world.dispatch(&pay("a"), tool)?.action;
    open(&world, action, tool)?;
    let (destination, reason) = (BANK.to_owned(), "it is up".to_owned());
    let close = CloseRoute { destination, person: host("olga"), reason };
    ensure_eq!(world.command(Command::CloseRoute(close))?, Reply::Done { changed: true }, "it is closed");
    let events = world.events(&world.store.tenant().route(BANK))?;
    let last = events.last().and_then(|event| match event.event.as_ref().map(|event| &event.body) {
        Some(Body::RouteClosed(data, said)) => Some((data.proof.is_some(), said.person.clone())),
        _ => None,
    });
    ensure_eq!(last, Some((true, Some("host:olga".to_owned()))), "and who said so is recorded");
    ensure!(world.claim(action, tool, true).is_ok(), "and attempts are made");
    Ok(())
}

fn a_circuit_is_open_across_openings(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let tool = declare(&world)?;
    let action = world.dispatch(&pay("a"), tool)?.action;
    let before = open(&world, action, tool)?;
    let world = world.reopened()?;
    ensure_eq!(until(&world)?, before, "it is known");
    let refused = world.command(to_claim(action, tool, true))?;
    ensure_eq!(code(&refused), Some(Code::RouteOpen), "and looked at");
    Ok(())
}

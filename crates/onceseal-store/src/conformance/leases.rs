//! Leases: who holds a resource, and what is done under a lease.

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::id::{HolderKey, RootId, RunId};
use onceseal_core::journal::{Kind, Row};
use onceseal_core::lease::{
    AcquireLease, CommitLease, InterruptLease, Lease, LeaseRow, Preempt, RenewLease, Resource,
};
use onceseal_core::reply::{LeaseNow, Reply};
use onceseal_core::run::{Towards, Transition};
use onceseal_core::stream::StreamId;
use onceseal_core::time::{Span, Timestamp};

use super::contention::at_once;
use super::lists::due;
use super::runs::{row as run_row, run, start, step};
use super::world::{World, code, host};
use super::{Failure, Subject, Verdict, ensure, ensure_eq, suite, take};

suite! { "leases":
    one_of_many_threads_holds_a_resource
    a_sweep_beside_takeovers_never_ends_the_fresh_lease
    what_is_renewed_is_seen_by_the_next_command_of_the_batch
    a_path_is_held_with_what_is_above_and_below_it
    however_much_is_held_below_a_path_is_looked_at
    an_operator_takes_a_path_from_whoever_holds_a_part_of_it
    an_outcome_of_a_lease_is_final_and_outlives_the_next_lease
    the_takeover_of_a_run_interrupts_it_in_the_same_transaction
    a_run_that_somebody_still_holds_is_not_interrupted
    nothing_is_changed_under_a_lease_that_was_taken_over
    leases_that_lapse_are_found_when_they_are_due
    ; durable:
    a_resource_counts_its_leases_across_openings
    a_renewed_lease_is_held_after_reopening
    a_clock_that_went_back_revives_no_lease_that_was_taken_over
}

const MINUTE: Span = Span::minutes(1);
/// After this a lease is over.
const OVER: Span = Span::micros(60_000_001);

const fn holder(n: u8) -> HolderKey {
    HolderKey([n; 16])
}

fn resource(text: &str) -> Result<Resource, Failure> {
    let root = RootId([1; 16]);
    let text = if text.starts_with("name/") { text.to_owned() } else { format!("root/{root}/path/{text}") };
    Resource::parse(&text).ok_or_else(|| Failure::new("a resource"))
}

fn to_take(resource: &Resource, n: u8) -> AcquireLease {
    let (resource, holder) = (resource.clone(), holder(n));
    AcquireLease { resource, holder, length: MINUTE, shared: false, preempt: None }
}

fn taking(resource: &Resource, n: u8) -> Command {
    Command::AcquireLease(Box::new(to_take(resource, n)))
}

fn sharing(resource: &Resource, n: u8) -> Command {
    Command::AcquireLease(Box::new(AcquireLease { shared: true, ..to_take(resource, n) }))
}

fn renewing(lease: &Lease, length: Span) -> Command {
    Command::RenewLease(RenewLease { lease: lease.clone(), length })
}

fn committing(lease: &Lease, outcome: &str) -> Command {
    Command::CommitLease(CommitLease { lease: lease.clone(), outcome: outcome.to_owned() })
}

fn giving_up(lease: &Lease) -> Command {
    Command::InterruptLease(InterruptLease { lease: lease.clone() })
}

fn moving(run: RunId, state: &str, request: &str, lease: &Lease) -> Command {
    let (to, principal) = (Towards::State(state.to_owned()), Principal::agent("bot"));
    let (request, under) = (request.to_owned(), Some(lease.clone()));
    Command::Transition(Transition { run, to, code: None, request, principal, under })
}

fn lease(reply: Reply) -> Result<LeaseNow, Failure> {
    Ok(take!(reply, Reply::Lease(now) => *now, "a lease"))
}

fn stream(world: &World<'_>, resource: &Resource) -> StreamId {
    world.store.tenant().lease(&resource.to_string())
}

fn row(world: &World<'_>, resource: &Resource) -> Result<LeaseRow, Failure> {
    Ok(take!(world.stored(&stream(world, resource))?.row, Row::Lease(row) => row, "its row"))
}

fn started(world: &World<'_>) -> Result<(RunId, Resource), Failure> {
    let id = run(world.command(start("c", "s1")?)?)?.answered.run;
    Ok((id, Resource::Run(id)))
}

fn one_of_many_threads_holds_a_resource(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let resource = resource("name/deploy")?;
    for fence in 1..=6 {
        let replies = at_once(|n| world.command(taking(&resource, n)))?;
        let refused = replies.iter().filter(|reply| code(reply) == Some(Code::LeaseHeld)).count();
        let taken = replies.into_iter().filter(|reply| matches!(reply, Reply::Lease(_)));
        let taken: Vec<_> = taken.map(lease).collect::<Result<_, _>>()?;
        ensure_eq!((taken.len(), refused), (1, 15), "exactly one of them in round {fence}");
        ensure_eq!(taken[0].lease.fence, fence, "with the next fence");
        let holders: Vec<_> = row(&world, &resource)?.holders.iter().map(|it| it.holder).collect();
        ensure_eq!(holders, [taken[0].lease.holder], "it is the one that is kept");
        world.command(giving_up(&taken[0].lease))?;
    }
    Ok(())
}

fn a_sweep_beside_takeovers_never_ends_the_fresh_lease(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let resource = resource("name/deploy")?;
    let swept = Command::Lapse(stream(&world, &resource));
    lease(world.command(taking(&resource, 100))?)?;
    for round in 0..6 {
        world.pass(OVER);
        // Every other thread sweeps what it has found to be over.
        let each =
            |n: u8| world.command(if n.is_multiple_of(2) { swept.clone() } else { taking(&resource, n) });
        let taken = at_once(each)?.into_iter().filter(|reply| matches!(reply, Reply::Lease(_)));
        let taken: Vec<_> = taken.map(lease).collect::<Result<_, _>>()?;
        ensure_eq!(taken.len(), 1, "one takes it over in round {round}");
        ensure_eq!(world.command(swept.clone())?, Reply::Done { changed: false }, "nothing is over");
        lease(world.command(renewing(&taken[0].lease, MINUTE))?)?;
    }
    Ok(())
}

fn what_is_renewed_is_seen_by_the_next_command_of_the_batch(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let resource = resource("name/deploy")?;
    let first = lease(world.command(taking(&resource, 1))?)?;
    let log = world.log()?.len();
    let long = Span::minutes(9);
    let replies = world.together(vec![renewing(&first.lease, long), taking(&resource, 2)])?;
    let [renewed, busy] = <[_; 2]>::try_from(replies).map_err(|_| Failure::new("two replies"))?;
    let until = world.now() + long;
    ensure_eq!(lease(renewed?)?.until, until, "it is told the new end");
    let other = take!(busy?, Reply::Refused(refusal) => refusal.held, "somebody has it");
    ensure_eq!(other.map(|other| other.by.until), Some(until), "the next is told of the new end");
    ensure_eq!(world.log()?.len(), log, "no event tells of it");
    ensure_eq!(row(&world, &resource)?.holders[0].until, until, "it is kept");
    Ok(())
}

fn a_path_is_held_with_what_is_above_and_below_it(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let first = lease(world.command(taking(&resource("a/b")?, 1))?)?;
    for taken in ["a", "a/b", "a/b/c", "a/b/c/d"] {
        let reply = world.command(taking(&resource(taken)?, 2))?;
        ensure_eq!(code(&reply), Some(Code::LeaseHeld), "{taken} is held");
    }
    lease(world.command(taking(&resource("a/bb")?, 2))?)?;
    world.command(giving_up(&first.lease))?;
    // One of a batch sees the others.
    let paths = ["x/y", "x", "x/y/z", "x/z"];
    let commands = paths.iter().map(|path| Ok(taking(&resource(path)?, 3)));
    let replies = world.together(commands.collect::<Result<_, Failure>>()?)?;
    let mut held = Vec::new();
    for reply in replies {
        held.push(code(&reply?) == Some(Code::LeaseHeld));
    }
    ensure_eq!(held, [false, true, true, false], "each against those before it");
    Ok(())
}

fn however_much_is_held_below_a_path_is_looked_at(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    for n in 0..40 {
        lease(world.command(sharing(&resource(&format!("a/{n}"))?, 1))?)?;
    }
    let busy = world.command(taking(&resource("a")?, 2))?;
    ensure_eq!(code(&busy), Some(Code::LeaseHeld), "others hold parts of it");
    lease(world.command(sharing(&resource("a")?, 2))?)?;
    Ok(())
}

fn an_operator_takes_a_path_from_whoever_holds_a_part_of_it(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let first = lease(world.command(taking(&resource("a/b")?, 1))?)?;
    let by = |name: &str| -> Result<Command, Failure> {
        let preempt = Some(Preempt { person: host(name), reason: "stuck".to_owned() });
        Ok(Command::AcquireLease(Box::new(AcquireLease { preempt, ..to_take(&resource("a")?, 2) })))
    };
    ensure_eq!(code(&world.command(by("ann")?)?), Some(Code::NotOperator), "not everybody may");
    let second = lease(world.command(by("olga")?)?)?;
    let late = world.command(renewing(&first.lease, MINUTE))?;
    ensure_eq!(code(&late), Some(Code::LeaseFenced), "nobody holds a part of it any more");
    lease(world.command(renewing(&second.lease, MINUTE))?)?;
    let events = world.events(&stream(&world, &first.lease.resource))?;
    let last = events.last().and_then(|event| event.event.as_ref()).map(|event| event.body.kind());
    ensure_eq!(last, Some(Kind::LeasePreempted), "it is recorded there");
    Ok(())
}

fn an_outcome_of_a_lease_is_final_and_outlives_the_next_lease(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let resource = resource("name/deploy")?;
    let first = lease(world.command(taking(&resource, 1))?)?.lease;
    let (done, other) = (r#"{"done":true}"#, r#"{"done":false}"#);
    ensure_eq!(world.command(committing(&first, done))?, Reply::Done { changed: true }, "it is accepted");
    let second = lease(world.command(taking(&resource, 2))?)?.lease;
    ensure_eq!(world.command(committing(&first, done))?, Reply::Done { changed: false }, "it stands");
    let late = world.command(committing(&first, other))?;
    ensure_eq!(code(&late), Some(Code::OutcomeFinal), "no other takes its place");
    world.command(committing(&second, other))?;
    let kept = row(&world, &resource)?.outcomes;
    let mut texts = Vec::new();
    for outcome in &kept {
        let text = world.text(&stream(&world, &resource), outcome.sequence)?;
        texts.push((outcome.fence, text.unwrap_or_default()));
    }
    ensure_eq!(texts, [(1, done.to_owned()), (2, other.to_owned())], "each by its fence");
    Ok(())
}

fn the_takeover_of_a_run_interrupts_it_in_the_same_transaction(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (id, resource) = started(&world)?;
    let first = lease(world.command(taking(&resource, 1))?)?;
    run(world.command(moving(id, "running", "t1", &first.lease))?)?;
    world.pass(OVER);
    let before = world.log()?.len();
    lease(world.command(taking(&resource, 2))?)?;
    let now = run_row(&world, id)?;
    ensure_eq!(
        (now.state.as_str(), now.code.as_deref()),
        ("paused", Some("operation-interrupted")),
        "nobody worked on it"
    );
    let events = world.log()?.split_off(before);
    let kinds = events.iter().filter_map(|event| event.event.as_ref()).map(|event| event.body.kind());
    let kinds: Vec<_> = kinds.collect();
    ensure_eq!(kinds, [Kind::RunInterrupted, Kind::LeaseLapsed, Kind::LeaseTaken], "all of it is recorded");
    ensure!(events.iter().all(|event| event.stamp.command == events[0].stamp.command), "by one command");
    Ok(())
}

fn a_run_that_somebody_still_holds_is_not_interrupted(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (id, resource) = started(&world)?;
    run(world.command(step(id, "running", "t1"))?)?;
    lease(world.command(sharing(&resource, 1))?)?;
    let second = lease(world.command(sharing(&resource, 2))?)?;
    world.command(renewing(&second.lease, Span::minutes(5)))?;
    world.pass(OVER);
    let swept = Command::Lapse(stream(&world, &resource));
    ensure_eq!(world.command(swept.clone())?, Reply::Done { changed: true }, "one of them is over");
    ensure_eq!(run_row(&world, id)?.state, "running", "the other works on it");
    // Whoever gives it up has said so.
    world.command(giving_up(&second.lease))?;
    world.pass(Span::minutes(5));
    ensure_eq!(world.command(swept)?, Reply::Done { changed: false }, "none is left");
    ensure_eq!(run_row(&world, id)?.state, "running", "nothing ended without a word");
    Ok(())
}

fn nothing_is_changed_under_a_lease_that_was_taken_over(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let (id, resource) = started(&world)?;
    let first = lease(world.command(taking(&resource, 1))?)?.lease;
    world.pass(OVER);
    // What was sent before the takeover arrives after it, in the same batch.
    let late = [
        moving(id, "running", "t1", &first),
        renewing(&first, MINUTE),
        committing(&first, "{}"),
        giving_up(&first),
    ];
    let commands = [taking(&resource, 2)].into_iter().chain(late.clone()).collect();
    let mut replies = world.together(commands)?.into_iter();
    let taken = replies.next().ok_or_else(|| Failure::new("a reply"))?;
    let second = lease(taken?)?.lease;
    for reply in replies {
        ensure_eq!(code(&reply?), Some(Code::LeaseFenced), "another has it");
    }
    let log = world.log()?.len();
    for command in late {
        ensure_eq!(code(&world.command(command)?), Some(Code::LeaseFenced), "another has it still");
    }
    ensure_eq!(world.log()?.len(), log, "nothing is recorded of it");
    ensure_eq!(run(world.command(moving(id, "running", "t1", &second))?)?.now.state, "running", "it may");
    Ok(())
}

fn leases_that_lapse_are_found_when_they_are_due(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let names = [resource("name/a")?, resource("name/b")?, resource("name/c")?];
    let mut leases = Vec::new();
    for name in &names {
        leases.push(lease(world.command(taking(name, 1))?)?);
        world.pass(Span::seconds(1));
    }
    let streams: Vec<_> = names.iter().map(|name| stream(&world, name)).collect();
    ensure_eq!(due(&world, Timestamp::MAX)?, streams, "the next first");
    ensure_eq!(due(&world, leases[1].until)?, &streams[..2], "those that are due by then");
    world.command(renewing(&leases[0].lease, Span::minutes(9)))?;
    ensure_eq!(due(&world, Timestamp::MAX)?, [streams[1], streams[2], streams[0]], "one is due later");
    world.command(giving_up(&leases[2].lease))?;
    ensure_eq!(due(&world, Timestamp::MAX)?, [streams[1], streams[0]], "one is not due any more");
    world.pass(Span::minutes(2));
    for found in due(&world, world.now())? {
        ensure_eq!(world.command(Command::Lapse(found))?, Reply::Done { changed: true }, "it is over");
    }
    ensure_eq!(due(&world, Timestamp::MAX)?, &streams[..1], "the one that lives");
    Ok(())
}

fn a_resource_counts_its_leases_across_openings(subject: &dyn Subject) -> Verdict {
    let mut world = World::open(subject)?;
    let resource = resource("name/deploy")?;
    let mut before: Option<Lease> = None;
    for fence in 1..=4 {
        let now = lease(world.command(taking(&resource, 1))?)?.lease;
        ensure_eq!(now.fence, fence, "the next fence");
        if let Some(before) = &before {
            ensure!(before.token() != now.token(), "each lease has a token of its own");
        }
        match fence {
            1 => drop(world.command(giving_up(&now))?),
            2 => drop(world.command(committing(&now, "{}"))?),
            _ => world.pass(OVER),
        }
        before = Some(now);
        world = world.reopened()?;
    }
    Ok(())
}

fn a_renewed_lease_is_held_after_reopening(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let resource = resource("name/deploy")?;
    let first = lease(world.command(taking(&resource, 1))?)?;
    world.command(renewing(&first.lease, Span::minutes(5)))?;
    let world = world.reopened()?;
    world.pass(Span::minutes(4));
    let busy = world.command(taking(&resource, 2))?;
    ensure_eq!(code(&busy), Some(Code::LeaseHeld), "it is held");
    // What was handed out proves it as before.
    lease(world.command(renewing(&first.lease, Span::minutes(5)))?)?;
    Ok(())
}

fn a_clock_that_went_back_revives_no_lease_that_was_taken_over(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let first = lease(world.command(taking(&resource("a")?, 1))?)?;
    world.pass(OVER);
    let second = lease(world.command(taking(&resource("a/b")?, 2))?)?;
    world.clock.step_wall(-Span::seconds(30).as_micros());
    let world = world.reopened()?;
    let late = world.command(renewing(&first.lease, MINUTE))?;
    ensure_eq!(code(&late), Some(Code::LeaseFenced), "it was over when another took a part of it");
    lease(world.command(renewing(&second.lease, MINUTE))?)?;
    Ok(())
}

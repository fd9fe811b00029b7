//! Runs: who finds which, what moves are permitted, and what is answered twice.

use std::sync::Arc;

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::id::{RootId, RunId};
use onceseal_core::journal::Row;
use onceseal_core::reply::{Reply, RunNow};
use onceseal_core::run::{BindChange, Definition, RunRow, StartRun, Subject, Towards, Transition};
use onceseal_core::stream::StreamId;

use crate::world::World;
use crate::{pay_world, refused};

const ROOT: RootId = RootId([1; 16]);

fn definition(kind: &str) -> Arc<Definition> {
    Arc::new(Definition::built_in().into_iter().find(|found| found.kind() == kind).expect("built in"))
}

fn start(kind: &str, subject: Subject, request: &str) -> StartRun {
    let (definition, principal) = (definition(kind), Principal::agent("bot"));
    StartRun { root: ROOT, definition, subject, request: request.to_owned(), principal }
}

fn change(name: &str) -> Subject {
    Subject::Change(name.to_owned())
}

fn to(run: RunId, state: &str, request: &str) -> Transition {
    let (to, principal) = (Towards::State(state.to_owned()), Principal::agent("bot"));
    Transition { run, to, code: None, request: request.to_owned(), principal, under: None }
}

#[track_caller]
fn run(reply: Reply) -> RunNow {
    match reply {
        Reply::Run(now) => *now,
        other => panic!("no run: {other:?}"),
    }
}

trait Runs {
    fn start(&mut self, start: StartRun) -> Reply;
    fn go(&mut self, transition: Transition) -> Reply;
    fn row_of(&self, run: RunId) -> RunRow;
}

impl Runs for World<'_> {
    fn start(&mut self, start: StartRun) -> Reply {
        self.run(Command::StartRun(Box::new(start)))
    }

    fn go(&mut self, transition: Transition) -> Reply {
        self.run(Command::Transition(transition))
    }

    fn row_of(&self, run: RunId) -> RunRow {
        match self.row(&StreamId::run(run)) {
            Some(Row::Run(row)) => row.clone(),
            other => panic!("no run: {other:?}"),
        }
    }
}

#[test]
fn a_start_joins_the_run_that_lives_under_its_key_and_no_other() {
    let mut world = pay_world();
    let first = run(world.start(start("delivery", change("c"), "s1")));
    assert_eq!((first.answered.joined, first.now.sequence, &*first.now.state), (false, 1, "created"));
    let joined = run(world.start(start("delivery", change("c"), "s2")));
    assert_eq!((joined.answered.run, joined.answered.joined), (first.answered.run, true));
    assert_eq!(joined.now, first.now, "joining changes nothing");
    for other in [
        start("delivery", change("d"), "s3"),
        start("design", change("c"), "s3"),
        StartRun { root: RootId([2; 16]), ..start("delivery", change("c"), "s3") },
    ] {
        assert_ne!(run(world.start(other)).answered.run, first.answered.run);
    }
    world.check();
}

#[test]
fn a_run_that_ended_gives_its_key_up_and_the_next_one_names_it() {
    let mut world = pay_world();
    let mut last = None;
    for round in 0..4 {
        let id = run(world.start(start("simple", change("c"), &format!("s{round}")))).answered.run;
        assert_eq!(world.row_of(id).previous, last);
        assert!(run(world.go(to(id, "cancelled", "end"))).now.terminal);
        last = Some(id);
    }
    world.check();
}

#[test]
fn terminal_is_final() {
    let mut world = pay_world();
    let id = run(world.start(start("simple", change("c"), "s1"))).answered.run;
    run(world.go(to(id, "running", "t1")));
    run(world.go(to(id, "completed", "t2")));
    for (at, state) in ["running", "paused", "completed", "failed", "nowhere"].into_iter().enumerate() {
        assert_eq!(refused(world.go(to(id, state, &format!("late{at}")))).code, Code::RunEnded);
    }
    let bind =
        BindChange { run: id, change: "x".into(), request: "b1".into(), principal: Principal::agent("bot") };
    assert_eq!(refused(world.run(Command::BindChange(bind))).code, Code::RunEnded);
    assert_eq!(world.row_of(id).state, "completed");
    world.check();
}

#[test]
fn only_what_the_definition_permits_follows_and_a_refusal_leaves_nothing() {
    let mut world = pay_world();
    let id = run(world.start(start("delivery", change("c"), "s1"))).answered.run;
    let events = world.events.len();
    let forbidden = refused(world.go(to(id, "running", "t1")));
    assert_eq!(
        (forbidden.code, forbidden.detail.as_deref()),
        (Code::TransitionForbidden, Some("created > running"))
    );
    assert_eq!(refused(world.go(to(id, "sleeping", "t1"))).code, Code::StateUnknown);
    assert_eq!(world.events.len(), events);
    assert_eq!(run(world.go(to(id, "paused", "t1"))).now.sequence, 2, "the id is free again");
    world.check();
}

#[test]
fn a_code_stays_until_the_next_move() {
    let mut world = pay_world();
    let id = run(world.start(start("delivery", change("c"), "s1"))).answered.run;
    for (request, code) in [("t1", Some("a")), ("t2", Some("a")), ("t3", None)] {
        let paused = Transition { code: code.map(str::to_owned), ..to(id, "paused", request) };
        assert_eq!(run(world.go(paused)).now.code.as_deref(), code);
        assert_eq!(world.row_of(id).code.as_deref(), code);
    }
    let long = Transition { code: Some("x".repeat(256)), ..to(id, "paused", "t4") };
    assert_eq!(refused(world.go(long)).code, Code::OutOfBounds);
    world.check();
}

#[test]
fn the_same_request_is_answered_as_the_first_time_with_where_the_run_stands_now() {
    let mut world = pay_world();
    let first = run(world.start(start("simple", change("c"), "s1")));
    let id = first.answered.run;
    let moved = run(world.go(to(id, "running", "t1")));
    run(world.go(to(id, "completed", "t2")));
    let events = world.events.len();
    let again = run(world.go(to(id, "running", "t1")));
    assert_eq!((again.replayed, &again.answered), (true, &moved.answered), "the state is not asked first");
    assert_eq!((&*again.now.state, again.now.sequence), ("completed", 3));
    // Its key belongs to nobody now: it is no new run for all that.
    let started = run(world.start(start("simple", change("c"), "s1")));
    assert_eq!((started.replayed, started.answered), (true, first.answered));
    assert_eq!(world.events.len(), events);
    world.check();
}

#[test]
fn a_request_id_is_of_one_request() {
    let mut world = pay_world();
    let id = run(world.start(start("delivery", change("c"), "r1"))).answered.run;
    run(world.go(to(id, "paused", "r1")));
    let somebody_else = Transition { principal: Principal::agent("other"), ..to(id, "paused", "r1") };
    let with_a_code = Transition { code: Some("x".into()), ..to(id, "paused", "r1") };
    let as_command = Transition { to: Towards::Command("paused".into()), ..to(id, "paused", "r1") };
    for other in [to(id, "discarded", "r1"), somebody_else, with_a_code, as_command] {
        assert_eq!(refused(world.go(other)).code, Code::RequestIdConflict);
    }
    assert_eq!(refused(world.start(start("delivery", change("d"), "r1"))).code, Code::RequestIdConflict);
    // Another kind's are others.
    run(world.start(start("design", change("d"), "r1")));
    for bad in ["", "-", ".a", "a b", "a\n", &"a".repeat(129), "\u{17f}"] {
        assert_eq!(refused(world.go(to(id, "paused", bad))).code, Code::RequestIdInvalid, "{bad:?}");
    }
    world.check();
}

#[test]
fn what_an_operator_may_ask_for_is_what_the_definition_offers() {
    let mut world = pay_world();
    let id = run(world.start(start("delivery", change("c"), "s1"))).answered.run;
    let command = |name: &str, request: &str| Transition {
        to: Towards::Command(name.to_owned()),
        ..to(id, "", request)
    };
    assert_eq!(refused(world.go(command("resume", "c1"))).code, Code::CommandForbidden);
    assert_eq!(run(world.go(command("cancel", "c2"))).now.state, "paused");
    assert_eq!(refused(world.go(command("rebind", "c3"))).code, Code::CommandElsewhere);
    assert_eq!(run(world.go(command("resume", "c4"))).now.state, "ready");
    assert_eq!(run(world.go(command("discard", "c5"))).now.state, "discarded");
    world.check();
}

#[test]
fn a_change_is_named_once_where_the_definition_lets_it_be_unnamed() {
    let mut world = pay_world();
    let digest = Hash([0xbb; 32]);
    let unnamed = || Subject::Provisional(digest);
    assert_eq!(refused(world.start(start("delivery", unnamed(), "s1"))).code, Code::ProvisionalForbidden);
    assert_eq!(refused(world.start(start("design", change("No"), "s1"))).code, Code::ChangeInvalid);
    let taken = run(world.start(start("design", change("taken"), "s1"))).answered.run;
    let id = run(world.start(start("design", unnamed(), "s2"))).answered.run;
    let bind = |run: RunId, change: &str, request: &str| {
        let principal = Principal::agent("bot");
        Command::BindChange(BindChange { run, change: change.into(), request: request.into(), principal })
    };
    assert_eq!(refused(world.run(bind(id, "Y", "b1"))).code, Code::ChangeInvalid);
    assert_eq!(refused(world.run(bind(id, "taken", "b1"))).code, Code::ChangeTaken);
    assert_eq!(refused(world.run(bind(taken, "other", "b1"))).code, Code::ChangeBound);
    assert_eq!(refused(world.run(bind(RunId([9; 16]), "y", "b1"))).code, Code::RunUnknown);
    run(world.go(to(taken, "discarded", "t1")));
    let named = run(world.run(bind(id, "taken", "b1")));
    assert_eq!((named.now.sequence, &*named.now.state), (2, "created"), "one that ended holds no name");
    assert_eq!(refused(world.run(bind(id, "other", "b2"))).code, Code::ChangeBound);
    assert_eq!(run(world.start(start("design", change("taken"), "s3"))).answered.run, id);
    // Whoever begins by the same digest, and does not know the name, joins it.
    let joined = run(world.start(start("design", unnamed(), "s4")));
    assert_eq!((joined.answered.run, joined.answered.joined), (id, true));
    assert_eq!(world.row_of(id).private.key.as_deref(), Some("change:taken"));
    run(world.go(to(id, "discarded", "t2")));
    assert_ne!(run(world.start(start("design", unnamed(), "s5"))).answered.run, id, "it ended");
    world.check();
}

#[test]
fn a_run_goes_by_the_definition_that_it_was_started_under() {
    let mut world = pay_world();
    let id = run(world.start(start("simple", change("c"), "s1"))).answered.run;
    let mut document = match onceseal_core::json::read(
        br#"{"initial":"begun","states":{"begun":{"to":["over"],"interrupted":"over"},"over":{"terminal":true}}}"#,
        &onceseal_core::json::Limits::DATA,
    ) {
        Ok(onceseal_core::json::Value::Object(document)) => document,
        other => panic!("{other:?}"),
    };
    document.insert("provisional", false);
    let other = Arc::new(Definition::compile("simple", &document).expect("a definition"));
    let with = |subject, request| StartRun { definition: other.clone(), ..start("simple", subject, request) };
    assert_eq!(run(world.start(with(change("c"), "s2"))).answered.run, id, "it lives");
    run(world.go(to(id, "running", "t1")));
    let new = run(world.start(with(change("d"), "s3"))).answered.run;
    assert_eq!(refused(world.go(to(new, "running", "t1"))).code, Code::StateUnknown);
    assert!(run(world.go(to(new, "over", "t1"))).now.terminal);
    world.check();
}

#[test]
fn a_run_names_the_last_one_that_ended_under_its_key_whenever_and_however_it_came_to_it() {
    let mut world = pay_world();
    let unnamed = Subject::Provisional(Hash([0xbb; 32]));
    let first = run(world.start(start("design", unnamed, "s1"))).answered.run;
    let second = run(world.start(start("design", change("x"), "s2"))).answered.run;
    run(world.go(to(second, "discarded", "end")));
    let principal = Principal::agent("bot");
    let bind = BindChange { run: first, change: "x".into(), request: "b1".into(), principal };
    run(world.run(Command::BindChange(bind.clone())));
    assert_eq!(world.row_of(first).previous, Some(second), "it follows on it since");
    assert!(run(world.run(Command::BindChange(bind))).replayed);
    // All of it at one moment.
    run(world.go(to(first, "discarded", "end")));
    let third = run(world.start(start("design", change("x"), "s3"))).answered.run;
    assert_eq!(world.row_of(third).previous, Some(first), "started before the other, and ended after it");
    world.check();
}

#[test]
fn what_is_recorded_of_who_asks_and_where_to_is_bounded() {
    let mut world = pay_world();
    let id = run(world.start(start("delivery", change("c"), "s1"))).answered.run;
    let field = |reply| {
        let refusal = refused(reply);
        assert_eq!((refusal.code, refusal.detail), (Code::OutOfBounds, None));
        refusal.field
    };
    for agent in [String::new(), "a\n".to_owned(), "x".repeat(1 << 20)] {
        let principal = Principal::agent(agent);
        let starts = StartRun { principal: principal.clone(), ..start("delivery", change("d"), "s2") };
        assert_eq!(field(world.start(starts)), Some("principal"));
        let moves = Transition { principal, ..to(id, "paused", "t1") };
        assert_eq!(field(world.go(moves)), Some("principal"));
    }
    assert_eq!(field(world.go(to(id, &"x".repeat(1 << 20), "t1"))), Some("to"));
    let on_behalf =
        Transition { principal: Principal::agent("bot").on_behalf_of("ann"), ..to(id, "paused", "t1") };
    run(world.go(on_behalf));
    assert_eq!(
        refused(world.go(to(id, "paused", "t1"))).code,
        Code::RequestIdConflict,
        "another principal's"
    );
    world.check();
}

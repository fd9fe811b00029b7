//! A small store with one of everything, made by real calls.

use std::future::Future;
use std::sync::Arc;

use onceseal::core::action::{Action, Proposal, Reach, Run};
use onceseal::core::approval::{Identity, Said};
use onceseal::core::command::Command;
use onceseal::core::effect::{Finding, Holding, Outcome, Reconcile, Renew, Settle};
use onceseal::core::hash::Hash;
use onceseal::core::id::{ApprovalId, HolderKey, RootId};
use onceseal::core::json::{self, Limits, Object, Value};
use onceseal::core::policy::ActivePolicy;
use onceseal::core::reply::{Attempt, Reply};
use onceseal::core::run::{BindChange, Definition, StartRun, Subject, Towards, Transition};
use onceseal::core::store::Accept;
use onceseal::core::task::{Plan, PlanTasks, TakeTask};
use onceseal::core::time::Span;
use onceseal::store::clock::ManualClock;
use onceseal::{Control, Error, Failure, Principal};

use crate::ground::Ground;

const SECOND: i64 = 1_000_000;

const ACTIONS: &str = r#"
    "pay": {"effect": "pay:{id}", "decision": "allow"},
    "ship": {"effect": "ship:{id}", "decision": "approve", "approval": {"quorum": 2, "ttl": "1h"}},
    "ping": {"decision": "allow"},
    "wipe": {"decision": "deny"}"#;

/// Waits for an answer, outside of any runtime of the caller's.
pub(crate) fn wait<T>(answer: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(answer)
}

/// The policy; `more` makes another one of it.
pub(crate) fn policy(more: &str) -> Arc<ActivePolicy> {
    let text = format!("{{\"schema\":\"onceseal.policy/v1\",\"actions\":{{{ACTIONS}{more}}}}}");
    let document = json::read(text.as_bytes(), &Limits::DATA).expect("JSON");
    Arc::new(ActivePolicy::compile(&document).expect("a policy"))
}

pub(crate) fn host(name: &str) -> Identity {
    Identity::parse(&format!("host:{name}")).expect("an identity")
}

/// A closed store in which everything has happened once.
pub(crate) fn sample() -> Ground {
    let ground = Ground::new();
    let control = ground.open().expect("a store");
    happen(&control, &ground.clock);
    control.close();
    ground
}

fn happen(control: &Control, clock: &ManualClock) {
    wait(control.activate(policy(""), false, Identity::parse("host:ann"))).expect("active");
    executions(control, clock);
    approvals(control, clock);
    attempts(control, clock);
    wait(control.activate(policy(r#","new":{"decision":"deny"}"#), false, None)).expect("another one");
    clock.advance(SECOND);
    wait(control.activate(policy(""), true, Identity::parse("host:bob"))).expect("the first one again");
    wait(control.note("ticket".to_owned(), r#"{"text":"looked at"}"#.to_owned())).expect("a note");
    let accept = Accept { seen: 99, found: 50, person: host("ann"), reason: "restored".to_owned() };
    control.store().run(Command::Accept(accept)).expect("accepted");
    runs(control);
}

/// One that lives, one that has ended, and one that is joined.
fn runs(control: &Control) {
    let definition =
        Definition::built_in().into_iter().find(|found| found.kind() == "design").expect("built in");
    let (definition, principal) = (Arc::new(definition), Principal::agent("bot"));
    let start = |subject, request: &str| {
        let (definition, principal) = (definition.clone(), principal.clone());
        let start =
            StartRun { root: RootId([1; 16]), definition, subject, request: request.to_owned(), principal };
        match control.store().run(Command::StartRun(Box::new(start))).expect("an answer") {
            Reply::Run(now) => now.answered.run,
            other => panic!("no run: {other:?}"),
        }
    };
    let ended = start(Subject::Change("one".to_owned()), "s1");
    let run = start(Subject::Provisional(Hash([0xbb; 32])), "s2");
    let (to, request) = (Towards::Command("discard".to_owned()), "t1".to_owned());
    let discard = Transition {
        run: ended,
        to,
        code: None,
        request: request.clone(),
        principal: principal.clone(),
        under: None,
    };
    control.store().run(Command::Transition(discard)).expect("ended");
    let bind = BindChange { run, change: "one".to_owned(), request, principal: principal.clone() };
    control.store().run(Command::BindChange(bind)).expect("named");
    assert_eq!(start(Subject::Change("one".to_owned()), "s3"), run, "joined");
    tasks(control);
}

/// One task that is worked on, and one that waits for it.
fn tasks(control: &Control) {
    let simple = Definition::built_in().into_iter().find(|found| found.kind() == "simple").expect("built in");
    let (subject, principal) = (Subject::Change("tasks".to_owned()), Principal::agent("bot"));
    let (root, request, definition) = (RootId([1; 16]), "s1".to_owned(), Arc::new(simple));
    let start = StartRun { root, definition, subject, request, principal: principal.clone() };
    let run = match control.store().run(Command::StartRun(Box::new(start))).expect("an answer") {
        Reply::Run(now) => now.answered.run,
        other => panic!("no run: {other:?}"),
    };
    let (to, code, under) = (Towards::State("running".to_owned()), None, None);
    let go = Transition { run, to, code, request: "t1".to_owned(), principal: principal.clone(), under };
    control.store().run(Command::Transition(go)).expect("running");
    let document = serde_json::json!({"tasks": [{"id": "a"}, {"id": "b", "depends_on": ["a"]}]}).to_string();
    let Ok(Value::Object(document)) = json::read(document.as_bytes(), &Limits::DATA) else { panic!() };
    let (plan, request) = (Arc::new(Plan::compile(&document).expect("a plan")), "p1".to_owned());
    let set = PlanTasks { run, revision: 1, plan, request, principal: principal.clone(), under: None };
    control.store().run(Command::PlanTasks(Box::new(set))).expect("planned");
    let (holder, length) = (HolderKey([1; 16]), Span::hours(1));
    let take = TakeTask { run, holder, length, again: false, principal };
    let taken = control.store().run(Command::TakeTask(take)).expect("an answer");
    assert!(matches!(taken, Reply::Task(_)), "{taken:?}");
}

fn executions(control: &Control, clock: &ManualClock) {
    let pay = |id: &str| {
        control
            .action("pay")
            .arg("id", id)
            .by(Principal::agent("bot").on_behalf_of("mallory"))
            .resource("acct")
    };
    wait(pay("done").execute(|_| async { Ok::<_, Failure>(Value::Integer(7)) })).expect("committed");
    clock.advance(SECOND);
    let failed = wait(pay("failed").execute(|_| async { Err::<Value, _>(Failure::not_executed("no such")) }));
    assert!(matches!(failed, Err(Error::NotExecuted { .. })), "{failed:?}");
    wait(pay("failed").execute(|_| async { Ok::<_, Failure>("then") })).expect("a second attempt");
    clock.advance(SECOND);
    let unknown = wait(pay("lost").execute(|_| async { Err::<Value, _>(Failure::unknown("cut off")) }));
    assert!(matches!(unknown, Err(Error::Unknown { .. })), "{unknown:?}");
    let resolved = wait(control.resolve("pay:lost", None, true, "seen".to_owned(), None, host("ann")));
    assert!(matches!(resolved, Ok(Reply::Settled { receipt: Some(_), .. })), "{resolved:?}");
    let denied = wait(control.action("wipe").by(Principal::agent("bot")).propose());
    assert!(matches!(denied, Err(Error::Refused(_))), "{denied:?}");
    wait(control.action("ping").by(Principal::agent("bot")).propose()).expect("ready");
}

fn approvals(control: &Control, clock: &ManualClock) {
    let ship = |id: &str| control.action("ship").arg("id", id).by(Principal::agent("bot"));
    for (id, answers) in [
        ("sent", &[("ann", Said::Yes), ("bob", Said::Yes)][..]),
        ("kept", &[("ann", Said::Yes), ("bob", Said::No)]),
        ("open", &[("ann", Said::Yes)]),
        ("late", &[]),
        ("back", &[]),
    ] {
        let Err(Error::ApprovalNeeded { approval, .. }) = wait(ship(id).propose()) else {
            panic!("{id} needs an approval")
        };
        for (person, said) in answers {
            answer(control, approval, person, *said);
        }
        if id == "back" {
            wait(control.revoke(approval, host("ann"))).expect("revoked");
        }
        if id == "late" {
            clock.advance(3_601 * SECOND);
            onceseal::sweep(control.store()).expect("swept");
        }
        clock.advance(SECOND);
    }
    // The wait for the one above has ended those before it.
    for id in ["sent", "open"] {
        let Err(Error::ApprovalNeeded { approval, .. }) = wait(ship(id).propose()) else {
            panic!("{id} needs another approval")
        };
        answer(control, approval, "ann", Said::Yes);
        if id == "sent" {
            answer(control, approval, "bob", Said::Yes);
            wait(ship(id).execute(|_| async { Ok::<_, Failure>("sent") })).expect("approved");
        }
    }
}

fn answer(control: &Control, approval: ApprovalId, person: &str, said: Said) {
    let shown = control.approval(approval).expect("readable").expect("a request").private.bound.binding;
    wait(control.answer(approval, host(person), said, shown.expect("bound"))).expect("counted");
}

/// One attempt runs under a renewed lease; one lapsed, was found by the remote,
/// and contradicted by its holder.
fn attempts(control: &Control, clock: &ManualClock) {
    let lapsed = attempt(control, "lapsed");
    clock.advance(301 * SECOND);
    let running = attempt(control, "running");
    onceseal::sweep(control.store()).expect("swept");
    let effect = lapsed.effect;
    let finding = Finding::Committed(Some("{\"found\":true}".to_owned()));
    let evidence = Some("remote 5".to_owned());
    let reconcile = Reconcile { effect, fence: 1, finding, evidence, remote: None, settle: Span::ZERO };
    control.store().run(Command::Reconcile(reconcile)).expect("reconciled");
    let (outcome, error) = (Outcome::Failed, Some("refused".to_owned()));
    let attempt = Holding::from(&lapsed);
    let settle = Settle { code: Some("no".to_owned()), error, ..Settle::new(attempt, outcome) };
    let late = control.store().run(Command::Settle(settle)).expect("kept");
    assert!(matches!(&late, Reply::Refused(refusal) if refusal.receipt.is_some()), "{late:?}");
    clock.advance(SECOND);
    let renew = Renew { attempt: Holding::from(&running), lease: Span::minutes(5) };
    let renewed = control.store().run(Command::Renew(renew)).expect("renewed");
    assert!(matches!(renewed, Reply::Renewed { lease_until } if lease_until > running.lease_until));
}

pub(crate) fn attempt(control: &Control, id: &str) -> Attempt {
    let mut arguments = Object::new();
    arguments.insert("id", id);
    let action = Action {
        name: "pay".to_owned(),
        arguments,
        principal: Principal::agent("bot"),
        environment: Action::DEFAULT_ENVIRONMENT.to_owned(),
        resource: None,
    };
    let active = control.policy().expect("a policy");
    let proposal = Proposal::prepare(control.store().tenant(), &active, action).expect("a proposal");
    let run =
        Run { proposal, action: None, approval: None, reach: Reach::Executing, lease: None, deadline: None };
    match control.store().run(Command::Run(Box::new(run))).expect("an answer") {
        Reply::Attempt(attempt) => attempt,
        reply => panic!("{reply:?}"),
    }
}

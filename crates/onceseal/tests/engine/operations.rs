//! Operations: dispatched here, carried out by workers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onceseal::core::action::{ActionState, Answer};
use onceseal::core::code::Code;
use onceseal::core::effect::{EffectState, Finding};
use onceseal::core::json::{self, Limits, Object, Value};
use onceseal::fault::{self, Remote, point};
use onceseal::operations::{
    Answering, Current, Handler, Job, OperationNow, Operations, Question, Standing, Tool, Word,
};
use onceseal::{Failure, Performed, Principal};

use crate::support::{World, bot, code, host, needed};

fn contract(text: &str) -> Object {
    match json::read(text.as_bytes(), &Limits::DATA).expect("it reads") {
        Value::Object(object) => object,
        other => panic!("no contract: {other:?}"),
    }
}

const NEVER: &str = r#"{"name":"pay"}"#;
const SAME_KEY: &str = r#"{"name":"pay","recovery":"same_key","key_ttl":"1h"}"#;
const ASK: &str = r#"{"name":"pay","recovery":"ask","settle":"1m"}"#;

/// What a test tells a handler to answer.
#[derive(Default)]
struct Says {
    denies: AtomicBool,
    forbids: AtomicBool,
    cannot_tell: AtomicBool,
    looks: AtomicU64,
}

/// Pays at a remote, under the provider key.
#[derive(Clone)]
struct Pays {
    remote: Arc<Remote>,
    says: Arc<Says>,
    looks_again: bool,
}

impl Handler for Pays {
    fn takes(&self, arguments: &Object) -> Result<(), String> {
        let has = arguments.get("order").is_some();
        has.then_some(()).ok_or_else(|| "order is missing".to_owned())
    }

    fn authorizes<'a>(&'a self, _: Current<'a>, _: &'a Object) -> Answering<'a, Option<bool>> {
        self.says.looks.fetch_add(1, Ordering::SeqCst);
        let cannot_tell = self.says.cannot_tell.load(Ordering::SeqCst);
        let answer = (!cannot_tell).then(|| !self.says.denies.load(Ordering::SeqCst));
        Box::pin(std::future::ready(answer))
    }

    fn permits<'a>(&'a self, _: &'a Principal, _: &'a Object) -> Answering<'a, Option<bool>> {
        Box::pin(std::future::ready(Some(!self.says.forbids.load(Ordering::SeqCst))))
    }

    fn looks_again(&self) -> bool {
        self.looks_again
    }

    fn perform(&self, job: Job) -> Answering<'_, Performed> {
        Box::pin(async move { Ok(self.remote.perform_key(job.provider_key(), "paid").await?.into()) })
    }

    fn ask<'a>(&'a self, question: &'a Question) -> Answering<'a, Option<Word>> {
        let answer = match self.remote.find(&question.provider_key) {
            Some((Finding::Committed(text), _)) => {
                let text = text.unwrap_or_else(|| "null".to_owned());
                Word::Committed(json::read(text.as_bytes(), &Limits::RESULT).expect("JSON").into())
            }
            _ => Word::Absent,
        };
        Box::pin(std::future::ready(Some(answer)))
    }

    fn again(&self, failure: &Failure, _: u64) -> Option<Duration> {
        let passes = matches!(failure, Failure::NotExecuted { code: Some(code), .. } if code == "connect");
        passes.then_some(Duration::from_secs(10))
    }
}

/// A store, a remote and a tool that pays there.
struct Shop {
    world: World,
    remote: Arc<Remote>,
    says: Arc<Says>,
    operations: Operations,
}

impl Shop {
    async fn of(world: World, text: &str) -> Shop {
        Shop::with(world, text, false).await
    }

    async fn with(world: World, text: &str, looks_again: bool) -> Shop {
        let (remote, says) = (Arc::new(Remote::new()), Arc::new(Says::default()));
        let handler = Pays { remote: remote.clone(), says: says.clone(), looks_again };
        let tool = Tool::new(&contract(text), handler).expect("a contract");
        let operations = Operations::of(&world.control, [tool]).await.expect("declared");
        Shop { world, remote, says, operations }
    }

    fn dispatch(&self, order: &str, amount: i64) -> onceseal::operations::Dispatching {
        let dispatch =
            self.operations.dispatch("pay").arg("order", order).arg("amount", Value::Integer(amount));
        dispatch.by(bot()).key(format!("key {order}"))
    }

    async fn sent(&self, order: &str) -> OperationNow {
        self.dispatch(order, 10).send().await.expect("accepted")
    }

    async fn work(&self) {
        self.operations.worker().run_dry(std::future::pending()).await.expect("it works");
    }

    fn state(&self, now: &OperationNow) -> ActionState {
        self.world.control.action_row(now.action).expect("readable").expect("there").state
    }

    fn pass(&self, seconds: i64) {
        self.world.clock.advance(seconds * 1_000_000);
    }
}

#[tokio::test]
async fn an_operation_is_stored_carried_out_once_and_replayed() {
    for world in World::both().await {
        let shop = Shop::of(world, NEVER).await;
        let first = shop.sent("a").await;
        assert!(!first.repeated && matches!(first.standing, Standing::Queued { .. }), "{first:?}");
        assert_eq!(shop.remote.hits(), 0, "nothing is done by accepting it");
        shop.work().await;
        assert_eq!(shop.remote.hits(), 1);
        let again = shop.sent("a").await;
        assert_eq!(
            (again.action, &again.status_ref, again.repeated),
            (first.action, &first.status_ref, true)
        );
        let Standing::Ended { result: Answer::Committed, stored, .. } = again.standing else {
            panic!("{again:?}")
        };
        let value = shop.world.control.stored_value(stored).expect("readable").expect("a result");
        assert_eq!(value.as_object().and_then(|o| o.get("done")), Some(&"paid".into()));
        shop.work().await;
        assert_eq!(shop.remote.hits(), 1);
        assert_eq!(shop.operations.find(&first.status_ref).await.expect("found"), first.action);
    }
}

#[tokio::test]
async fn many_workers_of_two_programs_carry_each_operation_out_once() {
    let world = World::sqlite(crate::support::POLICY).await;
    let other = world.home.as_ref().expect("on disk").control(world.clock.clone()).await.expect("a store");
    let shop = Shop::of(world, NEVER).await;
    for n in 0..100 {
        shop.sent(&format!("order-{n}")).await;
    }
    let handler = Pays { remote: shop.remote.clone(), says: shop.says.clone(), looks_again: false };
    let tool = Tool::new(&contract(NEVER), handler).expect("a contract");
    let others = Operations::of(&other, [tool]).await.expect("declared");
    let workers = [&shop.operations, &shop.operations, &others, &others];
    let working: Vec<_> = workers
        .into_iter()
        .map(|operations| tokio::spawn(operations.worker().at_once(8).run_dry(std::future::pending())))
        .collect();
    for worker in working {
        worker.await.expect("no panic").expect("it works");
    }
    assert_eq!(shop.remote.hits(), 100);
}

#[tokio::test]
async fn a_worker_that_runs_is_woken_and_drains_when_it_is_told_to_stop() {
    let shop = Shop::of(World::memory(crate::support::POLICY).await, NEVER).await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = shop.operations.worker().look_every(Duration::from_secs(600));
    let running = tokio::spawn(worker.run(async move {
        let _ = stopped.await;
    }));
    for order in ["a", "b"] {
        shop.sent(order).await;
        shop.remote.arrived().await;
    }
    stop.send(()).expect("it runs");
    assert_eq!(running.await.expect("no panic").expect("it works").left, 0);
    shop.sent("c").await;
    assert_eq!(shop.remote.hits(), 2, "nobody works any more");
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_worker_that_listens_is_woken_by_what_another_host_dispatched() {
    let database = onceseal_servers::server().new_database();
    let listening = format!("{}?listen=yes", database.url());
    let here = Shop::of(World::on_server(&listening, crate::support::POLICY).await, NEVER).await;
    let there = Shop::of(World::on_server(&database.url(), crate::support::POLICY).await, NEVER).await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = here.operations.worker().look_every(Duration::from_secs(600));
    let running = tokio::spawn(worker.run(async move {
        let _ = stopped.await;
    }));
    // The first may be there when it begins; the others it can only hear of.
    for order in ["a", "b", "c"] {
        there.sent(order).await;
        tokio::time::timeout(Duration::from_secs(60), here.remote.arrived()).await.expect("it is woken");
    }
    stop.send(()).expect("it runs");
    assert_eq!(running.await.expect("no panic").expect("it works").left, 0);
    assert_eq!((here.remote.hits(), there.remote.hits()), (3, 0));
}

#[tokio::test]
async fn p03_an_answer_that_was_lost_is_asked_for_with_the_same_key_or_waits_for_a_person() {
    for (text, state, hits) in [
        (NEVER, EffectState::Ambiguous, 1),
        (SAME_KEY, EffectState::Committed, 2),
        (ASK, EffectState::Committed, 1),
    ] {
        let shop = Shop::of(World::memory(crate::support::POLICY).await, text).await;
        shop.remote.lose_answer();
        let now = shop.sent("a").await;
        shop.work().await;
        shop.pass(120);
        shop.work().await;
        assert_eq!((shop.world.state("pay:a"), shop.remote.hits()), (Some(state), hits), "{text}");
        let ambiguous = matches!(shop.state(&now), ActionState::Ended { result: Answer::Ambiguous, .. });
        assert_eq!(ambiguous, text == NEVER);
    }
}

#[tokio::test]
async fn p03_a_request_that_could_outlast_the_lease_is_not_sent() {
    let _alone = fault::alone();
    for (contract, pause, sent) in
        [(SAME_KEY, 9_999_999, 1), (SAME_KEY, 10_000_001, 0), (ASK, 9_999_999, 1), (ASK, 10_000_001, 0)]
    {
        let shop = Shop::of(World::memory(crate::support::POLICY).await, contract).await;
        // Stopped between the claim and the request, once: of a lease of 30 s less
        // is left than the 20 s that a request may take.
        let (clock, stops) = (shop.world.clock.clone(), AtomicU64::new(1));
        fault::on(point::AFTER_RESERVE, move || {
            clock.advance(pause * i64::from(stops.swap(0, Ordering::SeqCst) == 1));
            Ok(())
        });
        let now = shop.sent("a").await;
        shop.work().await;
        assert_eq!(shop.remote.hits(), sent, "{contract} after {pause} µs");
        if sent == 0 {
            let state = shop.state(&now);
            assert!(matches!(state, ActionState::Queued { code: Some(Code::NotExecuted), .. }), "{state:?}");
        }
        shop.pass(30);
        shop.work().await;
        assert_eq!((shop.world.state("pay:a"), shop.remote.hits()), (Some(EffectState::Committed), 1));
    }
}

#[tokio::test]
async fn p03_what_the_remote_never_got_is_made_again_once_it_was_asked_in_time() {
    let shop = Shop::of(World::memory(crate::support::POLICY).await, ASK).await;
    shop.remote.lose_request();
    shop.sent("a").await;
    shop.work().await;
    assert_eq!((shop.world.state("pay:a"), shop.remote.hits()), (Some(EffectState::Ambiguous), 0));
    shop.pass(60);
    shop.work().await;
    assert_eq!(shop.remote.hits(), 0, "it may still come");
    shop.pass(60);
    shop.work().await;
    assert_eq!((shop.world.state("pay:a"), shop.remote.hits()), (Some(EffectState::Committed), 1));
}

#[tokio::test]
async fn a_definite_no_is_parked_until_a_person_says_so() {
    let shop = Shop::of(World::memory(crate::support::POLICY).await, NEVER).await;
    shop.remote.refuse();
    let now = shop.sent("a").await;
    shop.work().await;
    assert_eq!(shop.state(&now), ActionState::Parked { code: Code::NotExecuted });
    let control = &shop.world.control;
    control.retry(now.action, host("ann"), "funds are there".to_owned()).await.expect("retried");
    shop.work().await;
    assert_eq!(shop.world.state("pay:a"), Some(EffectState::Committed));
    shop.remote.refuse();
    let other = shop.sent("b").await;
    shop.work().await;
    control.cancel(other.action, host("ann"), "not wanted".to_owned()).await.expect("cancelled");
    let ended = shop.sent("b").await.standing;
    let Standing::Ended { result: Answer::Cancelled, receipt, .. } = ended else { panic!("{ended:?}") };
    let document = control.receipt(receipt).expect("readable").expect("a receipt");
    let member = |name: &str| document.as_object().and_then(|o| o.get(name)).cloned();
    assert_eq!(member("result"), Some("cancelled".into()));
    let answered = member("answered").expect("who");
    assert_eq!(answered.as_object().and_then(|o| o.get("person")), Some(&"host:ann".into()));
}

#[tokio::test]
async fn the_current_principal_is_looked_at_again_before_each_attempt() {
    let shop = Shop::with(World::memory(crate::support::POLICY).await, NEVER, true).await;
    shop.says.denies.store(true, Ordering::SeqCst);
    assert_eq!(code(shop.dispatch("a", 10).send().await), "authorization_denied");
    shop.says.denies.store(false, Ordering::SeqCst);
    let before = shop.says.looks.load(Ordering::SeqCst);
    let now = shop.sent("a").await;
    assert_eq!(shop.says.looks.load(Ordering::SeqCst) - before, 2, "twice before it is accepted");
    shop.says.cannot_tell.store(true, Ordering::SeqCst);
    shop.work().await;
    assert!(matches!(shop.state(&now), ActionState::Queued { .. }), "asked again later");
    shop.says.cannot_tell.store(false, Ordering::SeqCst);
    shop.says.denies.store(true, Ordering::SeqCst);
    shop.pass(10);
    shop.work().await;
    assert_eq!(shop.state(&now), ActionState::Parked { code: Code::AuthorizationDenied });
    assert_eq!(shop.remote.hits(), 0);
    shop.says.denies.store(false, Ordering::SeqCst);
    shop.world.control.retry(now.action, host("ann"), "restored".to_owned()).await.expect("retried");
    shop.work().await;
    assert_eq!(shop.remote.hits(), 1);
}

#[tokio::test]
async fn a_business_rule_is_asked_before_it_is_accepted_and_before_each_attempt() {
    let text = r#"{"name":"pay","business_rule":"not refunded"}"#;
    let shop = Shop::of(World::memory(crate::support::POLICY).await, text).await;
    shop.says.forbids.store(true, Ordering::SeqCst);
    assert_eq!(code(shop.dispatch("a", 10).send().await), "business_rule_violation");
    shop.says.forbids.store(false, Ordering::SeqCst);
    let now = shop.sent("a").await;
    shop.says.forbids.store(true, Ordering::SeqCst);
    shop.work().await;
    assert_eq!(shop.state(&now), ActionState::Parked { code: Code::BusinessRuleViolation });
    assert_eq!(shop.remote.hits(), 0);
}

#[tokio::test]
async fn a_person_is_asked_and_the_same_dispatch_goes_on() {
    let shop = Shop::of(World::memory(crate::support::POLICY).await, NEVER).await;
    let (action, approval) = needed(shop.dispatch("a", 2_000).send().await);
    shop.world.answer(approval, "ann", onceseal::core::approval::Said::Yes).await.expect("counted");
    let now = shop.dispatch("a", 2_000).send().await.expect("accepted");
    assert_eq!(now.action, action);
    shop.work().await;
    assert_eq!(shop.remote.hits(), 1);
}

#[tokio::test]
async fn bad_input_is_told_and_nothing_is_recorded() {
    let shop = Shop::of(World::memory(crate::support::POLICY).await, NEVER).await;
    let before = shop.world.control.log(0, usize::MAX).expect("readable").len();
    let pay = |name: &str| shop.operations.dispatch(name).by(bot());
    assert_eq!(code(pay("nothing").key("k").send().await), "tool_unknown");
    assert_eq!(code(pay("pay").key("k").send().await), "invalid_argument");
    assert_eq!(code(pay("pay").arg("order", "a").send().await), "idempotency_key_required");
    assert_eq!(code(pay("pay").arg("order", "a").key(" ").send().await), "call_invalid");
    assert_eq!(shop.world.control.log(0, usize::MAX).expect("readable").len(), before);
}

#[tokio::test]
async fn another_wish_under_the_same_key_is_a_conflict() {
    let shop = Shop::of(World::memory(crate::support::POLICY).await, NEVER).await;
    shop.sent("a").await;
    assert_eq!(code(shop.dispatch("a", 11).send().await), "idempotency_conflict");
}

#[tokio::test]
async fn a_handler_that_panics_leaves_an_unknown_outcome_and_a_worker_that_goes_on() {
    let world = World::memory(crate::support::POLICY).await;
    let hits = Arc::new(AtomicU64::new(0));
    let counted = hits.clone();
    let tool = Tool::function(&contract(NEVER), move |job: Job| {
        let hits = counted.clone();
        async move {
            hits.fetch_add(1, Ordering::SeqCst);
            assert_ne!(job.args().get("order"), Some(&"bad".into()), "a handler that fails, on purpose");
            Ok(Value::Null)
        }
    });
    let operations = Operations::of(&world.control, [tool.expect("a contract")]).await.expect("declared");
    for order in ["bad", "good"] {
        let dispatch = operations.dispatch("pay").arg("order", order).arg("amount", Value::Integer(1));
        dispatch.by(bot()).key(order).send().await.expect("accepted");
    }
    operations.worker().run_dry(std::future::pending()).await.expect("it works");
    world.control.store().run(onceseal::core::command::Command::Create).expect("after the keeper");
    assert_eq!(hits.load(Ordering::SeqCst), 2);
    assert_eq!(world.state("pay:good"), Some(EffectState::Committed));
}

#[tokio::test]
async fn a_flood_under_one_contract_does_not_delay_another_by_more_than_its_own_rounds() {
    const AT_ONCE: usize = 16;
    let world = World::memory(crate::support::POLICY).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let tool = |name: &str| {
        let done = order.clone();
        let contract = contract(&format!(r#"{{"name":"{name}"}}"#));
        Tool::function(&contract, move |job: Job| {
            let order = job.args().get("order").and_then(Value::as_text).unwrap_or_default().to_owned();
            done.lock().expect("whole").push(order);
            async { Ok(Value::Null) }
        })
        .expect("a contract")
    };
    let operations = Operations::of(&world.control, [tool("pay"), tool("read")]).await.expect("declared");
    for thousand in 0..10 {
        let mut flood = tokio::task::JoinSet::new();
        for n in thousand * 1_000..(thousand + 1) * 1_000 {
            let dispatch = operations.dispatch("pay").arg("order", format!("{n}")).arg("amount", 1).by(bot());
            flood.spawn(dispatch.key(format!("key {n}")).send());
        }
        while let Some(sent) = flood.join_next().await {
            sent.expect("no panic").expect("accepted");
        }
    }
    // Others come in the middle of the flood, of which the worker has found a part.
    let working = operations.worker().at_once(AT_ONCE).look_every(Duration::from_secs(600));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = tokio::spawn(working.run(async move { drop(stopped.await) }));
    let mut delays = Vec::new();
    for n in 1..=12 {
        let done = || order.lock().expect("whole").len();
        while done() < n * 610 {
            tokio::task::yield_now().await;
        }
        let (other, before) = (format!("other {n}"), done());
        let dispatch = operations.dispatch("read").arg("order", other.as_str()).by(bot()).key(other.as_str());
        dispatch.send().await.expect("accepted");
        let place = loop {
            let place = order.lock().expect("whole").iter().position(|order| *order == other);
            match place {
                Some(place) => break place,
                None => tokio::task::yield_now().await,
            }
        };
        delays.push(place - before);
    }
    stop.send(()).expect("it runs");
    worker.await.expect("no panic").expect("it works");
    println!("carried out after so many others: {delays:?}");
    // What was found before it, what is carried out while it is accepted, and its own.
    assert!(delays.iter().all(|delay| *delay <= 6 * AT_ONCE), "{delays:?}");
}

//! Destinations that do not answer: what goes there waits for one probe.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onceseal::core::action::ActionState;
use onceseal::core::code::Code;
use onceseal::core::id::ActionId;
use onceseal::core::json::{self, Limits, Value};
use onceseal::core::route::OPENS_AFTER;
use onceseal::operations::{Answering, Handler, Job, Operations, Tool};
use onceseal::{Failure, Performed};
use tokio::sync::{Notify, Semaphore};

use crate::support::{World, bot};

const CONTRACT: &str = r#"{"name":"pay","destination":"https://bank.example"}"#;

/// A bank that can be down, and that answers a call when it is let.
struct Bank {
    down: AtomicBool,
    calls: AtomicU64,
    arrived: Notify,
    lets: Semaphore,
}

struct Pays(Arc<Bank>);

impl Handler for Pays {
    fn perform(&self, _: Job) -> Answering<'_, Performed> {
        Box::pin(async {
            self.0.calls.fetch_add(1, Ordering::SeqCst);
            if self.0.down.load(Ordering::SeqCst) {
                let code = Some("connect".to_owned());
                return Err(Failure::NotExecuted { code, message: "nobody is there".to_owned() });
            }
            self.0.arrived.notify_one();
            self.0.lets.acquire().await.expect("it stays open").forget();
            Ok(Value::Null.into())
        })
    }

    fn again(&self, _: &Failure, _: u64) -> Option<Duration> {
        Some(Duration::from_secs(10))
    }

    fn reached(&self, failure: &Failure) -> Option<bool> {
        let nobody = matches!(failure, Failure::NotExecuted { code: Some(code), .. } if code == "connect");
        nobody.then_some(false)
    }
}

struct Shop {
    world: World,
    bank: Arc<Bank>,
    operations: Operations,
}

impl Shop {
    async fn of(world: World) -> Shop {
        let (down, calls) = (AtomicBool::new(true), AtomicU64::new(0));
        let bank = Arc::new(Bank { down, calls, arrived: Notify::new(), lets: Semaphore::new(0) });
        let Ok(Value::Object(contract)) = json::read(CONTRACT.as_bytes(), &Limits::DATA) else {
            panic!("no contract")
        };
        let tool = Tool::new(&contract, Pays(bank.clone())).expect("a contract");
        let operations = Operations::of(&world.control, [tool]).await.expect("declared");
        Shop { world, bank, operations }
    }

    async fn dispatch(&self, orders: u32) -> Vec<ActionId> {
        let mut actions = Vec::new();
        for order in 0..orders {
            let order = order.to_string();
            let dispatch = self.operations.dispatch("pay").arg("order", order.as_str());
            let dispatch = dispatch.arg("amount", Value::Integer(1)).by(bot()).key(order);
            actions.push(dispatch.send().await.expect("accepted").action);
        }
        actions
    }

    async fn work(&self) {
        let worker = self.operations.worker().at_once(1);
        worker.run_dry(std::future::pending()).await.expect("it works");
    }

    fn calls(&self) -> u64 {
        self.bank.calls.load(Ordering::SeqCst)
    }

    fn state(&self, action: ActionId) -> ActionState {
        self.world.control.action_row(action).expect("readable").expect("there").state
    }

    fn pass(&self, seconds: i64) {
        self.world.clock.advance(seconds * 1_000_000);
    }
}

#[tokio::test]
async fn what_goes_to_a_bank_that_is_down_waits_until_one_probe_has_come_through() {
    for world in World::both().await {
        let shop = Shop::of(world).await;
        let actions = shop.dispatch(OPENS_AFTER + 3).await;
        shop.work().await;
        assert_eq!(shop.calls(), u64::from(OPENS_AFTER), "the others were not attempted");
        for action in &actions[OPENS_AFTER as usize..] {
            let state = shop.state(*action);
            assert!(matches!(state, ActionState::Queued { code: Some(Code::RouteOpen), .. }), "{state:?}");
        }
        let stopped = shop.world.control.stopped_routes().expect("readable");
        assert_eq!(stopped.open[0].private.destination.as_deref(), Some("https://bank.example"));

        // It is open for twelve seconds at most.
        shop.pass(13);
        shop.bank.down.store(false, Ordering::SeqCst);
        let (first, ()) =
            tokio::join!(shop.operations.worker().at_once(1).run_dry(std::future::pending()), async {
                shop.bank.arrived.notified().await;
                shop.work().await;
                assert_eq!(shop.calls(), u64::from(OPENS_AFTER) + 1, "another worker does not probe");
                shop.bank.lets.add_permits(actions.len());
            });
        first.expect("it works");
        assert!(shop.world.control.stopped_routes().expect("readable").open.is_empty());
        shop.pass(5);
        shop.work().await;
        assert_eq!(shop.calls(), u64::from(OPENS_AFTER) + actions.len() as u64, "each has been done once");
        for action in actions {
            assert!(matches!(shop.state(action), ActionState::Ended { code: None, .. }));
        }
    }
}

#[tokio::test]
async fn p08_a_circuit_that_cannot_be_read_is_open_and_each_operation_it_stops_is_told() {
    let shop = Shop::of(World::sqlite(crate::support::POLICY).await).await;
    shop.dispatch(1).await;
    shop.work().await;
    assert_eq!(shop.calls(), 1);
    let file = shop.world.home.as_ref().expect("a home").dir.path().join("state/onceseal.db");
    let database = rusqlite::Connection::open(file).expect("the file");
    let changed = database.execute("UPDATE streams SET open = x'ff' WHERE kind = 9", []);
    assert_eq!(changed.expect("written"), 1);
    shop.pass(10);
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    let worker = shop.operations.worker().tell(move |_, error| {
        heard.lock().expect("whole").push(error.code());
    });
    let drained = worker.run_dry(std::future::pending()).await.expect("it works");
    assert_eq!((drained.failed, shop.calls()), (1, 1), "nothing is attempted");
    assert_eq!(*told.lock().expect("whole"), ["corrupt"]);
    let stopped = shop.world.control.stopped_routes().expect("readable");
    assert_eq!((stopped.open.len(), stopped.unreadable.len()), (0, 1));
}

//! Worlds for the tests: a store, a clock that stands still, a counted remote.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use onceseal::config::{Config, Settings};
use onceseal::core::approval::{Identity, Said};
use onceseal::core::effect::EffectState;
use onceseal::core::id::{ActionId, ApprovalId};
use onceseal::core::json::Value;
use onceseal::core::policy::ActivePolicy;
use onceseal::store::clock::{Clock, ManualClock, Reading};
use onceseal::store::place::Surroundings;
use onceseal::{Control, Error, Opening, Principal, Proposing, Receipt};

/// What most tests run under.
pub(crate) const POLICY: &str = "
schema: onceseal.policy/v1
actions:
  pay:
    effect: 'pay:{order}'
    resource: 'order:{order}'
    incidental: [note]
    redact: [card]
    rules:
      - when: { amount_lte: 1000 }
        decision: allow
      - when: { amount_lte: 5000 }
        decision: approve
      - decision: deny
  ask:
    effect: 'ask:{order}'
    approval: { ttl: 15m }
    decision: approve
  quick:
    effect: 'quick:{order}'
    lease: 1s
    deadline: 30s
    decision: allow
  measure:
    floats: allow
    decision: allow
  read: { decision: allow }
";

/// Compiles a policy.
pub(crate) fn policy(yaml: &str) -> Arc<ActivePolicy> {
    Config::parse(yaml.as_bytes()).expect("a policy").policy
}

/// A directory of its own for one store, gone with it.
pub(crate) struct Home {
    pub(crate) dir: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Home {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("work")).expect("a directory");
        Home { dir }
    }

    pub(crate) fn opening(&self, clock: Arc<dyn Clock>) -> Opening {
        Opening {
            surroundings: surroundings(self.dir.path()),
            settings: Settings::default(),
            clock,
            sweep: false,
        }
    }

    pub(crate) async fn control(&self, clock: Arc<dyn Clock>) -> Result<Control, Error> {
        let opening = self.opening(clock);
        tokio::task::spawn_blocking(move || Control::found(&opening)).await.expect("no panic")
    }
}

/// Everything below this directory, and nothing of the account's own.
pub(crate) fn surroundings(base: &std::path::Path) -> Surroundings {
    Surroundings {
        state: Some(base.join("state").into()),
        xdg_state_home: Some(base.join("marks").into()),
        home: None,
        ..Surroundings::of_process(base.join("work"))
    }
}

/// A store under a policy.
pub(crate) struct World {
    pub(crate) control: Control,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) home: Option<Home>,
}

impl World {
    pub(crate) async fn memory(yaml: &str) -> World {
        let clock = clock();
        let control = Control::memory(policy(yaml), clock.clone()).await.expect("a store");
        World { control, clock, home: None }
    }

    pub(crate) async fn sqlite(yaml: &str) -> World {
        let (clock, home) = (clock(), Home::new());
        let control = home.control(clock.clone()).await.expect("a store");
        control.activate(policy(yaml), false, None).await.expect("active");
        World { control, clock, home: Some(home) }
    }

    /// On a server, as another host has it too.
    #[cfg(all(feature = "postgres", feature = "fault"))]
    pub(crate) async fn on_server(address: &str, yaml: &str) -> World {
        let (clock, home) = (clock(), Home::new());
        let mut opening = home.opening(clock.clone());
        opening.settings.store = Some(onceseal::config::StoreAddress::parse(address).expect("an address"));
        let found = tokio::task::spawn_blocking(move || Control::found(&opening));
        let control = found.await.expect("no panic").expect("a store");
        control.activate(policy(yaml), false, None).await.expect("active");
        World { control, clock, home: Some(home) }
    }

    /// One of each kind.
    pub(crate) async fn both() -> [World; 2] {
        [World::memory(POLICY).await, World::sqlite(POLICY).await]
    }

    pub(crate) fn pay(&self, order: &str, amount: i64) -> Proposing {
        pay(&self.control, order, amount)
    }

    pub(crate) fn ask(&self, order: &str) -> Proposing {
        self.control.action("ask").arg("order", order).by(bot())
    }

    pub(crate) fn state(&self, key: &str) -> Option<EffectState> {
        self.control.effect(key).expect("readable").map(|row| row.state)
    }

    /// A yes or no of this person to what is stored.
    pub(crate) async fn answer(&self, approval: ApprovalId, person: &str, said: Said) -> Result<(), Error> {
        answer(&self.control, approval, person, said).await
    }

    /// The receipt's document.
    pub(crate) fn receipt(&self, receipt: &Receipt) -> Value {
        let id = receipt.id.expect("a receipt");
        self.control.receipt(id).expect("readable").expect("there")
    }
}

pub(crate) fn pay(control: &Control, order: &str, amount: i64) -> Proposing {
    control.action("pay").arg("order", order).arg("amount", Value::Integer(amount)).by(bot())
}

pub(crate) async fn answer(
    control: &Control,
    approval: ApprovalId,
    person: &str,
    said: Said,
) -> Result<(), Error> {
    let row = control.approval(approval)?.expect("an approval");
    let shown = row.private.bound.binding.expect("a binding");
    control.answer(approval, host(person), said, shown).await.map(drop)
}

pub(crate) fn bot() -> Principal {
    Principal::agent("bot")
}

pub(crate) fn host(name: &str) -> Identity {
    Identity::parse(&format!("host:{name}")).expect("an identity")
}

/// An account that does not own the store.
pub(crate) fn stranger() -> Identity {
    Identity::parse("os:somebody-else").expect("an identity")
}

/// 2026-01-01T00:00:00Z, until it is moved.
pub(crate) fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Reading { wall_us: 1_767_225_600_000_000, boot_us: 0 }))
}

/// The waiting action and its request, from the error that names them.
pub(crate) fn needed<T: std::fmt::Debug>(result: Result<T, Error>) -> (ActionId, ApprovalId) {
    match result {
        Err(Error::ApprovalNeeded { action, approval, .. }) => (action, approval),
        other => panic!("{other:?}"),
    }
}

/// The code of an error.
pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    result.expect_err("an error").code()
}

/// An executor that must not run.
pub(crate) async fn never(_: onceseal::Call) -> Result<(), std::io::Error> {
    panic!("this executor must not run");
}

/// Polls a future once.
pub(crate) fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Waits until nobody holds the effect of this call, which must then be
/// ambiguous or committed: an identical call waits for it.
pub(crate) async fn unheld(call: Proposing) -> Result<Receipt, Error> {
    call.replay().wait(std::time::Duration::from_secs(20)).execute(never).await
}

/// A clock that stops the store's writer when it reads it, once it is told to.
pub(crate) struct Gate {
    inner: Arc<ManualClock>,
    closed: AtomicBool,
    reached: Mutex<Option<SyncSender<()>>>,
    open: Mutex<Option<Receiver<()>>>,
}

impl Gate {
    pub(crate) fn new() -> Arc<Gate> {
        Arc::new(Gate {
            inner: clock(),
            closed: AtomicBool::new(false),
            reached: Mutex::default(),
            open: Mutex::default(),
        })
    }

    /// The writer stops when it reads the clock next.
    pub(crate) fn close(&self) -> Stopped {
        let (reached, arrived) = sync_channel(1);
        let (opener, open) = sync_channel(1);
        *self.reached.lock().expect("whole") = Some(reached);
        *self.open.lock().expect("whole") = Some(open);
        self.closed.store(true, Ordering::SeqCst);
        Stopped { arrived, opener }
    }
}

impl Clock for Gate {
    fn now(&self) -> Reading {
        let writer = std::thread::current().name() == Some("onceseal-writer");
        if writer && self.closed.swap(false, Ordering::SeqCst) {
            let (reached, open) =
                (self.reached.lock().expect("whole").take(), self.open.lock().expect("whole").take());
            if let (Some(reached), Some(open)) = (reached, open) {
                reached.send(()).expect("a test that waits");
                // An error: the test has gone.
                let _ = open.recv();
            }
        }
        self.inner.now()
    }
}

/// A writer that stops at a [`Gate`].
pub(crate) struct Stopped {
    arrived: Receiver<()>,
    opener: SyncSender<()>,
}

impl Stopped {
    /// Blocks until it has.
    pub(crate) fn reached(&self) {
        self.arrived.recv().expect("the writer reads the clock");
    }

    pub(crate) fn open(self) {
        self.opener.send(()).expect("it waits");
    }
}

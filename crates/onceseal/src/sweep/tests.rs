use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};

use onceseal_core::code::Code;
use onceseal_core::decide::decide;
use onceseal_core::id::ActionId;
use onceseal_core::policy::ActivePolicy;
use onceseal_core::stream::StreamId;
use onceseal_store::backend::{Backend, Fault, Work};
use onceseal_store::clock::{ManualClock, Reading};
use onceseal_store::{Options, Parts};

use super::*;
use crate::config::Config;
use crate::control::blocking;
use crate::{Control, Error, Principal};

const MINUTE: i64 = 60_000_000;
const FAULTY: ActionId = ActionId([1; 16]);
const SOUND: ActionId = ActionId([2; 16]);

fn policy(ttl: u32) -> Arc<ActivePolicy> {
    let yaml = format!(
        "schema: onceseal.policy/v1\nactions:\n  pay: {{ effect: 'pay:{{order}}', decision: allow }}\n  \
         ask: {{ effect: 'ask:{{order}}', approval: {{ ttl: {ttl}m }}, decision: approve }}\n"
    );
    Config::parse(yaml.as_bytes()).expect("a policy").policy
}

/// A store of these parts under a policy.
async fn open(change: impl FnOnce(Parts) -> Parts + Send + 'static) -> (Control, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(Reading { wall_us: 1_767_225_600_000_000, boot_us: 0 }));
    let options = Options { clock: clock.clone(), ..Options::default() };
    let start = move || Control::start(Store::of(change(Parts::memory(&options)?))?, None, None, false);
    let control = blocking(start).await.expect("a store");
    control.activate(policy(15), false, None).await.expect("active");
    (control, clock)
}

async fn swept(rounds: Rounds, control: &Control) -> (Rounds, usize) {
    let store = control.inner.store.clone();
    let sweep = move || -> Result<_, StoreError> {
        let mut rounds = rounds;
        let ended = rounds.sweep(&store)?;
        Ok((rounds, ended))
    };
    blocking(sweep).await.expect("swept")
}

async fn propose(control: &Control, name: &str, id: ActionId) -> Result<Reply, Error> {
    let call = control.action(name).arg("order", id.to_string()).by(Principal::agent("bot")).id(id);
    call.propose().await
}

#[tokio::test]
async fn p14_a_stream_on_which_a_rule_fails_holds_up_no_other() {
    let (control, clock) = open(|parts| {
        let faulty = StreamId::action(FAULTY);
        let decide = move |pinned: &_, view: &_, stamped: &onceseal_core::command::Stamped, now| {
            match stamped.command {
                // Quietly, and caught by whoever runs it.
                Command::Lapse(stream) if stream == faulty => resume_unwind(Box::new("a fault of ours")),
                _ => decide(pinned, view, stamped, now),
            }
        };
        Parts { decide: Arc::new(decide), ..parts }
    })
    .await;
    for id in [FAULTY, SOUND] {
        propose(&control, "pay", id).await.expect("ready");
    }
    clock.advance(14 * MINUTE);
    let asked = propose(&control, "ask", ActionId([3; 16])).await;
    assert!(matches!(asked, Err(Error::ApprovalNeeded { .. })), "{asked:?}");
    clock.advance(MINUTE + 1);
    control.activate(policy(16), false, None).await.expect("active");
    let (rounds, ended) = swept(Rounds::default(), &control).await;
    assert_eq!(ended, 2, "the other proposal, and the request of another policy");
    assert_eq!(swept(rounds, &control).await.1, 0);
}

/// Does not save a change of this stream while it is full.
struct Full(Box<dyn Backend>, StreamId, Arc<AtomicBool>);

impl Backend for Full {
    fn batch(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        let (full, stream) = (self.2.load(Ordering::SeqCst), self.1);
        self.0.batch(&mut |loader| {
            let changes = work(loader)?;
            let changed = changes.iter().flat_map(|changes| &changes.rows).any(|row| row.stream == stream);
            if full && changed { Err(StoreError::new(Code::StoreFailed)) } else { Ok(changes) }
        })
    }

    fn accept_clock(&mut self) {
        self.0.accept_clock();
    }
}

#[tokio::test]
async fn p14_a_stream_that_cannot_be_saved_holds_up_no_other_and_is_tried_again() {
    let full = Arc::new(AtomicBool::new(false));
    let own = full.clone();
    let (control, _) = open(|parts| {
        let backend = Box::new(Full(parts.backend, StreamId::action(FAULTY), own));
        Parts { backend, ..parts }
    })
    .await;
    for id in [FAULTY, SOUND] {
        let asked = propose(&control, "ask", id).await;
        assert!(matches!(asked, Err(Error::ApprovalNeeded { .. })), "{asked:?}");
    }
    full.store(true, Ordering::SeqCst);
    // Nobody asks under another rule any more.
    control.activate(policy(16), false, None).await.expect("active");
    let (rounds, ended) = swept(Rounds::default(), &control).await;
    assert_eq!(ended, 1);
    full.store(false, Ordering::SeqCst);
    let (rounds, ended) = swept(rounds, &control).await;
    assert_eq!(ended, 1);
    assert_eq!(swept(rounds, &control).await.1, 0);
}

#[tokio::test]
async fn p08_a_failure_of_the_whole_store_ends_the_sweep() {
    let (control, clock) = open(|parts| parts).await;
    propose(&control, "pay", SOUND).await.expect("ready");
    clock.advance(15 * MINUTE + 1);
    clock.step_wall(61 * MINUTE);
    let store = control.inner.store.clone();
    let failed = blocking(move || sweep(&store)).await.expect_err("no command is taken");
    assert_eq!(failed.code(), "clock_jump");
}

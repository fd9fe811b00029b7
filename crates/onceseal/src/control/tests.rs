use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use onceseal_core::approval::{Identity, Said};
use onceseal_core::effect::Finding;
use onceseal_core::id::ActionId;
use onceseal_core::time::Span;
use onceseal_store::read::{Readers, Snapshot};
use onceseal_store::{Options, Parts, Store, StoreError};

use super::*;
use crate::config::Config;
use crate::{Call, Failure, Principal};

/// Remembers which threads read.
struct Watched {
    readers: Box<dyn Readers>,
    threads: Arc<Mutex<Vec<ThreadId>>>,
}

impl Readers for Watched {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StoreError> {
        self.threads.lock().expect("whole").push(thread::current().id());
        self.readers.snapshot()
    }

    fn unsafe_settings(&self) -> Result<Vec<String>, StoreError> {
        self.readers.unsafe_settings()
    }

    fn close(&self) {
        self.readers.close();
    }
}

const POLICY: &[u8] = b"
schema: onceseal.policy/v1
actions:
  pay: { effect: 'pay:{order}', decision: allow }
  ask: { effect: 'ask:{order}', decision: approve }
";

async fn fine(_: Call) -> Result<&'static str, Failure> {
    Ok("done")
}

async fn lost(_: Call) -> Result<(), Failure> {
    Err(Failure::unknown("lost"))
}

#[tokio::test]
async fn p14_no_call_blocks_its_async_thread_by_reading() {
    let threads = Arc::new(Mutex::new(Vec::new()));
    let mut parts = Parts::memory(&Options::default()).expect("the parts of a store");
    parts.readers = Box::new(Watched { readers: parts.readers, threads: threads.clone() });
    let control = blocking(|| Control::start(Store::of(parts)?, None, None, false)).await.expect("a store");
    control.activate(Config::parse(POLICY).expect("a policy").policy, false, None).await.expect("active");
    let call = |name: &str, order: &str| control.action(name).arg("order", order).by(Principal::agent("bot"));
    let person = || Identity::parse("host:ann").expect("a person");

    // Replayed, answered by its id, resumed.
    let id = ActionId([7; 16]);
    call("pay", "o").id(id).execute(fine).await.expect("committed");
    assert!(call("pay", "o").replay().execute(fine).await.expect("replayed").replayed);
    assert!(call("pay", "o").id(id).execute(fine).await.expect("answered").replayed);
    let asked = call("ask", "o").execute(fine).await;
    let Err(Error::ApprovalNeeded { action, approval, .. }) = asked else { panic!("{asked:?}") };
    let shown = control.aside(move |control| control.approval(approval)).await.expect("readable");
    let shown = shown.and_then(|row| row.private.bound.binding).expect("a binding");
    control.answer(approval, person(), Said::Yes, shown).await.expect("counted");
    control.resume(action).execute(fine).await.expect("committed");
    // Resolved and reconciled.
    for order in ["p", "q"] {
        assert!(call("pay", order).execute(lost).await.is_err());
    }
    control.resolve("pay:p", None, true, "seen".into(), None, person()).await.expect("resolved");
    let found = async |_, _| Some((Finding::Committed(None), None));
    control.reconcile("pay:q", Span::seconds(1), found).await.expect("reconciled");

    let threads = threads.lock().expect("whole").clone();
    assert!(threads.len() > 8, "it was read: {}", threads.len());
    assert!(!threads.contains(&thread::current().id()), "by the thread of the calls");
}

//! Scratch.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use onceseal_core::action::*;
use onceseal_core::command::Command;
use onceseal_core::effect::*;
use onceseal_core::json::{self, Limits, Value};
use onceseal_core::policy::*;
use onceseal_core::reply::Reply;
use onceseal_store::*;

fn main() {
    let callers: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let dir = std::env::args().nth(2).unwrap();
    let path = std::path::PathBuf::from(dir).join(format!("pace-{}.db", std::process::id()));
    std::fs::File::create(&path).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let store = Arc::new(Store::sqlite(path.clone(), &Options::default()).unwrap());
    let doc = json::read(br#"{"schema":"onceseal.policy/v1","actions":{"stripe.refund":{"effect":"refund:{payment_id}","rules":[{"when":{"amount_gte":0,"amount_lte":50000},"decision":"allow"},{"decision":"deny"}]}}}"#, &Limits::DATA).unwrap();
    let policy = Arc::new(ActivePolicy::compile(&doc).unwrap());
    store.run(Command::Activate(Activate { policy: policy.clone(), again: false, person: None })).unwrap();
    let n = Arc::new(AtomicU64::new(0));
    let done = Arc::new(AtomicU64::new(0));
    let end = Instant::now() + Duration::from_secs(3);
    let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let mut tasks = vec![];
    for _ in 0..callers {
        let (store, policy, n, done) = (store.clone(), policy.clone(), n.clone(), done.clone());
        tasks.push(rt.spawn(async move {
            while Instant::now() < end {
                let i = n.fetch_add(1, Ordering::Relaxed);
                let mut args = json::Object::new();
                args.insert("payment_id", format!("txn_{i}"));
                args.insert("amount", Value::Integer(2000));
                args.insert("note", "x".repeat(230));
                let action = Action { name: "stripe.refund".into(), arguments: args, principal: Principal { agent: "bot".into(), user: None }, environment: "production".into(), resource: None };
                let proposal = Proposal::prepare(store.tenant(), &policy, action).unwrap();
                let reply = store.submit(Command::Run(Box::new(Run { proposal, action: None, approval: None, reach: Reach::Executing, lease: None, deadline: None }))).unwrap().await.unwrap();
                let Reply::Attempt(attempt) = reply else { panic!("{reply:?}") };
                let reply = store.submit(Command::Settle(Settle { attempt: (&attempt).into(), outcome: Outcome::Committed, code: None, error: None, result: Some("{\"ok\":true}".into()) })).unwrap().await.unwrap();
                assert!(matches!(reply, Reply::Settled { .. }), "{reply:?}");
                done.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    rt.block_on(async { for t in tasks { t.await.unwrap() } });
    let d = done.load(Ordering::Relaxed);
    store.close();
    let bytes = std::fs::metadata(&path).unwrap().len();
    println!("{callers} callers: {} actions/s, {} bytes/action", d / 3, bytes / d);
    for s in ["", "-wal", "-shm", ".gate", ".lock", ".sweep"] { let _ = std::fs::remove_file(format!("{}{s}", path.display())); }
}

//! Scratch.
use onceseal::core::action::*;
use onceseal::core::command::Command;
use onceseal::core::effect::*;
use onceseal::core::json::{self, Limits, Value};
use onceseal::core::policy::*;
use onceseal::core::reply::Reply;
use onceseal::store::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn main() {
    let dir = std::path::PathBuf::from(std::env::args().nth(2).unwrap());
    let secs: f64 = std::env::args().nth(3).unwrap().parse().unwrap();
    for callers in std::env::args().nth(1).unwrap().split(',') {
        let callers: usize = callers.parse().unwrap();
        let make = |n: &str| {
            let path = dir.join(format!("bench-{n}-{}.db", std::process::id()));
            use std::os::unix::fs::OpenOptionsExt;
            let _ = std::fs::remove_file(&path);
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).unwrap();
            path
        };
        let path = make("engine");
        let store = Arc::new(Store::sqlite(path.clone(), &Options::default()).unwrap());
        let doc = json::read(br#"{"schema":"onceseal.policy/v1","actions":{"stripe.refund":{"effect":"refund:{payment_id}","rules":[{"when":{"amount_gte":0,"amount_lte":50000},"decision":"allow"},{"decision":"deny"}]}}}"#, &Limits::DATA).unwrap();
        let policy = Arc::new(ActivePolicy::compile(&doc).unwrap());
        store
            .run(Command::Activate(Activate { policy: policy.clone(), again: false, person: None }))
            .unwrap();
        let n = Arc::new(AtomicU64::new(0));
        let done = Arc::new(AtomicU64::new(0));
        let start = Instant::now();
        let end = start + Duration::from_secs_f64(secs);
        let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let mut tasks = vec![];
        for _ in 0..callers {
            let (store, policy, n, done) = (store.clone(), policy.clone(), n.clone(), done.clone());
            tasks.push(rt.spawn(async move {
                let mut lat = vec![];
                while Instant::now() < end {
                    let t = Instant::now();
                    let i = n.fetch_add(1, Ordering::Relaxed);
                    let mut args = json::Object::new();
                    args.insert("payment_id", format!("txn_{i}"));
                    args.insert("amount", Value::Integer(2000));
                    args.insert("note", "x".repeat(230));
                    let action = Action {
                        name: "stripe.refund".into(),
                        arguments: args,
                        principal: Principal { agent: "bot".into(), user: None },
                        environment: "production".into(),
                        resource: None,
                    };
                    let proposal = Proposal::prepare(store.tenant(), &policy, action).unwrap();
                    let reply = store
                        .submit(Command::Run(Box::new(Run {
                            proposal,
                            action: None,
                            approval: None,
                            reach: Reach::Executing,
                            lease: None,
                            deadline: None,
                        })))
                        .unwrap()
                        .await
                        .unwrap();
                    let Reply::Attempt(attempt) = reply else { panic!("{reply:?}") };
                    let reply = store
                        .submit(Command::Settle(Settle {
                            attempt: (&attempt).into(),
                            outcome: Outcome::Committed,
                            code: None,
                            error: None,
                            result: Some("{\"ok\":true}".into()),
                        }))
                        .unwrap()
                        .await
                        .unwrap();
                    assert!(matches!(reply, Reply::Settled { .. }), "{reply:?}");
                    done.fetch_add(1, Ordering::Relaxed);
                    lat.push(t.elapsed().as_micros() as u64);
                }
                lat
            }));
        }
        let mut lat: Vec<u64> = rt.block_on(async {
            let mut l = vec![];
            for t in tasks {
                l.extend(t.await.unwrap())
            }
            l
        });
        let took = start.elapsed().as_secs_f64();
        lat.sort();
        let d = done.load(Ordering::Relaxed);
        store.close();
        let bytes = std::fs::metadata(&path).unwrap().len();
        if std::env::var("NORAW").is_ok() {
            println!("{}", d as f64 / took);
            continue;
        }
        let raw = make("raw");
        let r = yardstick::replay(&path, &raw, 2, 1_000_000).unwrap();
        let pace = d as f64 / took;
        let raw_pace = d as f64 / r.elapsed.as_secs_f64();
        println!(
            "{callers} callers: {pace:.0} actions/s p50 {} p99 {} raw {raw_pace:.0} ratio {:.2} batches {} ({:.1} actions) bytes/action {}",
            lat[lat.len() / 2],
            lat[lat.len() * 99 / 100],
            pace / raw_pace,
            r.batches,
            d as f64 * 2.0 / r.batches as f64,
            bytes / d
        );
        for p in [path, raw] {
            for s in ["", "-wal", "-shm", ".gate", ".lock", ".sweep"] {
                let _ = std::fs::remove_file(format!("{}{s}", p.display()));
            }
        }
    }
}

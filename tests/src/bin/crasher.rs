//! A process that serves customers until it is killed at a named point.
//!
//! `crasher <database> <ledger> <first customer> <customers> <clock, µs>`, armed
//! by `ONCESEAL_CRASH=<point>:<n>`. It prints each promise before it goes on,
//! and `served <n> <payments>` after each customer. The ledger is the remote: what is
//! appended there has happened.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use onceseal_core::action::Reach;
use onceseal_core::approval::Said;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{Finding, Outcome, Reconcile};
use onceseal_core::reply::{Attempt, EffectNow, Reply};
use onceseal_core::time::Span;
use onceseal_store::clock::{ManualClock, Reading};
use onceseal_store::fault::reach;
use onceseal_tests::armed::armed;
use onceseal_tests::shop::{LEASE, Shop, options, settle};
use onceseal_tests::vfs::Recorder;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [database, ledger, first, customers, wall_us] = &arguments[..] else { panic!("five arguments") };
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let clock = Arc::new(ManualClock::new(Reading { wall_us: number(wall_us) as i64, boot_us: 0 }));
    let recorder = armed();
    let options = options(&clock, recorder.as_ref().map(Recorder::name));
    let shop = Shop::open(&PathBuf::from(database), &options).expect("opened");
    let mut told = 0;
    let shop = shop.telling(move |promises| {
        for promise in &promises[told..] {
            println!("{promise}");
        }
        told = promises.len();
    });
    let mut client = Client { shop, clock, ledger: PathBuf::from(ledger), failed_once: false };
    client.shop.activate().expect("active");
    let first = number(first);
    for n in first..first + number(customers) {
        let payments = client.serve(n);
        println!("served {n} {payments}");
    }
    client.shop.store.close();
}

/// A client that goes on from whatever it finds.
struct Client {
    shop: Shop,
    clock: Arc<ManualClock>,
    ledger: PathBuf,
    failed_once: bool,
}

impl Client {
    /// Serves a customer to the end: each effect has happened, once. Every fifth
    /// has four payments, which share commits. Answers how many payments.
    fn serve(&mut self, n: u64) -> usize {
        if n % 5 != 4 {
            self.pay(n, &format!("p{n}"));
            return 1;
        }
        let keys: Vec<String> = (0..4).map(|i| format!("p{n}-{i}")).collect();
        let commands = keys.iter().map(|key| self.shop.refund(key)).collect();
        let mut reports = Vec::new();
        for outcome in self.shop.run_all(commands).expect("submitted") {
            // What an earlier process left is taken up one by one below.
            if let Reply::Attempt(attempt) = outcome.expect("answered") {
                self.append(&attempt);
                reports.push(settle(&attempt, Outcome::Committed));
            }
        }
        for outcome in self.shop.run_all(reports).expect("submitted") {
            outcome.expect("answered");
        }
        for key in &keys {
            self.pay(n, key);
        }
        keys.len()
    }

    /// Goes on with a payment from wherever it is.
    fn pay(&mut self, n: u64, key: &str) {
        let name = if n % 4 == 1 && n % 5 != 4 { "payout" } else { "refund" };
        loop {
            let run = self.shop.action(name, key, Reach::Executing);
            match self.shop.run(Command::Run(Box::new(run))).expect("answered") {
                Reply::Attempt(attempt) => {
                    if self.execute(&attempt, n) {
                        return;
                    }
                }
                Reply::ApprovalNeeded { approval, .. } => {
                    self.shop.answer(approval, "anna", Said::Yes).expect("answered");
                }
                Reply::Refused(refusal) => match (refusal.code, refusal.effect) {
                    (Code::Duplicate, _) => return,
                    (Code::InProgress, Some(effect)) => self.outlive(&effect),
                    (Code::Ambiguous, Some(effect)) => self.reconcile(&effect, key),
                    other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            }
        }
    }

    /// Does what is permitted, and reports. Answers whether it happened: every
    /// fourth customer's first attempt does not, another one's is not known.
    fn execute(&mut self, attempt: &Attempt, n: u64) -> bool {
        if n % 4 == 2 && !std::mem::replace(&mut self.failed_once, true) {
            self.shop.run(settle(attempt, Outcome::Failed)).expect("settled");
            return false;
        }
        self.failed_once = false;
        self.append(attempt);
        let unknown = n % 4 == 3;
        let outcome = if unknown { Outcome::Ambiguous } else { Outcome::Committed };
        self.shop.run(settle(attempt, outcome)).expect("settled");
        !unknown
    }

    /// The remote does it.
    fn append(&self, attempt: &Attempt) {
        let point = |name| reach(name).expect("armed to kill, not to fail");
        point("before_execute");
        let mut ledger = OpenOptions::new().create(true).append(true).open(&self.ledger).expect("the ledger");
        let line = format!("{} {}\n", attempt.effect, attempt.fence);
        ledger.write_all(line.as_bytes()).and_then(|()| ledger.sync_all()).expect("written");
        point("after_execute");
    }

    /// Waits until the lease of a holder that died is over.
    fn outlive(&mut self, effect: &EffectNow) {
        self.clock.advance(LEASE.as_micros() + 1);
        self.shop.run(Command::Lapse(effect.stream)).expect("lapsed");
    }

    /// Asks the remote what became of an attempt.
    fn reconcile(&mut self, effect: &EffectNow, key: &str) {
        let line = format!("{} {}", effect.stream, effect.fence);
        let happened = fs::read_to_string(&self.ledger).unwrap_or_default().lines().any(|have| have == line);
        let finding = if happened { Finding::Committed(None) } else { Finding::Absent };
        let command = Reconcile {
            effect: effect.stream,
            fence: effect.fence,
            finding,
            evidence: Some(format!("ledger of {key}")),
            remote: None,
            settle: Span::ZERO,
        };
        let reply = self.shop.run(Command::Reconcile(command)).expect("reconciled");
        assert!(matches!(reply, Reply::Settled { .. }), "{reply:?}");
    }
}

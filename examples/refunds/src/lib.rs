//! A payment provider to try Onceseal with: it pays refunds over HTTP, knows
//! them by their `Idempotency-Key`, and keeps a ledger of its own, which is what
//! really happened. It loses answers and takes its time where it is told to.
//!
//! It shares no code with Onceseal.

mod faults;
mod http;
mod ledger;

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

pub use crate::faults::{Fault, Faults};
use crate::http::{Request, answer};
pub use crate::ledger::Entry;
use crate::ledger::{Ledger, Paid};

/// How a provider behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// The file of its ledger; what is in it has happened.
    pub ledger: PathBuf,
    /// What goes wrong.
    pub faults: Faults,
    /// Up to so long each refund takes even if all is well.
    pub takes: Duration,
    /// Is told in a sentence of each request.
    pub tell: fn(&str),
}

/// A provider that answers until it is dropped.
#[derive(Debug)]
pub struct Service {
    address: SocketAddr,
    provider: Arc<Provider>,
}

#[derive(Debug)]
struct Provider {
    options: Options,
    ledger: Mutex<Ledger>,
    told: Mutex<Told>,
    changed: Condvar,
    stopped: AtomicBool,
}

/// What has reached it.
#[derive(Debug, Default)]
struct Told {
    /// Requests for a refund, by payment.
    refunds: BTreeMap<String, u64>,
    counts: Counts,
}

/// How much of what has reached a provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests of any kind.
    pub requests: u64,
    /// Requests for a refund.
    pub refunds: u64,
    /// Questions about one.
    pub questions: u64,
    /// Refunds whose request or answer it lost.
    pub lost: u64,
    /// Refunds that it was late with.
    pub late: u64,
}

impl Service {
    /// Answers what comes to this listener.
    ///
    /// # Errors
    /// The ledger cannot be read, or the listener used.
    pub fn start(listener: TcpListener, options: Options) -> io::Result<Service> {
        let address = listener.local_addr()?;
        let ledger = Mutex::new(Ledger::open(&options.ledger)?);
        let (told, changed, stopped) = (Mutex::default(), Condvar::new(), AtomicBool::new(false));
        let provider = Arc::new(Provider { options, ledger, told, changed, stopped });
        let own = provider.clone();
        thread::Builder::new().name("refunds".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                if own.stopped.load(Ordering::Acquire) {
                    return;
                }
                let (Ok(stream), own) = (stream, own.clone()) else { continue };
                // Whoever asked may have gone, which is theirs to deal with.
                thread::spawn(move || drop(own.serve(&stream)));
            }
        })?;
        Ok(Service { address, provider })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has paid.
    #[must_use]
    pub fn paid(&self) -> Vec<Entry> {
        lock(&self.provider.ledger).entries().to_vec()
    }

    /// What has reached it.
    #[must_use]
    pub fn counts(&self) -> Counts {
        lock(&self.provider.told).counts
    }

    /// Waits until more than `seen` requests have reached it, at most so long;
    /// how many have.
    #[must_use]
    pub fn wait(&self, seen: u64, at_most: Duration) -> u64 {
        let told = lock(&self.provider.told);
        let more =
            self.provider.changed.wait_timeout_while(told, at_most, |told| told.counts.requests <= seen);
        more.unwrap_or_else(PoisonError::into_inner).0.counts.requests
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.provider.stopped.store(true, Ordering::Release);
        // Wakes it; if that fails it has gone already.
        drop(TcpStream::connect(self.address));
    }
}

impl Provider {
    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        let request = Request::read(stream)?;
        match (request.method.as_str(), request.path.as_str()) {
            ("POST", "/refunds") => self.refund(stream, &request, false),
            // It never heard of keys: what comes again is paid again.
            ("POST", "/forgetful/refunds") => self.refund(stream, &request, true),
            ("GET", "/refunds") => self.question(stream, &request),
            _ => {
                let error = "POST /refunds or /forgetful/refunds, or GET /refunds?key=…";
                answer(stream, 404, &json!({ "error": error }))
            }
        }
    }

    fn question(&self, stream: &TcpStream, request: &Request) -> io::Result<()> {
        self.reached(|told| told.counts.questions += 1);
        let found = request.query.strip_prefix("key=").and_then(|key| lock(&self.ledger).find(key).cloned());
        match found {
            Some(entry) => {
                (self.options.tell)(&format!("asked: {} was paid for {}", entry.id, entry.payment));
                answer(stream, 200, &shown(&entry))
            }
            None => {
                (self.options.tell)("asked: nothing was paid under this key");
                answer(stream, 404, &json!({"error": "nothing was paid under this key"}))
            }
        }
    }

    fn refund(&self, stream: &TcpStream, request: &Request, forgets: bool) -> io::Result<()> {
        let Some((key, payment, amount)) = wanted(request) else {
            let error = "needs an Idempotency-Key, and {\"payment_id\": \"…\", \"amount\": 1}";
            return answer(stream, 400, &json!({"error": error}));
        };
        let Options { faults, takes, tell, .. } = &self.options;
        let mut nth = 0;
        self.reached(|told| {
            told.counts.refunds += 1;
            let times = told.refunds.entry(payment.clone()).or_default();
            (*times, nth) = (*times + 1, *times);
        });
        let fault = faults.of(&payment, nth);
        match fault {
            Some(Fault::Drop | Fault::Lose) => self.reached(|told| told.counts.lost += 1),
            Some(Fault::Late | Fault::Slow) => self.reached(|told| told.counts.late += 1),
            None => {}
        }
        let (before, after) = faults.pauses(&payment, nth, *takes);
        match fault {
            Some(Fault::Drop) => {
                tell(&format!("{payment}: the request is lost, nothing is paid"));
                return Ok(());
            }
            Some(Fault::Late) => thread::sleep(faults.late_by),
            _ => thread::sleep(before),
        }
        // Whether the other side still listens is not known here.
        let paid = lock(&self.ledger).pay(key, &payment, amount, forgets)?;
        let what = match &paid {
            Paid::Now(entry) => format!("paid {}", entry.id),
            Paid::Before(entry) => format!("was paid before, {}", entry.id),
            Paid::Other => "refused, its key was used for something else".to_owned(),
        };
        let lost = if fault == Some(Fault::Lose) { ", and the answer is lost" } else { "" };
        tell(&format!("{payment}: {what}{lost}"));
        match fault {
            Some(Fault::Lose) => return Ok(()),
            Some(Fault::Slow) => thread::sleep(faults.late_by),
            _ => thread::sleep(after),
        }
        match paid {
            Paid::Now(entry) | Paid::Before(entry) => answer(stream, 200, &shown(&entry)),
            Paid::Other => answer(stream, 422, &json!({"error": "something else was paid under this key"})),
        }
    }

    fn reached(&self, count: impl FnOnce(&mut Told)) {
        let mut told = lock(&self.told);
        count(&mut told);
        let Counts { refunds, questions, .. } = told.counts;
        told.counts.requests = refunds + questions;
        self.changed.notify_all();
    }
}

/// The key, the payment and the amount.
fn wanted(request: &Request) -> Option<(&str, String, u64)> {
    let body: Value = serde_json::from_slice(&request.body).ok()?;
    let payment = body["payment_id"].as_str().filter(|payment| is_word(payment))?;
    let key = request.key.as_deref().filter(|key| is_word(key))?;
    Some((key, payment.to_owned(), body["amount"].as_u64()?))
}

/// Whether it can stand in a line of the ledger.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn shown(entry: &Entry) -> Value {
    json!({"id": entry.id, "payment_id": entry.payment, "amount": entry.amount})
}

/// What a thread that panicked left is whole: nothing is changed in steps.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

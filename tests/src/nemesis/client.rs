//! A process of clients: what they ask of effects, and what they write down.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use onceseal_core::action::{Action, Principal, Proposal, Reach, Run};
use onceseal_core::approval::{Identity, Proof};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{Holding, Outcome, Renew, Resolve, Settle};
use onceseal_core::journal::{Row, Stored};
use onceseal_core::json::Object;
use onceseal_core::policy::ActivePolicy;
use onceseal_core::reply::{Attempt, Reply};
use onceseal_core::stream::StreamId;
use onceseal_core::time::Span;
use onceseal_store::read::row_of;
use onceseal_store::{Store, StoreError};

use super::{ACTION, OPERATOR, clock, open};
use crate::chance::Chance;
use crate::history::{Answer, Call, Moment, Operation};

/// After so many microseconds everybody asks for other effects.
const EPOCH: Moment = 200_000;
/// Operations between two signs of life.
const SIGN: usize = 32;

/// What a process of clients is told.
#[derive(Debug, Clone)]
pub struct Orders {
    /// Where the store is.
    pub url: String,
    /// Its number, which no other process has.
    pub number: u64,
    /// Clients in it.
    pub clients: u64,
    /// Effects that all processes ask for at once.
    pub effects: u64,
    /// What repeats their choices.
    pub seed: u64,
    /// What the clock that all share is ahead of the one that only runs.
    pub ahead: Moment,
}

/// Has clients ask until standard input ends, then writes what they were answered into
/// the file: whether the store had all that they had been told.
///
/// # Panics
/// If the store cannot be opened, or answers what no client may be answered.
pub fn serve(orders: &Orders, file: &Path) -> bool {
    let store = open(&orders.url);
    let policy = store.active_policy().expect("read").expect("a policy");
    let (stop, went_back) = (AtomicBool::new(false), AtomicBool::new(false));
    println!("ready");
    let told: Vec<(String, Operation)> = std::thread::scope(|scope| {
        let client = |n| Client {
            store: &store,
            policy: policy.clone(),
            orders,
            chance: Chance::of(orders.seed ^ ((orders.number << 32) + n)),
            next: ((orders.number << 16) + n) << 32,
            held: Vec::new(),
            fences: BTreeMap::new(),
            told: Vec::new(),
            went_back: &went_back,
        };
        let clients: Vec<_> = (0..orders.clients).map(client).collect();
        let threads: Vec<_> = clients.into_iter().map(|c| scope.spawn(|| c.ask_until(&stop))).collect();
        // It says nothing; it ends when nothing more is wanted.
        std::io::stdin().lines().for_each(drop);
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    store.close();
    let mut file = BufWriter::new(File::create_new(file).expect("a new file"));
    for (effect, operation) in told {
        writeln!(file, "{effect} {operation}").expect("written");
    }
    file.flush().expect("written");
    !went_back.into_inner()
}

/// One that asks, and waits for each answer.
struct Client<'a> {
    store: &'a Store,
    policy: Arc<ActivePolicy>,
    orders: &'a Orders,
    chance: Chance,
    next: u64,
    /// What it was given, with the operation that was.
    held: Vec<(String, u64, Attempt)>,
    /// The newest attempts that it has heard of.
    fences: BTreeMap<String, u64>,
    told: Vec<(String, Operation)>,
    /// Whether the store lacks what somebody here was told.
    went_back: &'a AtomicBool,
}

impl Client<'_> {
    fn ask_until(mut self, stop: &AtomicBool) -> Vec<(String, Operation)> {
        while !stop.load(Ordering::Relaxed) && !self.went_back.load(Ordering::Relaxed) {
            let before = self.told.len();
            self.ask();
            if self.told.len() > before && self.told.len().is_multiple_of(SIGN) {
                println!("> {SIGN}");
            }
        }
        self.told
    }

    fn now(&self) -> Moment {
        clock() + self.orders.ahead
    }

    fn ask(&mut self) {
        if let Some((effect, by, attempt)) = self.pick_held() {
            let holding = Holding::from(&attempt);
            let fence = attempt.fence;
            return match self.chance.below(10) {
                0..6 => self.settle(effect, by, holding),
                6..8 => {
                    self.held.push((effect.clone(), by, attempt));
                    let lease = self.lease();
                    let call = Call::Renew { by, fence, lease: lease.as_micros() };
                    self.command(effect, call, Command::Renew(Renew { attempt: holding, lease }));
                }
                // It comes back to it later, or never.
                8 => self.held.insert(0, (effect, by, attempt)),
                _ => {}
            };
        }
        let effect = self.pick_effect();
        let stream = self.store.tenant().effect(&key(&effect));
        match self.chance.below(20) {
            0..11 => self.run(effect),
            11..16 => self.read(effect, stream),
            16 => self.command(effect, Call::Lapse, Command::Lapse(stream)),
            _ => self.resolve(effect, stream),
        }
    }

    fn pick_held(&mut self) -> Option<(String, u64, Attempt)> {
        let newest = self.chance.below(10) != 0;
        if self.held.is_empty() || self.chance.below(3) == 0 {
            None
        } else if newest {
            self.held.pop()
        } else {
            Some(self.held.remove(0))
        }
    }

    /// Mostly one of those that everybody asks for now.
    fn pick_effect(&mut self) -> String {
        let epoch = self.now() / EPOCH;
        let back = match self.chance.below(100) {
            0 => return "always".to_owned(),
            1..10 => self.chance.below(25),
            10..35 => 1,
            _ => 0,
        };
        format!("{}-{}", epoch - back as i64, self.chance.below(self.orders.effects))
    }

    /// One that is soon over, or one that outlives everything.
    fn lease(&mut self) -> Span {
        if self.chance.below(4) == 0 { Span::seconds(1) } else { Span::seconds(60) }
    }

    fn run(&mut self, effect: String) {
        let mut arguments = Object::new();
        arguments.insert("effect", effect.clone());
        let action = Action {
            name: ACTION.to_owned(),
            arguments,
            principal: Principal::agent("bot"),
            environment: Action::DEFAULT_ENVIRONMENT.to_owned(),
            resource: None,
        };
        let proposal = Proposal::prepare(self.store.tenant(), &self.policy, action).expect("well-formed");
        let lease = self.lease();
        let (action, approval, deadline) = (None, None, None);
        let run = Run { proposal, action, approval, reach: Reach::Executing, lease: Some(lease), deadline };
        self.command(effect, Call::Run { lease: lease.as_micros() }, Command::Run(Box::new(run)));
    }

    fn settle(&mut self, effect: String, by: u64, attempt: Holding) {
        let outcome = match self.chance.below(10) {
            0..4 => Outcome::Committed,
            4..9 => Outcome::Failed,
            _ => Outcome::Ambiguous,
        };
        let call = Call::Settle { by, fence: attempt.fence, outcome };
        self.command(effect, call, Command::Settle(Settle::new(attempt, outcome)));
    }

    fn resolve(&mut self, effect: String, stream: StreamId) {
        let Some(fence) = self.fences.get(&effect).copied() else { return };
        let happened = self.chance.below(4) == 0;
        let resolve = Resolve {
            effect: stream,
            fence,
            happened,
            reason: "looked".to_owned(),
            evidence: None,
            person: Identity { proof: Proof::Host, name: OPERATOR.to_owned() },
        };
        self.command(effect, Call::Resolve { fence, happened }, Command::Resolve(resolve));
    }

    fn read(&mut self, effect: String, stream: StreamId) {
        let invoked = self.now();
        let found = self.store.read_rows(|rows| Ok(row_of(rows.stream(&stream)?)));
        let is = match found {
            Ok(None) => None,
            Ok(Some(Stored { row: Row::Effect(row), .. })) => Some((row.state, row.fence)),
            Ok(Some(other)) => panic!("no effect: {other:?}"),
            Err(error) => return self.unanswered(&error),
        };
        self.fences.extend(is.map(|(_, fence)| (effect.clone(), fence)));
        self.tell(effect, invoked, Call::Read, Answer::Is(is));
    }

    fn command(&mut self, effect: String, call: Call, command: Command) {
        let invoked = self.now();
        let answer = match self.store.run(command) {
            Ok(Reply::Attempt(attempt)) => {
                let (fence, until) = (attempt.fence, attempt.lease_until.micros());
                self.held.push((effect.clone(), self.next, attempt));
                Answer::Given { fence, until }
            }
            Ok(Reply::Settled { state, repeated, .. }) => Answer::Settled { state, repeated },
            Ok(Reply::Renewed { lease_until }) => Answer::Renewed { until: lease_until.micros() },
            Ok(Reply::Done { changed }) => Answer::Lapsed(changed),
            Ok(Reply::Refused(refusal)) => {
                self.fences.extend(refusal.effect.map(|now| (effect.clone(), now.fence)));
                Answer::Refused(refusal.code)
            }
            Ok(other) => panic!("to {call:?}: {other:?}"),
            Err(error) if error.code() == Code::CommitUnknown => Answer::Unknown,
            // It says that nothing was recorded; the history is wrong if that is not so.
            Err(error) => return self.unanswered(&error),
        };
        self.tell(effect, invoked, call, answer);
    }

    /// Only the server's absence keeps a client from an answer, or that it forgot.
    fn unanswered(&self, error: &StoreError) {
        match error.code() {
            Code::StoreUnreachable | Code::StoreBusy => {}
            Code::StoreWentBack => self.went_back.store(true, Ordering::Relaxed),
            _ => panic!("{error}"),
        }
    }

    fn tell(&mut self, effect: String, invoked: Moment, call: Call, answer: Answer) {
        let answered = (answer != Answer::Unknown).then(|| self.now());
        let id = self.next;
        self.next += 1;
        self.told.push((effect, Operation { id, invoked, answered, call, answer }));
    }
}

/// The key of an effect's action.
pub(super) fn key(effect: &str) -> String {
    format!("{ACTION}:{effect}")
}

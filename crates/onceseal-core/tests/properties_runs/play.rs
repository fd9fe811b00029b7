//! The same thing done to the rules and to the naive model, and the two held
//! against each other: what is said, and where everything stands.

use std::sync::Arc;

use onceseal_core::action::{Action, Principal};
use onceseal_core::approval::{Identity, Proof};
use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::id::{HolderId, HolderKey, RootId, RunId};
use onceseal_core::journal::{Head, Row};
use onceseal_core::lease::{
    AcquireLease, CommitLease, InterruptLease, Lease, LeaseRow, Preempt, RenewLease, Resource,
};
use onceseal_core::reply::Reply;
use onceseal_core::run::{
    BindChange, BindDeliveries, Definition, Delivery, RunRow, StartRun, Subject, Towards, Transition,
};
use onceseal_core::stream::StreamId;
use onceseal_core::time::{Span, Timestamp};

use super::naive::{Answer, Asked, CHANGES, GATES, Held, Naive, Run, Say, Wish};
use super::steps::{Asking, Bound, Do, Taking};
use crate::executor::Rules;
use crate::world::{World, noon};

const POLICY: &str = "schema: onceseal.policy/v1\nactions: {}\n";
/// No run.
const NONE: usize = usize::MAX;

pub(crate) struct Play<'r> {
    pub(crate) world: World<'r>,
    pub(crate) naive: Naive,
    definitions: Vec<Arc<Definition>>,
    pub(crate) runs: Vec<RunId>,
    pub(crate) leases: Vec<(usize, Lease)>,
    asked: Vec<Do>,
}

fn principal(agent: u8) -> Principal {
    Principal::agent(if agent == 0 { "bot" } else { "ada" })
}

fn request(number: u8) -> String {
    if number == 60 { "-".to_owned() } else { format!("r{number}") }
}

fn moment(second: i64) -> Timestamp {
    Timestamp::from_micros(noon().micros() + second * 1_000_000).expect("a moment")
}

fn second(at: Timestamp) -> i64 {
    (at.micros() - noon().micros()) / 1_000_000
}

fn deliveries(all: &[Bound]) -> Vec<Delivery> {
    let one = |it: &Bound| Delivery {
        gate: GATES[usize::from(it.gate)].to_owned(),
        revision: it.revision,
        receipt: Hash([it.receipt; 32]),
        contract: None,
        record: it.record.then_some(Hash([9; 32])),
        approval: None,
    };
    all.iter().map(one).collect()
}

impl<'r> Play<'r> {
    pub(crate) fn new(rules: &'r dyn Rules, texts: &[String]) -> Play<'r> {
        let definitions =
            texts.iter().map(|text| Arc::new(Definition::restore(text).expect("a definition"))).collect();
        let (world, naive) = (World::new(rules, POLICY), Naive::new(texts));
        Play { world, naive, definitions, runs: Vec::new(), leases: Vec::new(), asked: Vec::new() }
    }

    /// Does one thing on both sides; what differs, if anything.
    pub(crate) fn step(&mut self, step: &Do) -> Result<(), String> {
        let step = self.settled(step);
        self.world.now = moment(self.naive.now);
        let Some((command, said)) = self.both(&step) else { return Ok(()) };
        let ours = self.world.run(command);
        let ours = self.read(ours);
        let told = said.unwrap_or_else(Say::No);
        if ours != told {
            return Err(format!("{step:?}: the rules say {ours:?}, the model {told:?}"));
        }
        self.compare().map_err(|differs| format!("after {step:?}: {differs}"))
    }

    /// The step with its choices made, so that it means the same again later.
    fn settled(&self, step: &Do) -> Do {
        let run = |pick: usize| match self.runs.len() {
            0 => NONE,
            _ if pick.is_multiple_of(32) => NONE,
            count => pick % count,
        };
        let under = |pick: Option<usize>| match self.leases.len() {
            0 => None,
            count => pick.map(|pick| pick % count),
        };
        let mut step = step.clone();
        match &mut step {
            Do::Again { asked, agent } if !self.asked.is_empty() => {
                let mut again = self.asked[*asked % self.asked.len()].clone();
                match &mut again {
                    Do::Start { asking, .. }
                    | Do::Name { asking, .. }
                    | Do::Move { asking, .. }
                    | Do::Command { asking, .. }
                    | Do::Bind { asking, .. } => asking.agent = *agent,
                    _ => {}
                }
                return again;
            }
            Do::Name { run: of, .. } | Do::Take { run: of, .. } | Do::Sweep { run: of } => *of = run(*of),
            Do::Move { run: of, under: by, .. }
            | Do::Command { run: of, under: by, .. }
            | Do::Bind { run: of, under: by, .. } => (*of, *by) = (run(*of), under(*by)),
            _ => {}
        }
        step
    }

    fn id(&self, run: usize) -> RunId {
        self.runs.get(run).copied().unwrap_or(RunId([0xee; 16]))
    }

    fn under(&self, under: Option<usize>) -> (Option<Lease>, Option<(usize, u64)>) {
        under.map(|at| &self.leases[at]).map(|(run, lease)| (lease.clone(), (*run, lease.fence))).unzip()
    }

    /// What it is on both sides.
    fn both(&mut self, step: &Do) -> Option<(Command, Result<Say, onceseal_core::code::Code>)> {
        if matches!(
            step,
            Do::Start { .. } | Do::Name { .. } | Do::Move { .. } | Do::Command { .. } | Do::Bind { .. }
        ) {
            self.asked.push(step.clone());
            return Some(self.request(step));
        }
        let naive = &mut self.naive;
        match *step {
            Do::Hand(handing) => self.hand(handing),
            Do::Take { run, taking } => {
                let Taking { holder, seconds, shared, preempt } = taking;
                let said = naive.take(run, taking);
                let preempt = preempt.map(|operator| Preempt {
                    person: Identity {
                        proof: Proof::Os,
                        name: if operator { "owner" } else { "somebody" }.to_owned(),
                    },
                    reason: "stuck".to_owned(),
                });
                let (resource, holder) = (Resource::Run(self.id(run)), HolderKey([holder; 16]));
                let length = Span::seconds(seconds);
                let take = AcquireLease { resource, holder, length, shared, preempt };
                Some((Command::AcquireLease(Box::new(take)), said))
            }
            Do::Renew { lease, seconds } if !self.leases.is_empty() => {
                let (run, lease) = self.leases[lease % self.leases.len()].clone();
                let said = naive.renew(run, lease.fence, seconds);
                Some((Command::RenewLease(RenewLease { lease, length: Span::seconds(seconds) }), said))
            }
            Do::Commit { lease, outcome } if !self.leases.is_empty() => {
                let (run, lease) = self.leases[lease % self.leases.len()].clone();
                let said = naive.commit(run, lease.fence, outcome);
                let outcome = ["{}", r#"{"done":true}"#, "[]"][usize::from(outcome)].to_owned();
                Some((Command::CommitLease(CommitLease { lease, outcome }), said))
            }
            Do::GiveUp { lease } if !self.leases.is_empty() => {
                let (run, lease) = self.leases[lease % self.leases.len()].clone();
                let said = naive.give_up(run, lease.fence);
                Some((Command::InterruptLease(InterruptLease { lease }), said))
            }
            Do::Sweep { run } => {
                let said = Ok(Say::Done(naive.sweep(run)));
                Some((Command::Lapse(self.lease_stream(run)), said))
            }
            Do::Clock { seconds } => {
                naive.now += i64::from(seconds);
                None
            }
            _ => None,
        }
    }

    fn request(&mut self, step: &Do) -> (Command, Result<Say, onceseal_core::code::Code>) {
        let naive = &mut self.naive;
        let of = |run: usize| format!("run {run}");
        match step.clone() {
            Do::Start { root, kind, change, asking: Asking { request: number, agent } } => {
                let (subject, key) = match change {
                    Ok(change) => {
                        let name = CHANGES[usize::from(change)];
                        (Subject::Change(name.to_owned()), format!("change:{name}"))
                    }
                    Err(unnamed) => {
                        let digest = Hash([unnamed; 32]);
                        (Subject::Provisional(digest), format!("provisional:{}", &digest.to_string()[7..]))
                    }
                };
                let asked = Asked { wish: Wish::Start { key: key.clone() }, agent };
                let happen = |naive: &mut Naive| naive.start(root, kind, change, &key);
                let said = naive.ask(format!("root {root} {kind}"), number, asked, happen);
                let (root, definition) = (RootId([root; 16]), self.definitions[kind].clone());
                let (request, principal) = (request(number), principal(agent));
                let start = StartRun { root, definition, subject, request, principal };
                (Command::StartRun(Box::new(start)), said)
            }
            Do::Name { run, change, asking: Asking { request: number, agent } } => {
                let asked = Asked { wish: Wish::Name { change }, agent };
                let said = naive.ask(of(run), number, asked, |naive| naive.name(run, change));
                let (change, request) = (CHANGES[usize::from(change)].to_owned(), request(number));
                let principal = principal(agent);
                (Command::BindChange(BindChange { run: self.id(run), change, request, principal }), said)
            }
            Do::Move { run, to, code, asking, under } => {
                let mut states = naive.states(naive.runs.get(run).map_or(0, |run| run.kind));
                states.push("nowhere".to_owned());
                let to = states[to % states.len()].clone();
                let code = match code {
                    0 => Some(String::new()),
                    1 | 2 => Some("why".to_owned()),
                    _ => None,
                };
                self.go(run, Wish::Move { to, code }, asking, under)
            }
            Do::Command { run, command, asking, under } => {
                let names = ["go", "wait", "cancel", "pause", "resume", "rebind", "discard"];
                let name = names[command % names.len()].to_owned();
                self.go(run, Wish::Command { name }, asking, under)
            }
            Do::Bind { run, all, asking: Asking { request: number, agent }, under } => {
                let (under, told) = self.under(under);
                let asked = Asked { wish: Wish::Bind { all: all.clone() }, agent };
                let said = self.naive.ask(of(run), number, asked, |naive| naive.bind(run, &all, told));
                let bind = BindDeliveries {
                    run: self.id(run),
                    deliveries: deliveries(&all),
                    environment: Action::DEFAULT_ENVIRONMENT.to_owned(),
                    request: request(number),
                    principal: principal(agent),
                    under,
                };
                (Command::BindDeliveries(Box::new(bind)), said)
            }
            other => panic!("{other:?} is no request"),
        }
    }

    fn go(
        &mut self,
        run: usize,
        wish: Wish,
        asking: Asking,
        under: Option<usize>,
    ) -> (Command, Result<Say, onceseal_core::code::Code>) {
        let (under, told) = self.under(under);
        let (to, code) = match wish.clone() {
            Wish::Move { to, code } => (Towards::State(to), code),
            Wish::Command { name } => (Towards::Command(name), None),
            other => panic!("{other:?} is no step"),
        };
        let Asking { request: number, agent } = asking;
        let asked = Asked { wish: wish.clone(), agent };
        let said = self.naive.ask(format!("run {run}"), number, asked, |naive| naive.step(run, &wish, told));
        let (run, request, principal) = (self.id(run), request(number), principal(agent));
        (Command::Transition(Transition { run, to, code, request, principal, under }), said)
    }

    fn read(&mut self, reply: Reply) -> Say {
        match reply {
            Reply::Run(now) => {
                let id = now.answered.run;
                if !self.runs.contains(&id) {
                    self.runs.push(id);
                }
                let run = self.runs.iter().position(|run| *run == id).expect("it was put there");
                let answer = Answer {
                    joined: now.answered.joined,
                    run,
                    sequence: now.answered.sequence,
                    state: now.answered.state,
                };
                let (sequence, state, code) = (now.now.sequence, now.now.state, now.now.code);
                Say::Run { replayed: now.replayed, answer, sequence, state, code }
            }
            Reply::Lease(now) => {
                let Resource::Run(id) = now.lease.resource else { panic!("no run: {now:?}") };
                let run = self.runs.iter().position(|run| *run == id).expect("a run");
                let (fence, holder) = (now.lease.fence, self.holder(now.lease.holder));
                if !self.leases.iter().any(|(_, lease)| *lease == now.lease) {
                    self.leases.push((run, now.lease));
                }
                Say::Lease { run, fence, holder, shared: now.shared, until: second(now.until) }
            }
            Reply::Done { changed } => Say::Done(changed),
            Reply::Refused(refusal) => Say::No(refusal.code),
            other => panic!("{other:?}"),
        }
    }

    fn lease_stream(&self, run: usize) -> StreamId {
        self.world.pinned.tenant.lease(&Resource::Run(self.id(run)).to_string())
    }

    /// Whether everything stands where the model has it.
    fn compare(&self) -> Result<(), String> {
        if self.runs.len() != self.naive.runs.len() {
            return Err(format!("{} runs, not {}", self.runs.len(), self.naive.runs.len()));
        }
        for (at, told) in self.naive.runs.iter().enumerate() {
            let stored = &self.world.rows[&StreamId::run(self.runs[at])];
            let Row::Run(row) = &stored.row else { panic!("no run: {stored:?}") };
            let found = self.run(row, stored.head, at);
            if found != *told || row.terminal != self.naive.is_over(told) {
                return Err(format!("run {at} is {found:?}, not {told:?}"));
            }
            let (found, told) = (self.held(at), self.naive.leases.get(&at).cloned().unwrap_or_default());
            let outcomes: Vec<u64> = told.outcomes.keys().copied().collect();
            if found != (told.fence, told.held.clone(), outcomes) {
                return Err(format!("the lease on run {at} is {found:?}, not {told:?}"));
            }
        }
        self.compare_handoffs()
    }

    fn run(&self, row: &RunRow, head: Head, at: usize) -> Run {
        let deliveries = self.world.rows.values().filter_map(|stored| match &stored.row {
            Row::Delivery(row) if row.run == self.runs[at] => {
                let gate = GATES.iter().position(|gate| *gate == row.gate).expect("a gate") as u8;
                let receipt = row.private.receipt.expect("not erased").0[0];
                let (revision, record) = (row.revision, row.private.record.is_some());
                Some(((gate, revision), Bound { gate, revision, receipt, record }))
            }
            _ => None,
        });
        let tenant = &self.world.pinned.tenant;
        let begun = self.naive.runs[at]
            .begun
            .clone()
            .filter(|key| row.begun == Some(onceseal_core::run::lookup(tenant, row.root, &row.kind, key)));
        Run {
            begun: begun.or_else(|| row.begun.map(|lookup| lookup.to_string())),
            root: row.root.0[0],
            kind: self.definitions.iter().position(|it| it.digest() == row.definition).expect("a kind"),
            key: row.private.key.clone().expect("a key"),
            state: row.state.clone(),
            code: row.code.clone(),
            sequence: head.sequence,
            previous: row.previous.and_then(|id| self.runs.iter().position(|run| *run == id)),
            bound: deliveries.collect(),
        }
    }

    /// Which of the three that ask it is; none of them is 9.
    pub(crate) fn holder(&self, id: HolderId) -> u8 {
        (0..3).find(|n| self.world.pinned.tenant.holder(HolderKey([*n; 16])) == id).unwrap_or(9)
    }

    fn held(&self, run: usize) -> (u64, Vec<Held>, Vec<u64>) {
        let Some(Row::Lease(LeaseRow { fence, holders, outcomes, .. })) =
            self.world.row(&self.lease_stream(run))
        else {
            return (0, Vec::new(), Vec::new());
        };
        let held = holders.iter().map(|it| Held {
            fence: it.fence,
            holder: self.holder(it.holder),
            shared: it.shared,
            until: second(it.until),
        });
        let mut kept: Vec<u64> = outcomes.iter().map(|outcome| outcome.fence).collect();
        kept.sort_unstable();
        (*fence, held.collect(), kept)
    }
}

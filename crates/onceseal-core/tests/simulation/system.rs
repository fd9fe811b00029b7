//! The actors, and what must hold after each of their steps.

use std::sync::Arc;

use onceseal_core::action::{ActionState, Answer};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{
    Begin, EffectRow, EffectState, Finding, Holding, Outcome, Reconcile, Renew, Resolve, Settle,
};
use onceseal_core::hash::Hash;
use onceseal_core::id::ActionId;
use onceseal_core::journal::Row;
use onceseal_core::json::{self, Limits, Value};
use onceseal_core::operation::{CallIdentity, Cancel, Claim, Dispatch, GiveBack, Next, Retry};
use onceseal_core::reply::{Attempt, Job, Question, Reply};
use onceseal_core::route::Health;
use onceseal_core::stream::StreamId;
use onceseal_core::time::{Span, Timestamp};
use onceseal_core::tool::{Declare, Tool};

use crate::calls::{call, identity, settle};
use crate::chance::Chance;
use crate::executor::Rules;
use crate::remote::{KEY_TTL, Kind, Remote, SETTLE};
use crate::routes::{self, DESTINATION, Probes};
use crate::world::World;

const POLICY: &str = "
schema: onceseal.policy/v1
actions:
  blind: { effect: 'blind:{id}', decision: allow }
  keys: { effect: 'keys:{id}', decision: allow }
  asked: { effect: 'asked:{id}', decision: allow }
";
const TOOLS: [(&str, Kind); 3] = [("blind", Kind::Blind), ("keys", Kind::Keys), ("asked", Kind::Asked)];
/// Wishes of each tool.
const WISHES: usize = 2;
const WORKERS: usize = 3;
const STEPS: usize = 120;

/// What a worker has in its hands.
#[derive(Clone)]
enum Hands {
    Empty,
    Claimed(Attempt, Job),
    Begun(Attempt, Job),
    /// It knows what became of it, and of the remote, and has not said so.
    Knows(Attempt, Outcome, Option<Health>),
    /// It was told what the remote knows.
    Absent(ActionId, Timestamp),
}

/// What was wanted once.
struct Wish {
    tool: usize,
    id: usize,
    action: Option<ActionId>,
}

pub(crate) struct System<'r> {
    world: World<'r>,
    chance: Chance,
    contracts: Vec<Hash>,
    wishes: Vec<Wish>,
    workers: Vec<Hands>,
    remote: Remote,
    probes: Probes,
}

impl<'r> System<'r> {
    pub(crate) fn new(rules: &'r dyn Rules, seed: u64) -> System<'r> {
        let mut world = World::new(rules, POLICY);
        let contracts = TOOLS.map(|(name, kind)| {
            let recovery = match kind {
                Kind::Blind => r#""recovery":"never""#.to_owned(),
                Kind::Keys => r#""recovery":"same_key","key_ttl":"5m""#.to_owned(),
                Kind::Asked => r#""recovery":"ask","settle":"1m""#.to_owned(),
            };
            let text =
                format!(r#"{{"name":"{name}",{recovery},"deadline":"2m","destination":"{DESTINATION}"}}"#);
            let Ok(Value::Object(document)) = json::read(text.as_bytes(), &Limits::DATA) else {
                unreachable!()
            };
            let tool = Arc::new(Tool::compile(&document).expect("a contract"));
            let digest = tool.digest;
            world.run(Command::Declare(Declare::Activate(tool)));
            digest
        });
        let wishes =
            (0..TOOLS.len() * WISHES).map(|n| Wish { tool: n / WISHES, id: n, action: None }).collect();
        let (contracts, workers) = (contracts.to_vec(), vec![Hands::Empty; WORKERS]);
        let mut chance = Chance(seed);
        let mut remote = Remote::default();
        remote.is_down = chance.one_in(2);
        System { world, chance, contracts, wishes, workers, remote, probes: Probes::default() }
    }

    pub(crate) fn run(mut self) -> Result<(), String> {
        for _ in 0..STEPS {
            self.step()?;
            self.holds()?;
        }
        // Nobody fails any more: everything comes to an end.
        self.workers = vec![Hands::Empty; WORKERS];
        self.remote.is_down = false;
        for _ in 0..60 {
            self.pass(Span::seconds(45));
            self.sweep();
            for worker in 0..WORKERS {
                for _ in 0..3 {
                    self.work(worker, false)?;
                }
            }
            for wish in 0..self.wishes.len() {
                self.operate(wish, false)?;
            }
            self.holds()?;
        }
        self.world.check();
        for wish in &self.wishes {
            let Some(action) = wish.action else { continue };
            let (state, times) = (self.state(action), self.remote.times(wish.id));
            let fits = match &state {
                ActionState::Ended { result: Answer::Committed, .. }
                | ActionState::Answered { result: Answer::Committed, .. } => times == 1,
                ActionState::Ended { result: Answer::Cancelled | Answer::Failed, .. }
                | ActionState::Answered { result: Answer::Failed, .. } => times == 0,
                _ => false,
            };
            if !fits {
                return Err(format!("{} ends as {state:?}, performed {times} times", name(wish)));
            }
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        match self.chance.below(13) {
            0..=2 => self.dispatch(),
            3..=7 => {
                let worker = self.chance.below(WORKERS);
                self.work(worker, true)
            }
            8 => {
                let wish = self.chance.below(self.wishes.len());
                self.operate(wish, true)
            }
            9 => {
                self.sweep();
                Ok(())
            }
            10 => {
                // A worker is gone, with all that it had in its hands.
                let worker = self.chance.below(WORKERS);
                self.workers[worker] = Hands::Empty;
                Ok(())
            }
            11 => {
                match self.chance.below(4) {
                    0 => self.remote.is_down = !self.remote.is_down,
                    1 => self.probes.close(&mut self.world),
                    _ => {}
                }
                Ok(())
            }
            _ => {
                let seconds = 1 + self.chance.below(50);
                self.pass(Span::seconds(seconds as u32));
                Ok(())
            }
        }
    }

    fn pass(&mut self, span: Span) {
        self.world.now = self.world.now + span;
        let tools: Vec<usize> = self.wishes.iter().map(|wish| wish.tool).collect();
        self.remote.pass(self.world.now, |wish| TOOLS[tools[wish]].1);
    }

    fn dispatch(&mut self) -> Result<(), String> {
        let wish = self.chance.below(self.wishes.len());
        let (tool, id) = (self.wishes[wish].tool, self.wishes[wish].id);
        let proposal =
            self.world.prepare(&call(TOOLS[tool].0, &format!("{{\"id\":{id}}}"))).expect("a proposal");
        let by = CallIdentity {
            provider: "openai".to_owned(),
            api_family: "responses".to_owned(),
            adapter_revision: "openai-responses-v1".to_owned(),
            response_id: "resp".to_owned(),
            call_id: format!("call {}", self.chance.next()),
            operation_id: "op".to_owned(),
            idempotency_key: Some(format!("key {id}")),
        };
        let contract = self.contracts[tool];
        let dispatch = Dispatch { proposal, contract, call: by, approvals: Vec::new(), permitted: None };
        match (self.world.run(Command::Dispatch(Box::new(dispatch))), self.wishes[wish].action) {
            (Reply::Operation(now), None) => self.wishes[wish].action = Some(now.action),
            (Reply::Operation(now), Some(action)) if now.repeated && now.action == action => {}
            (reply, known) => return Err(format!("{known:?} is dispatched again as {reply:?}")),
        }
        Ok(())
    }

    fn work(&mut self, worker: usize, faults: bool) -> Result<(), String> {
        self.workers[worker] = match self.workers[worker].clone() {
            Hands::Empty => {
                let wish = self.chance.below(self.wishes.len());
                match self.wishes[wish].action {
                    Some(action) => self.claim(action, None, faults)?,
                    None => Hands::Empty,
                }
            }
            Hands::Absent(action, at) => self.claim(action, Some(at), faults)?,
            Hands::Claimed(attempt, job) => match self.chance.below(if faults { 4 } else { 1 }) {
                3 => {
                    let next = Next::Later { after: Span::seconds(5), code: Code::CannotTell };
                    self.world.run(Command::GiveBack(GiveBack { attempt: Holding::from(&attempt), next }));
                    Hands::Empty
                }
                _ => {
                    let begin = Begin { attempt: Holding::from(&attempt), lease: attempt.lease };
                    match self.world.run(Command::Begin(begin)) {
                        Reply::Attempt(attempt) => Hands::Begun(attempt, job),
                        _ => Hands::Empty,
                    }
                }
            },
            Hands::Begun(attempt, job) => self.perform(attempt, &job, faults),
            Hands::Knows(attempt, outcome, health) => {
                let ill = matches!(health, Some(Health::Ill { .. }));
                let again = (ill || self.chance.one_in(2)).then(|| Span::seconds(10));
                let report = Settle { again, health, ..settle(Holding::from(&attempt), outcome) };
                let wish = self.wish_of(attempt.action);
                let before = self.effect(wish).map(|row| (row.fence, row.state));
                self.world.run(Command::Settle(report));
                let after = self.effect(wish).map(|row| (row.fence, row.state));
                if before.is_some_and(|(fence, _)| fence > attempt.fence) && before != after {
                    return Err(format!("P04: an old report changed {}", name(&self.wishes[wish])));
                }
                Hands::Empty
            }
        };
        Ok(())
    }

    fn claim(&mut self, action: ActionId, absent: Option<Timestamp>, faults: bool) -> Result<Hands, String> {
        let contract = match self.world.row(&StreamId::action(action)) {
            Some(Row::Action(row)) => row.operation.as_ref().expect("an operation").contract,
            _ => return Ok(Hands::Empty),
        };
        let begin = !faults || self.chance.one_in(2);
        let claim = Claim { action, contract, lease: None, begin, absent };
        let open = routes::open(&self.world);
        Ok(match self.world.run(Command::Claim(claim)) {
            Reply::Claimed(attempt, job) => {
                self.probes.handed_out(&self.world, &attempt, open)?;
                if begin { Hands::Begun(*attempt, *job) } else { Hands::Claimed(*attempt, *job) }
            }
            Reply::Ask(Question::Remote { asked_at, job }) => self.ask(asked_at, &job, faults),
            _ => Hands::Empty,
        })
    }

    fn ask(&mut self, asked_at: Timestamp, job: &Job, faults: bool) -> Hands {
        let wish = self.wish_of(job.action);
        match self.remote.times(wish) {
            _ if faults && self.chance.one_in(4) => Hands::Empty,
            0 => Hands::Absent(job.action, asked_at),
            _ => {
                let finding = Finding::Committed(None);
                let (effect, fence) = (job.effect, job.fence);
                self.world.run(Command::Reconcile(Reconcile {
                    effect,
                    fence,
                    finding,
                    evidence: None,
                    remote: None,
                    settle: SETTLE,
                }));
                Hands::Empty
            }
        }
    }

    /// Sends a request, if what is left of the lease is enough for it.
    fn perform(&mut self, attempt: Attempt, job: &Job, faults: bool) -> Hands {
        let now = self.world.now;
        if faults && self.chance.one_in(4) {
            let renew = Renew { attempt: Holding::from(&attempt), lease: attempt.lease };
            return match self.world.run(Command::Renew(renew)) {
                Reply::Renewed { lease_until } => {
                    Hands::Begun(Attempt { lease_until, ..attempt }, job.clone())
                }
                _ => Hands::Empty,
            };
        }
        if now + Span::seconds(10) > attempt.lease_until {
            // Nothing was sent, and nothing will be.
            return Hands::Knows(attempt, Outcome::Failed, None);
        }
        let ill = Some(Health::Ill { spread: self.chance.below(256) as u8 });
        if self.remote.is_down {
            return Hands::Knows(attempt, Outcome::Failed, ill);
        }
        let wish = self.wish_of(job.action);
        let course = if faults { self.chance.below(6) } else { 0 };
        // How late it may arrive is what the contract supposes.
        let latest = match TOOLS[self.wishes[wish].tool].1 {
            Kind::Keys | Kind::Blind => attempt.lease_until,
            Kind::Asked => attempt.lease_until + SETTLE,
        };
        let late = (latest.since(now).as_micros() / 1_000_000).max(1);
        let delay = self.chance.below(late as usize) as u32;
        match course {
            // It is performed at once, and answered.
            0..=2 => {
                self.remote.send(wish, &job.provider_key, now);
                self.pass(Span::ZERO);
                Hands::Knows(attempt, Outcome::Committed, None)
            }
            // It arrives late, or its answer is lost.
            3 => {
                self.remote.send(wish, &job.provider_key, now + Span::seconds(delay));
                Hands::Knows(attempt, Outcome::Ambiguous, ill)
            }
            // The request is lost.
            4 => Hands::Knows(attempt, Outcome::Ambiguous, ill),
            // The remote says no.
            _ => Hands::Knows(attempt, Outcome::Failed, Some(Health::Well)),
        }
    }

    /// A person looks after an operation; carelessly only in what is harmless.
    fn operate(&mut self, wish: usize, faults: bool) -> Result<(), String> {
        let Some(action) = self.wishes[wish].action else { return Ok(()) };
        let (person, reason) = (identity("os:owner"), "looked".to_owned());
        if faults && self.chance.one_in(3) {
            let cancel = Cancel { action, person, reason };
            self.world.run(Command::Cancel(cancel));
            return Ok(());
        }
        match self.state(action) {
            ActionState::Parked { .. } => {
                drop(self.world.run(Command::Retry(Retry { action, person, reason })))
            }
            ActionState::Ended { result: Answer::Ambiguous, .. } => {
                let id = self.wishes[wish].id;
                // Whoever looks waits until nothing can come any more.
                if self.remote.expects(id) {
                    return Ok(());
                }
                let Some(effect) = self.effect(wish) else { return Ok(()) };
                let happened = self.remote.times(id) > 0;
                let stream = self.world.pinned.tenant.effect(&name(&self.wishes[wish]));
                let fence = effect.fence;
                self.world.run(Command::Resolve(Resolve {
                    effect: stream,
                    fence,
                    happened,
                    reason,
                    evidence: None,
                    person,
                }));
            }
            _ => {}
        }
        Ok(())
    }

    fn sweep(&mut self) {
        for wish in 0..self.wishes.len() {
            let stream = self.world.pinned.tenant.effect(&name(&self.wishes[wish]));
            self.world.run(Command::Lapse(stream));
        }
    }

    /// What must hold after every step.
    fn holds(&self) -> Result<(), String> {
        for (at, wish) in self.wishes.iter().enumerate() {
            let times = self.remote.times(wish.id);
            if times > 1 {
                return Err(format!("P03: {} was performed {times} times", name(wish)));
            }
            let Some(effect) = self.effect(at) else { continue };
            match effect.state {
                EffectState::Committed if times == 0 => {
                    return Err(format!("P06: {} is committed and was not performed", name(wish)));
                }
                EffectState::Failed | EffectState::Queued | EffectState::Released if times > 0 => {
                    return Err(format!("P06: {} is {} and was performed", name(wish), effect.state));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn wish_of(&self, action: ActionId) -> usize {
        self.wishes.iter().position(|wish| wish.action == Some(action)).expect("a wish")
    }

    fn state(&self, action: ActionId) -> ActionState {
        match self.world.row(&StreamId::action(action)) {
            Some(Row::Action(row)) => row.state.clone(),
            other => panic!("no action: {other:?}"),
        }
    }

    fn effect(&self, wish: usize) -> Option<&EffectRow> {
        match self.world.row(&self.world.pinned.tenant.effect(&name(&self.wishes[wish])))? {
            Row::Effect(row) => Some(row),
            other => panic!("no effect: {other:?}"),
        }
    }
}

fn name(wish: &Wish) -> String {
    format!("{}:{}", TOOLS[wish.tool].0, wish.id)
}

const _: () = assert!(KEY_TTL.as_micros() == 300_000_000, "as in the contract");

//! The player of what the others leave out: endpoints, notes, operations that are
//! put off, asked about and whose contract is retired, a store that went back.

use std::sync::Arc;

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{Holding, Outcome};
use onceseal_core::hash::Hash;
use onceseal_core::id::HolderKey;
use onceseal_core::json::{self, Limits, Value};
use onceseal_core::lease::Lease;
use onceseal_core::operation::{
    CallIdentity, Cancel, Claim, Dispatch, GiveBack, Next, Postpone, Query, Retry, Revisions, Scope,
};
use onceseal_core::reply::{OperationNow, Reply};
use onceseal_core::route::{CloseRoute, Health, ReportRoute, TryRoute};
use onceseal_core::store::{Accept, Note};
use onceseal_core::time::Span;
use onceseal_core::tool::{Declare, Tool};

use crate::calls::{call, identity, settle};
use crate::chance::Chance;
use crate::executor::Rules;
use crate::world::World;

const POLICY: &str = "
schema: onceseal.policy/v1
actions:
  send: { effect: 'send:{id}', decision: allow }
  post: { decision: approve }
";
const TOOLS: [&str; 2] = ["send", "post"];
const STEPS: usize = 700;

pub(crate) struct Odds<'r> {
    world: World<'r>,
    chance: Chance,
    tools: [Arc<Tool>; 2],
    operations: Vec<(Dispatch, OperationNow)>,
    attempts: Vec<Holding>,
    probes: Vec<Lease>,
}

impl<'r> Odds<'r> {
    pub(crate) fn new(rules: &'r dyn Rules, seed: u64) -> Odds<'r> {
        let tools = TOOLS.map(|name| {
            let text =
                format!(r#"{{"name":"{name}","recovery":"never","destination":"https://remote.example"}}"#);
            let Ok(Value::Object(document)) = json::read(text.as_bytes(), &Limits::DATA) else {
                unreachable!()
            };
            Arc::new(Tool::compile(&document).expect("a contract"))
        });
        let (world, chance) = (World::new(rules, POLICY), Chance(seed));
        let (operations, attempts, probes) = (Vec::new(), Vec::new(), Vec::new());
        Odds { world, chance, tools, operations, attempts, probes }
    }

    pub(crate) fn run(mut self) {
        for _ in 0..STEPS {
            self.step();
        }
        self.world.check();
    }

    fn step(&mut self) {
        let (person, reason) = (identity("os:owner"), "looked".to_owned());
        let command = match self.chance.below(24) {
            0 => {
                let (body, source) = (format!("{{\"n\":{}}}", self.chance.below(9)), "elsewhere".to_owned());
                Command::Note(Note { body, source })
            }
            1 => {
                let (found, lost) = (self.chance.below(50) as u64, self.chance.below(50) as u64);
                Command::Accept(Accept { seen: found + lost, found, person, reason })
            }
            2..=5 => {
                let holder = HolderKey([self.chance.below(3) as u8; 16]);
                let length = Span::seconds(self.chance.below(60) as u32);
                Command::TryRoute(TryRoute { destination: self.endpoint(), holder, length })
            }
            6..=9 => {
                let ill = Health::Ill { spread: self.chance.below(256) as u8 };
                let health = if self.chance.one_in(3) { Health::Well } else { ill };
                let under = self.chance.one_in(2).then(|| self.probes.last().cloned()).flatten();
                Command::ReportRoute(ReportRoute { destination: self.endpoint(), health, under })
            }
            10 => Command::CloseRoute(CloseRoute { destination: self.endpoint(), person, reason }),
            11 => Command::Declare(Declare::Activate(self.tool())),
            12 if self.chance.one_in(3) => {
                let tool = self.tool();
                let (name, contract) = (tool.contract.identity.name.clone(), tool.digest);
                Command::Declare(Declare::Retire { name, contract })
            }
            13 => {
                let seconds = self.chance.below(40) as u32;
                self.world.now = self.world.now + Span::seconds(seconds);
                return;
            }
            14..=16 => return self.dispatch(),
            _ => match self.about_an_operation() {
                Some(command) => command,
                None => return,
            },
        };
        self.say(command);
    }

    fn say(&mut self, command: Command) {
        match self.world.run(command) {
            Reply::Lease(now) => self.probes.push(now.lease),
            Reply::Claimed(attempt, _) => self.attempts.push(Holding::from(&*attempt)),
            _ => {}
        }
    }

    fn endpoint(&mut self) -> String {
        format!("sha256:{}", self.chance.below(2))
    }

    fn tool(&mut self) -> Arc<Tool> {
        self.tools[self.chance.below(TOOLS.len())].clone()
    }

    fn dispatch(&mut self) {
        let (tool, id) = (self.tool(), self.chance.below(30));
        let name = TOOLS.into_iter().find(|name| *name == tool.contract.identity.name).expect("one of them");
        let proposal = self.world.prepare(&call(name, &format!("{{\"id\":{id}}}"))).expect("a proposal");
        let by = CallIdentity {
            provider: "openai".to_owned(),
            api_family: "responses".to_owned(),
            adapter_revision: "openai-responses-v1".to_owned(),
            response_id: "response".to_owned(),
            call_id: format!("call {}", self.chance.below(60)),
            operation_id: "operation".to_owned(),
            idempotency_key: Some(format!("key {id}")),
        };
        let permitted = self.chance.one_in(2).then(|| self.chance.one_in(2));
        let contract = tool.digest;
        let dispatch = Dispatch { proposal, contract, call: by, approvals: Vec::new(), permitted };
        if let Reply::Operation(now) = self.world.run(Command::Dispatch(Box::new(dispatch.clone()))) {
            self.operations.push((dispatch, *now));
        }
    }

    fn about_an_operation(&mut self) -> Option<Command> {
        if self.operations.is_empty() {
            return None;
        }
        // Mostly one of the newest.
        let back = self.chance.below(self.operations.len()).min(self.chance.below(8));
        let (dispatch, now) = self.operations[self.operations.len() - 1 - back].clone();
        let (action, contract) = (now.action, dispatch.contract);
        let (person, reason) = (identity("os:owner"), "looked".to_owned());
        let attempt = self.attempts.last().copied();
        Some(match self.chance.below(8) {
            0 | 1 => {
                let begin = self.chance.one_in(2);
                Command::Claim(Claim { action, contract, lease: None, begin, absent: None })
            }
            2 => {
                let after = Span::seconds(self.chance.below(60) as u32);
                Command::Postpone(Postpone { action, after, code: Code::CannotTell })
            }
            3 => Command::Retry(Retry { action, person, reason }),
            4 => Command::Cancel(Cancel { action, person, reason }),
            5 => {
                let next = Next::Later { after: Span::seconds(5), code: Code::CannotTell };
                Command::GiveBack(GiveBack { attempt: attempt?, next })
            }
            6 => {
                let outcomes = [Outcome::Committed, Outcome::Failed, Outcome::Ambiguous];
                let outcome = outcomes[self.chance.below(3)];
                Command::Settle(settle(attempt?, outcome))
            }
            _ => Command::Query(Box::new(self.query(&dispatch, &now))),
        })
    }

    fn query(&mut self, dispatch: &Dispatch, now: &OperationNow) -> Query {
        let call = dispatch.call.status_query(&now.status_ref);
        let key = dispatch.call.idempotency_key.as_deref().expect("it has one");
        let tool = dispatch.proposal.name().to_owned();
        let (subject, status_ref) = ("agent:bot".to_owned(), now.status_ref.clone());
        let revisions = Revisions { input: "v1", output: "v1", effect: "v1" };
        let request = Scope { tenant: "default", subject: &subject, tool: &tool, key }
            .request(&format!("{{\"id\":{}}}", &key[4..]), revisions);
        let expected = if self.chance.one_in(4) { Hash([1; 32]) } else { request };
        Query { subject, tool, call, status_ref, request, expected }
    }
}

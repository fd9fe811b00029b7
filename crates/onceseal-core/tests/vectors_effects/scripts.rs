//! What is done in each trace, step by step.

use onceseal_core::action::{Action, Principal, Proposal};
use onceseal_core::approval::{Said, Status};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{Outcome, Reserve, Resolve, Settle};
use onceseal_core::id::{ActionId, ApprovalId};
use onceseal_core::json::{self, Limits};
use onceseal_core::reply::{Attempt, Reply};
use onceseal_core::time::Span;

use crate::calls::{Call, call, identity, settle};
use crate::doing::{asked, attempt};
use crate::executor::Real;
use crate::world::World;

const POLICY: &str = r#"
schema: onceseal.policy/v1
actions:
  allow.it: { effect: "e:{k}", decision: allow }
  allow.thing: { resource: "thing:{k}", effect: "e:{resource}", decision: allow }
  allow.plain: { decision: allow }
  approve.it: { effect: "e:{k}", approval: { ttl: 15m }, decision: approve }
  deny.it: { effect: "e:{k}", decision: deny }
  rules.it: { rules: [{ when: { amount_gte: 0 }, decision: allow }] }
  broken.effect: { effect: "e:{nope}", decision: allow }
  broken.resource: { resource: "r:{nope}", decision: allow }
"#;

/// A store, and who has come on so far.
pub(crate) struct Stage {
    pub(crate) world: World<'static>,
    pub(crate) actions: Vec<ActionId>,
    held: Option<Attempt>,
    waiting: Option<ActionId>,
    approval: ApprovalId,
}

pub(crate) type Act = fn(&mut Stage);

impl Stage {
    pub(crate) fn new() -> Stage {
        let world = World::new(&Real, POLICY);
        Stage { world, actions: Vec::new(), held: None, waiting: None, approval: ApprovalId([9; 16]) }
    }

    /// Runs an allowed action up to where its executor is called.
    fn run(&mut self, name: &'static str, k: &str) -> Attempt {
        attempt(self.world.call(on(name, k)))
    }

    /// Runs an allowed action to its end.
    fn run_to(&mut self, name: &'static str, k: &str, outcome: Outcome) {
        let held = self.run(name, k);
        self.world.settle(&held, outcome);
    }

    fn refused(&mut self, call: Call) {
        let reply = self.world.call(call);
        assert!(matches!(reply, Reply::Refused(_)), "{reply:?}");
    }

    fn ask(&mut self) {
        let (action, approval) = asked(self.world.call(on("approve.it", "1")));
        (self.waiting, self.approval) = (Some(action), approval);
    }

    fn answer(&mut self, said: Said) {
        self.world.answer(self.approval, "host:local", said);
    }

    fn presenting(&self, name: &'static str, k: &str) -> Call {
        Call { approval: Some(self.approval), ..on(name, k) }
    }

    fn present_to(&mut self, outcome: Outcome) {
        let held = attempt(self.world.call(self.presenting("approve.it", "1")));
        self.world.settle(&held, outcome);
    }

    fn stands(&self, status: Status) {
        assert_eq!(self.world.approval(self.approval).status, status);
    }

    /// An attempt whose lease ends before a contender comes.
    fn lapse_before_contender(&mut self) {
        let held = self.run("allow.it", "1");
        self.world.now = held.lease_until + Span::micros(1);
        self.held = Some(held);
        self.refused(on("allow.it", "1"));
    }

    fn outer(&mut self, outcome: Outcome) {
        let held = self.held.take().expect("an attempt");
        self.world.settle(&held, outcome);
    }

    fn resolve_failed(&mut self) {
        let effect = self.world.pinned.tenant.effect("e:1");
        let (fence, happened, reason, evidence) = (1, false, "seen".to_owned(), None);
        let person = identity("host:local");
        self.world.run(Command::Resolve(Resolve { effect, fence, happened, reason, evidence, person }));
    }
}

fn on(name: &'static str, k: &str) -> Call {
    call(name, &format!(r#"{{"k":"{k}"}}"#))
}

/// The steps of a trace.
pub(crate) fn script(id: &str) -> Vec<Act> {
    const FAILED: Outcome = Outcome::Failed;
    const COMMITTED: Outcome = Outcome::Committed;
    const AMBIGUOUS: Outcome = Outcome::Ambiguous;
    match id {
        "ex-02" => vec![|s| s.run_to("allow.it", "1", COMMITTED), |s| s.refused(on("allow.it", "1"))],
        "ex-03" => vec![|s| s.run_to("allow.it", "1", FAILED), |s| s.run_to("allow.it", "1", COMMITTED)],
        "ex-04" => vec![
            |s| s.run_to("allow.it", "1", AMBIGUOUS),
            |s| s.refused(on("allow.it", "1")),
            Stage::resolve_failed,
            |s| s.run_to("allow.it", "1", COMMITTED),
        ],
        "ex-05" => vec![|s| s.run_to("allow.it", "1", AMBIGUOUS)],
        "ex-06" => vec![|s| s.run_to("allow.plain", "1", FAILED)],
        "ex-07" => vec![|s| s.run_to("allow.plain", "1", AMBIGUOUS)],
        "ex-08" => vec![|s| s.refused(on("deny.it", "1"))],
        "ex-10" => vec![|s| s.refused(call("rules.it", r#"{"amount":-1}"#))],
        "ex-11" => vec![
            Stage::ask,
            |s| {
                s.answer(Said::Yes);
                s.present_to(COMMITTED);
            },
            |s| {
                // Within a minute it would be answered like the end of the action that waited.
                s.world.now = s.world.now + Span::seconds(61);
                s.refused(s.presenting("approve.it", "1"));
            },
            |s| s.stands(Status::Consumed),
        ],
        "ex-13" => vec![
            Stage::ask,
            |s| {
                s.answer(Said::Yes);
                s.refused(Call {
                    arguments: r#"{"k":"1","more":1}"#.into(),
                    ..s.presenting("approve.it", "1")
                });
            },
            |s| s.stands(Status::Granted),
            |s| s.present_to(COMMITTED),
        ],
        "ex-14" => {
            vec![Stage::ask, |s| s.refused(s.presenting("approve.it", "1")), |s| s.stands(Status::Pending)]
        }
        "ex-16" => vec![
            Stage::ask,
            |s| {
                s.answer(Said::Yes);
                s.world.now = s.world.now + Span::hours(1);
                s.refused(s.presenting("approve.it", "1"));
            },
            |s| s.stands(Status::Expired),
            |s| s.refused(s.presenting("approve.it", "1")),
        ],
        "ex-17" => vec![|s| s.refused(s.presenting("approve.it", "1"))],
        "ex-18" => vec![
            |s| s.run_to("allow.it", "1", COMMITTED),
            |s| s.refused(on("approve.it", "1")),
            |_| {},
            |_| {},
        ],
        "ex-19" => vec![
            |s| s.run_to("allow.it", "1", AMBIGUOUS),
            |s| s.refused(on("approve.it", "1")),
            |_| {},
            |_| {},
        ],
        "ex-20" => vec![
            |s| {
                s.held = Some(s.run("allow.it", "1"));
                s.refused(on("allow.it", "1"));
            },
            |s| s.outer(COMMITTED),
        ],
        "ex-23" => vec![Stage::lapse_before_contender, |s| s.outer(FAILED)],
        "ex-24" => vec![Stage::lapse_before_contender, |s| s.outer(AMBIGUOUS)],
        "ex-25" => vec![
            Stage::lapse_before_contender,
            Stage::resolve_failed,
            |s| s.run_to("allow.it", "1", COMMITTED),
            |s| s.outer(COMMITTED),
        ],
        other => edges(other),
    }
}

fn edges(id: &str) -> Vec<Act> {
    match id {
        "ex-27" => vec![|s| {
            let (action, lease) = (ActionId([1; 16]), Span::minutes(5));
            invalid(s.world.run(Command::Reserve(Reserve { key: String::new(), action, lease })));
        }],
        "ex-28" => vec![|s| {
            invalid(s.world.call(Call { lease: Some(Span::ZERO), ..on("allow.it", "1") }));
        }],
        "ex-29" => vec![
            Stage::ask,
            |s| {
                s.answer(Said::Yes);
                let held = attempt(s.world.call(s.presenting("allow.it", "2")));
                s.world.settle(&held, Outcome::Committed);
            },
            |s| s.stands(Status::Granted),
        ],
        "ex-31" => vec![Stage::ask, Stage::ask, |_| {}],
        "ex-32" => vec![|s| {
            let held = s.run("allow.it", "1");
            let result = Some(r#"{"bytes":9,"unstorable":"dict"}"#.to_owned());
            s.world.run(Command::Settle(Settle { result, ..settle((&held).into(), Outcome::Committed) }));
        }],
        "ex-33" => vec![|s| {
            let proposal = s.world.prepare(&on("allow.it", "1")).expect("a proposal");
            assert_eq!(s.world.policy().policy.decide(&proposal.facts()).verdict.as_str(), "allow");
        }],
        "pr-01" => vec![|s| {
            let principal = Principal { agent: String::new(), user: None };
            assert!(unprepared(s, principal, r#"{"k":"1"}"#), "there is no proposal without a principal");
        }],
        "pr-02" => vec![|s| s.run_to("allow.thing", "a", Outcome::Committed)],
        "pr-03" => vec![|s| s.refused(on("broken.effect", "1"))],
        "pr-04" => vec![|s| s.refused(on("broken.resource", "1"))],
        "pr-05" => vec![|s| {
            let principal = Principal { agent: "bot".to_owned(), user: None };
            assert!(unprepared(s, principal, r#"{"k":1.5}"#), "a fraction");
        }],
        "pr-06" => vec![|s| {
            s.run_to("allow.plain", "1", Outcome::Committed);
            s.run_to("allow.plain", "1", Outcome::Committed);
        }],
        "pr-07" => vec![|s| {
            s.ask();
            s.answer(Said::Yes);
            let held = attempt(s.world.acquire(s.waiting.expect("an action"), None));
            s.world.settle(&held, Outcome::Committed);
        }],
        "pr-08" => vec![|s| {
            s.ask();
            s.answer(Said::No);
            let reply = s.world.acquire(s.waiting.expect("an action"), None);
            assert!(matches!(reply, Reply::Ended { code: Some(Code::ApprovalDenied), .. }), "{reply:?}");
        }],
        "pr-12" => vec![|s| {
            let nested = Call { environment: "staging", ..on("allow.plain", "1") };
            let held = attempt(s.world.call(nested));
            s.world.settle(&held, Outcome::Committed);
        }],
        other => panic!("no script for {other}"),
    }
}

fn invalid(reply: Reply) {
    assert!(matches!(&reply, Reply::Refused(refusal) if refusal.code == Code::OutOfBounds), "{reply:?}");
}

/// Whether no proposal can be made of this.
fn unprepared(stage: &Stage, principal: Principal, arguments: &str) -> bool {
    let Ok(json::Value::Object(arguments)) = json::read(arguments.as_bytes(), &Limits::ACTION) else {
        return true;
    };
    let (name, environment, resource) = ("allow.it".to_owned(), "production".to_owned(), None);
    let action = Action { name, arguments, principal, environment, resource };
    Proposal::prepare(&stage.world.pinned.tenant, &stage.world.policy(), action).is_err()
}

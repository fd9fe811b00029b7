//! Whatever is done by commands, in whatever order: an audit finds nothing.

mod operations;
mod runs;
mod tasks;

use std::cell::RefCell;
use std::collections::BTreeSet;

use onceseal::Control;
use onceseal::core::action::{Acquire, Action, Principal, Proposal, Reach, Run};
use onceseal::core::approval::{Answer, Revocation, Said};
use onceseal::core::command::Command;
use onceseal::core::effect::{Begin, Finding, Holding, Outcome, Reconcile, Renew, Reserve, Resolve, Settle};
use onceseal::core::id::{ActionId, ApprovalId, RunId};
use onceseal::core::journal::Kind;
use onceseal::core::json::Object;
use onceseal::core::lease::{Lease, Resource};
use onceseal::core::reply::{Attempt, Question, Reply};
use onceseal::core::route::Health;
use onceseal::core::store::Note;
use onceseal::core::stream::StreamKind;
use onceseal::core::time::{Span, Timestamp};
use onceseal::store::clock::ManualClock;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use self::operations::{Doing, doing};
use self::runs::{Going, going};
use self::tasks::{Working, working};
use crate::ground::{Ground, audited};
use crate::sample::{host, policy, wait};

/// One thing done; numbers choose among what there is.
#[derive(Debug, Clone)]
enum Step {
    Run {
        name: &'static str,
        id: u8,
        reach: Reach,
    },
    Resume {
        action: u8,
        reach: Reach,
    },
    Reserve {
        id: u8,
    },
    Begin {
        attempt: u8,
    },
    Renew {
        attempt: u8,
    },
    Settle {
        attempt: u8,
        outcome: Outcome,
    },
    Reconcile {
        attempt: u8,
        committed: bool,
    },
    Resolve {
        attempt: u8,
        happened: bool,
    },
    Answer {
        approval: u8,
        person: u8,
        said: Said,
    },
    Revoke {
        approval: u8,
    },
    Policy {
        which: u8,
    },
    Note,
    Sweep,
    Pass {
        seconds: u16,
    },
    Operation(Doing),
    Going(Going),
    Working(Working),
    /// No destination can be reached, for so long that circuits open.
    Outage,
}

/// What most of a sequence of steps is about: enough of each to meet all of it.
#[derive(Debug, Clone, Copy)]
enum About {
    Actions,
    Runs,
}

impl About {
    /// Whether events of this kind are to come about.
    fn brings_about(self, kind: Kind) -> bool {
        use StreamKind as S;
        let of_runs = matches!(
            kind.stream(),
            S::Run | S::Request | S::Definition | S::Lease | S::Delivery | S::Task | S::Plan | S::Handoff
        );
        of_runs == matches!(self, About::Runs) && kind != Kind::StoreAccepted
    }
}

fn step(about: About) -> impl Strategy<Value = Step> {
    let (operations, runs) = match about {
        About::Actions => (30, 2),
        About::Runs => (4, 60),
    };
    let reach = || prop_oneof![Just(Reach::Ready), Just(Reach::Reserved), Just(Reach::Executing)];
    let name = prop_oneof![Just("pay"), Just("ship"), Just("ping"), Just("wipe")];
    let outcome = prop_oneof![Just(Outcome::Committed), Just(Outcome::Failed), Just(Outcome::Ambiguous)];
    let said = prop_oneof![3 => Just(Said::Yes), 1 => Just(Said::No)];
    prop_oneof![
        4 => (name, 0..4u8, reach()).prop_map(|(name, id, reach)| Step::Run { name, id, reach }),
        3 => (any::<u8>(), reach()).prop_map(|(action, reach)| Step::Resume { action, reach }),
        1 => (0..4u8).prop_map(|id| Step::Reserve { id }),
        2 => any::<u8>().prop_map(|attempt| Step::Begin { attempt }),
        1 => any::<u8>().prop_map(|attempt| Step::Renew { attempt }),
        4 => (any::<u8>(), outcome).prop_map(|(attempt, outcome)| Step::Settle { attempt, outcome }),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(attempt, committed)| Step::Reconcile { attempt, committed }),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(attempt, happened)| Step::Resolve { attempt, happened }),
        5 => (any::<u8>(), 0..3u8, said).prop_map(|(approval, person, said)| Step::Answer { approval, person, said }),
        1 => any::<u8>().prop_map(|approval| Step::Revoke { approval }),
        1 => (0..3u8).prop_map(|which| Step::Policy { which }),
        1 => Just(Step::Note),
        1 => Just(Step::Sweep),
        2 => (1..4_000u16).prop_map(|seconds| Step::Pass { seconds }),
        operations => doing().prop_map(Step::Operation),
        runs => going().prop_map(Step::Going),
        runs => working().prop_map(Step::Working),
        4 => Just(Step::Outage),
    ]
}

/// A store and what was handed out by it.
struct World<'a> {
    control: Control,
    clock: &'a ManualClock,
    actions: Vec<ActionId>,
    approvals: BTreeSet<ApprovalId>,
    attempts: Vec<Attempt>,
    references: Vec<String>,
    runs: Vec<RunId>,
    leases: Vec<Lease>,
    /// Those that were taken.
    tasks: Vec<(RunId, String, Lease)>,
    /// How many plans were set.
    revisions: u64,
    /// What the remote was last asked about and knew nothing of.
    absent: Option<(ActionId, Timestamp)>,
}

/// The one among many that a number chooses.
fn chosen<T: Clone>(all: &[T], number: u8) -> Option<T> {
    all.get(usize::from(number).checked_rem(all.len())?).cloned()
}

impl World<'_> {
    fn take(&mut self, step: &Step) -> Option<()> {
        let command = match step.clone() {
            Step::Run { name, id, reach } => self.run(name, id, reach),
            Step::Resume { action, reach } => {
                let action = chosen(&self.actions, action)?;
                Command::Acquire(Acquire { action, approval: None, reach, lease: None, deadline: None })
            }
            Step::Reserve { id } => {
                let action = chosen(&self.actions, id)?;
                Command::Reserve(Reserve { key: format!("pay:{id}"), action, lease: Span::minutes(1) })
            }
            Step::Begin { attempt } => {
                Command::Begin(Begin { attempt: self.held(attempt)?, lease: Span::minutes(5) })
            }
            Step::Renew { attempt } => {
                Command::Renew(Renew { attempt: self.held(attempt)?, lease: Span::minutes(5) })
            }
            Step::Settle { attempt, outcome } => self.settle(self.held(attempt)?, outcome),
            Step::Reconcile { attempt, committed } => {
                let Holding { effect, fence, .. } = self.held(attempt)?;
                let finding =
                    if committed { Finding::Committed(Some("[1]".to_owned())) } else { Finding::Absent };
                let evidence = Some("remote".to_owned());
                Command::Reconcile(Reconcile {
                    effect,
                    fence,
                    finding,
                    evidence,
                    remote: None,
                    settle: Span::seconds(1),
                })
            }
            Step::Resolve { attempt, happened } => {
                let Holding { effect, fence, .. } = self.held(attempt)?;
                let (reason, person) = ("looked".to_owned(), host("ann"));
                Command::Resolve(Resolve { effect, fence, happened, reason, evidence: None, person })
            }
            Step::Answer { approval, person, said } => {
                let approval = self.approval(approval)?;
                let shown = self.control.approval(approval).expect("readable")?.private.bound.binding?;
                let person = host(["ann", "bob", "cyd"][usize::from(person)]);
                Command::Answer(Answer { approval, person, said, shown, reason: None })
            }
            Step::Revoke { approval } => {
                Command::Revoke(Revocation { approval: self.approval(approval)?, person: host("ann") })
            }
            Step::Policy { which } => {
                let more =
                    ["", r#","a":{"decision":"deny"}"#, r#","b":{"decision":"deny"}"#][usize::from(which)];
                wait(self.control.activate(policy(more), true, None)).expect("active");
                return None;
            }
            Step::Note => Command::Note(Note { body: "{}".to_owned(), source: "a test".to_owned() }),
            Step::Sweep => {
                onceseal::sweep(self.control.store()).expect("swept");
                return None;
            }
            Step::Operation(doing) => self.operation(doing)?,
            Step::Going(going) => self.going(going)?,
            Step::Working(working) => self.working(working)?,
            Step::Outage => {
                self.outage();
                return None;
            }
            Step::Pass { seconds } => {
                self.clock.advance(i64::from(seconds) * 1_000_000);
                return None;
            }
        };
        match self.control.store().run(command).expect("an answer") {
            Reply::Attempt(attempt) => {
                self.actions.push(attempt.action);
                self.attempts.push(attempt);
            }
            Reply::Ready { action, .. } => self.actions.push(action),
            Reply::Operation(now) => {
                self.actions.push(now.action);
                self.references.push(now.status_ref);
            }
            Reply::Run(now) => self.runs.push(now.answered.run),
            Reply::Lease(now) => self.leases.push(now.lease),
            Reply::Task(now) => {
                let lease = now.lease.lease;
                if let Resource::Task(run, _) = lease.resource {
                    self.tasks.push((run, now.task, lease));
                }
            }
            Reply::Claimed(attempt, _) => self.attempts.push(*attempt),
            Reply::Ask(Question::Remote { asked_at, job }) => self.absent = Some((job.action, asked_at)),
            Reply::ApprovalNeeded { action, approval, .. } => {
                self.actions.push(action);
                self.approvals.insert(approval);
            }
            _ => {}
        }
        Some(())
    }

    fn run(&self, name: &str, id: u8, reach: Reach) -> Command {
        let proposal = self.proposal(name, id);
        let run = Run { proposal, action: None, approval: None, reach, lease: None, deadline: None };
        Command::Run(Box::new(run))
    }

    fn proposal(&self, name: &str, id: u8) -> Proposal {
        let mut arguments = Object::new();
        arguments.insert("id", id.to_string());
        let principal = Principal::agent("bot");
        let environment = Action::DEFAULT_ENVIRONMENT.to_owned();
        let action = Action { name: name.to_owned(), arguments, principal, environment, resource: None };
        let active = self.control.policy().expect("a policy");
        Proposal::prepare(self.control.store().tenant(), &active, action).expect("a proposal")
    }

    fn settle(&self, attempt: Holding, outcome: Outcome) -> Command {
        let (error, result) = match outcome {
            Outcome::Committed => (None, Some("{\"ok\":true}".to_owned())),
            Outcome::Failed | Outcome::Ambiguous => (Some("no luck".to_owned()), None),
        };
        let health = (outcome == Outcome::Ambiguous).then_some(Health::Ill { spread: 127 });
        Command::Settle(Settle { error, result, health, ..Settle::new(attempt, outcome) })
    }

    fn held(&self, number: u8) -> Option<Holding> {
        chosen(&self.attempts, number).map(|attempt| Holding::from(&attempt))
    }

    fn approval(&self, number: u8) -> Option<ApprovalId> {
        chosen(&self.approvals.iter().copied().collect::<Vec<_>>(), number)
    }
}

/// Does it all, audits on the way and at the end, and says what was recorded.
fn do_and_audit(
    control: Control,
    clock: &ManualClock,
    steps: &[Step],
) -> Result<BTreeSet<Kind>, TestCaseError> {
    wait(control.activate(policy(""), false, None)).expect("active");
    let mut world = World {
        control,
        clock,
        actions: Vec::new(),
        approvals: BTreeSet::new(),
        attempts: Vec::new(),
        references: Vec::new(),
        runs: Vec::new(),
        leases: Vec::new(),
        tasks: Vec::new(),
        revisions: 0,
        absent: None,
    };
    for (number, step) in steps.iter().enumerate() {
        world.take(step);
        if number % 16 == 15 {
            prop_assert_eq!(audited(&world.control).findings, vec![], "after {:?}", step);
        }
    }
    prop_assert_eq!(audited(&world.control).findings, vec![]);
    let log = world.control.log(0, usize::MAX).expect("the log");
    Ok(log.iter().filter_map(|event| Some(event.event.as_ref()?.body.kind())).collect())
}

/// Tries so many orders of commands on stores of this kind, and sees that every
/// kind of event that they are about came about.
fn any_commands(about: About, cases: u32, store: impl Fn(&Ground) -> Control) {
    let seen = RefCell::new(BTreeSet::new());
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    // Always the same ones, or what is seen at the end would be left to chance.
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let tried = runner.run(&prop::collection::vec(step(about), 1..160), |steps| {
        let ground = Ground::new();
        seen.borrow_mut().extend(do_and_audit(store(&ground), &ground.clock, &steps)?);
        Ok(())
    });
    tried.unwrap_or_else(|failure| panic!("{failure}"));
    let seen = seen.into_inner();
    let all = Kind::ALL.iter().filter(|kind| about.brings_about(**kind));
    let missing: Vec<_> = all.filter(|kind| !seen.contains(kind)).collect();
    assert!(missing.is_empty(), "{missing:?} did not come about");
}

#[test]
fn p10_any_commands_in_any_order_leave_a_store_in_memory_that_is_found_clean() {
    any_commands(About::Actions, 192, Ground::memory);
}

#[test]
fn p10_any_commands_in_any_order_leave_a_store_on_disk_that_is_found_clean() {
    any_commands(About::Actions, 128, |ground| ground.open().expect("a store"));
}

#[test]
fn p10_any_commands_about_runs_leave_a_store_in_memory_that_is_found_clean() {
    any_commands(About::Runs, 192, Ground::memory);
}

#[test]
fn p10_any_commands_about_runs_leave_a_store_on_disk_that_is_found_clean() {
    any_commands(About::Runs, 96, |ground| ground.open().expect("a store"));
}

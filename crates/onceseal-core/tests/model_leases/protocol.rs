//! The small world: what there is, and what can happen next.

use std::fmt;
use std::sync::Arc;

use onceseal_core::action::Principal;
use onceseal_core::command::{Command, Nonce, Stamped};
use onceseal_core::hash::BlindingKey;
use onceseal_core::id::{HolderId, HolderKey, RootId, RunId};
use onceseal_core::lease::{Lease, Resource};
use onceseal_core::run::{Definition, StartRun, Subject};
use onceseal_core::stream::{StreamId, Tenant};
use onceseal_core::view::Pinned;
use stateright::{Model, Property};

use crate::executor::Rules;
use crate::ghost::{Grant, Handoff, Over, PROMISES, RunGhost};
use crate::ledger::Ledger;

/// How much of everything there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// What is held: a run, or paths.
    pub(crate) resources: &'static [&'static str],
    /// Who asks for it.
    pub(crate) holders: u8,
    /// Leases handed out of each resource, in all.
    pub(crate) leases: usize,
    /// How often the clock goes back.
    pub(crate) back: u8,
    /// Whether holders crash and ask again, knowing nothing.
    pub(crate) crash: bool,
    /// Whether the first resource is handed over.
    pub(crate) hands: bool,
}

/// A run, and those who work on it.
pub(crate) const RUN: Bounds =
    Bounds { resources: &["run"], holders: 2, leases: 2, back: 0, crash: false, hands: false };
/// A directory, and one in it.
pub(crate) const TWO_PATHS: Bounds = Bounds { resources: &["a", "a/b"], ..RUN };
/// A directory, and two in it.
pub(crate) const TREE: Bounds = Bounds { resources: &["a", "a/b", "a/c"], ..RUN };

pub(crate) struct Protocol {
    pub(crate) rules: &'static dyn Rules,
    pub(crate) bounds: Bounds,
    pub(crate) pinned: Pinned,
    pub(crate) resources: Vec<Resource>,
    pub(crate) streams: Vec<StreamId>,
    start: Command,
}

/// What is so, and what has been.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) struct State {
    pub(crate) ledger: Ledger,
    /// What was handed out of each resource, in order.
    pub(crate) grants: Vec<Vec<Grant>>,
    pub(crate) run: RunGhost,
    pub(crate) handoff: Handoff,
    /// How often the clock may still go back.
    pub(crate) back: u8,
    /// The first promise that was broken.
    pub(crate) broken: Option<&'static str>,
}

impl State {
    pub(crate) fn breaks(&mut self, promise: &'static str) {
        self.broken = self.broken.or(Some(promise));
    }
}

/// What is done with a lease.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Use {
    Renew(u8),
    Commit(usize),
    GiveUp,
    Move(&'static str),
}

/// What is done about the handoff.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Hand {
    /// By the holder of this lease, or else by an operator.
    Prepare(Option<usize>),
    Accept(u8),
    Withdraw,
}

/// What happens next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Step {
    Take {
        resource: usize,
        holder: u8,
        shared: bool,
        preempt: bool,
    },
    Use {
        resource: usize,
        grant: usize,
        what: Use,
    },
    /// Somebody who was handed nothing tries the newest lease.
    Guess {
        resource: usize,
        what: Use,
    },
    Crash(u8),
    Hand(Hand),
    Lapse(usize),
    Tick,
    /// The store is opened anew where the clock is a tick behind. Within one
    /// process no clock goes back.
    Back,
}

impl Protocol {
    pub(crate) fn new(rules: &'static dyn Rules, bounds: Bounds) -> Protocol {
        let tenant = Tenant { name: "default".to_owned(), id: [7; 16], key: BlindingKey([9; 32]) };
        let mut pinned = Pinned::new(tenant, Some("os:owner".to_owned()));
        let definition = Definition::built_in().into_iter().find(|found| found.kind() == "simple");
        let definition = Arc::new(definition.expect("built in"));
        pinned.know_definition(definition.digest(), Some(definition.clone()));
        let start = Command::StartRun(Box::new(StartRun {
            root: RootId([1; 16]),
            definition,
            subject: Subject::Change("c".to_owned()),
            request: "start".to_owned(),
            principal: Principal::agent("bot"),
        }));
        let named = |name: &&str| match *name {
            "run" => Resource::Run(stamp(start.clone()).run()),
            path => Resource::parse(&format!("root/{}/path/{path}", RootId([1; 16]))).expect("a path"),
        };
        let resources: Vec<Resource> = bounds.resources.iter().map(named).collect();
        let streams = resources.iter().map(|it| pinned.tenant.lease(&it.to_string())).collect();
        Protocol { rules, bounds, pinned, resources, streams, start }
    }

    /// The run that is worked on, if it is one.
    pub(crate) fn run_id(&self) -> Option<RunId> {
        self.resources[0].of_run()
    }

    /// The resources that are held with this one: itself, above and below.
    pub(crate) fn touched(&self, resource: usize) -> impl Iterator<Item = usize> + '_ {
        let is_above = |a: &Resource, b: &Resource| b.above().any(|above| above == *a);
        let this = &self.resources[resource];
        (0..self.resources.len()).filter(move |other| {
            let other = &self.resources[*other];
            other == this || is_above(other, this) || is_above(this, other)
        })
    }

    pub(crate) fn lease(&self, resource: usize, grant: &Grant) -> Lease {
        let of = self.resources[resource].clone();
        Lease::handed_on(of, grant.fence, self.holder(grant), grant.token)
    }

    /// Whoever was given it, as rows name it.
    pub(crate) fn holder(&self, grant: &Grant) -> HolderId {
        self.pinned.tenant.holder(holder(grant.holder))
    }

    fn uses(&self) -> Vec<Use> {
        let mut uses = vec![Use::Renew(1), Use::Renew(2), Use::Commit(0), Use::GiveUp];
        if self.run_id().is_some() {
            uses.extend([Use::Commit(1), Use::Move("running"), Use::Move("completed")]);
        }
        uses
    }
}

pub(crate) const fn holder(n: u8) -> HolderKey {
    HolderKey([n + 1; 16])
}

pub(crate) fn stamp(command: Command) -> Stamped {
    Stamped { command, made_at: 0, nonce: Nonce([1; 16]) }
}

impl Model for Protocol {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let (ledger, grants) = (Ledger::default(), vec![Vec::new(); self.resources.len()]);
        let run = RunGhost { state: "created", interrupted: false };
        let mut state =
            State { ledger, grants, run, handoff: Handoff::Unknown, back: self.bounds.back, broken: None };
        if self.run_id().is_some() {
            self.submit(&mut state, self.start.clone());
        }
        vec![state]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.broken.is_some() {
            return;
        }
        let seen = state.grants.iter().flatten().map(|grant| grant.holder + 1).max().unwrap_or_default();
        // Those who have not asked yet are alike.
        let holders = 0..self.bounds.holders.min(seen + 1);
        for (resource, grants) in state.grants.iter().enumerate() {
            for holder in holders.clone() {
                for (shared, preempt) in [(false, false), (true, false), (false, true), (true, true)] {
                    steps.push(Step::Take { resource, holder, shared, preempt });
                }
            }
            for (grant, _) in grants.iter().enumerate().filter(|(_, grant)| grant.known) {
                steps.extend(self.uses().into_iter().map(|what| Step::Use { resource, grant, what }));
            }
            if !grants.is_empty() {
                steps.extend(self.uses().into_iter().map(|what| Step::Guess { resource, what }));
                steps.push(Step::Lapse(resource));
            }
        }
        if self.bounds.hands {
            let known = state.grants[0].iter().enumerate().filter(|(_, grant)| grant.known);
            let givers = known.map(|(grant, _)| Some(grant)).chain([None]);
            steps.extend(givers.map(|giver| Step::Hand(Hand::Prepare(giver))));
            steps.extend(holders.clone().map(|holder| Step::Hand(Hand::Accept(holder))));
            steps.push(Step::Hand(Hand::Withdraw));
        }
        if self.bounds.crash {
            steps.extend(holders.map(Step::Crash));
        }
        steps.push(Step::Tick);
        if state.back > 0 {
            steps.push(Step::Back);
        }
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        self.step(state, step).filter(|next| next != state)
    }

    fn properties(&self) -> Vec<Property<Protocol>> {
        let mut all = promised();
        all.extend(reached(self.bounds));
        all
    }
}

/// Every promise, as a property that always holds.
fn promised() -> Vec<Property<Protocol>> {
    fn holds<const N: usize>(_: &Protocol, state: &State) -> bool {
        state.broken != Some(PROMISES[N])
    }
    macro_rules! all {
        ($($n:literal)*) => { vec![$(Property::always(PROMISES[$n], holds::<$n>)),*] };
    }
    let all = all![0 1 2 3 4 5 6 7 8 9 10 11 12 13];
    assert_eq!(all.len(), PROMISES.len());
    all
}

/// What happens in some state: the promises do not hold because nothing does.
fn reached(bounds: Bounds) -> Vec<Property<Protocol>> {
    let sometimes = |name, so: fn(&Protocol, &State) -> bool| Property::sometimes(name, so);
    let mut all = vec![
        sometimes("a lease that is over, which nobody has recorded", |_, state| {
            state.grants.iter().flatten().any(|grant| grant.lapses(0))
        }),
        sometimes("a lease that is gone", |_, state| ended(state, Over::Gone)),
        sometimes("a lease with an outcome", |_, state| ended(state, Over::With(0))),
    ];
    if bounds.leases > 1 {
        all.push(sometimes("a resource that two share", |_, state| {
            state.grants[0].iter().filter(|grant| grant.live(0) && grant.shared).count() == 2
        }));
    }
    if bounds.hands {
        all.push(sometimes("a resource that was handed over", |_, state| {
            matches!(state.handoff, Handoff::Accepted { .. }) && state.grants[0].iter().any(|it| it.live(0))
        }));
        all.push(sometimes("a handoff that nobody can accept any more", |_, state| {
            let newest = state.grants[0].last().map_or(0, |grant| grant.fence);
            matches!(state.handoff, Handoff::Prepared { fence } if fence != newest)
        }));
    }
    if bounds.resources == RUN.resources {
        all.push(sometimes("a run that was interrupted", |_, state| state.run.interrupted));
        all.push(sometimes("a run that ended while it is held", |_, state| {
            state.run.ended() && state.grants[0].iter().any(|grant| grant.live(0))
        }));
    } else {
        all.push(sometimes("a path that was taken from one above it", |_, state| {
            let gone = state.grants[0].iter().any(|grant| grant.over == Over::Gone);
            gone && state.grants[1].iter().any(|grant| grant.live(0))
        }));
    }
    all
}

fn ended(state: &State, over: Over) -> bool {
    state.grants.iter().flatten().any(|grant| grant.over == over)
}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.bounds)
    }
}

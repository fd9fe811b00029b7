//! What may be done about runs, and how it is drawn.

use proptest::prelude::*;

use super::definitions::KINDS;

/// Which of those that there are: taken modulo their number.
pub(crate) type Pick = usize;

/// Who asks, and under which id.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asking {
    /// The last one is no id.
    pub(crate) request: u8,
    pub(crate) agent: u8,
}

/// The lease that something is done under.
pub(crate) type Under = Option<Pick>;

/// One that is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) gate: u8,
    pub(crate) revision: u64,
    pub(crate) receipt: u8,
    pub(crate) record: bool,
}

/// How a resource is taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taking {
    pub(crate) holder: u8,
    pub(crate) seconds: u32,
    pub(crate) shared: bool,
    /// Taken from whoever has it, by an operator or by somebody.
    pub(crate) preempt: Option<bool>,
}

/// How a run is handed over.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Handing {
    /// On the word of whoever has the lease, or of an operator or somebody.
    Prepare {
        run: Pick,
        lease: Pick,
        operator: Option<bool>,
        receipt: u8,
        facts: u8,
    },
    Accept {
        run: Pick,
        receipt: u8,
        holder: u8,
        seconds: u32,
    },
    Withdraw {
        run: Pick,
        receipt: u8,
        operator: bool,
    },
}

/// One thing to do.
#[derive(Debug, Clone)]
pub(crate) enum Do {
    Start {
        root: u8,
        kind: usize,
        /// Of a change, or of what has no name yet.
        change: Result<u8, u8>,
        asking: Asking,
    },
    Name {
        run: Pick,
        change: u8,
        asking: Asking,
    },
    Move {
        run: Pick,
        to: Pick,
        code: u8,
        asking: Asking,
        under: Under,
    },
    Command {
        run: Pick,
        command: Pick,
        asking: Asking,
        under: Under,
    },
    Bind {
        run: Pick,
        all: Vec<Bound>,
        asking: Asking,
        under: Under,
    },
    /// What was asked is asked again, by the same or by another.
    Again {
        asked: Pick,
        agent: u8,
    },
    Take {
        run: Pick,
        taking: Taking,
    },
    Renew {
        lease: Pick,
        seconds: u32,
    },
    Commit {
        lease: Pick,
        outcome: u8,
    },
    GiveUp {
        lease: Pick,
    },
    Sweep {
        run: Pick,
    },
    Hand(Handing),
    /// The clock goes on, or back.
    Clock {
        seconds: i8,
    },
}

fn asking() -> impl Strategy<Value = Asking> {
    (prop_oneof![30 => 0..60u8, 1 => Just(60)], 0..8u8)
        .prop_map(|(request, agent)| Asking { request, agent: u8::from(agent == 7) })
}

fn under() -> impl Strategy<Value = Under> {
    prop_oneof![2 => Just(None), 1 => any::<Pick>().prop_map(Some)]
}

fn bound() -> impl Strategy<Value = Bound> {
    let gate = prop_oneof![9 => Just(0), 1 => 1..4u8];
    let revision = prop_oneof![9 => 1..5u64, 1 => Just(0)];
    (gate, revision, 0..2u8, prop::bool::weighted(0.2)).prop_map(|(gate, revision, receipt, record)| Bound {
        gate,
        revision,
        receipt,
        record,
    })
}

/// In fives, so that ends and moments meet.
fn seconds() -> impl Strategy<Value = u32> {
    (0..9u32).prop_map(|fives| fives * 5)
}

fn taking() -> impl Strategy<Value = Taking> {
    let preempt = prop_oneof![5 => Just(None), 1 => Just(Some(true)), 1 => Just(Some(false))];
    (0..3u8, seconds(), any::<bool>(), preempt).prop_map(|(holder, seconds, shared, preempt)| Taking {
        holder,
        seconds,
        shared,
        preempt,
    })
}

fn handing() -> impl Strategy<Value = Handing> {
    let pick = any::<Pick>;
    let facts = prop_oneof![6 => 0..2u8, 1 => Just(2)];
    let operator = prop_oneof![4 => Just(None), 3 => Just(Some(true)), 1 => Just(Some(false))];
    let receipt = 0..12u8;
    prop_oneof![
        4 => (pick(), pick(), operator, receipt.clone(), facts).prop_map(
            |(run, lease, operator, receipt, facts)| Handing::Prepare { run, lease, operator, receipt, facts }
        ),
        4 => (pick(), receipt.clone(), 0..3u8, seconds())
            .prop_map(|(run, receipt, holder, seconds)| Handing::Accept { run, receipt, holder, seconds }),
        3 => (pick(), receipt, prop::bool::weighted(0.8))
            .prop_map(|(run, receipt, operator)| Handing::Withdraw { run, receipt, operator }),
    ]
}

pub(crate) fn step() -> impl Strategy<Value = Do> {
    let pick = any::<Pick>;
    let change = prop_oneof![2 => (0..4u8).prop_map(Ok), 1 => (0..2u8).prop_map(Err)];
    prop_oneof![
        5 => (0..2u8, 0..KINDS, change, asking())
            .prop_map(|(root, kind, change, asking)| Do::Start { root, kind, change, asking }),
        4 => (pick(), 0..4u8, asking()).prop_map(|(run, change, asking)| Do::Name { run, change, asking }),
        8 => (pick(), pick(), 0..8u8, asking(), under())
            .prop_map(|(run, to, code, asking, under)| Do::Move { run, to, code, asking, under }),
        3 => (pick(), pick(), asking(), under())
            .prop_map(|(run, command, asking, under)| Do::Command { run, command, asking, under }),
        6 => (pick(), prop::collection::vec(bound(), 0..4), asking(), under())
            .prop_map(|(run, all, asking, under)| Do::Bind { run, all, asking, under }),
        3 => (pick(), 0..8u8).prop_map(|(asked, agent)| Do::Again { asked, agent: u8::from(agent == 7) }),
        7 => (pick(), taking()).prop_map(|(run, taking)| Do::Take { run, taking }),
        2 => (pick(), seconds()).prop_map(|(lease, seconds)| Do::Renew { lease, seconds }),
        2 => (pick(), 0..3u8).prop_map(|(lease, outcome)| Do::Commit { lease, outcome }),
        1 => pick().prop_map(|lease| Do::GiveUp { lease }),
        3 => pick().prop_map(|run| Do::Sweep { run }),
        7 => handing().prop_map(Do::Hand),
        4 => prop_oneof![3 => 1..6i8, 1 => -4..0i8].prop_map(|fives| Do::Clock { seconds: fives * 5 }),
    ]
}

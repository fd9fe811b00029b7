//! What may be done, and how it is drawn.

use proptest::prelude::*;

/// What is proposed. Two are the same action if all of it is equal, and the
/// same wish if all but `note` and `agent` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) name: Name,
    pub(crate) id: u8,
    pub(crate) amount: u32,
    pub(crate) note: bool,
    pub(crate) agent: Agent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    /// Allowed, asked about or denied by amount; two people must say yes.
    Pay,
    /// Allowed, under the keys of payments.
    Send,
    /// Asked about, without an effect key.
    Read,
    /// Not in the policy.
    Unlisted,
}

/// Who acts; Ada for Uma.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agent {
    Bot,
    Ada,
}

/// How far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Ready,
    Reserved,
    Executing,
}

/// Which of those that there are: taken modulo their number.
pub(crate) type Pick = usize;

/// An outcome, as anybody says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    Committed,
    Failed,
    Ambiguous,
}

/// People, as they are proven.
pub(crate) const PEOPLE: [&str; 8] =
    ["host:ada", "host:bob", "host:cy", "host:dan", "os:owner", "os:cy", "host:opal", "host:uma"];

/// One thing to do.
#[derive(Debug, Clone)]
pub(crate) enum Do {
    Wait(u32),
    Activate(usize),
    Run { content: Content, again: Option<Pick>, approval: Option<Pick>, reach: Reach, lease: Option<u32> },
    Acquire { action: Pick, approval: Option<Pick>, reach: Reach },
    Reserve { id: u8 },
    Begin { attempt: Pick, fence: i8 },
    Renew { attempt: Pick, fence: i8, lease: u32 },
    Settle { attempt: Pick, fence: i8, word: Word },
    Resolve { attempt: Pick, fence: i8, happened: bool, person: usize },
    Reconcile { attempt: Pick, fence: i8, happened: bool },
    LapseEffect(Pick),
    LapseAction(Pick),
    LapseApproval(Pick),
    Answer { approval: Pick, person: usize, yes: bool, shown: bool },
    Revoke { approval: Pick, person: usize },
}

fn content() -> impl Strategy<Value = Content> {
    let name = prop_oneof![
                12 => Just(Name::Pay),
        3 => Just(Name::Send),
        3 => Just(Name::Read),
        1 => Just(Name::Unlisted),
    ];
    let amount = prop_oneof![2 => Just(5), 6 => Just(50), 1 => Just(500)];
    let agent = prop_oneof![Just(Agent::Bot), Just(Agent::Ada)];
    (name, 0..2u8, amount, prop::bool::weighted(0.2), agent)
        .prop_map(|(name, id, amount, note, agent)| Content { name, id, amount, note, agent })
}

fn reach() -> impl Strategy<Value = Reach> {
    prop_oneof![1 => Just(Reach::Ready), 1 => Just(Reach::Reserved), 4 => Just(Reach::Executing)]
}

fn fence() -> impl Strategy<Value = i8> {
    prop_oneof![8 => Just(0), 1 => Just(-1), 1 => Just(1)]
}

fn pick() -> std::ops::Range<Pick> {
    0..1000
}

fn word() -> impl Strategy<Value = Word> {
    prop_oneof![Just(Word::Committed), Just(Word::Failed), Just(Word::Ambiguous)]
}

/// Mostly one who may be a boss.
fn person() -> impl Strategy<Value = usize> {
    prop_oneof![5 => 0..5usize, 1 => 0..PEOPLE.len()]
}

/// Lengths of time at, before and after every limit of the policies.
fn wait() -> impl Strategy<Value = u32> {
    let long = prop::sample::select(vec![59, 60, 61, 119, 120, 121, 600, 900, 901]);
    prop_oneof![3 => prop::sample::select(vec![1, 29, 30]), 1 => long]
}

pub(crate) fn step() -> impl Strategy<Value = Do> {
    let some = |weight| prop::option::weighted(weight, pick());
    let lease = prop_oneof![8 => Just(None), 1 => Just(Some(0)), 1 => Just(Some(30)), 1 => Just(Some(61))];
    prop_oneof![
        4 => wait().prop_map(Do::Wait),
                2 => prop::sample::select(vec![0, 0, 1, 1, 2, 3]).prop_map(Do::Activate),
        8 => (content(), some(0.15), some(0.25), reach(), lease)
            .prop_map(|(content, again, approval, reach, lease)| Do::Run { content, again, approval, reach, lease }),
        3 => (pick(), some(0.2), reach())
            .prop_map(|(action, approval, reach)| Do::Acquire { action, approval, reach }),
        1 => (0..2u8).prop_map(|id| Do::Reserve { id }),
        2 => (pick(), fence()).prop_map(|(attempt, fence)| Do::Begin { attempt, fence }),
        2 => (pick(), fence(), prop_oneof![Just(0u32), Just(60), Just(600)])
            .prop_map(|(attempt, fence, lease)| Do::Renew { attempt, fence, lease }),
        6 => (pick(), fence(), word()).prop_map(|(attempt, fence, word)| Do::Settle { attempt, fence, word }),
        2 => (pick(), fence(), any::<bool>(), 5..7usize)
            .prop_map(|(attempt, fence, happened, person)| Do::Resolve { attempt, fence, happened, person }),
        2 => (pick(), fence(), any::<bool>())
            .prop_map(|(attempt, fence, happened)| Do::Reconcile { attempt, fence, happened }),
        1 => pick().prop_map(Do::LapseEffect),
        2 => pick().prop_map(Do::LapseAction),
        1 => pick().prop_map(Do::LapseApproval),
                12 => (pick(), person(), prop::bool::weighted(0.9), prop::bool::weighted(0.95))
            .prop_map(|(approval, person, yes, shown)| Do::Answer { approval, person, yes, shown }),
        1 => (pick(), 0..PEOPLE.len()).prop_map(|(approval, person)| Do::Revoke { approval, person }),
    ]
}

//! What was said, laid out in batches of one and of many, with openings between.

use onceseal_core::command::{Nonce, Stamped};
use onceseal_core::time::{Span, Timestamp};

use crate::chance::Chance;
use crate::recorded::{Said, recorded};

/// Commands in one batch at most.
const MOST: usize = 50;

/// Commands that are there together.
#[derive(Clone)]
pub(crate) struct Batch {
    /// When.
    pub(crate) now: Timestamp,
    /// Whether what lasts is opened anew before.
    pub(crate) reopen: bool,
    pub(crate) commands: Vec<Stamped>,
}

/// A seed's commands. The first makes the tenant.
pub(crate) struct Sequence {
    pub(crate) create: Said,
    pub(crate) batches: Vec<Batch>,
}

impl Sequence {
    pub(crate) fn drawn(seed: u64) -> Sequence {
        let mut said = recorded(seed).into_iter();
        let create = said.next().expect("the tenant is made");
        let mut chance = Chance(seed);
        // What is said within so long is said at once.
        let moment = [Span::ZERO, Span::seconds(20), Span::minutes(2)][chance.below(3)];
        let (before, latest) = (vec![create.0.clone()], create.1);
        let mut layout = Layout { chance, moment, before, latest, batches: Vec::new() };
        said.for_each(|said| layout.put(said));
        Sequence { create, batches: layout.batches }
    }

    pub(crate) fn commands(&self) -> usize {
        1 + self.batches.iter().map(|batch| batch.commands.len()).sum::<usize>()
    }
}

struct Layout {
    chance: Chance,
    moment: Span,
    before: Vec<Stamped>,
    latest: Timestamp,
    batches: Vec<Batch>,
}

impl Layout {
    fn put(&mut self, (command, at): Said) {
        self.before.push(command.clone());
        self.batch(at).commands.push(command);
        if self.chance.one_in(10) {
            // The same again, by another command.
            let mut again = self.before[self.chance.below(self.before.len())].clone();
            again.nonce =
                Nonce([[0xaa; 8], (self.before.len() as u64).to_be_bytes()].concat().try_into().expect("16"));
            self.batch(at).commands.push(again);
        }
    }

    /// The batch of what is said then.
    fn batch(&mut self, at: Timestamp) -> &mut Batch {
        let fits = self.batches.last().is_some_and(|batch| {
            batch.commands.len() < MOST && at >= batch.now && at.since(batch.now) <= self.moment
        });
        if !fits || self.chance.one_in(30) {
            // A process that is started anew does not know how late it was before.
            let reopen = at >= self.latest && self.chance.one_in(40);
            self.latest = self.latest.max(at);
            self.batches.push(Batch { now: at, reopen, commands: Vec::new() });
        }
        self.batches.last_mut().expect("one is there")
    }
}

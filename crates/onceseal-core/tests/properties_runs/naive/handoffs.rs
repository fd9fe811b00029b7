//! Handoffs, as the design tells of them: a run passes to another holder, once,
//! as it was.

use onceseal_core::code::Code;

use super::{Held, Naive, Said, Say};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Prepared,
    Accepted(u8),
    Withdrawn,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Handoff {
    pub(crate) run: usize,
    /// The lease that the run had.
    pub(crate) fence: u64,
    facts: u8,
    pub(crate) stage: Stage,
}

/// On whose word: of whoever has this lease, or of a person, who is an operator
/// or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Holder(u64),
    Person(bool),
}

impl Naive {
    fn heard(&mut self, run: usize, by: By) -> Result<(), Code> {
        match by {
            By::Holder(fence) if !self.holds(run, fence) => Err(Code::LeaseFenced),
            By::Person(false) => Err(Code::NotOperator),
            By::Holder(_) | By::Person(true) => Ok(()),
        }
    }

    fn fence(&self, run: usize) -> u64 {
        self.leases.get(&run).map_or(0, |lease| lease.fence)
    }

    pub(crate) fn prepare(&mut self, run: usize, receipt: u8, facts: u8, by: By) -> Said {
        if facts == 2 {
            return Err(Code::FactsInvalid);
        }
        if let Some(before) = self.handoffs.get(&receipt) {
            let is_same = (before.run, before.facts) == (run, facts);
            return match before.stage {
                _ if !is_same => Err(Code::HandoffConflict),
                Stage::Accepted(_) | Stage::Withdrawn => Err(Code::HandoffOver),
                Stage::Prepared if before.fence != self.fence(run) => Err(Code::HandoffStale),
                Stage::Prepared => Ok(Say::Done(false)),
            };
        }
        self.heard(run, by)?;
        if self.ends(run) {
            return Err(Code::RunEnded);
        }
        if self.live(run).len() > 1 {
            return Err(Code::LeaseHeld);
        }
        let fence = self.fence(run);
        let of_run = |it: &&mut Handoff| it.run == run && it.stage == Stage::Prepared;
        if let Some(other) = self.handoffs.values_mut().find(of_run) {
            if other.fence == fence {
                return Err(Code::HandoffPrepared);
            }
            other.stage = Stage::Withdrawn;
        }
        self.handoffs.insert(receipt, Handoff { run, fence, facts, stage: Stage::Prepared });
        Ok(Say::Done(true))
    }

    fn known(&self, run: usize, receipt: u8) -> Result<Handoff, Code> {
        self.handoffs.get(&receipt).filter(|it| it.run == run).cloned().ok_or(Code::HandoffUnknown)
    }

    pub(crate) fn accept(&mut self, run: usize, receipt: u8, holder: u8, seconds: u32) -> Said {
        if seconds == 0 {
            return Err(Code::OutOfBounds);
        }
        let Handoff { fence, stage, .. } = self.known(run, receipt)?;
        if stage == Stage::Accepted(holder)
            && let Some(own) = self.live(run).into_iter().find(|held| held.holder == holder)
            && own.fence == fence + 1
        {
            let Held { fence, holder, shared, until } = own;
            return Ok(Say::Lease { run, fence, holder, shared, until });
        }
        match () {
            () if stage != Stage::Prepared => return Err(Code::HandoffOver),
            () if fence != self.fence(run) => return Err(Code::HandoffStale),
            () if self.ends(run) => return Err(Code::RunEnded),
            () => {}
        }
        self.sweep(run);
        let until = self.now + i64::from(seconds);
        let lease = self.leases.entry(run).or_default();
        lease.fence += 1;
        let held = Held { fence: lease.fence, holder, shared: false, until };
        lease.held = vec![held];
        self.handoffs.get_mut(&receipt).expect("it is known").stage = Stage::Accepted(holder);
        Ok(Say::Lease { run, fence: fence + 1, holder, shared: false, until })
    }

    pub(crate) fn withdraw(&mut self, run: usize, receipt: u8, by: By) -> Said {
        match self.known(run, receipt)?.stage {
            Stage::Withdrawn => return Ok(Say::Done(false)),
            Stage::Accepted(_) => return Err(Code::HandoffOver),
            Stage::Prepared => {}
        }
        self.heard(run, by)?;
        self.handoffs.get_mut(&receipt).expect("it is known").stage = Stage::Withdrawn;
        Ok(Say::Done(true))
    }
}

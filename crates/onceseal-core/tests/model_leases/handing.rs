//! Handing the first resource over: to whoever accepts first, once, and only as
//! long as nobody has taken it since.

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::handoff::{AcceptHandoff, Giver, HandoffState, PrepareHandoff, WithdrawHandoff};
use onceseal_core::hash::Hash;
use onceseal_core::journal::Row;
use onceseal_core::reply::Reply;

use crate::ghost::{FENCED, HANDED, Handoff, VALID};
use crate::ledger::TICK;
use crate::mutants::operator;
use crate::protocol::{Hand, Protocol, State, holder};

const RECEIPT: Hash = Hash([3; 32]);

impl Protocol {
    fn newest(state: &State) -> u64 {
        state.grants[0].last().map_or(0, |grant| grant.fence)
    }

    /// `None` if there would be more leases than bound.
    pub(crate) fn hand(&self, state: &mut State, step: Hand) -> Option<()> {
        match step {
            Hand::Prepare(grant) => self.prepare(state, grant),
            Hand::Accept(who) => self.accept(state, who)?,
            Hand::Withdraw => self.withdraw(state),
        }
        Some(())
    }

    fn prepare(&self, state: &mut State, grant: Option<usize>) {
        let by = match grant {
            Some(grant) => Giver::Holder(self.lease(0, &state.grants[0][grant])),
            None => operator(),
        };
        let (resource, principal) = (self.resources[0].clone(), Principal::agent("bot"));
        let prepare = PrepareHandoff { resource, receipt: RECEIPT, facts: "{}".to_owned(), by, principal };
        let (reply, at) = self.submit(state, Command::PrepareHandoff(Box::new(prepare)));
        let before = state.handoff;
        let may = grant.is_none_or(|grant| state.grants[0][grant].live(at));
        let sharing = state.grants[0].iter().filter(|grant| grant.live(at)).count() > 1;
        if before == Handoff::Unknown && !may {
            // Whoever is met as gone is recorded as gone.
            self.lapse(state, 0, at);
        }
        match (reply, before) {
            (Reply::Done { changed: true }, Handoff::Unknown) if may && !sharing && !state.run.ended() => {
                state.handoff = Handoff::Prepared { fence: Protocol::newest(state) };
            }
            (Reply::Done { changed: true }, Handoff::Unknown) if !may => state.breaks(FENCED),
            (Reply::Done { changed: false }, Handoff::Prepared { fence }) => {
                if fence != Protocol::newest(state) {
                    state.breaks(HANDED);
                }
            }
            (Reply::Refused(refusal), _) => {
                let fits = match refusal.code {
                    Code::LeaseFenced => before == Handoff::Unknown && !may,
                    Code::RunEnded => before == Handoff::Unknown && may && state.run.ended(),
                    Code::LeaseHeld => before == Handoff::Unknown && may && sharing,
                    Code::HandoffStale => {
                        matches!(before, Handoff::Prepared { fence } if fence != Protocol::newest(state))
                    }
                    Code::HandoffOver => matches!(before, Handoff::Accepted { .. } | Handoff::Withdrawn),
                    _ => false,
                };
                if !fits {
                    state.breaks(VALID);
                }
            }
            _ => state.breaks(HANDED),
        }
    }

    fn accept(&self, state: &mut State, who: u8) -> Option<()> {
        let (resource, principal) = (self.resources[0].clone(), Principal::agent("next"));
        let (holder, length) = (holder(who), TICK);
        let accept = AcceptHandoff { resource, receipt: RECEIPT, holder, length, principal };
        let (reply, at) = self.submit(state, Command::AcceptHandoff(accept));
        // The lease that followed on the one it was prepared of.
        let followed = |fence: u64| {
            state.grants[0].iter().any(|it| it.live(at) && it.holder == who && it.fence == fence + 1)
        };
        match (reply, state.handoff) {
            (Reply::Lease(now), Handoff::Prepared { fence }) => {
                if fence != Protocol::newest(state) || self.run_id().is_some() && state.run.ended() {
                    state.breaks(HANDED);
                }
                if state.grants[0].len() == self.bounds.leases {
                    return None;
                }
                // Whoever had it has it no more.
                self.handed_out(state, 0, who, &now, at, true);
                state.handoff = Handoff::Accepted { heir: who, fence };
            }
            (Reply::Lease(now), Handoff::Accepted { heir, fence }) => {
                // The lost answer is given again, and nothing more.
                if heir != who || now.lease.fence != fence + 1 || !followed(fence) {
                    state.breaks(HANDED);
                }
                let again = state.grants[0].iter_mut().filter(|grant| grant.fence == now.lease.fence);
                again.for_each(|grant| grant.known = true);
            }
            (Reply::Refused(refusal), before) => {
                let newest = Protocol::newest(state);
                let fits = match (refusal.code, before) {
                    (Code::HandoffUnknown, Handoff::Unknown) => true,
                    (Code::HandoffStale, Handoff::Prepared { fence }) => fence != newest,
                    (Code::RunEnded, Handoff::Prepared { fence }) => fence == newest && state.run.ended(),
                    (Code::HandoffOver, Handoff::Accepted { heir, fence }) => heir != who || !followed(fence),
                    (Code::HandoffOver, Handoff::Withdrawn) => true,
                    _ => false,
                };
                if !fits {
                    state.breaks(HANDED);
                }
            }
            _ => state.breaks(HANDED),
        }
        Some(())
    }

    fn withdraw(&self, state: &mut State) {
        let resource = self.resources[0].clone();
        let withdraw = WithdrawHandoff { resource, receipt: RECEIPT, by: operator() };
        let (reply, _) = self.submit(state, Command::WithdrawHandoff(withdraw));
        match (reply, state.handoff) {
            (Reply::Done { changed: true }, Handoff::Prepared { .. }) => state.handoff = Handoff::Withdrawn,
            (Reply::Done { changed: false }, Handoff::Withdrawn) => {}
            (Reply::Refused(refusal), Handoff::Unknown) if refusal.code == Code::HandoffUnknown => {}
            (Reply::Refused(refusal), Handoff::Accepted { .. }) if refusal.code == Code::HandoffOver => {}
            _ => state.breaks(HANDED),
        }
    }

    /// Whether the handoff stands where everybody was told.
    pub(crate) fn handed(&self, state: &State) -> Option<&'static str> {
        let row = state.ledger.get(&self.pinned.tenant.handoff(RECEIPT)).map(|stored| &stored.row);
        let stands = match row {
            None => Handoff::Unknown,
            Some(Row::Handoff(row)) => match (row.state, row.holder) {
                (HandoffState::Prepared, None) => Handoff::Prepared { fence: row.fence },
                (HandoffState::Withdrawn, None) => Handoff::Withdrawn,
                (HandoffState::Accepted, Some(id)) => {
                    let who = (0..self.bounds.holders).find(|n| self.pinned.tenant.holder(holder(*n)) == id);
                    let Some(heir) = who else { return Some(HANDED) };
                    Handoff::Accepted { heir, fence: row.fence }
                }
                _ => return Some(HANDED),
            },
            Some(_) => return Some(HANDED),
        };
        (stands != state.handoff).then_some(HANDED)
    }
}

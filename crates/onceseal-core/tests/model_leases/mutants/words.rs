//! When a lease ends, and what its holder may say.

use onceseal_core::command::{Command, Stamped};
use onceseal_core::decide::{Verdict, decide};
use onceseal_core::id::HolderId;
use onceseal_core::journal::{Body, Kind};
use onceseal_core::lease::{AcquireLease, Holder};
use onceseal_core::reply::Reply;
use onceseal_core::time::{Span, Timestamp};
use onceseal_core::view::{Halt, Pinned, View};

use super::{Mutant, PATHS, about, ends, folded, is_taking, mutant, see, under, under_mut, without};
use crate::broken::{Broken, SOUND};
use crate::executor::Rules;
use crate::ghost::{ALONE, FENCED, FREE, KEPT, OUTCOME, OVER, TOKEN, VALID};
use crate::ledger::TICK;
use crate::protocol::{Bounds, RUN, holder};

/// Whoever names the fence and the holder is believed.
struct Trusting;

impl Rules for Trusting {
    fn decide(
        &self,
        pinned: &Pinned,
        view: &View,
        command: &Stamped,
        now: Timestamp,
    ) -> Result<Verdict, Halt> {
        let mut command = command.clone();
        let known = |id| (0..9).map(holder).find(|key| pinned.tenant.holder(*key) == id);
        let lease = under(&command.command).cloned();
        if let Some((lease, holder)) = lease.and_then(|lease| Some((lease.clone(), known(lease.holder)?))) {
            // The holder is told its token when it asks again.
            let ask = AcquireLease {
                resource: lease.resource.clone(),
                holder,
                length: Span::minutes(1),
                shared: false,
                preempt: None,
            };
            let ask = Stamped { command: Command::AcquireLease(Box::new(ask)), ..command.clone() };
            if let Reply::Lease(own) = decide(pinned, view, &ask, now)?.reply
                && own.lease.fence == lease.fence
                && let Some(named) = under_mut(&mut command.command)
            {
                *named = own.lease;
            }
        }
        decide(pinned, view, &command, now)
    }
}

pub(crate) fn all() -> Vec<Mutant> {
    vec![
        Mutant { name: "the token is not looked at", bounds: RUN, rules: &Trusting, promise: TOKEN },
        mutant(
            "the last moment of a lease is not its own",
            RUN,
            VALID,
            Broken {
                view: |pinned, view, command, _| {
                    if !is_taking(&command.command) {
                        ends(view, pinned, &command.command, |until| until - Span::micros(1));
                    }
                },
                ..SOUND
            },
        ),
        mutant(
            "what ends at this moment is taken by another",
            RUN,
            ALONE,
            Broken {
                view: |pinned, view, command, _| {
                    if is_taking(&command.command) {
                        ends(view, pinned, &command.command, |until| until - Span::micros(1));
                    }
                },
                ..SOUND
            },
        ),
        mutant(
            "a lease lasts a while longer than it was given",
            RUN,
            FENCED,
            Broken {
                view: |pinned, view, command, _| ends(view, pinned, &command.command, |until| until + TICK),
                ..SOUND
            },
        ),
        mutant(
            "what is over is held for ever",
            RUN,
            FREE,
            Broken {
                view: |pinned, view, command, _| {
                    if is_taking(&command.command) {
                        ends(view, pinned, &command.command, |_| Timestamp::MAX);
                    }
                },
                ..SOUND
            },
        ),
        mutant(
            "a lapsed lease is committed",
            RUN,
            FENCED,
            Broken {
                view: |pinned, view, command, _| {
                    if matches!(command.command, Command::CommitLease(_)) {
                        ends(view, pinned, &command.command, |_| Timestamp::MAX);
                    }
                },
                ..SOUND
            },
        ),
        mutant(
            "a lapsed lease is renewed",
            PATHS,
            FENCED,
            Broken {
                view: |pinned, view, command, _| {
                    if matches!(command.command, Command::RenewLease(_)) {
                        ends(view, pinned, &command.command, |_| Timestamp::MAX);
                    }
                },
                ..SOUND
            },
        ),
        mutant(
            "a sweep does not look again",
            RUN,
            KEPT,
            Broken {
                view: |pinned, view, command, _| {
                    if matches!(command.command, Command::Lapse(_)) {
                        ends(view, pinned, &command.command, |_| Timestamp::MIN);
                    }
                },
                ..SOUND
            },
        ),
        mutant(
            "a sweep records nothing, and the clock goes back",
            Bounds { back: 1, ..RUN },
            OVER,
            Broken {
                verdict: |_, command, verdict| {
                    if matches!(command.command, Command::Lapse(_)) {
                        without(verdict, |_, kind| kind == Kind::LeaseLapsed);
                    }
                },
                ..SOUND
            },
        ),
        mutant(
            "a renewal is not kept",
            RUN,
            KEPT,
            Broken { verdict: |_, _, verdict| verdict.renewals.clear(), ..SOUND },
        ),
        mutant(
            "another outcome takes the place of the first",
            RUN,
            OUTCOME,
            Broken {
                view: |pinned, view, command, now| {
                    if let Command::CommitLease(commit) = &command.command {
                        let (fence, holder) = (commit.lease.fence, commit.lease.holder);
                        see(view, about(pinned, &command.command), |row| {
                            if row.outcomes.iter().any(|kept| kept.fence == fence) {
                                row.holders.push(Holder { fence, holder, shared: true, until: now });
                            }
                        });
                    }
                },
                row: |row, event| match &event.body {
                    Body::LeaseCommitted(data, _) => folded(row, event, Kind::LeaseCommitted, |row| {
                        row.outcomes.retain(|kept| kept.fence != data.fence);
                        if row.lease(data.fence).is_none() {
                            let (holder, until) = (HolderId([0; 16]), Timestamp::MIN);
                            row.holders.push(Holder { fence: data.fence, holder, shared: true, until });
                        }
                    }),
                    _ => row,
                },
                ..SOUND
            },
        ),
        mutant(
            "the next lease wipes the outcome of the last",
            RUN,
            OUTCOME,
            Broken {
                row: |row, event| folded(row, event, Kind::LeaseTaken, |row| row.outcomes.clear()),
                ..SOUND
            },
        ),
    ]
}

//! Rules of runs broken on purpose.

use std::sync::Arc;

use onceseal_core::command::{Command, Stamped};
use onceseal_core::decide::Verdict;
use onceseal_core::handoff::HandoffState;
use onceseal_core::journal::{Body, Kind, Row};
use onceseal_core::lease::{Lease, LeaseRow, Resource};
use onceseal_core::run::{Subject, Transition, living_key, lookup};
use onceseal_core::stream::StreamId;
use onceseal_core::time::Span;
use onceseal_core::view::{Loaded, Pinned, Range, View};

use crate::broken::{Broken, SOUND, seen};

pub(crate) fn all() -> Vec<(&'static str, Broken)> {
    [of_starts(), of_requests(), of_moves(), of_deliveries(), of_leases(), of_handoffs()]
        .into_iter()
        .flatten()
        .collect()
}

fn see(view: &mut View, stream: StreamId, change: impl FnOnce(&mut Row)) {
    let Some(mut stored) = seen(view, &stream).cloned() else { return };
    change(&mut stored.row);
    view.load(stream, Loaded::Row(Arc::new(stored)));
}

/// Changes how the lease is seen that a command is about.
fn see_lease(pinned: &Pinned, view: &mut View, command: &Stamped, change: impl FnOnce(&mut LeaseRow)) {
    let lease = |lease: &Lease| pinned.tenant.lease(&lease.resource.to_string());
    let stream = match &command.command {
        Command::AcquireLease(acquire) => pinned.tenant.lease(&acquire.resource.to_string()),
        Command::CommitLease(commit) => lease(&commit.lease),
        Command::Lapse(stream) => *stream,
        _ => return,
    };
    see(view, stream, |row| {
        if let Row::Lease(row) = row {
            change(row);
        }
    });
}

/// Changes everything that is recorded.
fn bodies(verdict: &mut Verdict, change: impl Fn(&mut Body)) {
    verdict.drafts.iter_mut().for_each(|draft| change(&mut draft.event.body));
}

fn without(verdict: &mut Verdict, kind: Kind) {
    verdict.drafts.retain(|draft| draft.event.body.kind() != kind);
}

fn under_mut(command: &mut Command) -> Option<(&mut Option<Lease>, Resource)> {
    match command {
        Command::Transition(step) => Some((&mut step.under, Resource::Run(step.run))),
        Command::BindDeliveries(bind) => Some((&mut bind.under, Resource::Run(bind.run))),
        _ => None,
    }
}

fn of_starts() -> Vec<(&'static str, Broken)> {
    vec![
        (
            "a run that lives is not looked for",
            Broken {
                view: |pinned, view, command, _| {
                    let Command::StartRun(start) = &command.command else { return };
                    let Subject::Change(change) = &start.subject else { return };
                    let (key, kind) = (format!("change:{change}"), start.definition.kind());
                    let living = living_key(lookup(&pinned.tenant, start.root, kind, &key));
                    view.load_range(Range { limit: 1, ..Range::equal(living) }, Vec::new());
                },
                ..SOUND
            },
        ),
        (
            "a name is taken that another run has",
            Broken {
                view: |pinned, view, command, _| {
                    let Command::BindChange(bind) = &command.command else { return };
                    let Some(Row::Run(row)) = seen(view, &StreamId::run(bind.run)).map(|stored| &stored.row)
                    else {
                        return;
                    };
                    let key = format!("change:{}", bind.change);
                    let living = living_key(lookup(&pinned.tenant, row.root, &row.kind, &key));
                    view.load_range(Range { limit: 1, ..Range::equal(living) }, Vec::new());
                },
                ..SOUND
            },
        ),
        (
            "the one that ended before is not named",
            Broken {
                verdict: |_, _, verdict| {
                    bodies(verdict, |body| {
                        if let Body::RunStarted(data, _) = body {
                            data.previous = None;
                        }
                    });
                },
                ..SOUND
            },
        ),
        (
            "a run never ends",
            Broken {
                verdict: |_, _, verdict| {
                    bodies(verdict, |body| {
                        if let Body::RunMoved(data, _) = body {
                            data.terminal = false;
                        }
                    });
                },
                ..SOUND
            },
        ),
    ]
}

fn of_requests() -> Vec<(&'static str, Broken)> {
    vec![
        (
            "what was answered is not kept",
            Broken { verdict: |_, _, verdict| without(verdict, Kind::RequestAnswered), ..SOUND },
        ),
        (
            "a request is anybody's",
            Broken {
                command: |_, command| {
                    let principal = match &mut command.command {
                        Command::StartRun(start) => &mut start.principal,
                        Command::BindChange(bind) => &mut bind.principal,
                        Command::Transition(step) => &mut step.principal,
                        Command::BindDeliveries(bind) => &mut bind.principal,
                        _ => return,
                    };
                    principal.agent = "bot".to_owned();
                },
                ..SOUND
            },
        ),
        (
            "why it moves does not matter to a request",
            Broken {
                command: |_, command| {
                    if let Command::Transition(step) = &mut command.command {
                        step.code = step.code.take().filter(String::is_empty);
                    }
                },
                ..SOUND
            },
        ),
    ]
}

fn of_moves() -> Vec<(&'static str, Broken)> {
    vec![
        (
            "why it stands there is never forgotten",
            Broken {
                verdict: |view, command, verdict| {
                    let Command::Transition(step) = &command.command else { return };
                    let Some(Row::Run(row)) = seen(view, &StreamId::run(step.run)).map(|stored| &stored.row)
                    else {
                        return;
                    };
                    bodies(verdict, |body| {
                        if let Body::RunMoved(data, _) = body {
                            data.code = data.code.take().or(row.code.clone());
                        }
                    });
                },
                ..SOUND
            },
        ),
        (
            "whatever is interrupted stands where it did",
            Broken { verdict: |_, _, verdict| without(verdict, Kind::RunInterrupted), ..SOUND },
        ),
        (
            "whatever is interrupted is paused",
            Broken {
                verdict: |_, _, verdict| {
                    bodies(verdict, |body| {
                        if let Body::RunInterrupted(data, _) = body {
                            data.to = "paused".to_owned();
                        }
                    });
                },
                ..SOUND
            },
        ),
        (
            "what ended may go on",
            Broken {
                view: |_, view, command, _| {
                    if let Command::Transition(step) = &command.command {
                        see(view, StreamId::run(step.run), |row| {
                            if let Row::Run(row) = row {
                                row.terminal = false;
                            }
                        });
                    }
                },
                ..SOUND
            },
        ),
    ]
}

fn of_deliveries() -> Vec<(&'static str, Broken)> {
    vec![
        (
            "whatever is bound there is the same",
            Broken {
                view: |pinned, view, command, _| {
                    let Command::BindDeliveries(bind) = &command.command else { return };
                    for one in &bind.deliveries {
                        see(view, pinned.tenant.delivery(bind.run, &one.gate, one.revision), |row| {
                            if let Row::Delivery(row) = row {
                                (row.private.receipt, row.private.record) = (Some(one.receipt), one.record);
                            }
                        });
                    }
                },
                ..SOUND
            },
        ),
        (
            "nobody looks at how it came about",
            Broken {
                command: |_, command| {
                    if let Command::BindDeliveries(bind) = &mut command.command {
                        bind.deliveries.iter_mut().for_each(|one| one.record = None);
                    }
                },
                ..SOUND
            },
        ),
        (
            "of several the first is bound",
            Broken {
                command: |_, command| {
                    if let Command::BindDeliveries(bind) = &mut command.command {
                        bind.deliveries.truncate(1);
                    }
                },
                ..SOUND
            },
        ),
        (
            "revisions go up and down",
            Broken {
                view: |_, view, command, _| {
                    if let Command::BindDeliveries(bind) = &command.command {
                        see(view, StreamId::run(bind.run), |row| {
                            if let Row::Run(row) = row {
                                row.gates.clear();
                            }
                        });
                    }
                },
                ..SOUND
            },
        ),
    ]
}

fn of_leases() -> Vec<(&'static str, Broken)> {
    vec![
        (
            "no lease is looked at",
            Broken {
                command: |_, command| {
                    if let Some((under, _)) = under_mut(&mut command.command) {
                        *under = None;
                    }
                },
                ..SOUND
            },
        ),
        (
            "the lease on another run will do",
            Broken {
                command: |_, command| {
                    if let Some((under, own)) = under_mut(&mut command.command)
                        && under.as_ref().is_some_and(|under| under.resource != own)
                    {
                        *under = None;
                    }
                },
                ..SOUND
            },
        ),
        (
            "the last second of a lease is not its holder's",
            Broken {
                now: |_, command, now| match &command.command {
                    Command::Transition(_) | Command::CommitLease(_) | Command::InterruptLease(_) => {
                        now + Span::micros(1)
                    }
                    _ => now,
                },
                ..SOUND
            },
        ),
        (
            "everybody shares",
            Broken {
                command: |_, command| {
                    if let Command::AcquireLease(acquire) = &mut command.command {
                        acquire.shared = true;
                    }
                },
                ..SOUND
            },
        ),
        (
            "anybody takes a run away",
            Broken {
                command: |_, command| {
                    if let Command::AcquireLease(acquire) = &mut command.command
                        && let Some(preempt) = &mut acquire.preempt
                    {
                        preempt.person.name = "owner".to_owned();
                    }
                },
                ..SOUND
            },
        ),
        (
            "a sweep interrupts a run that somebody holds",
            Broken {
                view: |pinned, view, command, now| {
                    if matches!(command.command, Command::Lapse(_)) {
                        see_lease(pinned, view, command, |row| row.holders.retain(|held| held.until < now));
                    }
                },
                ..SOUND
            },
        ),
        (
            "whoever held a run that has ended goes on",
            Broken {
                verdict: |_, command, verdict| {
                    if matches!(command.command, Command::Transition(_)) {
                        without(verdict, Kind::LeaseInterrupted);
                    }
                },
                ..SOUND
            },
        ),
        (
            "whoever moves a run on does not see that its holder is gone",
            Broken {
                view: |pinned, view, command, now| {
                    let Command::Transition(Transition { run, .. }) = &command.command else { return };
                    let lease = pinned.tenant.lease(&Resource::Run(*run).to_string());
                    see(view, lease, |row| {
                        if let Row::Lease(row) = row {
                            row.holders.iter_mut().for_each(|held| held.until = held.until.max(now));
                        }
                    });
                },
                ..SOUND
            },
        ),
        (
            "a renewal makes nothing shorter",
            Broken {
                verdict: |view, _, verdict| {
                    verdict.renewals.retain(|renewal| match seen(view, &renewal.stream).map(|it| &it.row) {
                        Some(Row::Lease(row)) => {
                            row.lease(renewal.fence).is_none_or(|held| held.until < renewal.lease_until)
                        }
                        _ => true,
                    });
                },
                ..SOUND
            },
        ),
        (
            "outcomes are forgotten",
            Broken {
                view: |pinned, view, command, _| {
                    if matches!(command.command, Command::CommitLease(_)) {
                        see_lease(pinned, view, command, |row| row.outcomes.clear());
                    }
                },
                ..SOUND
            },
        ),
    ]
}

fn of_handoffs() -> Vec<(&'static str, Broken)> {
    vec![
        (
            "a handoff is of the run as it is",
            Broken {
                view: |pinned, view, command, _| {
                    let Command::AcceptHandoff(accept) = &command.command else { return };
                    let lease = pinned.tenant.lease(&accept.resource.to_string());
                    let Some(Row::Lease(row)) = seen(view, &lease).map(|stored| &stored.row) else { return };
                    let fence = row.fence;
                    see(view, pinned.tenant.handoff(accept.receipt), |row| {
                        if let Row::Handoff(row) = row {
                            row.fence = fence;
                        }
                    });
                },
                ..SOUND
            },
        ),
        (
            "what was accepted may be withdrawn",
            Broken {
                view: |pinned, view, command, _| {
                    let Command::WithdrawHandoff(withdraw) = &command.command else { return };
                    see(view, pinned.tenant.handoff(withdraw.receipt), |row| {
                        if let Row::Handoff(row) = row {
                            row.state = HandoffState::Prepared;
                        }
                    });
                },
                ..SOUND
            },
        ),
        (
            "what nobody can accept stays prepared",
            Broken { verdict: |_, _, verdict| without(verdict, Kind::HandoffWithdrawn), ..SOUND },
        ),
    ]
}

//! Rules of runs and tasks that are broken on purpose.

use std::sync::Arc;

use onceseal_core::command::Command;
use onceseal_core::decide::Verdict;
use onceseal_core::id::RunId;
use onceseal_core::journal::{Kind, Row};
use onceseal_core::stream::StreamId;
use onceseal_core::task::{TaskRow, TaskState, TaskTo};
use onceseal_core::time::{Span, Timestamp};
use onceseal_core::view::{Loaded, Pinned, View};

use crate::broken::{Broken, SOUND, seen};

fn see(view: &mut View, stream: StreamId, change: impl FnOnce(&mut Row)) {
    let Some(mut stored) = seen(view, &stream).cloned() else { return };
    change(&mut stored.row);
    view.load(stream, Loaded::Row(Arc::new(stored)));
}

/// Changes how every task of a run is seen.
fn see_tasks(pinned: &Pinned, view: &mut View, run: RunId, change: impl Fn(usize, &mut TaskRow)) {
    for at in 0..9 {
        see(view, pinned.tenant.task(run, &format!("t{at}")), |row| {
            if let Row::Task(row) = row {
                change(at, row);
            }
        });
    }
}

fn without(verdict: &mut Verdict, kinds: &[Kind]) {
    verdict.drafts.retain(|draft| !kinds.contains(&draft.event.body.kind()));
}

pub(crate) fn all() -> Vec<(&'static str, Broken)> {
    [of_leases(), of_tasks(), of_requests()].into_iter().flatten().collect()
}

fn of_leases() -> Vec<(&'static str, Broken)> {
    vec![
        (
            "a lease lasts as long as nobody has swept it",
            Broken {
                now: |_, command, now| match &command.command {
                    Command::MoveTask(_) | Command::Transition(_) => {
                        Timestamp::from_micros(now.micros() - 600_000_000).expect("a moment")
                    }
                    _ => now,
                },
                ..SOUND
            },
        ),
        (
            "a sweep ends what lives",
            Broken {
                now: |_, command, now| match &command.command {
                    Command::Lapse(_) => now + Span::minutes(2),
                    _ => now,
                },
                ..SOUND
            },
        ),
        (
            "no lease is looked at where a run goes on",
            Broken {
                command: |_, command| {
                    if let Command::Transition(step) = &mut command.command {
                        step.under = None;
                    }
                },
                ..SOUND
            },
        ),
        (
            "nobody is missed who went on with a run",
            Broken { verdict: |_, _, verdict| without(verdict, &[Kind::RunInterrupted]), ..SOUND },
        ),
        (
            "nobody is missed who worked on a task",
            Broken {
                verdict: |_, command, verdict| {
                    if matches!(command.command, Command::Lapse(_)) {
                        without(verdict, &[Kind::TaskMoved, Kind::TaskQueued]);
                    }
                },
                ..SOUND
            },
        ),
        (
            "whoever works on what is planned anew goes on",
            Broken {
                verdict: |_, command, verdict| {
                    if matches!(command.command, Command::PlanTasks(_)) {
                        without(verdict, &[Kind::LeaseInterrupted]);
                    }
                },
                ..SOUND
            },
        ),
    ]
}

fn of_tasks() -> Vec<(&'static str, Broken)> {
    vec![
        (
            "one of those it waits for is enough",
            Broken {
                view: |pinned, view, command, _| {
                    let Command::MoveTask(go) = &command.command else { return };
                    see_tasks(pinned, view, go.run, |at, row| {
                        if go.task != format!("t{at}") && row.state != TaskState::Pending {
                            row.state = TaskState::Verified;
                        }
                    });
                },
                ..SOUND
            },
        ),
        (
            "a plan has room for all",
            Broken {
                view: |pinned, view, command, _| {
                    let Command::TakeTask(take) = &command.command else { return };
                    see(view, pinned.tenant.plan(take.run), |row| {
                        if let Row::Plan(row) = row {
                            row.capacity = 256;
                        }
                    });
                },
                ..SOUND
            },
        ),
        (
            "no task is in another's way",
            Broken {
                view: |pinned, view, command, _| {
                    let Command::TakeTask(take) = &command.command else { return };
                    see_tasks(pinned, view, take.run, |_, row| row.claims.clear());
                },
                ..SOUND
            },
        ),
        (
            "a run that is paused gives tasks out",
            Broken {
                view: |_, view, command, _| {
                    let Command::TakeTask(take) = &command.command else { return };
                    see(view, StreamId::run(take.run), |row| {
                        if let Row::Run(row) = row {
                            row.state = "running".to_owned();
                        }
                    });
                },
                ..SOUND
            },
        ),
        (
            "a claim is a fact",
            Broken {
                command: |_, command| {
                    if let Command::MoveTask(go) = &mut command.command
                        && let TaskTo::Passed(fact) = &mut go.to
                    {
                        fact.produced_by = "ci".to_owned();
                    }
                },
                ..SOUND
            },
        ),
        (
            "attempts are without end",
            Broken {
                view: |pinned, view, command, _| {
                    let run = match &command.command {
                        Command::TakeTask(take) => take.run,
                        Command::QueueTask(queue) => queue.run,
                        _ => return,
                    };
                    see_tasks(pinned, view, run, |_, row| row.spent.clear());
                },
                ..SOUND
            },
        ),
        (
            "what was verified waits for a new plan",
            Broken {
                verdict: |_, command, verdict| {
                    if matches!(command.command, Command::MoveTask(_)) {
                        without(verdict, &[Kind::TaskQueued]);
                    }
                },
                ..SOUND
            },
        ),
        (
            "what rests on what changed goes on",
            Broken {
                view: |pinned, view, command, _| {
                    let Command::PlanTasks(set) = &command.command else { return };
                    see_tasks(pinned, view, set.run, |at, row| {
                        if let Some(spec) = set.plan.tasks().get(at) {
                            row.spec = pinned.tenant.lookup(&spec.digest().to_string());
                        }
                    });
                },
                ..SOUND
            },
        ),
    ]
}

fn of_requests() -> Vec<(&'static str, Broken)> {
    vec![(
        "what was answered is not kept",
        Broken { verdict: |_, _, verdict| without(verdict, &[Kind::RequestAnswered]), ..SOUND },
    )]
}

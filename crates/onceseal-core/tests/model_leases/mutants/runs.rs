//! What becomes of a run under a lease, and when it ends.

use std::sync::Arc;

use onceseal_core::command::Command;
use onceseal_core::journal::{Body, Event, Kind, Row};
use onceseal_core::stream::StreamId;
use onceseal_core::view::{Loaded, View};

use super::{Mutant, about, is_taking, mutant, see, without};
use crate::broken::{Broken, SOUND, seen};
use crate::ghost::{FENCED, FINAL, RUN as RUN_MOVES};
use crate::protocol::RUN;

pub(crate) fn all() -> Vec<Mutant> {
    vec![
        mutant(
            "no lease is needed for a move",
            RUN,
            FENCED,
            Broken {
                command: |_, command| {
                    if let Command::Transition(step) = &mut command.command {
                        step.under = None;
                    }
                },
                ..SOUND
            },
        ),
        mutant(
            "the lapse interrupts a run that somebody holds",
            RUN,
            RUN_MOVES,
            Broken {
                view: |pinned, view, command, now| {
                    if matches!(command.command, Command::Lapse(_)) {
                        see(view, about(pinned, &command.command), |row| {
                            row.holders.retain(|holder| holder.until < now);
                        });
                    }
                },
                ..SOUND
            },
        ),
        mutant(
            "a run goes on although nobody works on it",
            RUN,
            RUN_MOVES,
            Broken {
                verdict: |_, _, verdict| without(verdict, |_, kind| kind == Kind::RunInterrupted),
                ..SOUND
            },
        ),
        mutant(
            "a takeover does not interrupt the run",
            RUN,
            RUN_MOVES,
            Broken {
                verdict: |_, command, verdict| {
                    if is_taking(&command.command) {
                        without(verdict, |_, kind| kind == Kind::RunInterrupted);
                    }
                },
                ..SOUND
            },
        ),
        mutant(
            "a run that ended goes on",
            RUN,
            FINAL,
            Broken {
                view: |_, view, command, _| {
                    if let Command::Transition(step) = &command.command {
                        see_run(view, StreamId::run(step.run));
                    }
                },
                row: goes_on,
                ..SOUND
            },
        ),
        mutant(
            "the lapse interrupts a run that ended",
            RUN,
            FINAL,
            Broken {
                view: |_, view, command, _| {
                    if let Command::Lapse(stream) = &command.command
                        && let Some(Row::Lease(row)) = seen(view, stream).map(|stored| &stored.row)
                        && let Some(run) = row.interrupts
                    {
                        see_run(view, run);
                    }
                },
                row: goes_on,
                ..SOUND
            },
        ),
    ]
}

/// Shows a run that ended as one that lives.
fn see_run(view: &mut View, stream: StreamId) {
    let Some(mut stored) = seen(view, &stream).cloned() else { return };
    if let Row::Run(row) = &mut stored.row
        && row.terminal
    {
        (row.terminal, row.state) = (false, "paused".to_owned());
    }
    view.load(stream, Loaded::Row(Arc::new(stored)));
}

/// Folds a move on whatever it began at.
fn goes_on(row: Option<Row>, event: &Event) -> Option<Row> {
    match (row, &event.body) {
        (Some(Row::Run(mut row)), Body::RunMoved(data, _)) => {
            (row.terminal, row.state) = (false, data.from.clone());
            Some(Row::Run(row))
        }
        (Some(Row::Run(mut row)), Body::RunInterrupted(data, _)) => {
            (row.terminal, row.state) = (false, data.from.clone());
            Some(Row::Run(row))
        }
        (row, _) => row,
    }
}

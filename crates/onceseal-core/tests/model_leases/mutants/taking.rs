//! Taking a resource, from nobody and from others.

use onceseal_core::command::Command;
use onceseal_core::journal::{Body, Kind};
use onceseal_core::lease::LeaseRow;
use onceseal_core::reply::Reply;
use onceseal_core::stream::StreamId;

use super::{Mutant, PATHS, about, folded, is_taking, mutant, path, see, taken, without};
use crate::broken::{Broken, SOUND};
use crate::ghost::{ALONE, FENCES, FOLDS, OVER, OWN};
use crate::ledger::TICK;
use crate::protocol::{Bounds, RUN};

pub(crate) fn all() -> Vec<Mutant> {
    vec![
        mutant(
            "a takeover keeps the fence",
            RUN,
            FENCES,
            Broken {
                view: |pinned, view, command, _| {
                    if is_taking(&command.command) {
                        see(view, about(pinned, &command.command), |row| row.fence -= 1);
                    }
                },
                row: |row, event| folded(row, event, Kind::LeaseTaken, |row| row.fence -= 1),
                ..SOUND
            },
        ),
        mutant(
            "one that shares stands beside one that does not",
            RUN,
            ALONE,
            Broken {
                view: |pinned, view, command, _| {
                    if is_taking(&command.command) {
                        see(view, about(pinned, &command.command), share);
                    }
                },
                row: |row, event| folded(row, event, Kind::LeaseTaken, share),
                ..SOUND
            },
        ),
        mutant(
            "what is held above is not looked at",
            PATHS,
            ALONE,
            Broken {
                view: |pinned, view, command, _| {
                    if about(pinned, &command.command) == Some(path(pinned, "a/b")) {
                        see(view, Some(path(pinned, "a")), |row| row.holders.clear());
                    }
                },
                ..SOUND
            },
        ),
        mutant(
            "what is held below is not looked at",
            PATHS,
            ALONE,
            Broken {
                view: |pinned, view, command, _| {
                    if about(pinned, &command.command) == Some(path(pinned, "a")) {
                        see(view, Some(path(pinned, "a/b")), |row| row.holders.clear());
                    }
                },
                ..SOUND
            },
        ),
        mutant(
            "a path is not found by what it is a part of",
            PATHS,
            ALONE,
            Broken {
                verdict: |_, _, verdict| {
                    for draft in &mut verdict.drafts {
                        if let Body::LeaseTaken(data, _) = &mut draft.event.body {
                            data.above.clear();
                        }
                    }
                },
                ..SOUND
            },
        ),
        mutant(
            "an operator leaves the old holder of a part live",
            PATHS,
            ALONE,
            Broken {
                verdict: |_, _, verdict| {
                    let own = taken(verdict);
                    without(verdict, |stream, kind| Some(*stream) != own && kind == Kind::LeasePreempted);
                },
                ..SOUND
            },
        ),
        mutant(
            "an operator leaves the old holder live",
            RUN,
            OVER,
            Broken {
                verdict: |_, _, verdict| without(verdict, |_, kind| kind == Kind::LeasePreempted),
                row: |row, event| folded(row, event, Kind::LeaseTaken, share),
                ..SOUND
            },
        ),
        mutant(
            "what ended above and below is passed over, and the clock goes back",
            Bounds { back: 1, ..PATHS },
            ALONE,
            Broken {
                verdict: |_, _, verdict| {
                    let own = taken(verdict);
                    let is_other = |stream: &StreamId| own.is_some() && Some(*stream) != own;
                    without(verdict, |stream, kind| is_other(stream) && kind == Kind::LeaseLapsed);
                },
                ..SOUND
            },
        ),
        mutant(
            "a takeover does not record that the last one is over",
            RUN,
            FOLDS,
            Broken {
                verdict: |_, command, verdict| {
                    if is_taking(&command.command) {
                        without(verdict, |_, kind| kind == Kind::LeaseLapsed);
                    }
                },
                ..SOUND
            },
        ),
        mutant(
            "whoever asks again is told a later end",
            RUN,
            OWN,
            Broken {
                verdict: |_, command, verdict| {
                    if let (Command::AcquireLease(_), Reply::Lease(now), []) =
                        (&command.command, &mut verdict.reply, verdict.drafts.as_slice())
                    {
                        now.until = now.until + TICK;
                    }
                },
                ..SOUND
            },
        ),
    ]
}

fn share(row: &mut LeaseRow) {
    row.holders.iter_mut().for_each(|holder| holder.shared = true);
}

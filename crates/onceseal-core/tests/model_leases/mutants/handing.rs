//! Handing over what one does not have, twice, or after somebody took it.

use std::sync::Arc;

use onceseal_core::command::Command;
use onceseal_core::handoff::{Giver, HandoffRow, HandoffState};
use onceseal_core::hash::Hash;
use onceseal_core::journal::{Kind, Row};
use onceseal_core::view::{Loaded, Pinned, View};

use super::{Mutant, mutant, without};
use crate::broken::{Broken, SOUND, seen};
use crate::ghost::{FENCED, FOLDS, HANDED};
use crate::protocol::{Bounds, RUN};

const HANDS: Bounds = Bounds { hands: true, ..RUN };

/// Changes how a handoff is seen.
fn see_handoff(view: &mut View, pinned: &Pinned, receipt: Hash, change: impl FnOnce(&mut HandoffRow)) {
    let stream = pinned.tenant.handoff(receipt);
    let Some(mut stored) = seen(view, &stream).cloned() else { return };
    if let Row::Handoff(row) = &mut stored.row {
        change(row);
    }
    view.load(stream, Loaded::Row(Arc::new(stored)));
}

pub(crate) fn all() -> Vec<Mutant> {
    vec![
        mutant(
            "a handoff is of the resource as it is when it is accepted",
            HANDS,
            HANDED,
            Broken {
                view: |pinned, view, command, _| {
                    let Command::AcceptHandoff(accept) = &command.command else { return };
                    let lease = pinned.tenant.lease(&accept.resource.to_string());
                    let fence = match seen(view, &lease).map(|stored| &stored.row) {
                        Some(Row::Lease(row)) => row.fence,
                        _ => return,
                    };
                    see_handoff(view, pinned, accept.receipt, |row| row.fence = fence);
                },
                ..SOUND
            },
        ),
        mutant(
            "whoever handed it over goes on",
            HANDS,
            FOLDS,
            Broken {
                verdict: |_, command, verdict| {
                    if matches!(command.command, Command::AcceptHandoff(_)) {
                        without(verdict, |_, kind| kind == Kind::LeaseInterrupted);
                    }
                },
                ..SOUND
            },
        ),
        mutant(
            "what was withdrawn may be accepted",
            HANDS,
            HANDED,
            Broken {
                view: |pinned, view, command, _| {
                    let Command::AcceptHandoff(accept) = &command.command else { return };
                    see_handoff(view, pinned, accept.receipt, |row| {
                        if row.state == HandoffState::Withdrawn {
                            row.state = HandoffState::Prepared;
                        }
                    });
                },
                ..SOUND
            },
        ),
        mutant(
            "whoever had the resource once hands it over",
            HANDS,
            FENCED,
            Broken {
                command: |_, command| {
                    if let Command::PrepareHandoff(prepare) = &mut command.command
                        && matches!(prepare.by, Giver::Holder(_))
                    {
                        prepare.by = super::operator();
                    }
                },
                ..SOUND
            },
        ),
    ]
}

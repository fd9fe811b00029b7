//! Rules of attempts, leases and outcomes.

use onceseal_core::command::Command;
use onceseal_core::effect::{EffectRow, EffectState, Outcome};
use onceseal_core::journal::{Body, Event, Row};
use onceseal_core::reply::Reply;
use onceseal_core::stream::StreamKind;
use onceseal_core::time::{Span, Timestamp};

use crate::broken::{Broken, SOUND, see_effect, seen};
use crate::ghost::{AGREE, DEADLINE, P03_KNOWN, P03_LIVE, P03_REMOTE, P04_FENCED, P06_WORD, P12_RECEIPT};
use crate::protocol::Bounds;

use super::{Mutant, plain};

const LEASES: Bounds = Bounds { holders: 1, asks: 0, remote: false, leases: true };
const REMOTE: Bounds = Bounds { holders: 1, asks: 0, remote: true, leases: false };

/// The effect that a call would take, as it is seen, in another state.
fn effects_seen_as(row: Option<Row>, event: &Event, was: &[EffectState], state: EffectState) -> Option<Row> {
    match row {
        Some(Row::Effect(mut row))
            if was.contains(&row.state) && matches!(event.body, Body::EffectAcquired(..)) =>
        {
            row.state = state;
            Some(Row::Effect(row))
        }
        row => row,
    }
}

macro_rules! handed_over {
    ($($was:ident)|+, $also:expr) => {
        Broken {
            view: |pinned, view, command, now| {
                if let Command::Run(run) = &command.command {
                    let id = run.action.expect("the model names its actions");
                    see_effect(view, &pinned.tenant.effect(&run.proposal.key_for(id)), |row| {
                        let also: fn(&EffectRow, Timestamp) -> bool = $also;
                        if matches!(row.state, $(EffectState::$was)|+) && also(row, now) {
                            row.state = EffectState::Failed;
                        }
                    });
                }
            },
            row: |row, event| effects_seen_as(row, event, &[$(EffectState::$was),+], EffectState::Failed),
            ..SOUND
        }
    };
}

pub(crate) fn attempts() -> Vec<Mutant> {
    vec![
        Mutant {
            name: "a report is not asked for its fence",
            bounds: plain(2, 0),
            rules: Broken {
                command: |view, command| {
                    if let Command::Settle(settle) = &mut command.command
                        && let Some(Row::Effect(row)) =
                            seen(view, &settle.attempt.effect).map(|stored| &stored.row)
                    {
                        (settle.attempt.fence, settle.attempt.action) = (row.fence, row.holder);
                    }
                },
                ..SOUND
            },
            promise: P04_FENCED,
        },
        Mutant {
            name: "a late report overwrites a person's word",
            bounds: plain(1, 0),
            rules: Broken {
                view: |_, view, command, _| {
                    if let Command::Settle(settle) = &command.command {
                        see_effect(view, &settle.attempt.effect, |row| {
                            (row.state, row.answered_by) = (EffectState::Ambiguous, None);
                        });
                    }
                },
                row: |row, event| match (row, &event.body) {
                    (Some(Row::Effect(mut row)), Body::EffectSettled(..)) => {
                        (row.state, row.answered_by) = (EffectState::Ambiguous, None);
                        Some(Row::Effect(row))
                    }
                    (row, _) => row,
                },
                ..SOUND
            },
            promise: P04_FENCED,
        },
        Mutant {
            name: "an attempt begins without a live lease",
            bounds: LEASES,
            rules: Broken {
                now: |view, command, now| match &command.command {
                    Command::Begin(begin) => {
                        match seen(view, &begin.attempt.effect).map(|stored| &stored.row) {
                            Some(Row::Effect(row)) => row.lease_until.unwrap_or(now),
                            _ => now,
                        }
                    }
                    _ => now,
                },
                ..SOUND
            },
            promise: P03_LIVE,
        },
        Mutant {
            name: "a lease is renewed past its deadline",
            bounds: LEASES,
            rules: Broken {
                view: |_, view, command, _| {
                    if let Command::Renew(renew) = &command.command {
                        see_effect(view, &renew.attempt.effect, |row| row.deadline = Timestamp::MAX);
                    }
                },
                ..SOUND
            },
            promise: DEADLINE,
        },
        Mutant {
            name: "a lease is taken to have lapsed before it has",
            bounds: plain(1, 0),
            rules: Broken {
                now: |_, command, now| match command.command {
                    Command::Lapse(_) => now + Span::hours(1),
                    _ => now,
                },
                ..SOUND
            },
            promise: P03_LIVE,
        },
        Mutant {
            name: "a lapsed attempt is handed over",
            bounds: plain(2, 0),
            rules: handed_over!(Executing | Reserved, |row, now| !row.live(now)),
            promise: P03_KNOWN,
        },
        Mutant {
            name: "an unknown outcome is tried again",
            bounds: plain(1, 0),
            rules: handed_over!(Ambiguous, |_, _| true),
            promise: P03_KNOWN,
        },
        Mutant {
            name: "what has happened is done again",
            bounds: plain(1, 0),
            rules: handed_over!(Committed, |_, _| true),
            promise: P03_KNOWN,
        },
        Mutant {
            name: "a second attempt starts beside a live one",
            bounds: plain(2, 0),
            rules: handed_over!(Executing | Reserved, |_, _| true),
            promise: P03_KNOWN,
        },
        Mutant {
            name: "fences begin again after a failure",
            bounds: plain(1, 0),
            rules: Broken {
                verdict: |_, _, verdict| {
                    for draft in &mut verdict.drafts {
                        match &mut draft.event.body {
                            Body::EffectAcquired(data, _) => data.fence = 1,
                            Body::ActionStarted(data, _) => data.fence = 1,
                            _ => {}
                        }
                    }
                    if let Reply::Attempt(attempt) = &mut verdict.reply {
                        attempt.fence = 1;
                    }
                },
                row: |row, event| row.filter(|_| !matches!(event.body, Body::EffectAcquired(..))),
                ..SOUND
            },
            promise: P03_KNOWN,
        },
        Mutant {
            name: "any error is written as failed",
            bounds: plain(1, 0),
            rules: Broken {
                command: |_, command| {
                    if let Command::Settle(settle) = &mut command.command
                        && settle.outcome == Outcome::Ambiguous
                    {
                        settle.outcome = Outcome::Failed;
                    }
                },
                ..SOUND
            },
            promise: P06_WORD,
        },
        Mutant {
            name: "a live attempt is resolved",
            bounds: plain(1, 0),
            rules: Broken {
                view: |_, view, command, _| {
                    if let Command::Resolve(resolve) = &command.command {
                        see_effect(view, &resolve.effect, |row| row.state = EffectState::Ambiguous);
                    }
                },
                row: |row, event| match (row, &event.body) {
                    (Some(Row::Effect(mut row)), Body::EffectResolved(..)) => {
                        row.state = EffectState::Ambiguous;
                        Some(Row::Effect(row))
                    }
                    (row, _) => row,
                },
                ..SOUND
            },
            promise: P03_LIVE,
        },
        Mutant {
            name: "the remote's absent counts too early",
            bounds: REMOTE,
            rules: Broken {
                command: |_, command| {
                    if let Command::Reconcile(reconcile) = &mut command.command {
                        reconcile.settle = Span::ZERO;
                    }
                },
                ..SOUND
            },
            promise: P03_REMOTE,
        },
        Mutant {
            name: "a lapse forgets the action",
            bounds: plain(1, 0),
            rules: Broken {
                verdict: |_, command, verdict| {
                    if matches!(command.command, Command::Lapse(_)) {
                        verdict.drafts.retain(|draft| draft.stream.kind == StreamKind::Effect);
                    }
                },
                ..SOUND
            },
            promise: AGREE,
        },
        Mutant {
            name: "an end has no receipt",
            bounds: plain(1, 0),
            rules: Broken {
                verdict: |_, _, verdict| {
                    for draft in &mut verdict.drafts {
                        draft.event.refs.receipt = None;
                    }
                },
                ..SOUND
            },
            promise: P12_RECEIPT,
        },
    ]
}

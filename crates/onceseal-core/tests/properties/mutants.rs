//! Rules broken on purpose that the small world of the model has no room for.

use std::sync::Arc;

use onceseal_core::action::ActionRow;
use onceseal_core::approval::{Response, Said};
use onceseal_core::code::Code;
use onceseal_core::command::{Command, Stamped};
use onceseal_core::effect::EffectState;
use onceseal_core::id::ActionId;
use onceseal_core::journal::{Body, Index, Key, Row, moment};
use onceseal_core::reply::Reply;
use onceseal_core::stream::{StreamId, StreamKind};
use onceseal_core::time::Span;
use onceseal_core::view::{Loaded, Range, View};

use crate::broken::{Broken, SOUND, presented, see_approval, see_effect, seen};
use crate::calls::identity;
use crate::world::noon;

fn see_action(view: &mut View, id: ActionId, change: impl FnOnce(&mut ActionRow)) {
    let stream = StreamId::action(id);
    let Some(mut stored) = seen(view, &stream).cloned() else { return };
    if let Row::Action(row) = &mut stored.row {
        change(row);
    }
    view.load(stream, Loaded::Row(Arc::new(stored)));
}

/// The person whose answer this is, put in place of who gave it.
fn in_the_name_of(command: &mut Stamped, person: &str) {
    match &mut command.command {
        Command::Answer(answer) => answer.person = identity(person),
        Command::Revoke(revocation) => revocation.person = identity(person),
        Command::Resolve(resolve) => resolve.person = identity(person),
        _ => {}
    }
}

pub(crate) fn all() -> Vec<(&'static str, Broken)> {
    let mut all = answers();
    all.extend(others());
    all
}

fn answers() -> Vec<(&'static str, Broken)> {
    vec![
        (
            "one person's yes counts twice",
            Broken {
                command: |view, command| {
                    let Command::Answer(answer) = &command.command else { return };
                    let stream = StreamId::approval(answer.approval);
                    let Some(Row::Approval(row)) = seen(view, &stream).map(|stored| &stored.row) else {
                        return;
                    };
                    let person = answer.person.to_string();
                    let before = |response: &Response| response.person.as_ref() == Some(&person);
                    if row.private.responses.iter().any(before) && answer.said == Said::Yes {
                        in_the_name_of(command, if person == "host:bob" { "host:cy" } else { "host:bob" });
                    }
                },
                ..SOUND
            },
        ),
        (
            "what was shown does not matter",
            Broken {
                view: |_, view, command, _| {
                    if let Command::Answer(answer) = &command.command {
                        see_approval(view, answer.approval, |row| {
                            row.private.bound.binding = Some(answer.shown)
                        });
                    }
                },
                ..SOUND
            },
        ),
        (
            "the agent may answer for itself",
            Broken {
                view: |_, view, command, _| {
                    let Command::Answer(answer) = &command.command else { return };
                    let stream = StreamId::approval(answer.approval);
                    let Some(Row::Approval(row)) = seen(view, &stream).map(|stored| &stored.row) else {
                        return;
                    };
                    see_action(view, row.action, |row| {
                        if let Some(proposal) = &mut row.private.proposal {
                            proposal.agent = "somebody".to_owned();
                        }
                    });
                },
                ..SOUND
            },
        ),
        (
            "any account is the owner's",
            Broken {
                command: |_, command| {
                    if matches!(&command.command, Command::Answer(answer) if answer.person.to_string() == "os:cy")
                    {
                        in_the_name_of(command, "os:owner");
                    }
                },
                ..SOUND
            },
        ),
        (
            "anybody is an operator",
            Broken {
                command: |_, command| {
                    if matches!(command.command, Command::Revoke(_) | Command::Resolve(_)) {
                        in_the_name_of(command, "host:opal");
                    }
                },
                ..SOUND
            },
        ),
        (
            "who said yes and is entitled no longer still counts",
            Broken {
                view: |_, view, command, _| {
                    let Some(id) = presented(view, command) else { return };
                    see_approval(view, id, |row| {
                        if row.quorum < 2 {
                            return;
                        }
                        for (response, person) in
                            row.private.responses.iter_mut().zip(["host:bob", "host:cy"])
                        {
                            response.person = Some(person.to_owned());
                        }
                    });
                },
                ..SOUND
            },
        ),
    ]
}

fn others() -> Vec<(&'static str, Broken)> {
    vec![
        (
            "a ready action waits for ever",
            Broken {
                now: |_, command, now| match &command.command {
                    Command::Lapse(stream) if stream.kind == StreamKind::Action => noon(),
                    _ => now,
                },
                ..SOUND
            },
        ),
        (
            "a repeated refusal is recorded again",
            Broken {
                view: |_, view, command, now| {
                    let Command::Run(run) = &command.command else { return };
                    let hash = run.proposal.action_hash().0;
                    for code in Code::ALL {
                        let key = |at| Key::of(Index::Refusal, &[&hash, &[code.number()], &moment(at)]).bytes;
                        let (from, to) = (key(now - Span::seconds(60)), key(now));
                        view.load_range(Range { index: Index::Refusal, from, to, limit: 1 }, Vec::new());
                    }
                },
                ..SOUND
            },
        ),
        (
            "another wish is told as the same",
            Broken {
                view: |pinned, view, command, _| {
                    let Command::Run(run) = &command.command else { return };
                    let Some(key) = run.proposal.effect_key() else { return };
                    let stream = pinned.tenant.effect(key);
                    let Some(Row::Effect(row)) = seen(view, &stream).map(|stored| &stored.row) else {
                        return;
                    };
                    see_action(view, row.holder, |row| {
                        if let Some(proposal) = &mut row.private.proposal {
                            proposal.intent_hash = run.proposal.intent_hash();
                        }
                    });
                },
                ..SOUND
            },
        ),
        (
            "a holder that did not know may know later",
            Broken {
                view: |_, view, command, _| {
                    if let Command::Settle(settle) = &command.command {
                        see_effect(view, &settle.attempt.effect, |row| {
                            if row.state == EffectState::Ambiguous {
                                row.answered_by = None;
                            }
                        });
                    }
                },
                row: |row, event| match (row, &event.body) {
                    (Some(Row::Effect(mut row)), Body::EffectSettled(..))
                        if row.state == EffectState::Ambiguous =>
                    {
                        row.answered_by = None;
                        Some(Row::Effect(row))
                    }
                    (row, _) => row,
                },
                ..SOUND
            },
        ),
        (
            "a renewal takes time away",
            Broken {
                verdict: |_, command, verdict| {
                    if matches!(command.command, Command::Renew(_)) {
                        for renewal in &mut verdict.renewals {
                            renewal.lease_until = renewal.lease_until - Span::seconds(1);
                        }
                        if let Reply::Renewed { lease_until } = &mut verdict.reply {
                            *lease_until = *lease_until - Span::seconds(1);
                        }
                    }
                },
                ..SOUND
            },
        ),
        (
            "a lease that has ended is live",
            Broken {
                view: |_, view, command, now| {
                    if let Command::Begin(begin) = &command.command {
                        see_effect(view, &begin.attempt.effect, |row| row.lease_until = Some(now));
                    }
                },
                ..SOUND
            },
        ),
    ]
}

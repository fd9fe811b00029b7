//! Rules of requests, answers and their use.

use onceseal_core::approval::event::{Consumed, Expired};
use onceseal_core::approval::{Asked, Identity, Proof, Response, Said, Status, ask_hash};
use onceseal_core::command::{Command, Stamped};
use onceseal_core::decide::Verdict;
use onceseal_core::journal::{Body, Draft, Event, Index, Key, Nothing, Refs, Row, moment};
use onceseal_core::reply::Reply;
use onceseal_core::stream::{StreamId, StreamKind};
use onceseal_core::time::Timestamp;
use onceseal_core::view::{Range, View};

use crate::broken::{Broken, SOUND, presented, see_approval, seen};
use crate::ghost::{ANSWERS, FOLDS, P01_EXACT, P02_KEPT, P02_ONCE, WAITING};

use super::{Mutant, plain};

macro_rules! usable {
    ($status:ident) => {
        Broken {
            view: |_, view, command, _| {
                if let Some(id) = presented(view, command) {
                    see_approval(view, id, |row| {
                        if row.status == Status::$status {
                            (row.status, row.expires_at) = (Status::Granted, Timestamp::MAX);
                            // Without a yes it would not be used: they are counted again.
                            row.private.responses = vec![yes()];
                        }
                    });
                }
            },
            row: |row, event| match (row, &event.body) {
                (Some(Row::Approval(mut row)), Body::ApprovalConsumed(..)) => {
                    row.status = Status::Granted;
                    Some(Row::Approval(row))
                }
                (row, _) => row,
            },
            ..SOUND
        }
    };
}

fn yes() -> Response {
    let person = Some("host:ada".to_owned());
    Response { at: Timestamp::MIN, person, proof: Proof::Host, said: Said::Yes }
}

/// Nothing is found in this range.
fn blind(view: &mut View, index: Index, from: &[&[u8]], to: &[&[u8]], limit: usize) {
    let (from, to) = (Key::of(index, from).bytes, Key::of(index, to).bytes);
    view.load_range(Range { index, from, to, limit }, Vec::new());
}

pub(crate) fn approvals() -> Vec<Mutant> {
    vec![
        Mutant {
            name: "an approval is not held against the action's hash",
            bounds: plain(1, 1),
            rules: Broken {
                view: |_, view, command, _| {
                    if let (Command::Run(run), Some(id)) = (&command.command, presented(view, command)) {
                        see_approval(view, id, |row| {
                            row.private.bound.action_hash = Some(run.proposal.action_hash());
                        });
                    }
                },
                ..SOUND
            },
            promise: P01_EXACT,
        },
        Mutant {
            name: "an approval is not held against the rule",
            bounds: plain(1, 1),
            rules: Broken {
                view: |_, view, command, _| {
                    if let (Command::Run(run), Some(id)) = (&command.command, presented(view, command)) {
                        see_approval(view, id, |row| row.private.bound.rule = run.proposal.rule());
                    }
                },
                ..SOUND
            },
            promise: P01_EXACT,
        },
        Mutant {
            name: "an approval is used after its expiry",
            bounds: plain(1, 1),
            rules: Broken {
                view: |_, view, command, _| {
                    if let Some(id) = presented(view, command) {
                        see_approval(view, id, |row| row.expires_at = Timestamp::MAX);
                    }
                },
                ..SOUND
            },
            promise: P01_EXACT,
        },
        Mutant {
            name: "nobody needs to have said yes",
            bounds: plain(1, 1),
            rules: usable!(Pending),
            promise: P01_EXACT,
        },
        Mutant { name: "a no permits", bounds: plain(1, 1), rules: usable!(Denied), promise: P01_EXACT },
        Mutant {
            name: "a revoked approval permits",
            bounds: plain(1, 1),
            rules: usable!(Revoked),
            promise: P01_EXACT,
        },
        Mutant {
            name: "a used approval permits again",
            bounds: plain(1, 1),
            rules: usable!(Consumed),
            promise: P02_ONCE,
        },
        Mutant {
            name: "an approval is not used up",
            bounds: plain(1, 1),
            rules: Broken {
                verdict: |_, _, verdict| {
                    verdict.drafts.retain(|draft| !matches!(draft.event.body, Body::ApprovalConsumed(..)));
                },
                ..SOUND
            },
            promise: P02_ONCE,
        },
        Mutant {
            name: "an approval is used up although the effect is refused",
            bounds: plain(1, 1),
            rules: Broken {
                verdict: |view, command, verdict| {
                    spoil(view, command, verdict, Body::ApprovalConsumed(Consumed {}, Nothing {}));
                },
                ..SOUND
            },
            promise: P02_ONCE,
        },
        Mutant {
            name: "an approval expires when the effect is refused",
            bounds: plain(1, 1),
            rules: Broken {
                verdict: |view, command, verdict| {
                    spoil(view, command, verdict, Body::ApprovalExpired(Expired {}, Nothing {}));
                },
                ..SOUND
            },
            promise: P02_KEPT,
        },
        Mutant {
            name: "an approval is used twice in one command",
            bounds: plain(1, 1),
            rules: Broken {
                verdict: |_, _, verdict| {
                    let used = |draft: &&Draft| matches!(draft.event.body, Body::ApprovalConsumed(..));
                    verdict.drafts.extend(verdict.drafts.iter().find(used).cloned());
                },
                ..SOUND
            },
            promise: FOLDS,
        },
        Mutant {
            name: "anybody's answer counts",
            bounds: plain(1, 1),
            rules: Broken {
                command: |_, command| {
                    if let Command::Answer(answer) = &mut command.command {
                        answer.person = Identity::parse("host:ada").expect("a person");
                    }
                },
                ..SOUND
            },
            promise: ANSWERS,
        },
        Mutant {
            name: "an answer counts after the expiry",
            bounds: plain(1, 1),
            rules: Broken {
                view: |_, view, command, _| {
                    if let Command::Answer(answer) = &command.command {
                        see_approval(view, answer.approval, |row| row.expires_at = Timestamp::MAX);
                    }
                },
                ..SOUND
            },
            promise: ANSWERS,
        },
        Mutant {
            name: "a no is not remembered",
            bounds: plain(1, 2),
            rules: Broken {
                view: |_, view, command, now| {
                    if let Command::Run(run) = &command.command {
                        let intent = run.proposal.intent_hash().0;
                        let (from, to) = (moment(now), moment(Timestamp::MAX));
                        blind(view, Index::Denial, &[&intent, &from], &[&intent, &to], 1);
                    }
                },
                ..SOUND
            },
            promise: ANSWERS,
        },
        Mutant {
            name: "the same is asked twice",
            bounds: plain(1, 2),
            rules: Broken {
                view: |pinned, view, command, _| {
                    if let Command::Run(run) = &command.command {
                        let ask = ask_hash(&pinned.tenant, &Asked::of(&run.proposal)).0;
                        blind(view, Index::Ask, &[&ask], &[&ask], 64);
                    }
                },
                ..SOUND
            },
            promise: ANSWERS,
        },
        Mutant {
            name: "a denied action goes on waiting",
            bounds: plain(1, 1),
            rules: Broken {
                verdict: |_, command, verdict| {
                    if matches!(command.command, Command::Answer(_)) {
                        verdict.drafts.retain(|draft| draft.stream.kind == StreamKind::Approval);
                    }
                },
                ..SOUND
            },
            promise: WAITING,
        },
    ]
}

/// Records something of a granted approval when a call that presents it is refused.
fn spoil(view: &View, command: &Stamped, verdict: &mut Verdict, body: Body) {
    let Some(stream) = presented(view, command).map(StreamId::approval) else { return };
    let granted = match seen(view, &stream).map(|stored| &stored.row) {
        Some(Row::Approval(row)) => row.status == Status::Granted,
        _ => false,
    };
    let touched = verdict.drafts.iter().any(|draft| draft.stream == stream);
    if granted && !touched && matches!(verdict.reply, Reply::Refused(_)) {
        verdict.drafts.push(Draft { stream, event: Event { refs: Refs::NONE, body }, payload: None });
    }
}

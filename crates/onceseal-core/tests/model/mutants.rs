//! Every rule that is broken on purpose, and the promise that tells.

use onceseal_core::approval::event::{Consumed, Expired};
use onceseal_core::approval::{Identity, Proof, Response, Said, Status, ask_hash};
use onceseal_core::command::{Command, Stamped};
use onceseal_core::decide::Verdict;
use onceseal_core::effect::{EffectRow, EffectState, Outcome};
use onceseal_core::journal::{Body, Draft, Event, Index, Key, Nothing, Refs, Row, moment};
use onceseal_core::reply::Reply;
use onceseal_core::stream::{StreamId, StreamKind};
use onceseal_core::time::{Span, Timestamp};
use onceseal_core::view::{Range, View};

use crate::broken::{Broken, SOUND, presented, see_approval, see_effect, seen};
use crate::ghost::{
    AGREE, ANSWERS, DEADLINE, FOLDS, P01_EXACT, P02_KEPT, P02_ONCE, P03_KNOWN, P03_LIVE, P03_REMOTE,
    P04_FENCED, P06_WORD, P12_RECEIPT, WAITING,
};
use crate::protocol::Bounds;

/// A broken rule, where it is looked for, and what tells.
pub(crate) struct Mutant {
    pub(crate) name: &'static str,
    pub(crate) bounds: Bounds,
    pub(crate) rules: Broken,
    pub(crate) promise: &'static str,
}

const fn plain(holders: usize, asks: usize) -> Bounds {
    Bounds { holders, asks, remote: false, leases: false }
}

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

macro_rules! usable {
    ($status:ident) => {
        Broken {
            view: |_, view, command, _| {
                if let Some(id) = presented(command) {
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

pub(crate) fn approvals() -> Vec<Mutant> {
    vec![
        Mutant {
            name: "an approval is not held against the action's hash",
            bounds: plain(1, 1),
            rules: Broken {
                view: |_, view, command, _| {
                    if let (Command::Run(run), Some(id)) = (&command.command, presented(command)) {
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
                    if let (Command::Run(run), Some(id)) = (&command.command, presented(command)) {
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
                    if let Some(id) = presented(command) {
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
                        let ask = ask_hash(&pinned.tenant, &run.proposal).0;
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
    let Some(stream) = presented(command).map(StreamId::approval) else { return };
    let granted = match seen(view, &stream).map(|stored| &stored.row) {
        Some(Row::Approval(row)) => row.status == Status::Granted,
        _ => false,
    };
    let touched = verdict.drafts.iter().any(|draft| draft.stream == stream);
    if granted && !touched && matches!(verdict.reply, Reply::Refused(_)) {
        verdict.drafts.push(Draft { stream, event: Event { refs: Refs::NONE, body }, payload: None });
    }
}

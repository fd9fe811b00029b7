//! Rules that are broken on purpose, each as somebody once broke them.

use std::sync::Arc;

use onceseal_core::action::ActionState;
use onceseal_core::command::{Command, Stamped};
use onceseal_core::decide::{Verdict, decide};
use onceseal_core::effect::{EffectRow, EffectState, Outcome, Settle};
use onceseal_core::journal::Row;
use onceseal_core::operation::Claim;
use onceseal_core::route::RouteState;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Timestamp;
use onceseal_core::tool::{Recovery, Tool};
use onceseal_core::view::{Halt, Loaded, Pinned, View};

use crate::executor::Rules;
use crate::remote::KEY_TTL;
use crate::routes::DESTINATION;

type Decide = fn(&Pinned, &View, &Stamped, Timestamp) -> Result<Verdict, Halt>;

pub(crate) struct Broken(Decide);

impl Rules for Broken {
    fn decide(
        &self,
        pinned: &Pinned,
        view: &View,
        command: &Stamped,
        now: Timestamp,
    ) -> Result<Verdict, Halt> {
        (self.0)(pinned, view, command, now)
    }
}

pub(crate) const ALL: [(&str, &dyn Rules); 12] = [
    ("an operation that runs is claimed again", &Broken(claimed_again)),
    ("a key is used beyond its life", &Broken(key_for_ever)),
    ("what cannot be recovered is made again", &Broken(never_is_same_key)),
    ("absent counts however early the remote was asked", &Broken(absent_early)),
    ("the remote need not be asked", &Broken(unasked)),
    ("a lapsed attempt that had begun is given back", &Broken(begun_given_back)),
    ("unknown is written as failed", &Broken(unknown_is_failed)),
    ("a report is taken for whatever attempt there is", &Broken(any_fence)),
    ("each attempt has a key of its own", &Broken(key_of_its_own)),
    ("what runs may be called off", &Broken(cancel_running)),
    ("two probes are made at once", &Broken(two_probes)),
    ("nobody looks at the circuit", &Broken(unlooked)),
];

/// A view with another row of a stream.
fn see(view: &View, stream: &StreamId, change: impl FnOnce(&mut Row)) -> View {
    let mut view = view.clone();
    if let Ok(Some(stored)) = view.stored(stream).map(|stored| stored.cloned()) {
        let mut stored = stored;
        change(&mut stored.row);
        view.load(*stream, Loaded::Row(Arc::new(stored)));
    }
    view
}

fn see_effect(view: &View, stream: &StreamId, change: impl FnOnce(&mut EffectRow)) -> View {
    see(view, stream, |row| {
        if let Row::Effect(row) = row {
            change(row);
        }
    })
}

/// The effect of the operation that is claimed.
fn claimed(view: &View, command: &Stamped) -> Option<(Claim, StreamId)> {
    let Command::Claim(claim) = &command.command else { return None };
    let operation = view.action(claim.action).ok()??.operation.clone()?;
    Some((claim.clone(), operation.effect))
}

fn claimed_again(pinned: &Pinned, view: &View, command: &Stamped, now: Timestamp) -> Result<Verdict, Halt> {
    let Some((claim, effect)) = claimed(view, command) else { return decide(pinned, view, command, now) };
    let view = see_effect(view, &effect, |row| {
        if row.held() {
            row.state = EffectState::Queued;
        }
    });
    let view = see(&view, &StreamId::action(claim.action), |row| {
        if let Row::Action(row) = row
            && matches!(row.state, ActionState::Running { .. })
        {
            row.state = ActionState::Queued { due: Timestamp::MIN, code: None };
        }
    });
    decide(pinned, &view, command, now)
}

fn key_for_ever(pinned: &Pinned, view: &View, command: &Stamped, now: Timestamp) -> Result<Verdict, Halt> {
    let stream = match &command.command {
        Command::Lapse(stream) => Some(*stream),
        Command::Settle(settle) => Some(settle.attempt.effect),
        _ => claimed(view, command).map(|(_, effect)| effect),
    };
    let Some(stream) = stream else { return decide(pinned, view, command, now) };
    let view = see_effect(view, &stream, |row| row.first_begun_at = row.first_begun_at.map(|_| now));
    decide(pinned, &view, command, now)
}

/// The contracts with another recovery.
fn with_recovery(pinned: &Pinned, view: &View, command: &Stamped, from: fn(Recovery) -> Recovery) -> Pinned {
    let mut pinned = pinned.clone();
    let stream = match &command.command {
        Command::Lapse(stream) => Some(*stream),
        Command::Settle(settle) => Some(settle.attempt.effect),
        _ => claimed(view, command).map(|(_, effect)| effect),
    };
    let holder = stream.and_then(|stream| view.effect(&stream).ok().flatten()).map(|row| row.holder);
    let operation = holder.and_then(|id| view.action(id).ok().flatten()?.operation.clone());
    if let Some(operation) = operation
        && let Ok(tool) = pinned.tool(operation.contract).cloned()
    {
        let mut contract = tool.contract.clone();
        contract.recovery = from(contract.recovery);
        pinned.know_tool(tool.digest, Some(Arc::new(Tool { contract, ..(*tool).clone() })));
    }
    pinned
}

fn never_is_same_key(
    pinned: &Pinned,
    view: &View,
    command: &Stamped,
    now: Timestamp,
) -> Result<Verdict, Halt> {
    let pinned = with_recovery(pinned, view, command, |recovery| match recovery {
        Recovery::Never => Recovery::SameKey { key_ttl: KEY_TTL },
        other => other,
    });
    decide(&pinned, view, command, now)
}

fn unasked(pinned: &Pinned, view: &View, command: &Stamped, now: Timestamp) -> Result<Verdict, Halt> {
    let pinned = with_recovery(pinned, view, command, |recovery| match recovery {
        Recovery::Ask { .. } => Recovery::SameKey { key_ttl: KEY_TTL },
        other => other,
    });
    decide(&pinned, view, command, now)
}

fn absent_early(pinned: &Pinned, view: &View, command: &Stamped, now: Timestamp) -> Result<Verdict, Halt> {
    let stream = match &command.command {
        Command::Lapse(_) => None,
        Command::Settle(settle) => Some(settle.attempt.effect),
        _ => claimed(view, command).map(|(_, effect)| effect),
    };
    let Some(stream) = stream else { return decide(pinned, view, command, now) };
    let view = see_effect(view, &stream, |row| {
        if row.state != EffectState::Reserved {
            row.lease_until = row.lease_until.map(|_| row.created_at);
        }
    });
    decide(pinned, &view, command, now)
}

fn begun_given_back(
    pinned: &Pinned,
    view: &View,
    command: &Stamped,
    now: Timestamp,
) -> Result<Verdict, Halt> {
    let mut verdict = decide(pinned, view, command, now)?;
    let lapsed = |draft: &onceseal_core::journal::Draft| {
        matches!(draft.event.body, onceseal_core::journal::Body::EffectLapsed(..))
    };
    if verdict.drafts.iter().any(lapsed)
        && let Command::Lapse(stream) = &command.command
        && let Ok(Some(row)) = view.effect(stream)
        && row.claimed_from.is_some()
    {
        // Settled as not executed, which queues it anew.
        let attempt =
            onceseal_core::effect::Holding { effect: *stream, action: row.holder, fence: row.fence };
        let report =
            Settle { again: Some(onceseal_core::time::Span::ZERO), ..Settle::new(attempt, Outcome::Failed) };
        let report = Stamped { command: Command::Settle(report), ..command.clone() };
        verdict = decide(pinned, view, &report, now)?;
    }
    Ok(verdict)
}

fn unknown_is_failed(
    pinned: &Pinned,
    view: &View,
    command: &Stamped,
    now: Timestamp,
) -> Result<Verdict, Halt> {
    let Command::Settle(settle) = &command.command else { return decide(pinned, view, command, now) };
    let outcome = match settle.outcome {
        Outcome::Ambiguous => Outcome::Failed,
        known => known,
    };
    let command =
        Stamped { command: Command::Settle(Settle { outcome, ..settle.clone() }), ..command.clone() };
    decide(pinned, view, &command, now)
}

fn any_fence(pinned: &Pinned, view: &View, command: &Stamped, now: Timestamp) -> Result<Verdict, Halt> {
    let Command::Settle(settle) = &command.command else { return decide(pinned, view, command, now) };
    let mut settle = settle.clone();
    if let Some(row) = view.effect(&settle.attempt.effect)? {
        settle.attempt.fence = row.fence;
    }
    let command = Stamped { command: Command::Settle(settle), ..command.clone() };
    decide(pinned, view, &command, now)
}

fn key_of_its_own(pinned: &Pinned, view: &View, command: &Stamped, now: Timestamp) -> Result<Verdict, Halt> {
    let Some((_, effect)) = claimed(view, command) else { return decide(pinned, view, command, now) };
    let view = see_effect(view, &effect, |row| row.generation += row.fence);
    decide(pinned, &view, command, now)
}

fn cancel_running(pinned: &Pinned, view: &View, command: &Stamped, now: Timestamp) -> Result<Verdict, Halt> {
    let Command::Cancel(cancel) = &command.command else { return decide(pinned, view, command, now) };
    let effect =
        view.action(cancel.action)?.and_then(|row| row.operation.as_ref()).map(|operation| operation.effect);
    let mut seen = see(view, &StreamId::action(cancel.action), |row| {
        if let Row::Action(row) = row
            && matches!(row.state, ActionState::Running { .. })
        {
            row.state = ActionState::Queued { due: Timestamp::MIN, code: None };
        }
    });
    if let Some(effect) = effect {
        seen = see_effect(&seen, &effect, |row| row.state = EffectState::Queued);
    }
    decide(pinned, &seen, command, now)
}

fn two_probes(pinned: &Pinned, view: &View, command: &Stamped, now: Timestamp) -> Result<Verdict, Halt> {
    let Command::Claim(_) = &command.command else { return decide(pinned, view, command, now) };
    let view = see(view, &pinned.tenant.route(DESTINATION), |row| {
        if let Row::Route(row) = row
            && let RouteState::Open { probe, .. } = &mut row.state
        {
            *probe = None;
        }
    });
    decide(pinned, &view, command, now)
}

fn unlooked(pinned: &Pinned, view: &View, command: &Stamped, now: Timestamp) -> Result<Verdict, Halt> {
    let Command::Claim(_) = &command.command else { return decide(pinned, view, command, now) };
    let view = see(view, &pinned.tenant.route(DESTINATION), |row| {
        if let Row::Route(row) = row {
            row.state = RouteState::Closed { failures: 0 };
        }
    });
    decide(pinned, &view, command, now)
}

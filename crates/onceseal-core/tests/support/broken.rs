//! Rules broken on purpose.
//!
//! A broken rule stands around the real functions: it changes what `decide`
//! sees, hears or answers, or what `evolve` folds on. Nothing of it is in the
//! library, so none of it can ship.

use std::sync::Arc;

use onceseal_core::action::ActionState;
use onceseal_core::approval::ApprovalRow;
use onceseal_core::command::{Command, Stamped};
use onceseal_core::decide::{Verdict, decide, evolve};
use onceseal_core::effect::EffectRow;
use onceseal_core::id::ApprovalId;
use onceseal_core::journal::{Event, Row, Stored};
use onceseal_core::pack::Corrupt;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Timestamp;
use onceseal_core::view::{Halt, Loaded, Pinned, View};

use crate::executor::Rules;

/// One way in which rules may be wrong.
pub(crate) struct Broken {
    /// Changes what is seen.
    pub(crate) view: fn(&Pinned, &mut View, &Stamped, Timestamp),
    /// Changes what is wanted.
    pub(crate) command: fn(&View, &mut Stamped),
    /// Changes what time it is.
    pub(crate) now: fn(&View, &Stamped, Timestamp) -> Timestamp,
    /// Changes what is answered and recorded.
    pub(crate) verdict: fn(&View, &Stamped, &mut Verdict),
    /// Changes what an event is folded on.
    pub(crate) row: fn(Option<Row>, &Event) -> Option<Row>,
}

/// Nothing is broken.
pub(crate) const SOUND: Broken = Broken {
    view: |_, _, _, _| {},
    command: |_, _| {},
    now: |_, _, now| now,
    verdict: |_, _, _| {},
    row: |row, _| row,
};

impl Rules for Broken {
    fn decide(
        &self,
        pinned: &Pinned,
        view: &View,
        command: &Stamped,
        now: Timestamp,
    ) -> Result<Verdict, Halt> {
        let (mut view, mut command) = (view.clone(), command.clone());
        (self.command)(&view, &mut command);
        (self.view)(pinned, &mut view, &command, now);
        let now = (self.now)(&view, &command, now);
        let mut verdict = decide(pinned, &view, &command, now)?;
        (self.verdict)(&view, &command, &mut verdict);
        Ok(verdict)
    }

    fn evolve(
        &self,
        stream: &StreamId,
        row: Option<Row>,
        sequence: u64,
        at: Timestamp,
        event: &Event,
    ) -> Result<Row, Corrupt> {
        evolve(stream, (self.row)(row, event), sequence, at, event)
    }
}

/// A row as it is seen, if it has been looked for.
pub(crate) fn seen<'a>(view: &'a View, stream: &StreamId) -> Option<&'a Stored> {
    view.stored(stream).ok().flatten()
}

/// Changes how an effect is seen.
pub(crate) fn see_effect(view: &mut View, stream: &StreamId, change: impl FnOnce(&mut EffectRow)) {
    let Some(mut stored) = seen(view, stream).cloned() else { return };
    if let Row::Effect(row) = &mut stored.row {
        change(row);
    }
    view.load(*stream, Loaded::Row(Arc::new(stored)));
}

/// Changes how an approval is seen.
pub(crate) fn see_approval(view: &mut View, id: ApprovalId, change: impl FnOnce(&mut ApprovalRow)) {
    let stream = StreamId::approval(id);
    let Some(mut stored) = seen(view, &stream).cloned() else { return };
    if let Row::Approval(row) = &mut stored.row {
        change(row);
    }
    view.load(stream, Loaded::Row(Arc::new(stored)));
}

/// The approval that a call presents, or that its action waits for.
pub(crate) fn presented(view: &View, command: &Stamped) -> Option<ApprovalId> {
    let (action, approval) = match &command.command {
        Command::Run(run) => (run.action, run.approval),
        Command::Acquire(acquire) => (Some(acquire.action), acquire.approval),
        _ => (None, None),
    };
    let waits = || match &seen(view, &StreamId::action(action?))?.row {
        Row::Action(row) => match row.state {
            ActionState::Waiting { approval } => Some(approval),
            _ => None,
        },
        _ => None,
    };
    approval.or_else(waits)
}

//! How something is broken: around the rules, between executor and backend,
//! between readers and whoever reads.

use std::sync::Arc;

use onceseal_core::action::Run;
use onceseal_core::approval::ApprovalRow;
use onceseal_core::command::{Command, Stamped};
use onceseal_core::decide::Verdict;
use onceseal_core::effect::EffectRow;
use onceseal_core::id::ApprovalId;
use onceseal_core::journal::{Body, Draft, Event, Refs, Row, Stored};
use onceseal_core::reply::{Refusal, Reply};
use onceseal_core::stream::StreamId;
use onceseal_core::time::Timestamp;
use onceseal_core::view::{Halt, Loaded, Pinned, Range, View};
use onceseal_store::Parts;
use onceseal_store::StoreError;
use onceseal_store::backend::Changes;
use onceseal_store::conformance::tamper::{self, Found, Tamper};
use onceseal_store::executor::Decide;

/// A question to the rules.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) pinned: &'a Pinned,
    pub(crate) view: &'a View,
    pub(crate) command: &'a Stamped,
    pub(crate) now: Timestamp,
}

pub(crate) type Decided = Result<Verdict, Halt>;

impl Asked<'_> {
    pub(crate) fn command(&self) -> &Command {
        &self.command.command
    }

    /// The same asked of another command.
    pub(crate) fn with(self, command: Command, sound: &Decide) -> Decided {
        let command = Stamped { command, ..self.command.clone() };
        Asked { command: &command, ..self }.ask(sound)
    }

    /// The same asked with another view.
    pub(crate) fn seeing(self, view: &View, sound: &Decide) -> Decided {
        Asked { view, ..self }.ask(sound)
    }

    pub(crate) fn ask(self, sound: &Decide) -> Decided {
        sound(self.pinned, self.view, self.command, self.now)
    }

    pub(crate) fn effect(&self, stream: &StreamId) -> Option<EffectRow> {
        self.view.effect(stream).ok().flatten().cloned()
    }

    pub(crate) fn approval(&self, id: ApprovalId) -> Option<ApprovalRow> {
        self.view.approval(id).ok().flatten().cloned()
    }

    /// The view with another row of an effect.
    pub(crate) fn effect_as(&self, stream: &StreamId, change: impl FnOnce(&mut EffectRow)) -> View {
        self.row_as(stream, |row| {
            if let Row::Effect(row) = row {
                change(row);
            }
        })
    }

    /// The view with another row of an approval.
    pub(crate) fn approval_as(&self, id: ApprovalId, change: impl FnOnce(&mut ApprovalRow)) -> View {
        self.row_as(&StreamId::approval(id), |row| {
            if let Row::Approval(row) = row {
                change(row);
            }
        })
    }

    pub(crate) fn row_as(&self, stream: &StreamId, change: impl FnOnce(&mut Row)) -> View {
        let mut view = self.view.clone();
        if let Ok(Some(stored)) = self.view.stored(stream) {
            let mut stored = stored.clone();
            change(&mut stored.row);
            view.load(*stream, Loaded::Row(Arc::new(stored)));
        }
        view
    }

    /// The run that is asked about, and the approval that it presents or waits for.
    pub(crate) fn run(&self) -> Option<(&Run, Option<ApprovalId>)> {
        let Command::Run(run) = self.command() else { return None };
        let waits = run.action.and_then(|id| self.view.action(id).ok().flatten()?.approval);
        Some((run, run.approval.or(waits)))
    }
}

/// Other rules.
pub(crate) fn rule(
    mut parts: Parts,
    broken: impl Fn(Asked<'_>, &Decide) -> Decided + Send + Sync + 'static,
) -> Parts {
    let sound = parts.decide;
    parts.decide = Arc::new(move |pinned, view, command, now| {
        broken(Asked { pinned, view, command, now }, sound.as_ref())
    });
    parts
}

/// Other verdicts.
pub(crate) fn verdict(
    parts: Parts,
    change: impl Fn(Asked<'_>, &mut Verdict) + Send + Sync + 'static,
) -> Parts {
    rule(parts, move |asked, sound| {
        let mut verdict = asked.ask(sound)?;
        change(asked, &mut verdict);
        Ok(verdict)
    })
}

pub(crate) fn only(reply: impl Into<Reply>) -> Decided {
    Ok(Verdict { drafts: Vec::new(), renewals: Vec::new(), reply: reply.into() })
}

pub(crate) fn draft(stream: StreamId, refs: Refs, body: Body) -> Draft {
    Draft { stream, event: Event { refs, body }, payload: None }
}

/// The refusal that a verdict is, if it is one.
pub(crate) fn refusal(verdict: &mut Verdict) -> Option<&mut Refusal> {
    match &mut verdict.reply {
        Reply::Refused(refusal) => Some(refusal),
        _ => None,
    }
}

/// Another time.
pub(crate) fn timing(
    parts: Parts,
    change: impl FnMut(Timestamp) -> Timestamp + Send + Sync + 'static,
) -> Parts {
    struct Timing<F>(F);
    impl<F: FnMut(Timestamp) -> Timestamp + Send> Tamper for Timing<F> {
        fn now(&mut self, now: Timestamp) -> Timestamp {
            (self.0)(now)
        }
    }
    tampered(parts, Timing(change))
}

/// Other rows are loaded than are stored.
pub(crate) fn loading(parts: Parts, change: impl FnMut(&mut Stored) + Send + Sync + 'static) -> Parts {
    struct Loading<F>(F);
    impl<F: FnMut(&mut Stored) + Send> Tamper for Loading<F> {
        fn loaded(&mut self, _: &StreamId, mut loaded: Loaded) -> Loaded {
            if let Loaded::Row(stored) = &mut loaded {
                (self.0)(Arc::make_mut(stored));
            }
            loaded
        }
    }
    tampered(parts, Loading(change))
}

/// Other streams are found in a range than there are.
pub(crate) fn finding(parts: Parts, change: impl FnMut(&Range, &mut Found) + Send + Sync + 'static) -> Parts {
    struct Finding<F>(F);
    impl<F: FnMut(&Range, &mut Found) + Send> Tamper for Finding<F> {
        fn found(&mut self, range: &Range, mut found: Found) -> Found {
            (self.0)(range, &mut found);
            found
        }
    }
    tampered(parts, Finding(change))
}

/// Something else is saved than was decided.
pub(crate) fn saving(parts: Parts, change: impl FnMut(&mut Changes) + Send + Sync + 'static) -> Parts {
    struct Saving<F>(F);
    impl<F: FnMut(&mut Changes) + Send> Tamper for Saving<F> {
        fn saving(&mut self, mut changes: Changes) -> Result<Option<Changes>, StoreError> {
            (self.0)(&mut changes);
            Ok((!changes.rows.is_empty()).then_some(changes))
        }
    }
    tampered(parts, Saving(change))
}

pub(crate) fn tampered(mut parts: Parts, with: impl Tamper + 'static) -> Parts {
    parts.backend = tamper::backend(parts.backend, with);
    parts
}

/// The rows of effects that are about to be saved.
pub(crate) fn effects(changes: &mut Changes) -> impl Iterator<Item = (Option<EffectRow>, &mut EffectRow)> {
    changes.rows.iter_mut().filter_map(|change| {
        let before = change.before.as_ref().and_then(|before| match &before.row {
            Row::Effect(row) => Some(row.clone()),
            _ => None,
        });
        match &mut Arc::make_mut(&mut change.after).row {
            Row::Effect(row) => Some((before, row)),
            _ => None,
        }
    })
}

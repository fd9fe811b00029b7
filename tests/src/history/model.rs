//! What an effect is to its clients: one attempt at a time, and none after one
//! that happened or may have. Written from the promises, not from the rules.

use onceseal_core::code::Code;
use onceseal_core::effect::{EffectState, Outcome};

use super::{Answer, Call, Moment, Operation};

/// Where an effect stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Effect {
    /// The newest attempt; 0 before the first.
    fence: u64,
    /// The operation that was given it.
    by: u64,
    now: Now,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Now {
    #[default]
    New,
    /// Its lease ends between the two; the later is not known where whoever was
    /// given it was not told.
    Held { earliest: Moment, latest: Option<Moment> },
    /// So said the holder, or else a person.
    Known { happened: bool, by_holder: bool },
    /// Nobody knows; the holder may still say, unless it said that it does not know.
    Unknown { may_say: bool },
}

impl Effect {
    fn state(&self) -> Option<(EffectState, u64)> {
        let state = match self.now {
            Now::New => return None,
            Now::Held { .. } => EffectState::Executing,
            Now::Known { happened: true, .. } => EffectState::Committed,
            Now::Known { happened: false, .. } => EffectState::Failed,
            Now::Unknown { .. } => EffectState::Ambiguous,
        };
        Some((state, self.fence))
    }

    fn with(&self, now: Now) -> Effect {
        Effect { now, ..self.clone() }
    }

    /// Whether the lease may have been live, and may have been over, while this was
    /// being answered.
    fn lease(&self, operation: &Operation) -> (bool, bool) {
        let Now::Held { earliest, latest } = self.now else { return (false, false) };
        let may_be_live = latest.is_none_or(|latest| operation.invoked <= latest);
        let may_be_over = operation.answered.is_none_or(|answered| answered > earliest);
        (may_be_live, may_be_over)
    }

    /// Where it may stand after the operation, with each answer that it may have had.
    fn outcomes(&self, operation: &Operation) -> Vec<(Effect, Answer)> {
        let (live, over) = self.lease(operation);
        let lapsed = self.with(Now::Unknown { may_say: true });
        let stays = |answer| vec![(self.clone(), answer)];
        let refused = |code| stays(Answer::Refused(code));
        let given = |may: bool, effect: &Effect, answer| may.then(|| (effect.clone(), answer));
        match operation.call {
            Call::Read => stays(Answer::Is(self.state())),
            Call::Run { lease } => match self.now {
                Now::New | Now::Known { happened: false, .. } => vec![self.attempt(operation, lease)],
                Now::Known { happened: true, .. } => refused(Code::Duplicate),
                Now::Unknown { .. } => refused(Code::Ambiguous),
                Now::Held { .. } => given(live, self, Answer::Refused(Code::InProgress))
                    .into_iter()
                    .chain(given(over, &lapsed, Answer::Refused(Code::Ambiguous)))
                    .collect(),
            },
            Call::Lapse => given(!matches!(self.now, Now::Held { .. }) || live, self, Answer::Lapsed(false))
                .into_iter()
                .chain(given(over, &lapsed, Answer::Lapsed(true)))
                .collect(),
            Call::Resolve { fence, happened } => {
                let said = self.with(Now::Known { happened, by_holder: false });
                let state = if happened { EffectState::Committed } else { EffectState::Failed };
                let answer = Answer::Settled { state, repeated: false };
                let no =
                    Answer::Refused(if self.fence == 0 { Code::EffectUnknown } else { Code::NotAmbiguous });
                match self.now {
                    Now::Unknown { .. } if fence == self.fence => vec![(said, answer)],
                    Now::Held { .. } if fence == self.fence => {
                        given(live, self, no).into_iter().chain(given(over, &said, answer)).collect()
                    }
                    _ => stays(no),
                }
            }
            Call::Renew { by, fence, lease } => {
                let holds = (by, fence) == (self.by, self.fence);
                match self.now {
                    Now::Held { .. } if holds => (live.then(|| self.renewed(operation, lease)))
                        .into_iter()
                        .chain(given(over, &lapsed, Answer::Refused(Code::LeaseLapsed)))
                        .collect(),
                    Now::Held { .. } => given(live, self, Answer::Refused(Code::InProgress))
                        .into_iter()
                        .chain(given(over, self, Answer::Refused(Code::InvalidTransition)))
                        .collect(),
                    Now::Unknown { .. } => refused(Code::Ambiguous),
                    Now::Known { happened: true, .. } => refused(Code::Duplicate),
                    Now::Known { happened: false, .. } => refused(Code::InvalidTransition),
                    Now::New => refused(Code::EffectUnknown),
                }
            }
            Call::Settle { by, fence, outcome } => self.settled(by, fence, outcome),
        }
    }

    fn attempt(&self, operation: &Operation, lease: i64) -> (Effect, Answer) {
        let fence = self.fence + 1;
        let (now, answer) = match operation.answer {
            Answer::Given { until, .. } => {
                (Now::Held { earliest: until, latest: Some(until) }, Answer::Given { fence, until })
            }
            other => (Now::Held { earliest: operation.invoked + lease, latest: None }, other),
        };
        (Effect { fence, by: operation.id, now }, answer)
    }

    fn renewed(&self, operation: &Operation, lease: i64) -> (Effect, Answer) {
        let Now::Held { earliest, .. } = self.now else { return (self.clone(), operation.answer) };
        let (earliest, latest) = match operation.answer {
            Answer::Renewed { until } if until >= earliest => (until, Some(until)),
            // No renewal takes time away.
            Answer::Renewed { .. } => return (self.clone(), Answer::Unknown),
            _ => (earliest.max(operation.invoked + lease), None),
        };
        (self.with(Now::Held { earliest, latest }), operation.answer)
    }

    /// A report is judged by who makes it, not by when it comes.
    fn settled(&self, by: u64, fence: u64, outcome: Outcome) -> Vec<(Effect, Answer)> {
        let answer = |repeated| Answer::Settled { state: outcome.into(), repeated };
        let (says, now) = match outcome {
            Outcome::Committed => (true, Now::Known { happened: true, by_holder: true }),
            Outcome::Failed => (true, Now::Known { happened: false, by_holder: true }),
            Outcome::Ambiguous => (false, Now::Unknown { may_say: false }),
        };
        if (by, fence) != (self.by, self.fence) {
            return vec![(self.clone(), Answer::Refused(Code::Fenced))];
        }
        match self.now {
            Now::Held { .. } => vec![(self.with(now), answer(false))],
            Now::Unknown { may_say: true } if says => vec![(self.with(now), answer(false))],
            Now::Unknown { .. } if !says => vec![(self.clone(), answer(true))],
            Now::Unknown { .. } => vec![(self.clone(), Answer::Refused(Code::Ambiguous))],
            known if known == now => vec![(self.clone(), answer(true))],
            _ => vec![(self.clone(), Answer::Refused(Code::Fenced))],
        }
    }

    /// Where it may stand after the operation, given what was answered.
    pub(super) fn after(&self, operation: &Operation) -> Vec<Effect> {
        let told = operation.answered.is_some();
        let mut after: Vec<Effect> = Vec::new();
        for (effect, answer) in self.outcomes(operation) {
            if (!told || answer == operation.answer) && !after.contains(&effect) {
                after.push(effect);
            }
        }
        after
    }
}

//! What a holder, the remote and time do to an attempt.

use super::super::commands::Word;
use super::{By, Effect, Handle, Naive, Say, Stage, no, state_of};

/// A word that comes late names its action.
fn late(code: &'static str, handle: &Handle) -> Say {
    Say::No { code, action: Some(handle.action.unwrap_or(usize::MAX)), repeated: false }
}

impl Naive {
    pub(crate) fn reserve(&mut self, id: u8) -> Say {
        let key = format!("pay:{id}");
        if let Some(at) = self.effect(&key) {
            let effect = self.effects[at].clone();
            let code = match effect.state {
                "failed" => None,
                "committed" => Some("duplicate"),
                "ambiguous" => Some("ambiguous"),
                _ if self.live(&effect) => Some("in_progress"),
                _ => {
                    self.lapse(at);
                    Some("ambiguous")
                }
            };
            if let Some(code) = code {
                return no(code);
            }
        }
        let lease = self.now + 60;
        let fence = self.hold(key, None, lease, self.now + 86_400, false);
        Say::Attempt { action: usize::MAX, fence, begun: false, approval: None, lease }
    }

    /// Whether this is the newest attempt and its holder.
    fn holds(&self, at: usize, handle: &Handle) -> bool {
        self.effects[at].fence == handle.fence && self.effects[at].holder == handle.action
    }

    /// What somebody is told who does not hold it, or not so.
    fn wrong(&self, at: usize, handle: &Handle) -> Say {
        let effect = &self.effects[at];
        no(match effect.state {
            "ambiguous" => "ambiguous",
            "committed" => "duplicate",
            _ if !self.holds(at, handle) && self.live(effect) => "in_progress",
            _ => "invalid_transition",
        })
    }

    pub(crate) fn begin(&mut self, handle: &Handle) -> Say {
        let Some(at) = self.effect(&handle.key) else { return no("effect_unknown") };
        if !self.holds(at, handle) || self.effects[at].state != "reserved" {
            return self.wrong(at, handle);
        }
        if !self.live(&self.effects[at]) {
            self.lapse(at);
            return no("lease_lapsed");
        }
        self.effects[at].state = "executing";
        let Effect { fence, lease, .. } = self.effects[at];
        Say::Attempt {
            action: handle.action.unwrap_or(usize::MAX),
            fence,
            begun: true,
            approval: None,
            lease,
        }
    }

    pub(crate) fn renew(&mut self, handle: &Handle, length: i64) -> Say {
        if !(1..=86_400).contains(&length) {
            return no("out_of_bounds");
        }
        let Some(at) = self.effect(&handle.key) else { return no("effect_unknown") };
        if !self.holds(at, handle) || !self.effects[at].held() {
            return self.wrong(at, handle);
        }
        if !self.live(&self.effects[at]) {
            self.lapse(at);
            return no("lease_lapsed");
        }
        let effect = &mut self.effects[at];
        effect.lease = effect.lease.max(effect.deadline.min(self.now + length));
        Say::Renewed(effect.lease)
    }

    pub(crate) fn settle(&mut self, handle: &Handle, word: Word) -> Say {
        let Some(at) = self.effect(&handle.key) else { return no("effect_unknown") };
        let effect = self.effects[at].clone();
        let said = state_of(word);
        let known = word != Word::Ambiguous;
        if !self.holds(at, handle) {
            let held = Some((handle.key.clone(), handle.fence));
            let proven = handle.action.is_some_and(|action| self.actions[action].held == held);
            return if proven { late("fenced", handle) } else { self.wrong(at, handle) };
        }
        match effect.state {
            "executing" => self.answered(at, said, By::Holder),
            "reserved" if !known => self.answered(at, said, By::Holder),
            "reserved" => self.wrong(at, handle),
            "ambiguous" if !known => Say::Settled { state: said, repeated: true },
            "ambiguous" if effect.by == By::Nobody => self.answered(at, said, By::Holder),
            "ambiguous" => late("ambiguous", handle),
            state if state == said && effect.by == By::Holder => Say::Settled { state: said, repeated: true },
            _ => late("fenced", handle),
        }
    }

    /// The state that an answer brings, to the effect and to its action.
    pub(crate) fn answered(&mut self, at: usize, state: &'static str, by: By) -> Say {
        let effect = &mut self.effects[at];
        (effect.state, effect.by) = (state, by);
        let (holder, held) = (effect.holder, Some((effect.key.clone(), effect.fence)));
        if let Some(holder) = holder.filter(|holder| self.actions[*holder].held == held) {
            match self.actions[holder].stage {
                Stage::Running => {
                    let code = (state == "ambiguous").then_some("ambiguous");
                    self.end(holder, state, code);
                }
                Stage::Ended { result: "ambiguous", .. } => {
                    self.actions[holder].stage = Stage::Answered { result: state };
                }
                _ => {}
            }
        }
        Say::Settled { state, repeated: false }
    }

    pub(crate) fn reconcile(&mut self, handle: &Handle, happened: bool) -> Say {
        let Some(at) = self.effect(&handle.key) else { return no("effect_unknown") };
        let held = self.effects[at].held();
        if held && !self.live(&self.effects[at]) {
            self.lapse(at);
        }
        let effect = self.effects[at].clone();
        let existed = handle.fence >= 1 && handle.fence <= effect.fence;
        match effect.state {
            "committed" if happened && existed => Say::Settled { state: "committed", repeated: true },
            "executing" | "ambiguous" if happened && existed => self.answered(at, "committed", By::Other),
            "ambiguous" if !happened && handle.fence == effect.fence => {
                if self.now < effect.lease + 30 {
                    return no("too_early");
                }
                self.answered(at, "failed", By::Other)
            }
            _ => no("invalid_transition"),
        }
    }

    pub(crate) fn lapse_effect(&mut self, key: &str) -> Say {
        let lapsed = self.effect(key).filter(|at| self.effects[*at].held() && !self.live(&self.effects[*at]));
        if let Some(at) = lapsed {
            self.lapse(at);
        }
        Say::Done { changed: lapsed.is_some() }
    }

    pub(crate) fn lapse_action(&mut self, action: usize) -> Say {
        let over = matches!(self.actions[action].stage, Stage::Ready { until } if until < self.now);
        if over {
            self.end(action, "blocked", Some("not_started"));
        }
        Say::Done { changed: over }
    }
}

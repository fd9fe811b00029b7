//! Proposing, and going on with what was proposed.

use super::super::commands::{Content, Name, Reach};
use super::{Action, Approval, By, Effect, Naive, Say, Stage, key_of, no, same_rule, same_wish, verdict};

/// A call while it is answered.
struct Wish {
    content: Content,
    /// The action, if it is recorded; else it will be this one.
    action: usize,
    known: bool,
    reach: Reach,
    lease: i64,
    /// Whether this command has taken from the action what it waited for.
    stranded: bool,
}

/// Lease and deadline of the policies' entries.
fn times(name: Name) -> (i64, i64) {
    match name {
        Name::Pay => (60, 180),
        Name::Send => (60, 600),
        Name::Read | Name::Unlisted => (300, 600),
    }
}

fn fits(wish: &Wish) -> bool {
    (1..=times(wish.content.name).0).contains(&wish.lease)
}

impl Naive {
    pub(crate) fn run(
        &mut self,
        content: Content,
        again: Option<usize>,
        presented: Option<usize>,
        reach: Reach,
        lease: Option<u32>,
    ) -> Say {
        if again.is_some_and(|action| self.actions[action].content != content) {
            return no("id_reused");
        }
        let lease = lease.map_or(times(content.name).0, i64::from);
        let action = again.unwrap_or(self.actions.len());
        let known = again.is_some();
        self.proceed(Wish { content, action, known, reach, lease, stranded: false }, presented)
    }

    pub(crate) fn acquire(&mut self, action: usize, presented: Option<usize>, reach: Reach) -> Say {
        let content = self.actions[action].content;
        let lease = times(content.name).0;
        self.proceed(Wish { content, action, known: true, reach, lease, stranded: false }, presented)
    }

    fn proceed(&mut self, wish: Wish, mut presented: Option<usize>) -> Say {
        self.ended_here.clear();
        if wish.known {
            match self.actions[wish.action].stage.clone() {
                Stage::Ended { result, code, .. } => return Say::Ended { action: wish.action, result, code },
                Stage::Answered { result } => return Say::Ended { action: wish.action, result, code: None },
                Stage::Running => return self.running(wish.action),
                _ if !fits(&wish) => return no("out_of_bounds"),
                Stage::Ready { until } if until < self.now => {
                    return self.conclude(&wish, "blocked", "not_started", true);
                }
                Stage::Ready { .. } => {}
                Stage::Waiting { approval } => presented = presented.or(Some(approval)),
            }
        } else if !fits(&wish) {
            return no("out_of_bounds");
        }
        match verdict(self.policy, &wish.content) {
            "deny" => {
                self.outdated(&wish, presented);
                self.leave(&wish, None);
                self.conclude(&wish, "denied", "policy_denied", true)
            }
            "allow" => {
                let wish = Wish { stranded: self.outdated(&wish, presented), ..wish };
                self.take(&wish, None)
            }
            _ => match presented {
                None => self.ask(wish),
                Some(approval) => self.present(wish, approval),
            },
        }
    }

    fn running(&mut self, action: usize) -> Say {
        let (key, _) = self.actions[action].held.clone().expect("it holds one");
        let at = self.effect(&key).expect("its effect");
        if self.live(&self.effects[at]) {
            return Say::No { code: "in_progress", action: Some(action), repeated: false };
        }
        self.lapse(at);
        Say::Ended { action, result: "ambiguous", code: Some("lease_lapsed") }
    }

    /// An approval of this action that was given under another rule is void.
    /// Whether that was the one the action waits for.
    fn outdated(&mut self, wish: &Wish, presented: Option<usize>) -> bool {
        let Some(approval) = presented.filter(|approval| *approval < self.approvals.len()) else {
            return false;
        };
        let row = &self.approvals[approval];
        let void = row.content == wish.content && !same_rule(wish.content.name, row.policy, self.policy);
        if !row.open() || !void {
            return false;
        }
        let own = wish.known && self.actions[wish.action].stage == Stage::Waiting { approval };
        self.close(approval, "revoked", Some(wish.action));
        own
    }

    fn present(&mut self, wish: Wish, approval: usize) -> Say {
        let own = wish.known && self.actions[wish.action].stage == Stage::Waiting { approval };
        let Some(row) = self.approvals.get(approval).cloned() else {
            return self.conclude(&wish, "blocked", "approval_unknown", own);
        };
        let over = self.now > row.expires;
        let code = if row.content != wish.content {
            "approval_mismatch"
        } else if row.status == "pending" && own && !over {
            let (action, expires) = (wish.action, row.expires);
            return Say::Asked { action, approval, joined: true, expires };
        } else {
            match row.status {
                "pending" if own => "approval_expired",
                "granted" if over => "approval_expired",
                "granted" if !same_rule(row.content.name, row.policy, self.policy) => {
                    return self.anew(wish, approval, own);
                }
                "granted" if self.yeses(approval) < row.quorum => return self.anew(wish, approval, own),
                "granted" => return self.take(&wish, Some(approval)),
                "pending" => "approval_pending",
                "denied" => "approval_denied",
                "consumed" => "approval_used",
                "expired" => "approval_expired",
                _ => "approval_revoked",
            }
        };
        if code == "approval_expired" {
            self.close(approval, "expired", Some(wish.action).filter(|_| own));
        }
        let result = if code == "approval_denied" { "denied" } else { "blocked" };
        self.conclude(&wish, result, code, own)
    }

    fn anew(&mut self, wish: Wish, approval: usize, own: bool) -> Say {
        self.close(approval, "revoked", Some(wish.action).filter(|_| own));
        self.ask(Wish { stranded: wish.stranded || own, ..wish })
    }

    fn ask(&mut self, mut wish: Wish) -> Say {
        if let Some(code) = self.gate(&wish) {
            return self.conclude(&wish, "blocked", code, false);
        }
        let same = |approval: &Approval, policy| {
            approval.open()
                && approval.content == wish.content
                && same_rule(wish.content.name, approval.policy, policy)
        };
        let mut found = None;
        for at in 0..self.approvals.len() {
            if found.is_some() || !same(&self.approvals[at], self.policy) {
                continue;
            }
            if self.now <= self.approvals[at].expires {
                found = Some(at);
            } else {
                wish.stranded |=
                    wish.known && self.actions[wish.action].stage == Stage::Waiting { approval: at };
                self.close(at, "expired", Some(wish.action).filter(|_| wish.known));
            }
        }
        if let Some(approval) = found {
            let Approval { action, expires, status, .. } = self.approvals[approval].clone();
            if wish.stranded && action != wish.action {
                self.end(wish.action, "blocked", Some("approval_revoked"));
            }
            if status == "pending" {
                return Say::Asked { action, approval, joined: true, expires };
            }
            if self.actions[action].stage == (Stage::Waiting { approval }) {
                wish = Wish { action, known: true, stranded: false, ..wish };
            }
            return self.present(wish, approval);
        }
        let no = |row: &Approval| {
            row.status == "denied" && same_wish(&row.content, &wish.content) && self.now <= row.expires
        };
        if self.approvals.iter().any(no) {
            return self.conclude(&wish, "denied", "approval_denied", true);
        }
        self.leave(&wish, None);
        let (content, policy, action) = (wish.content, self.policy, wish.action);
        let (expires, quorum) = (self.now + 120, if content.name == Name::Pay { 2 } else { 1 });
        let approval = self.approvals.len();
        let (status, said) = ("pending", Vec::new());
        self.approvals.push(Approval { content, policy, action, expires, quorum, status, said });
        self.record(&wish, Stage::Waiting { approval });
        Say::Asked { action, approval, joined: false, expires }
    }

    /// What the action waited for until now is void: it goes on otherwise.
    fn leave(&mut self, wish: &Wish, with: Option<usize>) {
        if let Some(Stage::Waiting { approval }) =
            self.actions.get(wish.action).map(|action| action.stage.clone())
            && wish.known
            && Some(approval) != with
        {
            self.close(approval, "revoked", Some(wish.action));
        }
    }

    fn record(&mut self, wish: &Wish, stage: Stage) {
        if wish.known {
            self.actions[wish.action].stage = stage;
        } else {
            self.actions.push(Action { content: wish.content, stage, held: None });
        }
    }

    /// The retry table: why no attempt may start now.
    fn gate(&mut self, wish: &Wish) -> Option<&'static str> {
        let at = self.effect(&key_of(&wish.content, wish.action))?;
        let effect = self.effects[at].clone();
        let code = match effect.state {
            "failed" if wish.content.name == Name::Pay && effect.fence >= 3 => "attempt_limit",
            "failed" => return None,
            "committed" => "duplicate",
            "ambiguous" => "ambiguous",
            _ if self.live(&effect) => "in_progress",
            _ => {
                self.lapse(at);
                "ambiguous"
            }
        };
        let other =
            effect.holder.is_some_and(|holder| !same_wish(&self.actions[holder].content, &wish.content));
        Some(if other && matches!(code, "duplicate" | "in_progress") { "effect_key_conflict" } else { code })
    }

    fn take(&mut self, wish: &Wish, approval: Option<usize>) -> Say {
        if let Some(code) = self.gate(wish) {
            return self.conclude(wish, "blocked", code, false);
        }
        let action = wish.action;
        if wish.reach == Reach::Ready {
            return self.ready(wish, approval);
        }
        if let Some(approval) = approval {
            let row = &mut self.approvals[approval];
            row.status = "consumed";
            let asked_for = row.action;
            if asked_for != action && self.actions[asked_for].stage == (Stage::Waiting { approval }) {
                self.end(asked_for, "blocked", Some("approval_used"));
            }
        }
        self.leave(wish, approval);
        let key = key_of(&wish.content, action);
        let begun = wish.reach == Reach::Executing;
        let deadline = self.now + times(wish.content.name).1;
        let lease = self.now + wish.lease;
        let fence = self.hold(key.clone(), Some(action), lease, deadline, begun);
        self.record(wish, Stage::Running);
        self.actions[action].held = Some((key, fence));
        Say::Attempt { action, fence, begun, approval, lease }
    }

    fn ready(&mut self, wish: &Wish, approval: Option<usize>) -> Say {
        let action = wish.action;
        if let Some(Stage::Ready { until }) =
            self.actions.get(action).filter(|_| wish.known).map(|action| &action.stage)
        {
            return Say::Ready { action, until: *until };
        }
        let mut until = self.now + 900;
        if let Some(approval) = approval {
            let Approval { action: asker, expires, .. } = self.approvals[approval];
            if self.actions[asker].stage == (Stage::Waiting { approval }) {
                return Say::Ready { action: asker, until: expires };
            }
            until = until.min(expires);
        }
        self.leave(wish, None);
        self.record(wish, Stage::Ready { until });
        Say::Ready { action, until }
    }

    pub(crate) fn hold(
        &mut self,
        key: String,
        holder: Option<usize>,
        lease: i64,
        deadline: i64,
        begun: bool,
    ) -> u64 {
        let at = self.effect(&key);
        let fence = at.map_or(1, |at| self.effects[at].fence + 1);
        let state = if begun { "executing" } else { "reserved" };
        let effect = Effect { key, state, fence, holder, lease, deadline, by: By::Nobody };
        match at {
            Some(at) => self.effects[at] = effect,
            None => self.effects.push(effect),
        }
        fence
    }

    /// A "no". A new action ends by it, unless the same was refused within a
    /// minute; a recorded one ends if it is final for it.
    fn conclude(&mut self, wish: &Wish, result: &'static str, code: &'static str, terminal: bool) -> Say {
        let action = Some(wish.action);
        if wish.known {
            if terminal || wish.stranded {
                self.end(wish.action, result, Some(code));
            }
            return Say::No { code, action, repeated: false };
        }
        let since = self.now - 60;
        let same = |(at, action): (usize, &Action)| match action.stage {
            Stage::Ended { code: Some(was), at: when, result } => {
                let refusal = was == code && when >= since && matches!(result, "denied" | "blocked");
                refusal && action.content == wish.content && !self.ended_here.contains(&at)
            }
            _ => false,
        };
        if self.actions.iter().enumerate().any(same) {
            // Which of several that ended in the same moment is not said.
            return Say::No { code, action: None, repeated: true };
        }
        self.actions.push(Action { content: wish.content, stage: Stage::Running, held: None });
        self.end(wish.action, result, Some(code));
        Say::No { code, action, repeated: false }
    }
}

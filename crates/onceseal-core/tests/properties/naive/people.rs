//! What people say.

use super::super::commands::{Agent, PEOPLE};
use super::{By, Handle, Naive, Say, agent_name, entitled, name_of, no, same_rule};

impl Naive {
    pub(crate) fn answer(&mut self, approval: usize, person: usize, yes: bool, shown: bool) -> Say {
        let row = self.approvals[approval].clone();
        let takes_back = row.status == "granted" && !yes;
        let last = row.said.iter().rev().find(|(who, _)| *who == person);
        let again = last.is_some_and(|(_, said)| *said == yes);
        let repeated =
            |naive: &Naive| Say::Approval { status: row.status, yes: naive.yeses(approval), repeated: true };
        if row.status != "pending" && !takes_back {
            return if again { repeated(self) } else { no("approval_decided") };
        }
        if self.now > row.expires {
            self.close(approval, "expired", None);
            return no("approval_expired");
        }
        if row.status == "pending" && !same_rule(row.content.name, row.policy, self.policy) {
            self.close(approval, "revoked", None);
            return no("approval_revoked");
        }
        if again {
            return repeated(self);
        }
        let who = PEOPLE[person];
        if !entitled(self.policy, row.content.name, who) || who.starts_with("os:") && who != "os:owner" {
            return no("not_entitled");
        }
        if name_of(who) == agent_name(row.content.agent) {
            return no("agent_cannot_answer");
        }
        if !shown {
            return no("shown_differs");
        }
        let before = self.yeses(approval);
        self.approvals[approval].said.push((person, yes));
        if takes_back {
            self.close(approval, "revoked", None);
            return Say::Approval { status: "revoked", yes: before, repeated: false };
        }
        let count = self.yeses(approval);
        let status = match yes {
            false => "denied",
            true if count >= row.quorum => "granted",
            true => "pending",
        };
        self.approvals[approval].status = status;
        let waits = self.actions[row.action].stage == super::Stage::Waiting { approval };
        if status == "denied" && waits {
            self.end(row.action, "denied", Some("approval_denied"));
        }
        Say::Approval { status, yes: count, repeated: false }
    }

    pub(crate) fn revoke(&mut self, approval: usize, person: usize) -> Say {
        let row = self.approvals[approval].clone();
        let requester = row.content.agent == Agent::Ada && name_of(PEOPLE[person]) == "uma";
        if !requester && PEOPLE[person] != "host:opal" {
            return no("not_operator");
        }
        let yes = self.yeses(approval);
        if row.status == "revoked" {
            return Say::Approval { status: "revoked", yes, repeated: true };
        }
        if !row.open() {
            return no("approval_decided");
        }
        if self.now > row.expires {
            self.close(approval, "expired", None);
            return no("approval_expired");
        }
        self.close(approval, "revoked", None);
        Say::Approval { status: "revoked", yes, repeated: false }
    }

    pub(crate) fn resolve(&mut self, handle: &Handle, happened: bool, person: usize) -> Say {
        if PEOPLE[person] != "host:opal" {
            return no("not_operator");
        }
        let Some(at) = self.effect(&handle.key) else { return no("effect_unknown") };
        let effect = self.effects[at].clone();
        let lapses = effect.held() && !self.live(&effect);
        if effect.fence != handle.fence || effect.state != "ambiguous" && !lapses {
            return no("not_ambiguous");
        }
        if lapses {
            self.lapse(at);
        }
        self.answered(at, if happened { "committed" } else { "failed" }, By::Other)
    }

    pub(crate) fn lapse_approval(&mut self, approval: usize) -> Say {
        let row = self.approvals[approval].clone();
        if row.open() && self.now > row.expires {
            self.close(approval, "expired", None);
            return Say::Done { changed: true };
        }
        let void = row.status == "pending" && !same_rule(row.content.name, row.policy, self.policy);
        if void {
            self.close(approval, "revoked", None);
        }
        Say::Done { changed: void }
    }
}

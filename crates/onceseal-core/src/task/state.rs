//! The states of a task, and which may follow on which.

use crate::record::word;

word! {
    /// Where a task stands.
    pub enum TaskState {
        /// Tasks that it depends on are not verified.
        Pending = 1 => "pending",
        /// It waits for its turn.
        Queued = 2 => "queued",
        /// It was interrupted, and goes before all that are queued.
        Ready = 3 => "ready",
        /// A worker is at it.
        Running = 4 => "running",
        /// What the worker made is looked at.
        Validating = 5 => "validating",
        /// What it made must be mended first.
        Repairable = 6 => "repairable",
        /// It may be attempted again as it is.
        Retryable = 7 => "retryable",
        /// It waits until somebody lets it go on.
        Paused = 8 => "paused",
        /// It waits for a person's approval.
        ApprovalNeeded = 9 => "approval_needed",
        /// It cannot be done.
        Failed = 10 => "failed",
        /// It is done, and that is proven.
        Verified = 11 => "verified",
        /// It is in the plan no more.
        Closed = 12 => "closed",
    }
}

impl TaskState {
    /// What may follow while the plan stays as it is. A new plan may put any task
    /// back to the start, or close it.
    #[must_use]
    pub const fn next(self) -> &'static [TaskState] {
        use TaskState as S;
        const STOPS: &[TaskState] =
            &[S::Validating, S::Repairable, S::Retryable, S::Paused, S::ApprovalNeeded, S::Failed];
        // From validating the next phase runs, if there is one.
        const JUDGED: &[TaskState] =
            &[S::Running, S::Verified, S::Repairable, S::Retryable, S::Paused, S::ApprovalNeeded, S::Failed];
        match self {
            S::Pending => &[S::Queued],
            S::Queued | S::Ready => &[S::Running],
            S::Running => STOPS,
            S::Validating => JUDGED,
            S::Repairable | S::Paused | S::ApprovalNeeded => &[S::Queued],
            S::Retryable => &[S::Queued, S::Ready],
            S::Failed | S::Verified | S::Closed => &[],
        }
    }

    /// Whether a worker is at it.
    #[must_use]
    pub const fn is_worked_on(self) -> bool {
        matches!(self, TaskState::Running | TaskState::Validating)
    }

    /// Whether it stopped without having been done.
    #[must_use]
    pub const fn is_stop(self) -> bool {
        use TaskState as S;
        matches!(self, S::Repairable | S::Retryable | S::Paused | S::ApprovalNeeded | S::Failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_state_may_follow_on_which_is_this_table() {
        let row = |state: &TaskState| {
            let next: Vec<_> = state.next().iter().map(|next| next.as_str()).collect();
            format!("{state:<16} {}", next.join(" ")).trim_end().to_owned()
        };
        let table: Vec<_> = TaskState::ALL.iter().map(row).collect();
        insta::assert_snapshot!(table.join("\n"));
    }
}

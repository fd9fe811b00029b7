//! The kinds of commands, so that none is left out.

use onceseal_core::command::Command;

macro_rules! kinds {
    ($($kind:ident)*) => {
        /// Every kind.
        pub(crate) const ALL: &[&str] = &[$(stringify!($kind)),*];

        /// A command's kind.
        pub(crate) fn kind(command: &Command) -> &'static str {
            match command {
                $(Command::$kind { .. } => stringify!($kind),)*
            }
        }
    };
}

kinds! {
    Run Acquire Reserve Begin Renew Settle Reconcile Resolve Lapse Answer Revoke Activate Accept Note
    Dispatch Claim GiveBack Postpone Query Retry Cancel TryRoute ReportRoute CloseRoute
    StartRun BindChange BindDeliveries Transition PlanTasks TakeTask MoveTask QueueTask GrantAttempts
    AcquireLease RenewLease CommitLease InterruptLease PrepareHandoff AcceptHandoff WithdrawHandoff
    Declare Create
}

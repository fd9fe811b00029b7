//! What is recorded of tasks and of plans.

use crate::hash::Hash;
use crate::id::{HolderId, RunId};
use crate::record::record;
use crate::stream::StreamId;
use crate::task::{Claim, TaskState};

record! {
    /// A run's plan was set.
    pub struct Planned {
        /// How many tasks may be worked on at once.
        capacity: u32,
        /// The plan's digest, blinded.
        plan: Hash,
        /// The delivery revision that it is for.
        revision: u64,
        /// The run.
        run: RunId,
        /// How many tasks it has.
        tasks: u32,
    }
}

record! {
    /// A task is in the plan as it is said here.
    pub struct Added {
        /// How often each obligation may be attempted.
        attempts: u32,
        /// What it has while it is worked on.
        claims: Vec<Claim>,
        /// Streams of the tasks that it depends on.
        depends_on: Vec<StreamId>,
        /// Its number in the plan.
        number: u32,
        /// What it goes through.
        phases: Vec<String>,
        /// The run.
        run: RunId,
        /// The digest of what it is, blinded.
        spec: Hash,
        /// Where it begins.
        state: TaskState,
    }
}

record! {
    /// Private part of a task: its id, and what it is.
    pub struct AddedSealed {
        /// Its id.
        id: Option<String>,
        /// Reference of the text, this event's payload.
        text: Option<Hash>,
    }
}

record! {
    /// A task has another number in the plan, and is what it was.
    pub struct Renumbered {
        /// The number.
        number: u32,
    }
}

record! {
    /// A task waits for its turn.
    pub struct Queued {
        /// Queued, or ready.
        state: TaskState,
    }
}

record! {
    /// A worker took the task.
    pub struct TaskTaken {
        /// The number of the lease on it.
        fence: u64,
        /// Who holds that.
        holder: HolderId,
    }
}

record! {
    /// A task went on, or stopped.
    pub struct TaskMoved {
        /// Why, in a word, if it stopped.
        code: Option<String>,
        /// What the fact is of.
        fact: Option<String>,
        /// From this state.
        from: TaskState,
        /// The phase that it is in now.
        phase: u32,
        /// To this one.
        to: TaskState,
    }
}

record! {
    /// Private part of a move: the fact, and who recorded it.
    pub struct TaskMovedSealed {
        /// Who recorded it.
        agent: Option<String>,
        /// In which environment it was found.
        environment: Option<String>,
        /// Digest of the evidence.
        hash: Option<Hash>,
        /// Who stands for it.
        produced_by: Option<String>,
        /// On whose behalf.
        user: Option<String>,
    }
}

record! {
    /// A person gave a task its attempts back.
    pub struct Granted {
        /// How the person was proven.
        proof: crate::approval::Proof,
    }
}

record! {
    /// A task is in the plan no more.
    pub struct Dropped {
    }
}

//! Operations: intents that are stored, and carried out later by a worker.

mod identity;

pub use identity::{CallIdentity, HostContextError, Profile, Purpose, Revisions, Scope, principal_ref};

//! Rules broken on purpose, and the promise that tells of each.

mod approvals;
mod attempts;

pub(crate) use approvals::approvals;
pub(crate) use attempts::attempts;

use crate::broken::Broken;
use crate::protocol::Bounds;

/// A broken rule, where it is looked for, and what tells.
pub(crate) struct Mutant {
    pub(crate) name: &'static str,
    pub(crate) bounds: Bounds,
    pub(crate) rules: Broken,
    pub(crate) promise: &'static str,
}

const fn plain(holders: usize, asks: usize) -> Bounds {
    Bounds { holders, asks, remote: false, leases: false }
}

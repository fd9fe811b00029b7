//! What a task has while it is worked on, and whether two may be at once.
//!
//! Names are blinded: whoever reads rows learns which tasks get in each other's
//! way, not by what.

use std::collections::BTreeMap;

use crate::hash::Hash;
use crate::id::{RootId, RunId};
use crate::record::record;
use crate::stream::Tenant;
use crate::task::Spec;

record! {
    /// Something that a task has while it is worked on.
    pub struct Claim {
        /// What it is a part of.
        above: Vec<Hash>,
        /// Whether another task may have it too that claims it so.
        shared: bool,
        /// What it is.
        what: Hash,
    }
}

/// What a task of a run claims: itself, its resources, and the paths it reads and
/// writes. The tasks that it must not run beside it shares with others that must
/// not.
pub(super) fn of(tenant: &Tenant, run: RunId, root: RootId, spec: &Spec) -> Vec<Claim> {
    let named = |kind: &str, name: &str| tenant.lookup(&format!("{run}/{kind}/{name}"));
    let whole = |shared, what| Claim { above: Vec::new(), shared, what };
    let mut claims = vec![whole(false, named("task", &spec.id))];
    claims.extend(spec.conflicts.iter().map(|task| whole(true, named("task", task))));
    claims.extend(spec.resources.iter().map(|resource| whole(false, named("resource", resource))));
    for (paths, shared) in [(&spec.reads, true), (&spec.writes, false)] {
        claims.extend(paths.iter().map(|path| {
            let at = |length: usize| tenant.lookup(&format!("{root}/path/{}", path[..length].join("/")));
            Claim { above: (1..path.len()).map(at).collect(), shared, what: at(path.len()) }
        }));
    }
    claims
}

/// What is claimed by some tasks.
#[derive(Default)]
pub(super) struct Claimed {
    /// Whether each is claimed shared.
    exactly: BTreeMap<Hash, bool>,
    /// Of what a part is claimed, and whether all parts are shared.
    within: BTreeMap<Hash, bool>,
}

impl Claimed {
    /// Adds what another task claims.
    pub(super) fn add(&mut self, claims: &[Claim]) {
        for Claim { above, shared, what } in claims {
            let add = |to: &mut BTreeMap<Hash, bool>, what: Hash| {
                to.entry(what).and_modify(|all| *all &= shared).or_insert(*shared);
            };
            add(&mut self.exactly, *what);
            above.iter().for_each(|above| add(&mut self.within, *above));
        }
    }

    /// Whether a task with these claims has room beside those that were added.
    pub(super) fn has_room_for(&self, claims: &[Claim]) -> bool {
        claims.iter().all(|Claim { above, shared, what }| {
            let fits = |claimed: Option<&bool>| claimed.is_none_or(|all_shared| *all_shared && *shared);
            fits(self.exactly.get(what))
                && fits(self.within.get(what))
                && above.iter().all(|above| fits(self.exactly.get(above)))
        })
    }
}

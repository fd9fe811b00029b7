//! Tools: what a worker may be asked to carry out, fixed by hash.
//!
//! Several contracts of one tool may be active at once, so that what was
//! accepted under one is carried out under it while another takes over.

mod contract;
pub mod event;

use std::sync::Arc;

use crate::case::Case;
use crate::hash::Hash;
use crate::journal::{Body, Event, Refs};
use crate::pack::Corrupt;
use crate::record::record;
use crate::reply::Reply;
use crate::time::Timestamp;
use crate::view::Halt;

pub use contract::{Contract, ContractError, Recovery, Tool};
use event::{Activated, ActivatedSealed, Retired};

record! {
    /// The row of a tool.
    pub struct ToolRow {
        /// The contracts under which it is dispatched or carried out.
        active: Vec<Hash>,
        /// When its first contract was made active.
        created_at: Timestamp,
        /// When its newest event was recorded.
        updated_at: Timestamp,
    }
}

/// How many contracts of one tool may be active; beyond it the oldest goes, and
/// with it what still waits under it is parked.
const ACTIVE_MAX: usize = 64;

/// Make a contract of a tool active, or active no more.
#[derive(Debug, Clone)]
pub enum Declare {
    /// It may be dispatched and carried out.
    Activate(Arc<Tool>),
    /// It is neither dispatched nor carried out any more.
    Retire {
        /// The tool's name.
        name: String,
        /// The contract.
        contract: Hash,
    },
}

impl Declare {
    pub(crate) fn name(&self) -> &str {
        match self {
            Declare::Activate(tool) => &tool.contract.identity.name,
            Declare::Retire { name, .. } => name,
        }
    }
}

pub(crate) fn declare(case: &mut Case<'_>, declare: &Declare) -> Result<Reply, Halt> {
    match declare {
        Declare::Activate(tool) => {
            let stream = case.pinned.tenant.tool(&tool.contract.identity.name);
            let active = case.view.tool(&stream)?.map_or(&[][..], |row| &row.active);
            if active.contains(&tool.digest) {
                return Ok(Reply::Done { changed: false });
            }
            if let (true, Some(oldest)) = (active.len() >= ACTIVE_MAX, active.first().copied()) {
                let body = Body::ToolRetired(Retired { contract: oldest }, crate::journal::Nothing {});
                case.record(stream, Refs::NONE, body);
            }
            let payload = case.payload(&tool.text);
            let sealed = ActivatedSealed {
                name: Some(tool.contract.identity.name.clone()),
                text: Some(payload.hash()),
            };
            let body = Body::ToolActivated(Activated { contract: tool.digest }, sealed);
            case.record_with(stream, Refs::NONE, body, Some(payload));
        }
        Declare::Retire { name, contract } => {
            let stream = case.pinned.tenant.tool(name);
            if !case.view.tool(&stream)?.is_some_and(|row| row.active.contains(contract)) {
                return Ok(Reply::Done { changed: false });
            }
            let body = Body::ToolRetired(Retired { contract: *contract }, crate::journal::Nothing {});
            case.record(stream, Refs::NONE, body);
        }
    }
    Ok(Reply::Done { changed: true })
}

/// The row after one more event.
///
/// # Errors
/// [`Corrupt`] for an event that cannot follow.
pub fn evolve(row: Option<ToolRow>, at: Timestamp, event: &Event) -> Result<ToolRow, Corrupt> {
    const WRONG: Corrupt = Corrupt("sequence of a tool's events");
    let mut row = row.unwrap_or(ToolRow { active: Vec::new(), created_at: at, updated_at: at });
    match &event.body {
        Body::ToolActivated(data, _) if !row.active.contains(&data.contract) => {
            row.active.push(data.contract)
        }
        Body::ToolRetired(data, _) if row.active.contains(&data.contract) => {
            row.active.retain(|contract| *contract != data.contract);
        }
        _ => return Err(WRONG),
    }
    row.updated_at = at;
    Ok(row)
}

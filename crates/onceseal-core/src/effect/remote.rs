//! What a remote calls what it did: each of its receipts, and each of its names
//! of a request, proves one effect of its tool.

use crate::case::Case;
use crate::effect::event::RemoteReceipt;
use crate::hash::{BlindingKey, Hash};
use crate::id::ActionId;
use crate::journal::{Index, Key};
use crate::json;
use crate::limits;
use crate::stream::StreamId;
use crate::view::{Halt, Range};

impl RemoteReceipt {
    /// Nothing is known.
    pub const NONE: RemoteReceipt =
        RemoteReceipt { observed_at: None, receipt_id: None, request_id: None, revision: None };

    pub(super) fn is_fit(&self) -> bool {
        let texts = [&self.receipt_id, &self.request_id, &self.revision];
        texts.into_iter().flatten().all(|text| limits::is_name(text))
    }

    /// The receipt and the request, as they are looked for: HMAC-SHA-256(blinding
    /// key, `onceseal.remote.v1\n` ‖ canonical [tool, `receipt` or `request`, id]).
    fn names(&self, key: &BlindingKey, tool: &str) -> [Option<Hash>; 2] {
        let name = |kind: &str, id: &Option<String>| {
            let id = id.as_ref()?;
            let mut text = String::from("[");
            for (part, end) in [(tool, ','), (kind, ','), (id.as_str(), ']')] {
                json::write_text(part, &mut text);
                text.push(end);
            }
            Some(Hash(key.mac(&[b"onceseal.remote.v1\n", text.as_bytes()])))
        };
        [name("receipt", &self.receipt_id), name("request", &self.request_id)]
    }
}

/// The key under which the effect is found that it proves.
pub(super) fn key(name: Hash) -> Key {
    Key::of(Index::Remote, &[&name.0])
}

/// What the remote's word names, blinded; `None` if some of it proves another
/// effect.
pub(super) fn proof(
    case: &Case<'_>,
    effect: &StreamId,
    action: ActionId,
    remote: Option<&RemoteReceipt>,
) -> Result<Option<[Option<Hash>; 2]>, Halt> {
    let Some(remote) = remote else { return Ok(Some([None; 2])) };
    let tool = case.view.action(action)?.and_then(|row| row.private.proposal.as_ref());
    // Without a name there is no tool that it could be a receipt of.
    let Some(tool) = tool.map(|proposal| proposal.name.as_str()) else { return Ok(Some([None; 2])) };
    let names = remote.names(&case.pinned.tenant.key, tool);
    for name in names.iter().flatten() {
        let found = case.view.range(&Range { limit: 2, ..Range::equal(key(*name)) })?;
        if found.iter().any(|stream| *stream != *effect) {
            return Ok(None);
        }
    }
    Ok(Some(names))
}

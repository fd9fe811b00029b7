//! Numbering, salting and chaining of events: the one way into a stream.

use std::fmt;

use crate::command::Stamped;
use crate::hash::{Hash, write_hex};
use crate::journal::{Event, Head};
use crate::record::{Json, member};
use crate::stream::{StreamId, Tenant};
use crate::time::Timestamp;

/// An event as `decide` returns it, with the stream it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Whose event it is.
    pub stream: StreamId,
    /// What happened.
    pub event: Event,
    /// The canonical text that the event's payload reference names.
    pub payload: Option<Payload>,
}

/// Text kept beside an event, named in its sealed part by
/// SHA-256(`onceseal.payload.v1\n` ‖ salt ‖ text).
#[derive(Clone, PartialEq, Eq)]
pub struct Payload {
    /// The salt, which lies with the text and goes with it.
    pub salt: [u8; 32],
    /// Canonical JSON text.
    pub text: String,
}

/// Without the text: it may hold what is redacted.
impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payload").field("hash", &self.hash()).finish_non_exhaustive()
    }
}

impl Payload {
    /// The reference that events carry.
    #[must_use]
    pub fn hash(&self) -> Hash {
        Hash::of("onceseal.payload.v1\n", &[&self.salt, self.text.as_bytes()])
    }
}

/// Where and when an event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The stream.
    pub stream: StreamId,
    /// Its number in the stream, from 1.
    pub sequence: u64,
    /// When it was recorded.
    pub at: Timestamp,
    /// The command that caused it.
    pub command: [u8; 16],
    /// Its place among the command's events, from 1.
    pub part: u32,
    /// How many events the command caused.
    pub of: u32,
}

/// An event as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Where and when.
    pub stamp: Stamp,
    /// What.
    pub event: Event,
    /// Salt and seal of the private part, if there is one.
    pub sealed: Option<([u8; 32], Hash)>,
    /// Hash over the open part, in which the stream's previous hash stands.
    pub hash: Hash,
    /// The text kept beside it.
    pub payload: Option<Payload>,
}

/// The canonical text of the sealed part; `None` if nothing is private.
#[must_use]
pub fn sealed_text(event: &Event) -> Option<String> {
    let mut text = String::with_capacity(256);
    event.body.write_sealed(&mut text);
    (text != "{}").then_some(text)
}

/// SHA-256(`onceseal.seal.v1\n` ‖ salt ‖ sealed text).
#[must_use]
pub fn seal_hash(salt: &[u8; 32], text: &str) -> Hash {
    Hash::of("onceseal.seal.v1\n", &[salt, text.as_bytes()])
}

/// The canonical text of the open part.
#[must_use]
pub fn open_text(stamp: &Stamp, event: &Event, prior: Hash, seal: Option<Hash>) -> String {
    let mut text = String::with_capacity(640);
    text.push_str("{\"at\":");
    stamp.at.json(&mut text);
    text.push_str(",\"command\":\"");
    write_hex(&stamp.command, &mut text);
    text.push_str("\",\"data\":");
    event.body.write_data(&mut text);
    member("kind", &event.body.kind(), &mut text);
    member("of", &stamp.of, &mut text);
    member("part", &stamp.part, &mut text);
    member("prior", &prior, &mut text);
    member("refs", &event.refs, &mut text);
    match seal {
        Some(seal) => member("seal", &seal, &mut text),
        None => text.push_str(",\"seal\":null"),
    }
    member("sequence", &stamp.sequence, &mut text);
    member("stream", &stamp.stream, &mut text);
    text.push_str(",\"v\":1}");
    text
}

/// SHA-256(`onceseal.event.v1\n` ‖ open text).
#[must_use]
pub fn chain_hash(open: &str) -> Hash {
    Hash::of("onceseal.event.v1\n", &[open.as_bytes()])
}

/// Numbers, salts and chains the events of one command, in the order `decide`
/// returned them. `head` answers where a stream ends before the command.
pub fn seal(
    tenant: &Tenant,
    command: &Stamped,
    now: Timestamp,
    drafts: Vec<Draft>,
    mut head: impl FnMut(&StreamId) -> Option<Head>,
) -> Vec<Recorded> {
    let of = u32::try_from(drafts.len()).unwrap_or(u32::MAX);
    let id = command.id();
    let mut recorded: Vec<Recorded> = Vec::with_capacity(drafts.len());
    for (part, Draft { stream, event, payload }) in (1..).zip(drafts) {
        let earlier = recorded.iter().rev().find(|r| r.stamp.stream == stream);
        let before = match earlier {
            Some(r) => Some(Head { sequence: r.stamp.sequence, hash: r.hash }),
            None => head(&stream),
        };
        let (sequence, prior) = match before {
            Some(head) => (head.sequence + 1, head.hash),
            None => (1, tenant.genesis(&stream)),
        };
        let stamp = Stamp { stream, sequence, at: now, command: id, part, of };
        let sealed = sealed_text(&event).map(|text| {
            let salt = command.salt(part);
            (salt, seal_hash(&salt, &text))
        });
        let hash = chain_hash(&open_text(&stamp, &event, prior, sealed.map(|(_, seal)| seal)));
        recorded.push(Recorded { stamp, event, sealed, hash, payload });
    }
    recorded
}

//! Streams: whose events they are, and how they are named.

use std::fmt;

use crate::action::Action;
use crate::hash::{BlindingKey, Hash, read_hex, write_hex};
use crate::id::{ActionId, ApprovalId, HolderId, HolderKey, RunId};
use crate::operation::CallIdentity;
use crate::pack::{Corrupt, Pack, take};
use crate::record::{Json, word};

word! {
    /// What a stream is about.
    pub enum StreamKind {
        /// One action.
        Action = 1 => "action",
        /// One approval.
        Approval = 2 => "approval",
        /// One effect.
        Effect = 3 => "effect",
        /// The tenant's active policy.
        Policy = 4 => "policy",
        /// The store itself.
        Store = 5 => "store",
        /// Foreign evidence.
        Note = 6 => "note",
        /// What a worker may be asked to carry out.
        Tool = 7 => "tool",
        /// A model's call, by the identity its provider gives it.
        Call = 8 => "call",
        /// Whether a destination of tools answers.
        Route = 9 => "route",
        /// What runs go through.
        Definition = 10 => "definition",
        /// One run.
        Run = 11 => "run",
        /// What was asked of a run, by the id the asker gave it.
        Request = 12 => "request",
        /// Who holds a resource.
        Lease = 13 => "lease",
        /// What was bound at a gate of a run, once.
        Delivery = 14 => "delivery",
        /// A task of a run.
        Task = 15 => "task",
        /// The tasks of a run together.
        Plan = 16 => "plan",
        /// Control of a resource that passes from one holder to another.
        Handoff = 17 => "handoff",
    }
}

/// A stream of one tenant: its kind and its opaque 16-byte name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// What it is about.
    pub kind: StreamKind,
    /// A random id's bytes, or the blinded clear name.
    pub name: [u8; 16],
}

impl StreamId {
    /// The stream of an action.
    #[must_use]
    pub const fn action(id: ActionId) -> StreamId {
        StreamId { kind: StreamKind::Action, name: id.0 }
    }

    /// The stream of an approval.
    #[must_use]
    pub const fn approval(id: ApprovalId) -> StreamId {
        StreamId { kind: StreamKind::Approval, name: id.0 }
    }

    /// The stream of a run.
    #[must_use]
    pub const fn run(id: RunId) -> StreamId {
        StreamId { kind: StreamKind::Run, name: id.0 }
    }

    /// Writes `kind/hex`.
    pub fn write(&self, out: &mut String) {
        out.push_str(self.kind.as_str());
        out.push('/');
        write_hex(&self.name, out);
    }

    /// Reads the printed form.
    #[must_use]
    pub fn parse(text: &str) -> Option<StreamId> {
        let (kind, hex) = text.split_once('/')?;
        let mut name = [0; 16];
        read_hex(hex, &mut name)?;
        Some(StreamId { kind: StreamKind::parse(kind)?, name })
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(41);
        self.write(&mut text);
        f.write_str(&text)
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Pack for StreamId {
    fn pack(&self, out: &mut Vec<u8>) {
        self.kind.pack(out);
        out.extend(self.name);
    }
    fn unpack(input: &mut &[u8]) -> Result<StreamId, Corrupt> {
        let kind = StreamKind::unpack(input)?;
        let name = take(input, 16, "stream")?.try_into().map_err(|_| Corrupt("stream"))?;
        Ok(StreamId { kind, name })
    }
}

impl Json for StreamId {
    fn json(&self, out: &mut String) {
        out.push('"');
        self.write(out);
        out.push('"');
    }
}

/// A tenant as its store knows it. The key is made with the tenant and never
/// changes: losing it would forget every effect key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// The name, `[a-z0-9][a-z0-9_-]{0,62}`.
    pub name: String,
    /// 128 random bits, in the genesis of every stream.
    pub id: [u8; 16],
    /// Blinds names and redacted values.
    pub key: BlindingKey,
}

impl Tenant {
    /// The tenant where none is named.
    pub const DEFAULT: &'static str = "default";

    /// The stream of the effect with this key.
    #[must_use]
    pub fn effect(&self, key: &str) -> StreamId {
        self.named(StreamKind::Effect, key)
    }

    /// The stream of the active policy.
    #[must_use]
    pub fn policy(&self) -> StreamId {
        self.named(StreamKind::Policy, &self.name)
    }

    /// The stream of the tool of this name.
    #[must_use]
    pub fn tool(&self, name: &str) -> StreamId {
        self.named(StreamKind::Tool, name)
    }

    /// The stream of the route to this destination.
    #[must_use]
    pub fn route(&self, destination: &str) -> StreamId {
        self.named(StreamKind::Route, destination)
    }

    /// The stream of a call's identity: of this tenant, subject and provider.
    #[must_use]
    pub fn call(&self, subject: &str, call: &CallIdentity) -> StreamId {
        self.named(StreamKind::Call, &call.name(subject))
    }

    /// The stream of a run definition, by its digest.
    #[must_use]
    pub fn definition(&self, digest: Hash) -> StreamId {
        self.named(StreamKind::Definition, &digest.to_string())
    }

    /// The stream of a request id in its scope.
    #[must_use]
    pub fn request(&self, scope: &str, id: &str) -> StreamId {
        self.named(StreamKind::Request, &format!("{scope}\0{id}"))
    }

    /// The stream of a resource, by its printed form.
    #[must_use]
    pub fn lease(&self, resource: &str) -> StreamId {
        self.named(StreamKind::Lease, resource)
    }

    /// The stream of a delivery.
    #[must_use]
    pub fn delivery(&self, run: RunId, gate: &str, revision: u64) -> StreamId {
        self.named(StreamKind::Delivery, &format!("{run}/{gate}/{revision}"))
    }

    /// The stream of a run's task.
    #[must_use]
    pub fn task(&self, run: RunId, id: &str) -> StreamId {
        self.named(StreamKind::Task, &format!("{run}/{id}"))
    }

    /// The stream of a run's plan.
    #[must_use]
    pub fn plan(&self, run: RunId) -> StreamId {
        self.named(StreamKind::Plan, &run.to_string())
    }

    /// The stream of a handoff, by its receipt's digest.
    #[must_use]
    pub fn handoff(&self, receipt: Hash) -> StreamId {
        self.named(StreamKind::Handoff, &receipt.to_string())
    }

    /// Where a run is found: blinded like a stream's name.
    #[must_use]
    pub fn lookup(&self, key: &str) -> Hash {
        Hash(self.key.mac(&[StreamKind::Run.as_str().as_bytes(), &[0], key.as_bytes()]))
    }

    /// How everybody may know whoever has this key.
    #[must_use]
    pub fn holder(&self, key: HolderKey) -> HolderId {
        let mut id = [0; 16];
        id.copy_from_slice(&self.key.mac(&[b"holder\0", &key.0])[..16]);
        HolderId(id)
    }

    /// The stream of the store itself.
    #[must_use]
    pub fn store(&self) -> StreamId {
        self.named(StreamKind::Store, &self.name)
    }

    /// Whether a name is one a tenant may have.
    #[must_use]
    pub fn name_is_valid(name: &str) -> bool {
        let bytes = name.as_bytes();
        let plain = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        (1..=63).contains(&bytes.len())
            && plain(&bytes[0])
            && bytes.iter().all(|b| plain(b) || matches!(b, b'_' | b'-'))
    }

    /// What stands before the first event of a stream.
    #[must_use]
    pub fn genesis(&self, stream: &StreamId) -> Hash {
        let mut text = String::with_capacity(110);
        text.push_str("{\"stream\":");
        stream.json(&mut text);
        text.push_str(",\"tenant_id\":");
        self.id.json(&mut text);
        text.push('}');
        Hash::of("onceseal.genesis.v1\n", &[text.as_bytes()])
    }

    fn named(&self, kind: StreamKind, name: &str) -> StreamId {
        let mac = self.key.mac(&[kind.as_str().as_bytes(), &[0], name.as_bytes()]);
        let mut short = [0; 16];
        short.copy_from_slice(&mac[..16]);
        StreamId { kind, name: short }
    }
}

/// The clear name of an effect whose action declares none.
#[must_use]
pub fn own_effect_key(action: ActionId) -> String {
    format!("{}{}", Action::OWN_KEY_PREFIX, action)
}

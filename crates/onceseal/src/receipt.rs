//! Receipts as documents: evidence of one terminal answer.
//!
//! A document shows what was recorded up to its receipt and nothing of what
//! followed, so the same id gives the same document until something is erased.

mod evidence;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use onceseal_core::action::ActionRow;
use onceseal_core::approval::Source;
use onceseal_core::code::Code;
use onceseal_core::effect::RemoteReceipt;
use onceseal_core::effect::event::Known;
use onceseal_core::hash::Hash;
use onceseal_core::id::{ActionId, ReceiptId};
use onceseal_core::journal::{Body, Index, Key};
use onceseal_core::json::Value;
use onceseal_core::operation::event::{Cancelled, PersonSaid};
use onceseal_core::policy::ActivePolicy;
use onceseal_core::stream::{StreamId, StreamKind};
use onceseal_store::StoreError;
use onceseal_store::read::{Hit, Page, Rows, Snapshot, StoredEvent, policy};

use crate::control::Control;
use crate::error::Error;
use crate::render::{object, optional, text};
use evidence::{Evidence, attempt};

fn corrupt() -> StoreError {
    StoreError::new(Code::Corrupt)
}

impl Control {
    /// A receipt as a document: schema `onceseal.receipt/v1`. Redacted
    /// arguments are marked, and the hashes over them withheld.
    ///
    /// # Errors
    /// `corrupt`, or the store cannot be read. `None`: there is no such receipt.
    pub fn receipt(&self, id: ReceiptId) -> Result<Option<Value>, Error> {
        let tenant = self.store().tenant();
        let document = self.store().read(|snapshot| {
            let Some(evidence) = Evidence::of(snapshot, tenant, id)? else { return Ok(None) };
            evidence.document(&mut Policies::of(snapshot), true).map(Some)
        });
        Ok(document?)
    }

    /// A page of receipts as documents without their events, newest first or
    /// oldest first, from one picture of the store.
    ///
    /// # Errors
    /// `corrupt`, or the store cannot be read.
    pub fn receipts(
        &self,
        after: Option<ReceiptId>,
        newest_first: bool,
        limit: usize,
    ) -> Result<Vec<(ReceiptId, Value)>, Error> {
        let (mut from, mut to) = ([0; 16], [0xff; 16]);
        match after {
            Some(id) if newest_first => to = step(id.0, false),
            Some(id) => from = step(id.0, true),
            None => {}
        }
        let (from, to) = (from.to_vec(), to.to_vec());
        let page = Page { index: Index::Receipt, from, to, after: None, newest_first, limit };
        let tenant = self.store().tenant();
        let documents = self.store().read(|snapshot| {
            let mut policies = Policies::of(snapshot);
            let document = |hit: Hit| {
                let id = ReceiptId(hit.key.try_into().map_err(|_| corrupt())?);
                let evidence = Evidence::of(snapshot, tenant, id)?.ok_or_else(corrupt)?;
                Ok((id, evidence.document(&mut policies, false)?))
            };
            snapshot.keys(&page)?.into_iter().map(document).collect()
        });
        Ok(documents?)
    }

    /// Where a receipt's event stands.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn receipt_place(&self, id: ReceiptId) -> Result<Option<(StreamId, u64)>, Error> {
        Ok(self.store().read_rows(|snapshot| place_of(snapshot, id))?)
    }

    /// The action a receipt is about.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn receipt_action(&self, id: ReceiptId) -> Result<Option<ActionId>, Error> {
        let Some((stream, sequence)) = self.receipt_place(id)? else { return Ok(None) };
        if stream.kind == StreamKind::Action {
            return Ok(Some(ActionId(stream.name)));
        }
        let event = self.events(&stream, sequence, 1)?.pop();
        Ok(event.and_then(|event| event.event).and_then(|event| event.refs.action))
    }

    /// What was last reported or answered for the attempt of an action.
    pub(crate) fn last_word(&self, row: &ActionRow) -> Result<Word, Error> {
        let Some((effect, fence)) = row.held else { return Ok(Word::default()) };
        let events = self.store().read(|snapshot| attempt(snapshot, &effect, fence))?;
        Ok(Word::of(&events))
    }
}

/// Where a receipt's event stands.
fn place_of(snapshot: &dyn Rows, id: ReceiptId) -> Result<Option<(StreamId, u64)>, StoreError> {
    let Key { index, bytes } = Key::of(Index::Receipt, &[&id.0]);
    let page = Page { index, from: bytes.clone(), to: bytes, after: None, newest_first: false, limit: 1 };
    let hit = snapshot.keys(&page)?.into_iter().next();
    Ok(hit.map(|hit| (hit.stream, hit.sequence)))
}

/// The id before or after one, as 128-bit numbers.
fn step(id: [u8; 16], up: bool) -> [u8; 16] {
    let n = u128::from_be_bytes(id);
    if up { n.saturating_add(1) } else { n.saturating_sub(1) }.to_be_bytes()
}

/// The policies under which what a snapshot shows was decided, each compiled once.
struct Policies<'a> {
    snapshot: &'a dyn Snapshot,
    known: BTreeMap<Hash, Arc<ActivePolicy>>,
}

impl<'a> Policies<'a> {
    fn of(snapshot: &'a dyn Snapshot) -> Policies<'a> {
        Policies { snapshot, known: BTreeMap::new() }
    }

    fn get(&mut self, hash: Hash) -> Result<&ActivePolicy, StoreError> {
        Ok(match self.known.entry(hash) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(policy(self.snapshot, hash)?.ok_or_else(corrupt)?),
        })
    }
}

/// What was said of an attempt: by its holder, the remote or a person.
#[derive(Default)]
pub(crate) struct Word {
    /// A short code of the executor.
    pub(crate) code: Option<String>,
    /// Its error text, or why a person said otherwise.
    pub(crate) text: Option<String>,
    /// What the remote calls what it did.
    remote: Option<RemoteReceipt>,
    /// The event whose payload is the result.
    result: Option<u64>,
    /// Who answered in its place.
    answered: Option<Value>,
}

impl Word {
    /// The last one in these events of an attempt.
    fn of(events: &[StoredEvent]) -> Word {
        let mut word = Word::default();
        for stored in events {
            match stored.event.as_ref().map(|event| &event.body) {
                Some(Body::EffectSettled(data, sealed)) => {
                    word.code.clone_from(&data.code);
                    word.text.clone_from(&sealed.error);
                    word.remote.clone_from(&sealed.remote);
                    word.result = sealed.result.map(|_| stored.stamp.sequence);
                }
                Some(Body::EffectLate(_, sealed)) => {
                    let (text, remote) = (sealed.error.clone(), sealed.remote.clone());
                    word = Word { text, remote, ..Word::default() };
                    word.result = sealed.result.map(|_| stored.stamp.sequence);
                }
                Some(Body::EffectReconciled(data, sealed) | Body::EffectResolved(data, sealed)) => {
                    word.answered = Some(answered(data, sealed));
                    word.text = sealed.reason.clone().or_else(|| sealed.evidence.clone()).or(word.text);
                    word.remote.clone_from(&sealed.remote);
                    word.result = sealed.result.map(|_| stored.stamp.sequence);
                }
                _ => {}
            }
        }
        word
    }
}

/// Who called an operation off.
fn called_off(data: &Cancelled, sealed: &PersonSaid) -> Value {
    object(vec![
        ("source", text(Source::Person)),
        ("person", optional(sealed.person.as_ref())),
        ("proof", optional(Some(data.proof))),
        ("reason", optional(sealed.reason.as_ref())),
        ("evidence", Value::Null),
        ("cause", Value::Null),
    ])
}

fn answered(data: &Known, sealed: &onceseal_core::effect::event::KnownSealed) -> Value {
    object(vec![
        ("source", text(data.source)),
        ("person", optional(sealed.person.as_ref())),
        ("proof", optional(data.proof)),
        ("reason", optional(sealed.reason.as_ref())),
        ("evidence", optional(sealed.evidence.as_ref())),
        ("cause", optional(sealed.cause.as_ref())),
    ])
}

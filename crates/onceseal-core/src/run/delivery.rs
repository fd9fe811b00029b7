//! Deliveries: what was worked out for a run at a gate, bound once for ever.
//!
//! Each has a stream of its own, named by run, gate and revision: whatever is
//! bound there first stays. Where the gate asks for proof, an approval of the
//! action [`ACTION`] is used in the same transaction, and that action gets its
//! receipt.

use crate::action::{self, Action, Principal, Within};
use crate::case::Case;
use crate::code::Code;
use crate::hash::Hash;
use crate::id::{ActionId, ApprovalId, RunId};
use crate::journal::{Body, Event, Index, Key, Refs};
use crate::json::{self, Object};
use crate::lease::{self, Lease, Resource};
use crate::limits;
use crate::pack::{Corrupt, Pack};
use crate::record::record;
use crate::reply::{Refusal, Reply};
use crate::run::event::{Answered, AskedBy, Bound, BoundSealed, GateBound};
use crate::run::moving;
use crate::run::request::{self, Request};
use crate::run::row::{RunRow, Standing};
use crate::run::{Definition, Proving};
use crate::stream::{StreamId, Tenant};
use crate::time::Timestamp;
use crate::view::{Halt, Pinned, Range, Read};

/// The action that a person approves so that a delivery may be bound; its
/// arguments are `run`, `gate`, `revision` and `receipt_hash`, and where they are
/// bound `contract_hash` and `record_hash`: all that stays for ever is approved.
pub const ACTION: &str = "run.bind_delivery";

/// At most so many are bound at once: more gates than any definition needs.
const AT_ONCE: usize = 64;

/// What is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The gate, one of the run's definition.
    pub gate: String,
    /// From 1; those of a gate only grow.
    pub revision: u64,
    /// Digest of what was delivered.
    pub receipt: Hash,
    /// Digest of the contract that it fulfils.
    pub contract: Option<Hash>,
    /// Digest of the record of how it came about.
    pub record: Option<Hash>,
    /// The approval that proves it.
    pub approval: Option<ApprovalId>,
}

/// Bind deliveries to a run, all or none.
#[derive(Debug, Clone)]
pub struct BindDeliveries {
    /// The run.
    pub run: RunId,
    /// What is bound.
    pub deliveries: Vec<Delivery>,
    /// The environment in which the approvals were asked for.
    pub environment: String,
    /// What makes two of these the same request: of this run.
    pub request: String,
    /// Who asks.
    pub principal: Principal,
    /// The lease on the run under which it is asked.
    pub under: Option<Lease>,
}

impl Delivery {
    /// The action that a person approves for it.
    #[must_use]
    pub fn action(&self, run: RunId, principal: &Principal, environment: &str) -> Action {
        let mut arguments = Object::new();
        for (name, hash) in [("contract_hash", self.contract), ("record_hash", self.record)] {
            hash.into_iter().for_each(|hash| drop(arguments.insert(name, hash.to_string())));
        }
        arguments.insert("gate", self.gate.as_str());
        arguments.insert("receipt_hash", self.receipt.to_string());
        arguments.insert("revision", i64::try_from(self.revision).unwrap_or(i64::MAX));
        arguments.insert("run", run.to_string());
        Action {
            name: ACTION.to_owned(),
            arguments,
            principal: principal.clone(),
            environment: environment.to_owned(),
            resource: None,
        }
    }

    /// The run and the delivery that arguments of the action are about; `None` if they
    /// are of no delivery, as where somebody else wrote them. The approval is not in
    /// them.
    #[must_use]
    pub fn asked_for(arguments: &Object) -> Option<(RunId, Delivery)> {
        let text = |name: &str| arguments.get(name).and_then(json::Value::as_text);
        let hash = |name: &str| match arguments.get(name) {
            None => Some(None),
            Some(_) => Hash::parse(text(name)?).map(Some),
        };
        let revision = arguments.get("revision").and_then(json::Value::as_integer)?;
        let delivery = Delivery {
            gate: text("gate")?.to_owned(),
            revision: u64::try_from(revision).ok()?,
            receipt: hash("receipt_hash")??,
            contract: hash("contract_hash")?,
            record: hash("record_hash")?,
            approval: None,
        };
        let run = RunId::parse(text("run")?)?;
        let whole = delivery.action(run, &Principal::agent(""), "").arguments;
        (whole == *arguments).then_some((run, delivery))
    }

    /// Why it cannot be bound to a run as that stands, whatever a person says, if it
    /// cannot. Without an approval it may be bound by any.
    #[must_use]
    pub fn cannot_be_bound(
        &self,
        run: &RunRow,
        definition: &Definition,
        bound: Option<&DeliveryRow>,
    ) -> Option<Code> {
        match bound {
            Some(row) if self.approval.is_none() && self.says(row) || self.is(row) => None,
            Some(_) => Some(Code::DeliveryConflict),
            None if run.terminal => Some(Code::RunEnded),
            None if !definition.gates().contains_key(&self.gate) => Some(Code::GateUnknown),
            None => limits::misses(self.revision, run.revision_of(&self.gate)),
        }
    }

    /// Whether it is what was bound.
    fn is(&self, row: &DeliveryRow) -> bool {
        self.says(row) && self.approval == row.approval
    }

    /// Whether it is what was bound, by whatever approval.
    fn says(&self, row: &DeliveryRow) -> bool {
        let DeliveryPrivate { contract, receipt, record } = &row.private;
        (Some(self.receipt), self.contract, self.record) == (*receipt, *contract, *record)
    }
}

/// One that is not bound yet, with the action that proves it.
struct New<'a> {
    delivery: &'a Delivery,
    stream: StreamId,
    proof: Option<Within>,
}

pub(crate) fn bind(case: &mut Case<'_>, bind: &BindDeliveries) -> Result<Reply, Halt> {
    let BindDeliveries { run, deliveries, request, principal, under, .. } = bind;
    let request =
        Request::new(case, request, "bind_deliveries", &run.to_string(), principal, arguments(bind));
    if let Some(reply) = request.replay(case)? {
        return Ok(reply);
    }
    if deliveries.is_empty() {
        return Ok(Code::DeliveriesEmpty.into());
    }
    let Some((_, row)) = request::run(case, *run)? else { return Ok(Code::RunUnknown.into()) };
    let unfit = [("principal", !principal.is_fit()), ("deliveries", deliveries.len() > AT_ONCE)];
    if let Some((field, _)) = unfit.into_iter().find(|(_, unfit)| *unfit) {
        return Ok(Refusal { field: Some(field), ..Refusal::new(Code::OutOfBounds) }.into());
    }
    if row.terminal {
        return Ok(Code::RunEnded.into());
    }
    if let Some(lease) = under
        && !lease::is_of_run(case, lease, *run)?
    {
        return Ok(Code::LeaseFenced.into());
    }
    let Some((sequence, row)) = moving::met(case, *run)? else { return Ok(Code::RunUnknown.into()) };
    if row.terminal {
        return Ok(Code::RunEnded.into());
    }
    let new = match judge(case, bind, &row)? {
        Ok(new) => new,
        Err(refusal) => return Ok(refusal.into()),
    };
    let (mut sequence, mut now) = (sequence, Standing::of(sequence, &row));
    for New { delivery, stream, proof } in new {
        let action = proof.as_ref().map(Within::action);
        if let Some(within) = proof {
            action::carry_out(case, within)?;
        }
        record(case, *run, principal, delivery, stream, action);
        sequence += 1;
    }
    now.sequence = sequence;
    let answered = Answered { joined: false, run: *run, sequence, state: row.state.clone() };
    Ok(request.answer(case, answered, now))
}

/// Which of them are to be bound, if none stands in the way of all.
fn judge<'a>(
    case: &mut Case<'_>,
    bind: &'a BindDeliveries,
    row: &RunRow,
) -> Result<Result<Vec<New<'a>>, Refusal>, Halt> {
    let definition = case.pinned.definition(row.definition)?;
    let mut new: Vec<New<'a>> = Vec::new();
    for delivery in &bind.deliveries {
        let stream = case.pinned.tenant.delivery(bind.run, &delivery.gate, delivery.revision);
        let refused = |code| {
            let detail = Some(format!("{} {}", delivery.gate, delivery.revision));
            let field = (code == Code::OutOfBounds).then_some("revision");
            Ok(Err(Refusal { detail, field, ..Refusal::new(code) }))
        };
        if let Some(code) = misplaced(definition, delivery) {
            return refused(code);
        }
        // Looked at before any approval is used.
        let same = match (case.view.delivery(&stream)?, new.iter().find(|other| other.stream == stream)) {
            (Some(row), _) => Some(delivery.is(row)),
            (None, Some(other)) => Some(delivery == other.delivery),
            (None, None) => None,
        };
        match same {
            Some(true) => continue,
            Some(false) => return refused(Code::DeliveryConflict),
            None => {}
        }
        let earlier = new.iter().map(|other| other.delivery).filter(|other| other.gate == delivery.gate);
        let newest = earlier.map(|other| other.revision).max().or(row.revision_of(&delivery.gate));
        if let Some(code) = limits::misses(delivery.revision, newest) {
            return refused(code);
        }
        let proof = match delivery.approval {
            None => None,
            Some(approval) => {
                let action = delivery.action(bind.run, &bind.principal, &bind.environment);
                let n = u32::try_from(new.len()).unwrap_or(u32::MAX);
                match action::may_carry_out(case, action, approval, n)? {
                    Ok(within) => Some(within),
                    Err(refusal) => return Ok(Err(refusal)),
                }
            }
        };
        let proven = |new: &New<'_>| new.proof.as_ref().map(Within::effect);
        let effect = proof.as_ref().map(Within::effect);
        if effect.is_some() && new.iter().any(|other| proven(other) == effect) {
            return refused(Code::Duplicate);
        }
        new.push(New { delivery, stream, proof });
    }
    Ok(Ok(new))
}

/// Why the definition has no place for it, if it has none.
fn misplaced(definition: &Definition, delivery: &Delivery) -> Option<Code> {
    let Some(gate) = definition.gates().get(&delivery.gate) else { return Some(Code::GateUnknown) };
    let safe = 1..=json::SAFE_INTEGER.unsigned_abs();
    match () {
        () if !safe.contains(&delivery.revision) => Some(Code::OutOfBounds),
        () if gate.proof == Proving::Required && delivery.approval.is_none() => Some(Code::ProofRequired),
        () => None,
    }
}

fn record(
    case: &mut Case<'_>,
    run: RunId,
    principal: &Principal,
    delivery: &Delivery,
    stream: StreamId,
    action: Option<ActionId>,
) {
    let Delivery { gate, revision, receipt, contract, record, approval } = delivery.clone();
    let refs = Refs { action, approval, receipt: None };
    let sealed = BoundSealed { contract, receipt: Some(receipt), record };
    case.record(stream, refs, Body::DeliveryBound(Bound { gate: gate.clone(), revision, run }, sealed));
    let by = AskedBy { agent: Some(principal.agent.clone()), user: principal.user.clone() };
    case.record(StreamId::run(run), Refs::NONE, Body::RunBound(GateBound { gate, revision }, by));
}

/// What makes two requests the same: everything but the lease.
fn arguments(bind: &BindDeliveries) -> Object {
    let hash = |hash: Option<Hash>| hash.map(|hash| hash.to_string());
    let mut arguments = Object::new();
    let deliveries = bind.deliveries.iter().map(|delivery| {
        let mut one = Object::new();
        one.insert("approval", delivery.approval.map(|id| id.to_string()));
        one.insert("contract", hash(delivery.contract));
        one.insert("gate", delivery.gate.as_str());
        one.insert("receipt", delivery.receipt.to_string());
        one.insert("record", hash(delivery.record));
        one.insert("revision", delivery.revision.to_string());
        json::Value::Object(one)
    });
    arguments.insert("deliveries", json::Value::List(deliveries.collect()));
    arguments.insert("environment", bind.environment.as_str());
    arguments
}

/// What is read to bind deliveries.
pub(crate) fn reads(pinned: &Pinned, bind: &BindDeliveries) -> Vec<Read> {
    let tenant = &pinned.tenant;
    let mut reads = vec![
        Read::Stream(tenant.request(&bind.run.to_string(), &bind.request)),
        Read::Stream(StreamId::run(bind.run)),
        lease::read(pinned, &Resource::Run(bind.run)),
        Read::Stream(pinned.policy_stream),
    ];
    for delivery in bind.deliveries.iter().take(AT_ONCE) {
        reads.push(Read::Stream(delivery_stream(tenant, bind.run, delivery)));
        reads.extend(delivery.approval.map(|id| Read::Stream(StreamId::approval(id))));
    }
    reads
}

fn delivery_stream(tenant: &Tenant, run: RunId, delivery: &Delivery) -> StreamId {
    tenant.delivery(run, &delivery.gate, delivery.revision)
}

/// What was bound to a run, by revision.
#[must_use]
pub fn bound_to(run: RunId) -> Range {
    let key = |byte: u8| Key::of(Index::Delivery, &[&run.0, &[byte; 8]]).bytes;
    Range { index: Index::Delivery, from: key(0), to: key(0xff), limit: usize::MAX }
}

/// A delivery's row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DeliveryRow {
    /// The run.
    pub run: RunId,
    /// The gate.
    pub gate: String,
    /// Which of the gate's.
    pub revision: u64,
    /// The approval that proves it.
    pub approval: Option<ApprovalId>,
    /// The action that the approval was used by.
    pub action: Option<ActionId>,
    /// When it was bound.
    pub created_at: Timestamp,
    /// The private half.
    pub private: DeliveryPrivate,
}

record! {
    /// The private half of a delivery's row.
    pub struct DeliveryPrivate {
        /// Digest of the contract that it fulfils.
        contract: Option<Hash>,
        /// Digest of what was delivered.
        receipt: Option<Hash>,
        /// Digest of the record of how it came about.
        record: Option<Hash>,
    }
}

impl Pack for DeliveryRow {
    fn pack(&self, out: &mut Vec<u8>) {
        self.run.pack(out);
        self.gate.pack(out);
        self.revision.pack(out);
        self.approval.pack(out);
        self.action.pack(out);
        self.created_at.pack(out);
    }

    fn unpack(input: &mut &[u8]) -> Result<DeliveryRow, Corrupt> {
        Ok(DeliveryRow {
            run: Pack::unpack(input)?,
            gate: Pack::unpack(input)?,
            revision: Pack::unpack(input)?,
            approval: Pack::unpack(input)?,
            action: Pack::unpack(input)?,
            created_at: Pack::unpack(input)?,
            private: DeliveryPrivate { contract: None, receipt: None, record: None },
        })
    }
}

impl DeliveryRow {
    /// The keys it is found under.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        vec![Key::of(Index::Delivery, &[&self.run.0, &self.revision.to_be_bytes()])]
    }
}

/// The row after an event: nothing follows on the first.
///
/// # Errors
/// [`Corrupt`] for an event that cannot follow.
pub fn evolve(row: Option<DeliveryRow>, at: Timestamp, event: &Event) -> Result<DeliveryRow, Corrupt> {
    match (&event.body, row) {
        (Body::DeliveryBound(data, sealed), None) => Ok(DeliveryRow {
            run: data.run,
            gate: data.gate.clone(),
            revision: data.revision,
            approval: event.refs.approval,
            action: event.refs.action,
            created_at: at,
            private: DeliveryPrivate {
                contract: sealed.contract,
                receipt: sealed.receipt,
                record: sealed.record,
            },
        }),
        _ => Err(Corrupt("sequence of a delivery's events")),
    }
}

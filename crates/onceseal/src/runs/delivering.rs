//! Binding deliveries to the gates of a run, with the approvals that they need.

use onceseal_core::action::Action;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::id::RunId;
use onceseal_core::journal::Row;
use onceseal_core::json::Object;
use onceseal_core::lease::Lease;
use onceseal_core::reply::RunNow;
use onceseal_core::run::{BindDeliveries, Delivery, DeliveryRow, bound_to};
use onceseal_core::stream::StreamId;
use onceseal_store::read::{Page, row_of};
use onceseal_store::{OwnRows, StoreError};

use super::asking::{asked, named};
use super::writing::{WriteError, asked_with};
use super::{LeaseGuard, Run, RunView};
use crate::call::Proposing;
use crate::control::Control;
use crate::error::Error;

/// Keys read at once.
const PAGE: usize = 256;

impl Run {
    /// Begins to bind deliveries, all or none: up to 64, of any gates. What was bound
    /// before just so adds nothing, and uses no approval.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use onceseal::core::approval::{Identity, Said};
    /// use onceseal::core::hash::Hash;
    /// use onceseal::runs::Delivery;
    /// use onceseal::{Control, Error, Principal, config::Config};
    ///
    /// # let clock = std::sync::Arc::new(onceseal::store::clock::SystemClock);
    /// # let config = Config::parse(b"schema: onceseal.policy/v1
    /// # actions:
    /// #   run.bind_delivery: { approval: { ttl: 15m }, decision: approve }")?;
    /// let control = Control::memory(config.policy, clock).await?;
    /// let runs = control.runs().by(Principal::agent("builder"));
    /// let run = runs.start("delivery").change("add-login").send().await?.run;
    ///
    /// let receipt = Hash::of("example.design.v1\n", &[b"the design"]);
    /// let delivery = |approval| Delivery {
    ///     gate: "gate-a".into(),
    ///     revision: 1,
    ///     receipt,
    ///     contract: None,
    ///     record: None,
    ///     approval,
    /// };
    /// // This gate takes only what a person approved.
    /// assert_eq!(run.bind([delivery(None)]).send().await.unwrap_err().code(), "proof_required");
    /// let Err(Error::ApprovalNeeded { approval, .. }) = run.ask_to_bind(&delivery(None)).propose().await
    /// else {
    ///     panic!("a person is asked");
    /// };
    /// # let row = control.approval(approval)?.unwrap();
    /// # let person = Identity::parse("host:ann").unwrap();
    /// # control.answer(approval, person, Said::Yes, row.private.bound.binding.unwrap()).await?;
    /// // … who says yes, and then:
    /// run.bind([delivery(Some(approval))]).send().await?;
    /// assert_eq!(run.deliveries().await?[0].approval, Some(approval));
    /// # Ok::<(), onceseal::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn bind(&self, deliveries: impl IntoIterator<Item = Delivery>) -> Binding {
        Binding {
            run: self.clone(),
            deliveries: deliveries.into_iter().collect(),
            environment: Action::DEFAULT_ENVIRONMENT.to_owned(),
            request: None,
            under: None,
        }
    }

    /// Begins to ask a person for the approval of a delivery, as any action is
    /// proposed: what is approved is the action `run.bind_delivery` with the run, the
    /// gate, the revision and the receipt's hash. An environment other than
    /// `production` is said to this and to [`Binding::environment`].
    pub fn ask_to_bind(&self, delivery: &Delivery) -> Proposing {
        let environment = Action::DEFAULT_ENVIRONMENT;
        let Action { name, arguments, principal, .. } =
            delivery.action(self.id, &self.principal, environment);
        self.control.action(name).args(arguments).by(principal)
    }

    /// What was bound to it, by revision.
    ///
    /// # Errors
    /// The store cannot be read, or a row does not decode.
    pub async fn deliveries(&self) -> Result<Vec<DeliveryRow>, Error> {
        let id = self.id;
        self.control.aside(move |control| control.deliveries(id)).await
    }
}

/// A delivery that a person is asked to approve.
#[derive(Debug, Clone)]
pub struct AskedDelivery {
    /// The run that it would be bound to.
    pub run: RunView,
    /// What would be bound.
    pub delivery: Delivery,
    /// What is bound there already, if anything is.
    pub bound: Option<DeliveryRow>,
}

impl AskedDelivery {
    /// Why it cannot be bound whatever a person says, if it cannot.
    #[must_use]
    pub fn cannot_be_bound(&self) -> Option<Code> {
        let Some(definition) = &self.run.definition else { return Some(Code::Erased) };
        self.delivery.cannot_be_bound(&self.run.row, definition, self.bound.as_ref())
    }
}

impl Control {
    /// What was bound to a run, by revision.
    ///
    /// # Errors
    /// The store cannot be read, or a row does not decode.
    pub fn deliveries(&self, run: RunId) -> Result<Vec<DeliveryRow>, Error> {
        let mut page = Page::of(bound_to(run), PAGE);
        let mut rows = Vec::new();
        loop {
            let found = self.store().read_rows(|snapshot| {
                let hits = snapshot.keys(&page)?;
                let rows = hits.iter().map(|hit| Ok(row_of(snapshot.stream(&hit.stream)?)));
                Ok((rows.collect::<Result<Vec<_>, StoreError>>()?, hits))
            });
            let (read, hits) = found?;
            for row in read {
                match row.map(|stored| stored.row) {
                    Some(Row::Delivery(row)) => rows.push(row),
                    _ => return Err(super::corrupt()),
                }
            }
            match hits.into_iter().last() {
                Some(last) => page.after = Some((last.key, last.stream)),
                None => return Ok(rows),
            }
        }
    }

    /// What a request to approve [`BIND_DELIVERY`](super::BIND_DELIVERY) with these
    /// arguments is about; `None` if they are of no delivery to a run of this store's.
    ///
    /// # Errors
    /// The store cannot be read, or a row does not decode.
    pub fn asked_delivery(&self, arguments: &Object) -> Result<Option<AskedDelivery>, Error> {
        let Some((run, delivery)) = Delivery::asked_for(arguments) else { return Ok(None) };
        let Some(run) = self.run(run)? else { return Ok(None) };
        let bound = self.delivery(run.id, &delivery.gate, delivery.revision)?;
        Ok(Some(AskedDelivery { run, delivery, bound }))
    }

    /// What was bound at a gate of a run with this revision.
    ///
    /// # Errors
    /// The store cannot be read, or the row does not decode.
    pub fn delivery(&self, run: RunId, gate: &str, revision: u64) -> Result<Option<DeliveryRow>, Error> {
        let stream: StreamId = self.store().tenant().delivery(run, gate, revision);
        match self.row(&stream)? {
            Some(Row::Delivery(row)) => Ok(Some(row)),
            _ => Ok(None),
        }
    }
}

/// Deliveries about to be bound; see [`Run::bind`].
#[must_use = "nothing is bound until it is sent"]
pub struct Binding {
    run: Run,
    deliveries: Vec<Delivery>,
    environment: String,
    request: Option<String>,
    under: Option<Lease>,
}

impl Binding {
    /// In which environment the approvals were asked for: `production` unless said.
    pub fn environment(self, environment: impl Into<String>) -> Binding {
        Binding { environment: environment.into(), ..self }
    }

    /// What makes two requests of this run the same.
    pub fn request(self, id: impl Into<String>) -> Binding {
        Binding { request: Some(id.into()), ..self }
    }

    /// Only while this lease on the run holds.
    pub fn under(self, lease: &LeaseGuard) -> Binding {
        self.under_lease(lease.lease().clone())
    }

    /// The same with a lease that was handed on.
    pub fn under_lease(self, lease: Lease) -> Binding {
        Binding { under: Some(lease), ..self }
    }

    /// Binds them.
    ///
    /// # Errors
    /// `gate_unknown`, `proof_required`, `delivery_revision_conflict`,
    /// `delivery_revision_old`, `deliveries_empty`, `run_unknown`, `run_ended`,
    /// `lease_fenced`, `request_id_conflict`, why an approval cannot be used
    /// (`approval_mismatch`, `approval_pending`, …), or what the store fails with.
    pub async fn send(self) -> Result<RunNow, Error> {
        let (control, command) = self.command()?;
        asked(&control, command).await
    }

    /// Binds them, and has `write` change rows of the caller's own in the same
    /// transaction: both are recorded, or neither is. `write` is called with what is
    /// answered, once the deliveries are bound; not for a refusal, and not where the
    /// same request was answered before. Others wait meanwhile: it has a second, and
    /// calls nothing of this store.
    ///
    /// # Errors
    /// [`WriteError::Undone`] with what `write` failed with; otherwise as
    /// [`Binding::send`], or `own_rows_late`.
    ///
    /// # Panics
    /// If `write` does; nothing was recorded then.
    pub async fn send_with<E, W>(self, write: W) -> Result<RunNow, WriteError<E>>
    where
        E: From<StoreError> + Send + 'static,
        W: FnMut(&RunNow, &mut OwnRows<'_>) -> Result<(), E> + Send + 'static,
    {
        let (control, command) = self.command()?;
        asked_with(&control, command, write).await
    }

    fn command(self) -> Result<(Control, Command), Error> {
        let Binding { run: Run { control, principal, id: run }, deliveries, environment, request, under } =
            self;
        let request = named(request)?;
        let bind = BindDeliveries { run, deliveries, environment, request, principal, under };
        Ok((control, Command::BindDeliveries(Box::new(bind))))
    }
}

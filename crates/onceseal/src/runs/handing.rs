//! Handing a resource over from one holder to another.

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::handoff::{AcceptHandoff, Giver, HandoffRow, PrepareHandoff, WithdrawHandoff, prepared};
use onceseal_core::hash::Hash;
use onceseal_core::id::HolderKey;
use onceseal_core::journal::Row;
use onceseal_core::json::{self, Object, Value};
use onceseal_core::lease::Resource;
use onceseal_core::reply::LeaseNow;
use onceseal_core::stream::{StreamId, StreamKind};
use onceseal_core::time::Span;
use onceseal_store::read::Page;

use super::LeaseGuard;
use super::leasing::{LENGTH, done, handed_out, held, keep};
use crate::control::{Control, refused};
use crate::error::Error;
use crate::moment::Moment;

/// A handoff of a resource, by the digest of the receipt that names it; see
/// [`Control::handoff`].
#[must_use = "nothing is handed over until it is prepared and accepted"]
#[derive(Clone)]
pub struct Handing {
    control: Control,
    resource: Resource,
    receipt: Hash,
    principal: Principal,
    holder: Option<HolderKey>,
    length: Span,
}

/// A handoff as it stands.
#[derive(Debug, Clone)]
pub struct HandoffView {
    /// Its row.
    pub row: HandoffRow,
    /// What the next holder goes on from; `None` if that is erased.
    pub facts: Option<Object>,
}

impl Control {
    /// The handoff of a resource with this receipt: to prepare, accept or withdraw it.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use onceseal::core::hash::Hash;
    /// use onceseal::core::json::Object;
    /// use onceseal::runs::{Giver, Resource};
    /// use onceseal::{Control, Principal, config::Config};
    ///
    /// # let clock = std::sync::Arc::new(onceseal::store::clock::SystemClock);
    /// # let config = Config::parse(b"schema: onceseal.policy/v1\nactions: {}\n")?;
    /// let control = Control::memory(config.policy, clock).await?;
    /// let resource = Resource::Name("selector".into());
    /// let old = control.lease(resource.clone()).take().await?;
    ///
    /// let receipt = Hash::of("example.handoff.v1\n", &[b"from old to new"]);
    /// let handoff = control.handoff(resource, receipt).by(Principal::agent("old"));
    /// let mut facts = Object::new();
    /// facts.insert("position", 7);
    /// handoff.clone().prepare(facts, Giver::Holder(old.lease().clone())).await?;
    ///
    /// // … in another process, at another time:
    /// let new = handoff.by(Principal::agent("new")).accept().await?;
    /// assert!(new.fence() > old.fence());
    /// # Ok::<(), onceseal::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn handoff(&self, resource: Resource, receipt: Hash) -> Handing {
        let principal = Principal { agent: String::new(), user: None };
        Handing { control: self.clone(), resource, receipt, principal, holder: None, length: LENGTH }
    }

    /// The handoff that is prepared of a resource, if one is.
    ///
    /// # Errors
    /// The store cannot be read, or `corrupt`.
    pub fn prepared_handoff(&self, resource: &Resource) -> Result<Option<HandoffView>, Error> {
        let blinded = self.store().tenant().lookup(&resource.to_string());
        let page = Page::of(prepared(blinded), 1);
        let hit = self.store().read_rows(|snapshot| Ok(snapshot.keys(&page)?.pop()))?;
        match hit.filter(|hit| hit.stream.kind == StreamKind::Handoff) {
            Some(hit) => self.handoff_at(&hit.stream),
            None => Ok(None),
        }
    }

    fn handoff_at(&self, stream: &StreamId) -> Result<Option<HandoffView>, Error> {
        let Some(Row::Handoff(row)) = self.row(stream)? else { return Ok(None) };
        let payload = self.store().read_rows(|snapshot| snapshot.payload(stream, 1))?;
        let facts = payload.map(|payload| super::object(&payload.text)).transpose()?;
        Ok(Some(HandoffView { row, facts }))
    }
}

impl Handing {
    /// Who asks. Without it nothing is prepared or accepted.
    pub fn by(self, principal: Principal) -> Handing {
        Handing { principal, ..self }
    }

    /// Who accepts it, instead of a key drawn at random. Whoever names the key
    /// under which it was accepted gets the lease again.
    pub fn holder(self, holder: HolderKey) -> Handing {
        Handing { holder: Some(holder), ..self }
    }

    /// How long the new lease lasts unless it is renewed: 1 s to 24 h, 30 s if nothing
    /// is said.
    pub fn length(self, length: Span) -> Handing {
        Handing { length, ..self }
    }

    /// Prepares it: on the holder's word, or on an operator's where the holder cannot
    /// say so. The facts are what the next holder goes on from, at most 64 KiB.
    /// `false`: it was prepared just so before.
    ///
    /// # Errors
    /// `lease_fenced`, `lease_held` where others hold it too, `handoff_prepared`,
    /// `handoff_conflict`, `handoff_over` if it was accepted or withdrawn since,
    /// `task_not_taken` for a task that nobody is at, `facts_invalid`, `not_operator`, or
    /// what the store fails with.
    pub async fn prepare(self, facts: Object, by: Giver) -> Result<bool, Error> {
        let Handing { control, resource, receipt, principal, .. } = self;
        let facts = json::canonical(&Value::Object(facts));
        let prepare = PrepareHandoff { resource, receipt, facts, by, principal };
        done(control.submit(Command::PrepareHandoff(Box::new(prepare))).await?)
    }

    /// Accepts it: the resource is held from here on, and whoever had it is fenced.
    ///
    /// # Errors
    /// `handoff_unknown`, `handoff_over`, `handoff_stale`, `lease_held` where somebody
    /// holds what is above or below, `run_ended`, `task_not_taken` for a task that nobody
    /// is at, `out_of_bounds` for a length, or what the store fails with.
    pub async fn accept(self) -> Result<LeaseGuard, Error> {
        let (control, length, again) = (self.control.clone(), self.length, self.holder.is_some());
        let asked = Moment::now(control.store().clock().as_ref());
        let now = self.accept_once().await?;
        Ok(keep(control, now, length, asked, again))
    }

    /// Accepts it, and renews nothing: for whoever hands the lease on.
    ///
    /// # Errors
    /// As [`Handing::accept`].
    pub async fn accept_once(self) -> Result<LeaseNow, Error> {
        let Handing { control, resource, receipt, principal, holder, length } = self;
        let accept =
            |holder| Command::AcceptHandoff(AcceptHandoff { resource, receipt, holder, length, principal });
        held(handed_out(&control, holder, accept).await?)
    }

    /// Lets nobody accept it any more. `false`: nobody could.
    ///
    /// # Errors
    /// `handoff_unknown`, `handoff_over` if it was accepted, `lease_fenced`,
    /// `not_operator`, or what the store fails with.
    pub async fn withdraw(self, by: Giver) -> Result<bool, Error> {
        let Handing { control, resource, receipt, .. } = self;
        done(control.submit(Command::WithdrawHandoff(WithdrawHandoff { resource, receipt, by })).await?)
    }

    /// How it stands.
    ///
    /// # Errors
    /// `handoff_unknown`, the store cannot be read, or `corrupt`.
    pub async fn view(&self) -> Result<HandoffView, Error> {
        let (receipt, resource) = (self.receipt, self.resource.clone());
        let found = self.control.aside(move |control| {
            let tenant = control.store().tenant();
            let blinded = tenant.lookup(&resource.to_string());
            let found = control.handoff_at(&tenant.handoff(receipt))?;
            Ok(found.filter(|found| found.row.resource == blinded))
        });
        found.await?.ok_or_else(|| refused(Code::HandoffUnknown.into()))
    }
}

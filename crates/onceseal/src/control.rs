//! The engine's handle: an open store with a policy, its threads, its commands.

use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use onceseal_core::approval::{Answer, Identity, Proof, Revocation, Said};
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{EffectRow, Finding, Reconcile, Resolve};
use onceseal_core::hash::Hash;
use onceseal_core::id::{ActionId, ApprovalId, RootId};
use onceseal_core::policy::{Activate, ActivePolicy};
use onceseal_core::reply::Reply;
use onceseal_core::run::Definition;
use onceseal_core::store::Note;
use onceseal_core::stream::StreamId;
use onceseal_core::time::Span;
use onceseal_store::{Store, StoreError, Ticket};

use crate::call::Proposing;
use crate::error::Error;
use crate::keeper::Keeper;
use crate::marking::Marking;
use crate::outcome::without;
use crate::permit::secrets_of;
use crate::seen::Seen;
use crate::sweep::Sweeper;
use crate::watch::Watch;

/// An open store and what runs beside it. Cheap to clone; the last clone
/// closes it.
#[derive(Clone)]
pub struct Control {
    pub(crate) inner: Arc<Inner>,
    /// Whoever calls may be blocked: its commands need no other thread.
    pub(crate) blocks: bool,
}

pub(crate) struct Inner {
    pub(crate) store: Arc<Store>,
    pub(crate) keeper: Keeper,
    pub(crate) watch: Watch,
    pub(crate) policy: RwLock<Option<Arc<ActivePolicy>>>,
    pub(crate) sweeper: Sweeper,
    pub(crate) mark: Option<Arc<Marking>>,
    pub(crate) seen: Seen,
    /// Something may be due for a worker of this process.
    pub(crate) outbox: tokio::sync::Notify,
    /// Where the store is, unless it is in memory.
    pub(crate) directory: Option<PathBuf>,
    /// The project that this store is of.
    pub(crate) root: RootId,
    /// What the configuration defines besides what is built in.
    pub(crate) definitions: OnceLock<Vec<Arc<Definition>>>,
    /// Closing again would look at a file that may be another by then.
    pub(crate) closed: AtomicBool,
}

impl Control {
    /// The store, for low-level commands and snapshots.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// The policy that was active when this process last looked.
    #[must_use]
    pub fn policy(&self) -> Option<Arc<ActivePolicy>> {
        self.inner.policy.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins a call of this action.
    pub fn action(&self, name: impl Into<String>) -> Proposing {
        Proposing::new(self.clone(), name.into())
    }

    /// Submits a command and waits for its answer. A command that has not been
    /// begun within 5 s is withdrawn. Whoever takes an attempt this way settles
    /// it: nobody does so if the wait is given up.
    ///
    /// # Errors
    /// `store_busy`, or what the store fails with.
    pub async fn submit(&self, command: Command) -> Result<Reply, Error> {
        let concerned = concerned(&command);
        let ticket = self.ticket(command)?;
        let patience = tokio::time::Instant::from_std(ticket.patience_ends());
        let mut ticket = pin!(ticket);
        let reply = match tokio::time::timeout_at(patience, ticket.as_mut()).await {
            Ok(outcome) => outcome?,
            Err(_) if ticket.withdraw() => return Err(StoreError::new(Code::StoreBusy).into()),
            Err(_) => ticket.await?,
        };
        if let Some(stream) = concerned {
            self.inner.watch.changed(&stream);
        }
        self.inner.keeper.recorded();
        Ok(reply)
    }

    /// Hands a command to the store.
    pub(crate) fn ticket(&self, command: Command) -> Result<Ticket, StoreError> {
        let store = &self.inner.store;
        if self.blocks { store.submit_here(command) } else { store.submit(command) }
    }

    /// Makes a policy the active one. `again` also takes one that was active
    /// before and is not now.
    ///
    /// # Errors
    /// `policy_file_old`, or what the store fails with.
    pub async fn activate(
        &self,
        policy: Arc<ActivePolicy>,
        again: bool,
        person: Option<Identity>,
    ) -> Result<bool, Error> {
        match self.submit(Command::Activate(Activate { policy: policy.clone(), again, person })).await? {
            Reply::Policy { changed, .. } => {
                self.set_policy(policy);
                Ok(changed)
            }
            reply => Err(refused(reply)),
        }
    }

    /// Looks which policy is active now, and uses it from here on.
    pub(crate) async fn refresh_policy(&self) -> Result<Arc<ActivePolicy>, Error> {
        let store = self.inner.store.clone();
        let active = blocking(move || store.active_policy()).await?;
        let policy = active.ok_or_else(|| StoreError::new(Code::PolicyMissing))?;
        self.set_policy(policy.clone());
        Ok(policy)
    }

    fn set_policy(&self, policy: Arc<ActivePolicy>) {
        *self.inner.policy.write().unwrap_or_else(PoisonError::into_inner) = Some(policy);
    }

    /// Reads the store as `read` does, which blocks, away from async tasks.
    pub(crate) async fn aside<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Control) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let control = self.clone();
        blocking(move || read(&control)).await
    }

    /// The newest attempt at an effect.
    async fn newest_attempt(&self, key: &str) -> Result<Option<EffectRow>, Error> {
        let key = key.to_owned();
        self.aside(move |control| control.effect(&key)).await
    }

    /// Records a person's answer to a request. `shown` is the binding hash of
    /// what they were shown.
    ///
    /// # Errors
    /// Why the answer does not count.
    pub async fn answer(
        &self,
        approval: ApprovalId,
        person: Identity,
        said: Said,
        shown: Hash,
    ) -> Result<Reply, Error> {
        accepted(self.submit(Command::Answer(Answer { approval, person, said, shown, reason: None })).await?)
    }

    /// Records a person's no, and why; whoever asked reads it.
    ///
    /// # Errors
    /// As [`Control::answer`], or `out_of_bounds` for a reason that is blank or longer
    /// than an error text.
    pub async fn deny(
        &self,
        approval: ApprovalId,
        person: Identity,
        shown: Hash,
        reason: impl Into<String>,
    ) -> Result<Reply, Error> {
        let (said, reason) = (Said::No, Some(reason.into()));
        accepted(self.submit(Command::Answer(Answer { approval, person, said, shown, reason })).await?)
    }

    /// Takes an approval back.
    ///
    /// # Errors
    /// Why it cannot be.
    pub async fn revoke(&self, approval: ApprovalId, person: Identity) -> Result<Reply, Error> {
        accepted(self.submit(Command::Revoke(Revocation { approval, person })).await?)
    }

    /// Records a person's word on the unknown outcome of the newest attempt at
    /// this effect, or of the attempt `fence`.
    ///
    /// # Errors
    /// Why it cannot be resolved so.
    pub async fn resolve(
        &self,
        key: &str,
        fence: Option<u64>,
        happened: bool,
        reason: String,
        evidence: Option<String>,
        person: Identity,
    ) -> Result<Reply, Error> {
        let effect = self.store().tenant().effect(key);
        let fence = match fence {
            Some(fence) => fence,
            None => self.newest_attempt(key).await?.map_or(0, |effect| effect.fence),
        };
        let resolve = Resolve { effect, fence, happened, reason, evidence, person };
        accepted(self.submit(Command::Resolve(resolve)).await?)
    }

    /// Asks the remote, by `ask`, what became of the newest attempt at this
    /// effect, and records what it says. `None` from `ask`, or an error, means
    /// that it cannot tell: nothing is recorded. What the call redacts is taken
    /// out of what the remote says.
    ///
    /// # Errors
    /// Why the word does not count: `too_early`, `invalid_transition`, …
    pub async fn reconcile<F, Fut>(&self, key: &str, settle: Span, ask: F) -> Result<Option<Reply>, Error>
    where
        F: FnOnce(String, u64) -> Fut,
        Fut: Future<Output = Option<(Finding, Option<String>)>>,
    {
        let Some(effect) = self.newest_attempt(key).await? else {
            return Err(refused(Code::EffectUnknown.into()));
        };
        let Some((finding, evidence)) = ask(key.to_owned(), effect.fence).await else { return Ok(None) };
        let secrets = self.aside(move |control| secrets_of(control, effect.holder)).await?;
        let (finding, evidence) = (without(finding, &secrets), evidence.map(|text| secrets.hide(text)));
        let stream = self.store().tenant().effect(key);
        let reconcile =
            Reconcile { effect: stream, fence: effect.fence, finding, evidence, remote: None, settle };
        accepted(self.submit(Command::Reconcile(reconcile)).await?).map(Some)
    }

    /// Keeps foreign evidence in the journal.
    ///
    /// # Errors
    /// A body over 64 KiB.
    pub async fn note(&self, source: String, body: String) -> Result<Reply, Error> {
        accepted(self.submit(Command::Note(Note { body, source })).await?)
    }

    /// Goes on with a recorded action.
    pub fn resume(&self, action: ActionId) -> crate::call::Resuming {
        crate::call::Resuming::new(self.clone(), action)
    }

    /// Who the operating system proves: the account that runs this process, if
    /// it owns the store.
    #[must_use]
    pub fn account() -> Identity {
        Identity::parse(&owner()).unwrap_or(Identity { proof: Proof::Os, name: String::new() })
    }

    /// Closes the store: what is waiting is run, the mark moves, or
    /// [`Control::mark_failure`] says why not. Later commands answer
    /// `store_closed`.
    pub fn close(&self) {
        self.inner.close();
    }
}

impl Inner {
    fn close(&self) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        self.sweeper.stop();
        self.keeper.stop();
        // What fails is kept, see `Control::mark_failure`.
        drop(self.mark.as_ref().map(|mark| mark.advance(&self.store)));
        self.store.close();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}

/// The account that owns the store, as `os:<login>`.
pub(crate) fn owner() -> String {
    let uid = nix::unistd::getuid();
    match nix::unistd::User::from_uid(uid) {
        Ok(Some(user)) => format!("os:{}", user.name),
        Ok(None) | Err(_) => format!("os:uid-{uid}"),
    }
}

/// Runs something that blocks on the store away from async tasks.
pub(crate) async fn blocking<T, E>(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, Error>
where
    T: Send + 'static,
    E: Into<Error> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(Into::into),
        Err(_) => Err(Error::Unexpected),
    }
}

/// A reply that is no refusal.
pub(crate) fn accepted(reply: Reply) -> Result<Reply, Error> {
    match reply {
        Reply::Refused(refusal) => Err(Error::Refused(refusal)),
        reply => Ok(reply),
    }
}

/// A reply that should have been another one.
pub(crate) fn refused(reply: Reply) -> Error {
    match reply {
        Reply::Refused(refusal) => Error::Refused(refusal),
        _ => Error::Unexpected,
    }
}

/// How often a call submits its proposal again because the policy changed.
pub(crate) const STALE_MAX: usize = 3;

/// What a command may change that somebody may wait for.
fn concerned(command: &Command) -> Option<StreamId> {
    match command {
        Command::Answer(answer) => Some(StreamId::approval(answer.approval)),
        Command::Revoke(revocation) => Some(StreamId::approval(revocation.approval)),
        Command::Settle(settle) => Some(settle.attempt.effect),
        Command::Resolve(resolve) => Some(resolve.effect),
        Command::Reconcile(reconcile) => Some(reconcile.effect),
        Command::Lapse(stream) => Some(*stream),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

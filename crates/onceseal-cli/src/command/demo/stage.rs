//! Where the scenes play: a private directory, a store, a clock, a provider.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onceseal::config::{Config, Settings};
use onceseal::core::approval::Said;
use onceseal::core::id::ApprovalId;
use onceseal::core::json::{Object, Value};
use onceseal::core::policy::ActivePolicy;
use onceseal::store::StoreError;
use onceseal::store::clock::{Clock, ManualClock, SystemClock};
use onceseal::store::place::Surroundings;
use onceseal::{Call, Control, Error, Failure, Opening, Principal, Proposing};

use crate::command::init::fresh_id;
use crate::command::list::corrupt;
use crate::context::wait;
use crate::error::CliError;

/// The action of every scene.
pub(super) const ACTION: &str = "stripe.refund";
/// What runs without a person.
pub(super) const SMALL: i32 = 2_000;
/// What a person must approve.
pub(super) const LARGE: i32 = 5_000;
/// The lease of an attempt, in microseconds.
pub(super) const LEASE_US: i64 = 30_000_000;

const POLICY: &str = r#"
schema: onceseal.policy/v1
actions:
  stripe.refund:
    effect: "refund:{payment_id}"
    lease: 30s
    rules:
      - when: { amount_gte: 0, amount_lte: 2000 }
        decision: allow
      - when: { amount_gte: 0, amount_lte: 1000000 }
        decision: approve
      - decision: deny
"#;

/// Everything a scene plays with.
pub(super) struct Stage {
    /// The store as the first process has it open.
    pub(super) control: Control,
    /// The time, which only scenes move.
    pub(super) clock: Arc<ManualClock>,
    /// How often the provider was called for a payment.
    calls: RefCell<BTreeMap<String, u32>>,
    /// The private directory.
    pub(super) directory: PathBuf,
    left: bool,
}

impl Stage {
    pub(super) fn build() -> Result<Stage, CliError> {
        let directory = std::env::temp_dir().join(format!("onceseal-demo-{}", fresh_id()?));
        DirBuilder::new().mode(0o700).create(&directory).map_err(StoreError::from)?;
        let clock = Arc::new(ManualClock::new(SystemClock.now()));
        let control = open(&directory, clock.clone())?;
        wait(control.activate(policy()?, false, None))??;
        Ok(Stage { control, clock, calls: RefCell::default(), directory, left: false })
    }

    /// Another process's view of the same store.
    pub(super) fn second_process(&self) -> Result<Control, CliError> {
        open(&self.directory, self.clock.clone())
    }

    /// Lets the lease of every attempt end.
    pub(super) fn lease_ends(&self) {
        self.clock.advance(LEASE_US + 1_000_000);
    }

    /// Calls the provider: it does what it is asked, every time.
    pub(super) fn provider(&self, payment: &str) {
        *self.calls.borrow_mut().entry(payment.to_owned()).or_default() += 1;
    }

    /// How often the provider was called for a payment.
    pub(super) fn called(&self, payment: &str) -> u32 {
        self.calls.borrow().get(payment).copied().unwrap_or_default()
    }

    /// A call that does what it says.
    pub(super) fn pay(
        &self,
        proposing: Proposing,
        payment: &'static str,
    ) -> Result<Result<(), Error>, CliError> {
        let executor = |_: Call| async {
            self.provider(payment);
            Ok::<Value, Failure>(Value::Null)
        };
        Ok(wait(proposing.execute(executor))?.map(drop))
    }

    /// Asks for a large refund and has a person approve it.
    pub(super) fn approved(&self, payment: &'static str) -> Result<ApprovalId, CliError> {
        let asked = self.pay(refund(&self.control, "support-agent", payment, LARGE), payment)?;
        let Err(Error::ApprovalNeeded { approval, .. }) = asked else { return Err(Error::Unexpected.into()) };
        let row = self.control.approval(approval)?.ok_or_else(corrupt)?;
        let binding = row.private.bound.binding.ok_or_else(corrupt)?;
        wait(self.control.answer(approval, Control::account(), Said::Yes, binding))??;
        Ok(approval)
    }

    /// Closes everything. The directory is kept if asked; its state is returned.
    pub(super) fn leave(mut self, keep: bool) -> Result<Option<PathBuf>, CliError> {
        self.control.close();
        self.left = true;
        if keep {
            return Ok(Some(self.directory.join("state")));
        }
        fs::remove_dir_all(&self.directory).map_err(StoreError::from)?;
        Ok(None)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.left {
            self.control.close();
            // The scene's own error is being told.
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// The policy of the scenes.
pub(super) fn policy() -> Result<Arc<ActivePolicy>, CliError> {
    Ok(Config::parse(POLICY.as_bytes())?.policy)
}

/// Opens the store of a private directory, and keeps everything else there too.
pub(super) fn open(directory: &Path, clock: Arc<dyn Clock>) -> Result<Control, CliError> {
    let surroundings = Surroundings {
        state: Some(directory.join("state").into()),
        xdg_state_home: Some(directory.into()),
        home: Some(directory.into()),
        ..Surroundings::of_process(directory.to_owned())
    };
    let opening = Opening { surroundings, settings: Settings::default(), clock, sweep: false };
    Ok(Control::found(&opening)?)
}

/// The arguments of a refund.
pub(super) fn arguments(payment: &str, amount: i32) -> Object {
    let mut arguments = Object::new();
    arguments.insert("payment_id", payment);
    arguments.insert("amount", amount);
    arguments
}

/// A refund that an agent wants to pay.
pub(super) fn refund(control: &Control, agent: &str, payment: &str, amount: i32) -> Proposing {
    control.action(ACTION).args(arguments(payment, amount)).by(Principal::agent(agent))
}

//! Endpoints that a program tries itself, as a model's: the circuits of operations,
//! remembered across processes.

use std::fmt;

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::json::{self, Object, Value};
use onceseal_core::lease::Lease;
use onceseal_core::reply::Reply;
use onceseal_core::route::{Health, ReportRoute, TryRoute};
use onceseal_core::time::Span;

use crate::chance::{holder_key, spread};
use crate::control::{Control, refused};
use crate::error::Error;

/// How long a probe may take if nothing is said.
const PROBE: Span = Span::minutes(10);

/// An endpoint, by its fingerprint. Cheap to clone.
#[derive(Clone)]
pub struct Endpoint {
    control: Control,
    destination: String,
    probe: Span,
}

/// An endpoint that may be tried now. Say how it went: if it is a probe, nobody
/// else tries the endpoint before that, or before its time is over.
#[must_use = "whether it answered is told by `answered` or `failed`"]
pub struct Trying {
    endpoint: Endpoint,
    lease: Option<Lease>,
}

/// Without the control.
impl fmt::Debug for Trying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Trying { endpoint, lease } = self;
        f.debug_struct("Trying").field("endpoint", &endpoint.destination).field("lease", lease).finish()
    }
}

impl Control {
    /// The endpoint that is reached so: all that says how, without a name for it.
    /// Two that are reached alike are one.
    ///
    /// After some failures in a row it is left alone for a while, then tried by one
    /// caller, whoever asks first in whatever process. A success closes the circuit;
    /// a failure leaves it alone for longer.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use onceseal::core::json::Object;
    /// use onceseal::{Control, config::Config};
    ///
    /// # let clock = std::sync::Arc::new(onceseal::store::clock::SystemClock);
    /// # let config = Config::parse(b"schema: onceseal.policy/v1\nactions: {}")?;
    /// let control = Control::memory(config.policy, clock).await?;
    /// let mut reached = Object::new();
    /// reached.insert("url", "https://models.example/v1");
    /// reached.insert("model", "large");
    /// match control.endpoint(&reached).attempt().await {
    ///     Ok(trying) => trying.answered().await?,
    ///     Err(error) if error.code() == "route_open" => {} // try another one
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok::<(), onceseal::Error>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn endpoint(&self, reached: &Object) -> Endpoint {
        let text = json::canonical(&Value::Object(reached.clone()));
        let destination = Hash::of("onceseal.endpoint.v1\n", &[text.as_bytes()]).to_string();
        Endpoint { control: self.clone(), destination, probe: PROBE }
    }
}

impl Endpoint {
    /// SHA-256(`onceseal.endpoint.v1\n` ‖ canonical JSON of how it is reached): under
    /// this name `onceseal operations routes` lists it.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.destination
    }

    /// How long a probe may take, 1 second to 24 hours; 10 minutes unless said.
    #[must_use]
    pub fn probe_for(self, length: Span) -> Endpoint {
        Endpoint { probe: length, ..self }
    }

    /// Asks whether it may be tried now.
    ///
    /// # Errors
    /// `route_open` if it is left alone, with until when; or what the store fails with.
    pub async fn attempt(&self) -> Result<Trying, Error> {
        let (destination, holder, length) = (self.destination.clone(), holder_key()?, self.probe);
        let wish = TryRoute { destination, holder, length };
        let lease = match self.control.submit(Command::TryRoute(wish)).await? {
            Reply::Done { .. } => None,
            Reply::Lease(now) => Some(now.lease),
            other => return Err(refused(other)),
        };
        Ok(Trying { endpoint: self.clone(), lease })
    }
}

impl Trying {
    /// Whether this is the probe of an endpoint that did not answer.
    #[must_use]
    pub const fn is_probe(&self) -> bool {
        self.lease.is_some()
    }

    /// It answered, whatever it said.
    ///
    /// # Errors
    /// What the store fails with. A probe that took too long says nothing.
    pub async fn answered(self) -> Result<(), Error> {
        self.report(Health::Well).await
    }

    /// It could not be reached, or could take on no more.
    ///
    /// # Errors
    /// As [`Trying::answered`].
    pub async fn failed(self) -> Result<(), Error> {
        self.report(Health::Ill { spread: spread() }).await
    }

    async fn report(self, health: Health) -> Result<(), Error> {
        let Trying { endpoint: Endpoint { control, destination, .. }, lease: under } = self;
        match control.submit(Command::ReportRoute(ReportRoute { destination, health, under })).await? {
            Reply::Done { .. } => Ok(()),
            Reply::Refused(refusal) if refusal.code == Code::LeaseFenced => Ok(()),
            other => Err(refused(other)),
        }
    }
}

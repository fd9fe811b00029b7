//! What every command needs: the configuration, and the store opened as far as
//! the command may go.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onceseal::config::{Config, ConfigError, Settings};
use onceseal::core::hash::Hash;
use onceseal::core::json::{Object, Value};
use onceseal::runs::Definition;
use onceseal::store::clock::Clock;
use onceseal::{Control, Opening, Seen};

use crate::cli::Global;
use crate::command::policy::FORGETS;
use crate::error::CliError;
use crate::out::Out;

/// The global flags, and where output goes.
pub(crate) struct Context {
    pub(crate) out: Out,
    pub(crate) global: Global,
    /// Set once this command has made another policy the active one.
    activated: OnceCell<Activated>,
}

/// Which policy is active now instead of which.
struct Activated {
    from: Hash,
    to: Hash,
}

impl Context {
    pub(crate) const fn new(out: Out, global: Global) -> Context {
        Context { out, global, activated: OnceCell::new() }
    }

    /// The configuration file to use.
    pub(crate) fn file(&self) -> Result<PathBuf, ConfigError> {
        let here = std::env::current_dir().map_err(|_| ConfigError::NoDirectory)?;
        Config::find(self.global.config.as_deref(), &here)
    }

    /// The configuration, which whoever acts must have.
    pub(crate) fn config(&self) -> Result<Config, CliError> {
        let file = self.file()?;
        Config::load(&file).map_err(|error| CliError::of_file(error, &file))
    }

    /// The settings, without a file or with a file whose policy is malformed:
    /// whoever answers or reads does without a policy of their own.
    pub(crate) fn settings(&self) -> Result<Settings, CliError> {
        match self.file() {
            Ok(file) => Config::load_settings(&file).map_err(|error| CliError::of_file(error, &file)),
            Err(ConfigError::Missing) => Ok(Settings::default()),
            Err(error) => Err(error.into()),
        }
    }

    /// How a store is opened here: that of the project which the configuration
    /// is in, or else the working directory.
    pub(crate) fn opening(&self, settings: Settings) -> Result<Opening, CliError> {
        match self.file() {
            Ok(file) => self.opening_beside(&file, settings),
            Err(_) => self.opened(Opening::new(settings)?),
        }
    }

    /// How the store of the project that this file is in is opened.
    pub(crate) fn opening_beside(&self, file: &Path, settings: Settings) -> Result<Opening, CliError> {
        self.opened(Opening::beside(file, settings)?)
    }

    /// One command ends what it touches and sweeps nothing else.
    fn opened(&self, mut opening: Opening) -> Result<Opening, CliError> {
        opening.settings.force_filesystem |= self.global.force_filesystem;
        Ok(Opening { sweep: false, ..opening })
    }

    /// Opens the store to act under this configuration's policy. Whoever edits
    /// the file changes what is permitted, so a change is not silent.
    pub(crate) fn act(&self, config: &Config) -> Result<Control, CliError> {
        self.acting(config, self.opening(config.settings.clone())?)
    }

    /// The same at a time that a case file says.
    pub(crate) fn act_at(&self, config: &Config, clock: Arc<dyn Clock>) -> Result<Control, CliError> {
        self.acting(config, Opening { clock, ..self.opening(config.settings.clone())? })
    }

    /// The same for a program that stays: it also ends what has lapsed.
    pub(crate) fn stay(&self, config: &Config) -> Result<Control, CliError> {
        self.acting(config, Opening { sweep: true, ..self.opening(config.settings.clone())? })
    }

    fn acting(&self, config: &Config, opening: Opening) -> Result<Control, CliError> {
        let control = Control::found(&opening)?;
        self.unremembered(&control);
        self.begun(&control, &opening)?;
        if config.settings.memory {
            self.forgets();
        }
        wait(self.activate(&control, config))??;
        Ok(control)
    }

    /// Opens the store to do what no policy decides, and makes it if a project has
    /// none yet. Whoever stays also ends what has lapsed.
    pub(crate) fn work(&self, stays: bool) -> Result<Control, CliError> {
        let settings = self.settings()?;
        if settings.memory {
            self.forgets();
        }
        let opening = Opening { sweep: stays, ..self.opening(settings)? };
        let control = Control::found(&opening)?;
        self.unremembered(&control);
        self.begun(&control, &opening)?;
        Ok(control)
    }

    /// Says that nothing was recorded before at an address, which may be mistyped.
    fn begun(&self, control: &Control, opening: &Opening) -> Result<(), CliError> {
        if let (Some(address), None) = (&opening.settings.store, control.policy())
            // The first entry says that the store was made.
            && control.store().read(|snapshot| snapshot.newest())? <= 1
        {
            self.out
                .note(&format!("note: nothing was recorded before in {}; it begins now", address.shown()));
        }
        Ok(())
    }

    /// Says that nothing will notice if what is done now is forgotten.
    fn unremembered(&self, control: &Control) {
        if let Some(failure) = control.mark_failure() {
            self.out.note(&format!(
                "warning: what is done cannot be marked, so a store that is emptied or restored from a backup would \
                 not be noticed ({failure}); see `onceseal doctor`"
            ));
        }
    }

    /// The run definitions of the configuration, if there is one.
    pub(crate) fn definitions(&self) -> Result<Vec<Arc<Definition>>, CliError> {
        match self.file() {
            Err(ConfigError::Missing) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
            Ok(_) => Ok(self.config()?.runs),
        }
    }

    /// Makes this configuration's policy the active one, and says so if it was
    /// another.
    pub(crate) async fn activate(&self, control: &Control, config: &Config) -> Result<(), CliError> {
        let before = control.policy().map(|policy| policy.hash);
        let changed = control.activate(config.policy.clone(), false, Some(Control::account())).await?;
        if let (true, Some(from)) = (changed, before) {
            let to = config.policy.hash;
            if !self.out.is_json() {
                let (from, to) = (short(from), short(to));
                self.out.note(&format!("note: the policy changed: {to} is active now instead of {from}"));
            }
            self.activated.get_or_init(|| Activated { from, to });
        }
        Ok(())
    }

    /// The policy that this command made the active one, for programs: null if
    /// it changed nothing.
    pub(crate) fn activated(&self) -> Value {
        self.activated.get().map_or(Value::Null, |Activated { from, to }| {
            let mut object = Object::new();
            object.insert("from", from.to_string());
            object.insert("to", to.to_string());
            object.into()
        })
    }

    /// Says that nothing is kept from this command to the next.
    fn forgets(&self) {
        self.out.note(&format!("warning: {FORGETS}"));
    }

    /// Opens the store to answer or resolve, if there is one.
    pub(crate) fn answer(&self) -> Result<Option<Control>, CliError> {
        Ok(Control::existing(&self.opening(self.settings()?)?)?)
    }

    /// Opens the store to read, if there is one.
    pub(crate) fn read(&self) -> Result<Option<Control>, CliError> {
        let settings = self.settings()?;
        if settings.memory {
            self.forgets();
        }
        let control = Control::reading(&self.opening(settings)?)?;
        if let Some(Seen::WentBack { seen, found }) = control.as_ref().map(Control::seen) {
            let lost = crate::command::doctor::lost(*seen, *found);
            self.out.note(&format!(
                "warning: the store is older than what was seen before: {lost}; see `onceseal doctor`"
            ));
        }
        Ok(control)
    }

    /// The error with what this command did before it, and with where the store is
    /// that it is about.
    pub(crate) fn told(&self, error: CliError) -> CliError {
        let error = match self.activated() {
            Value::Null => error,
            activated => error.about("policy_activated", activated),
        };
        if !error.concerns_store() {
            return error;
        }
        let opening = self.settings().and_then(|settings| self.opening(settings)).ok();
        let Some(opening) = opening.filter(|opening| !opening.settings.memory) else { return error };
        match (&opening.settings.store, opening.place()) {
            (Some(address), _) => error.of_server(&address.shown()),
            (None, Ok(place)) => error.of_store(place.database()),
            (None, Err(_)) => error,
        }
    }

    /// A path as it is shown.
    pub(crate) fn path(&self, path: &Path) -> String {
        crate::text::shown(&path.display().to_string())
    }
}

/// As much of a hash as tells two apart at a glance.
fn short(hash: Hash) -> String {
    hash.to_string().chars().take("sha256:".len() + 12).collect()
}

/// Runs a future to its end on this thread.
pub(crate) fn wait<F: Future>(future: F) -> Result<F::Output, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        CliError::new("runtime_failed", format!("the system gives no event queue: {}", error.kind()), 2)
    })?;
    Ok(runtime.block_on(future))
}

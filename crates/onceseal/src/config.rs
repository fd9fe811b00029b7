//! `onceseal.yaml`: the policy, and settings of this program.

mod address;
mod file;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onceseal_core::json::{Object, Value};
use onceseal_core::policy::{ActivePolicy, Document, Policy, PolicyError};
use onceseal_core::run::Definition;

use crate::operations::{Declared, ToolError};
use crate::runs::{self, DefinedErrors};

pub use address::StoreAddress;

/// The file's name.
pub const FILE: &str = "onceseal.yaml";
/// What a new file holds: a policy that shows the three decisions.
pub const STARTER: &str = include_str!("starter.yaml");

/// What is wrong with the configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No file was found.
    #[error("there is no {FILE} here or above; `onceseal init` writes one")]
    Missing,
    /// What stands at the file's name cannot be read as a file.
    #[error("{} cannot be read: {reason}", .file.display())]
    Unreadable {
        /// Which file.
        file: PathBuf,
        /// What the operating system said, or what stands there instead.
        reason: String,
    },
    /// The file is larger than a policy may be.
    #[error("{} is larger than 1 MiB, and no policy is; shorten its lists or split the tenant", .file.display())]
    TooLarge {
        /// Which file.
        file: PathBuf,
    },
    /// The working directory, from which the file is looked for, is gone.
    #[error("the working directory cannot be used; change to an existing directory")]
    NoDirectory,
    /// `ONCESEAL_CONFIG` is set and blank.
    #[error("ONCESEAL_CONFIG is set but blank; unset it or name a file")]
    Blank,
    /// The policy is malformed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A tool is malformed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// Run definitions are malformed.
    #[error(transparent)]
    Run(#[from] DefinedErrors),
    /// A setting is malformed.
    #[error("settings: {0}")]
    Setting(String),
}

impl ConfigError {
    /// A stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            ConfigError::Missing => "config_missing",
            ConfigError::Unreadable { .. } => "config_unreadable",
            ConfigError::TooLarge { .. } => "config_too_large",
            ConfigError::NoDirectory => "project_unavailable",
            ConfigError::Blank => "config_blank",
            ConfigError::Policy(_) => "policy_invalid",
            ConfigError::Tool(_) => "tool_invalid",
            ConfigError::Run(_) => "definition_invalid",
            ConfigError::Setting(_) => "setting_invalid",
        }
    }
}

/// Settings of this program; no part of the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The tenant. Default `default`.
    pub tenant: String,
    /// Keep everything in memory and forget it at the end.
    pub memory: bool,
    /// The server that several hosts share; absent: a file of this host.
    pub store: Option<StoreAddress>,
    /// A standby of the server that commits do not wait for, and that may take over
    /// without what was acknowledged.
    pub asynchronous_standby: bool,
    /// Another directory for marks than the account's state home.
    pub mark: Option<PathBuf>,
    /// Id of a group that may write directories above the state.
    pub trust_group: Option<u32>,
    /// Network and host-shared file systems too.
    pub force_filesystem: bool,
    /// State beside the policy, where `git clean` can destroy it.
    pub state_in_project: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            tenant: "default".to_owned(),
            memory: false,
            store: None,
            asynchronous_standby: false,
            mark: None,
            trust_group: None,
            force_filesystem: false,
            state_in_project: false,
        }
    }
}

/// A file that was read and checked as a whole.
#[derive(Debug, Clone)]
pub struct Config {
    /// Its policy.
    pub policy: Arc<ActivePolicy>,
    /// Its settings.
    pub settings: Settings,
    /// The tools that a worker carries out.
    pub tools: Vec<Declared>,
    /// The definitions that runs can be started by besides those built in.
    pub runs: Vec<Arc<Definition>>,
    /// Where their programs run: beside the file.
    pub directory: PathBuf,
}

impl Config {
    /// The file to use: the one named, else `ONCESEAL_CONFIG`, else
    /// `onceseal.yaml` in the working directory or above it. Whatever stands at
    /// that name is the file: a link to nothing does not let the policy of a
    /// directory above decide.
    ///
    /// # Errors
    /// `config_blank`, `config_missing`.
    pub fn find(named: Option<&Path>, working_directory: &Path) -> Result<PathBuf, ConfigError> {
        if let Some(named) = named {
            return Ok(named.to_owned());
        }
        match std::env::var_os("ONCESEAL_CONFIG") {
            Some(path) if path.to_string_lossy().trim().is_empty() => return Err(ConfigError::Blank),
            Some(path) => return Ok(path.into()),
            None => {}
        }
        Config::find_above(working_directory).ok_or(ConfigError::Missing)
    }

    /// The nearest `onceseal.yaml`, in a directory or above it.
    fn find_above(directory: &Path) -> Option<PathBuf> {
        directory.ancestors().map(|directory| directory.join(FILE)).find(|path| Config::stands_at(path))
    }

    /// Whether anything stands at a path, be it a link that leads nowhere or
    /// something that may not be looked at.
    #[must_use]
    pub fn stands_at(path: &Path) -> bool {
        file::stands_at(path)
    }

    /// A file's content, at most 1 MiB, if it is a regular file.
    ///
    /// # Errors
    /// `config_unreadable`, `config_too_large`.
    pub fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
        file::read(path)
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        // Made whole before it is cut: the directory of `onceseal.yaml` has no name.
        let whole = std::path::absolute(path).map_err(|_| ConfigError::NoDirectory)?;
        Config::of(&Config::read(path)?, whole.parent().unwrap_or(&whole))
    }

    /// Reads the settings of a file, whatever its policy says: answering,
    /// resolving and reading use the policy that is active in the store.
    ///
    /// # Errors
    /// What is wrong with the file's form or its settings.
    pub fn load_settings(path: &Path) -> Result<Settings, ConfigError> {
        take_settings(&mut Document::read(&Config::read(path)?)?)
    }

    /// Checks a file's content.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(file: &[u8]) -> Result<Config, ConfigError> {
        Config::of(file, Path::new("."))
    }

    fn of(file: &[u8], directory: &Path) -> Result<Config, ConfigError> {
        let mut document = Document::read(file)?;
        let settings = take_settings(&mut document)?;
        let tools = match document.take("tools") {
            None => Vec::new(),
            Some(section) => Declared::all(&section, directory).map_err(|error| {
                let position = Some(document.position(&error.way()));
                ToolError { position, ..error }
            })?,
        };
        let runs = match document.take("runs") {
            None => Vec::new(),
            Some(section) => runs::section(&section).map_err(|DefinedErrors(mut errors)| {
                for error in &mut errors {
                    error.position = Some(document.position(&error.way()));
                }
                errors.sort_by_key(|error| error.position);
                DefinedErrors(errors)
            })?,
        };
        // Compiled from the document first: its errors know their line.
        Policy::from_document(&document)?;
        let policy = Arc::new(ActivePolicy::compile(document.value())?);
        Ok(Config { policy, settings, tools, runs, directory: directory.to_owned() })
    }
}

const KEYS: [&str; 8] = [
    "tenant",
    "memory",
    "store",
    "asynchronous_standby",
    "mark",
    "trust_group",
    "force_filesystem",
    "state_in_project",
];

fn take_settings(document: &mut Document) -> Result<Settings, ConfigError> {
    match document.take("settings") {
        None => Ok(Settings::default()),
        Some(Value::Object(object)) => settings(&object),
        Some(_) => Err(ConfigError::Setting("must be a mapping".to_owned())),
    }
}

fn settings(object: &Object) -> Result<Settings, ConfigError> {
    let mut settings = Settings::default();
    for (name, value) in object.iter() {
        let wrong = |wanted: &str| ConfigError::Setting(format!("{name} must be {wanted}"));
        match (name, value) {
            ("tenant", Value::Text(text)) => settings.tenant.clone_from(text),
            ("memory", Value::Bool(on)) => settings.memory = *on,
            ("store", Value::Text(address)) => settings.store = Some(StoreAddress::parse(address)?),
            ("asynchronous_standby", Value::Bool(on)) => settings.asynchronous_standby = *on,
            ("mark", Value::Text(path)) => settings.mark = Some(path.into()),
            ("trust_group", Value::Integer(id)) => {
                settings.trust_group = Some(u32::try_from(*id).map_err(|_| wrong("a group id"))?);
            }
            ("force_filesystem", Value::Bool(on)) => settings.force_filesystem = *on,
            ("state_in_project", Value::Bool(on)) => settings.state_in_project = *on,
            ("tenant" | "store" | "mark", _) => return Err(wrong("text")),
            ("trust_group", _) => return Err(wrong("a group id")),
            ("memory" | "asynchronous_standby" | "force_filesystem" | "state_in_project", _) => {
                return Err(wrong("true or false"));
            }
            _ => return Err(ConfigError::Setting(unknown(name))),
        }
    }
    if settings.memory && settings.store.is_some() {
        return Err(ConfigError::Setting("memory and store exclude each other; take one out".to_owned()));
    }
    Ok(settings)
}

fn unknown(name: &str) -> String {
    let shared = |key: &&str| key.chars().zip(name.chars()).take_while(|(a, b)| a == b).count();
    match KEYS.iter().max_by_key(|key| shared(key)).filter(|key| shared(key) > 1) {
        Some(near) => format!("`{name}` is not known; did you mean `{near}`?"),
        None => format!("`{name}` is not known; known are {}", KEYS.join(", ")),
    }
}

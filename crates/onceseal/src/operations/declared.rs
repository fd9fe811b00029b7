//! Tools as `onceseal.yaml` declares them.

use std::path::Path;
use std::time::Duration;

use onceseal_core::json::{self, Limits, Object, Value};
use onceseal_core::tool::{self, Recovery};

use super::checked::Rules;
use super::program::Program;
#[cfg(feature = "http")]
use super::request::Remote;
use super::tool::{Handler, SHARED};
use super::{Tool, ToolError};

/// A program is stopped some time before its attempt ends, so that its end is
/// known; this much is needed for it to do anything.
const SHORTEST: Duration = Duration::from_secs(30);

/// A tool as the file declares it: checked, and not yet able to do anything.
#[derive(Debug, Clone)]
pub struct Declared {
    document: Object,
    contract: tool::Contract,
    kind: Kind,
    rules: Rules,
}

#[derive(Debug, Clone)]
enum Kind {
    Command(Box<Program>),
    #[cfg(feature = "http")]
    Http(Box<Remote>),
}

impl Kind {
    /// What it depends on, where the contract does not say.
    fn destination(&self) -> String {
        match self {
            Kind::Command(program) => program.destination().to_owned(),
            #[cfg(feature = "http")]
            Kind::Http(remote) => remote.destination(),
        }
    }

    /// Whether it can do what the contract supposes.
    fn suits(&self, contract: &tool::Contract) -> Result<(), String> {
        let asks = matches!(contract.recovery, Recovery::Ask { .. });
        match self {
            Kind::Command(program) if asks && !program.can_be_asked() => {
                Err("recovery: to be asked, a command needs command.status".to_owned())
            }
            Kind::Command(_) if matches!(contract.recovery, Recovery::SameKey { key_ttl } if key_ttl.to_std() < SHORTEST) => {
                Err("key_ttl: a command needs at least 30s, of which the last 10s are to stop it".to_owned())
            }
            Kind::Command(_) if contract.deadline.to_std() < SHORTEST => {
                Err("deadline: a command needs at least 30s, of which the last 10s are to stop it".to_owned())
            }
            Kind::Command(_) => Ok(()),
            #[cfg(feature = "http")]
            Kind::Http(remote) if asks && !remote.can_be_asked() => {
                Err("recovery: to be asked, a remote needs http.status".to_owned())
            }
            #[cfg(feature = "http")]
            Kind::Http(_) => Ok(()),
        }
    }
}

impl Declared {
    /// Reads the section `tools`: a mapping from names to contracts. Programs run
    /// in `directory`.
    ///
    /// # Errors
    /// What is wrong with the first one that is.
    pub fn all(section: &Value, directory: &Path) -> Result<Vec<Declared>, ToolError> {
        let Value::Object(tools) = section else {
            return Err(ToolError::new("-", "must be a mapping"));
        };
        let one = |(name, value): (&str, &Value)| {
            Declared::one(name, value, directory).map_err(|problem| ToolError::new(name, problem))
        };
        tools.iter().map(one).collect()
    }

    /// Reads a contract back from its canonical text, as it is stored. Programs
    /// run in `directory`. `None` if the text does not say how it is carried out,
    /// or this program cannot.
    pub(super) fn stored(text: &str, directory: &Path) -> Option<Declared> {
        let Ok(Value::Object(mut entry)) = json::read_canonical(text, &Limits::DATA) else { return None };
        let Some(Value::Text(name)) = entry.remove("name") else { return None };
        Declared::one(&name, &Value::Object(entry), directory).ok()
    }

    fn one(name: &str, value: &Value, directory: &Path) -> Result<Declared, String> {
        let Value::Object(entry) = value else { return Err("must be a mapping".to_owned()) };
        let known = |key: &str| ["command", "http"].contains(&key) || SHARED.contains(&key);
        if let Some((unknown, _)) = entry.iter().find(|(key, _)| !known(key)) {
            return Err(format!("`{unknown}` is not known; known are command, http, {}", SHARED.join(", ")));
        }
        let kind = match (entry.get("command"), entry.get("http")) {
            (Some(Value::Object(command)), None) => {
                Kind::Command(Box::new(Program::parse(command, directory)?))
            }
            #[cfg(feature = "http")]
            (None, Some(Value::Object(http))) => Kind::Http(Box::new(Remote::parse(http)?)),
            #[cfg(not(feature = "http"))]
            (None, Some(Value::Object(_))) => {
                return Err("http: this program was built without the HTTP client".to_owned());
            }
            _ => return Err("one of command and http is needed, as a mapping".to_owned()),
        };
        let rules = Rules::parse(entry)?;
        let mut document = entry.clone();
        document.insert("name", name);
        if document.get("destination").is_none() {
            document.insert("destination", kind.destination());
        }
        let compiled = tool::Tool::compile(&document).map_err(|error| error.to_string())?;
        kind.suits(&compiled.contract)?;
        Ok(Declared { document, contract: compiled.contract, kind, rules })
    }

    /// The tool's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.contract.identity.name
    }

    /// What of its contract decides.
    #[must_use]
    pub const fn contract(&self) -> &tool::Contract {
        &self.contract
    }

    /// The variables of the environment that it needs and that are not set: what
    /// it should carry out is parked for that.
    #[must_use]
    pub fn unset(&self) -> Vec<String> {
        match &self.kind {
            Kind::Command(_) => Vec::new(),
            #[cfg(feature = "http")]
            Kind::Http(remote) => {
                remote.variables().into_iter().filter(|name| std::env::var(name).is_err()).collect()
            }
        }
    }

    /// The tool, able to do what it declares.
    ///
    /// # Errors
    /// The HTTP client cannot be set up.
    pub fn tool(&self) -> Result<Tool, ToolError> {
        let failed = |problem: String| ToolError::new(self.name(), problem);
        let tool = match &self.kind {
            Kind::Command(program) => self.checked(Program::clone(program)),
            #[cfg(feature = "http")]
            Kind::Http(remote) => {
                let timeout = self.contract.request_timeout.to_std();
                let client = crate::http::Client::builder().timeout(timeout);
                let client = client.refuse_local_except(remote.allow()).build();
                let client = client.map_err(|error| failed(error.to_string()))?;
                self.checked(remote.with(client))
            }
        };
        tool.map_err(|error| failed(error.to_string()))
    }

    fn checked(&self, handler: impl Handler) -> Result<Tool, tool::ContractError> {
        Tool::ruled(&self.document, self.rules.clone(), handler)
    }
}

//! Tools as `onceseal.yaml` declares them.

use std::path::Path;
use std::time::Duration;

use onceseal_core::json::{Object, Value};
use onceseal_core::tool::{self, Recovery};

use super::Tool;
use super::program::Program;
#[cfg(feature = "http")]
use super::request::Remote;
#[cfg(feature = "schema")]
use super::schema::Schemas;
use super::tool::Handler;

/// What of a contract may be written in the file.
const KEYS: [&str; 13] = [
    "revisions",
    "recovery",
    "key_ttl",
    "settle",
    "deliver_within",
    "lease",
    "deadline",
    "request_timeout",
    "destination",
    "input",
    "output",
    "command",
    "http",
];

/// A program is stopped some time before its attempt ends, so that its end is
/// known; this much is needed for it to do anything.
const SHORTEST: Duration = Duration::from_secs(30);

/// What is wrong with a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tools: {tool}: {problem}")]
pub struct ToolError {
    /// Which tool.
    pub tool: String,
    /// What is wrong, in a sentence.
    pub problem: String,
}

/// A tool as the file declares it: checked, and not yet able to do anything.
#[derive(Debug, Clone)]
pub struct Declared {
    contract: Object,
    kind: Kind,
    #[cfg(feature = "schema")]
    schemas: Schemas,
}

#[derive(Debug, Clone)]
enum Kind {
    Command(Program),
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
            Kind::Command(_) if asks => {
                Err("recovery: a command cannot be asked; write never or same_key".to_owned())
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
            return Err(ToolError { tool: "-".to_owned(), problem: "must be a mapping".to_owned() });
        };
        let one = |(name, value): (&str, &Value)| {
            Declared::one(name, value, directory)
                .map_err(|problem| ToolError { tool: name.to_owned(), problem })
        };
        tools.iter().map(one).collect()
    }

    fn one(name: &str, value: &Value, directory: &Path) -> Result<Declared, String> {
        let Value::Object(entry) = value else { return Err("must be a mapping".to_owned()) };
        if let Some((unknown, _)) = entry.iter().find(|(key, _)| !KEYS.contains(key)) {
            return Err(format!("`{unknown}` is not known; known are {}", KEYS.join(", ")));
        }
        let kind = match (entry.get("command"), entry.get("http")) {
            (Some(Value::Object(command)), None) => Kind::Command(Program::parse(command, directory)?),
            #[cfg(feature = "http")]
            (None, Some(Value::Object(http))) => Kind::Http(Box::new(Remote::parse(http)?)),
            #[cfg(not(feature = "http"))]
            (None, Some(Value::Object(_))) => {
                return Err("http: this program was built without the HTTP client".to_owned());
            }
            _ => return Err("one of command and http is needed, as a mapping".to_owned()),
        };
        #[cfg(feature = "schema")]
        let schemas = Schemas::parse(entry)?;
        #[cfg(not(feature = "schema"))]
        if ["input", "output"].iter().any(|name| entry.get(name).is_some()) {
            return Err("input, output: this program was built without JSON Schemas".to_owned());
        }
        let mut contract = entry.clone();
        contract.insert("name", name);
        if contract.get("destination").is_none() {
            contract.insert("destination", kind.destination());
        }
        let compiled = tool::Tool::compile(&contract).map_err(|error| error.to_string())?;
        kind.suits(&compiled.contract)?;
        Ok(Declared {
            contract,
            kind,
            #[cfg(feature = "schema")]
            schemas,
        })
    }

    /// The tool, able to do what it declares.
    ///
    /// # Errors
    /// The HTTP client cannot be set up.
    pub fn tool(&self) -> Result<Tool, ToolError> {
        let name = self.contract.get("name").and_then(Value::as_text).unwrap_or_default().to_owned();
        let failed = |problem: String| ToolError { tool: name.clone(), problem };
        let tool = match &self.kind {
            Kind::Command(program) => self.checked(program.clone()),
            #[cfg(feature = "http")]
            Kind::Http(remote) => {
                let compiled =
                    tool::Tool::compile(&self.contract).map_err(|error| failed(error.to_string()))?;
                let timeout = compiled.contract.request_timeout.to_std();
                let client = crate::http::Client::builder().timeout(timeout).build();
                let client = client.map_err(|error| failed(error.to_string()))?;
                self.checked(remote.with(client))
            }
        };
        tool.map_err(|error| failed(error.to_string()))
    }

    #[cfg(feature = "schema")]
    fn checked(&self, handler: impl Handler) -> Result<Tool, tool::ContractError> {
        Tool::new(&self.contract, self.schemas.around(handler))
    }

    #[cfg(not(feature = "schema"))]
    fn checked(&self, handler: impl Handler) -> Result<Tool, tool::ContractError> {
        Tool::new(&self.contract, handler)
    }
}

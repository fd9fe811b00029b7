//! A configuration that was read, and what its author should know about it:
//! what the rules find, and what this program adds about itself.

use std::path::Path as File;

use onceseal::Control;
use onceseal::config::{Config, ConfigError};
use onceseal::core::json::{Object, Value};
use onceseal::core::policy::{Document, Entry, Path, Policy, Severity, Verdict};
use onceseal::operations::Declared;

use crate::error::CliError;
use crate::table::state_style;
use crate::text::shown;

/// A file that was read.
pub(crate) struct Checked {
    pub(crate) config: Config,
    pub(crate) found: Vec<Noticed>,
}

/// Something about it, with its place.
pub(crate) struct Noticed {
    pub(crate) severity: Severity,
    code: &'static str,
    path: Path,
    at: String,
    sentence: String,
}

impl Checked {
    /// Reads the file once: what is checked is what is activated.
    pub(crate) fn read(file: &File) -> Result<Checked, CliError> {
        let wrong = |error| CliError::of_file(error, file);
        let bytes = Config::read(file).map_err(wrong)?;
        let config = Config::parse(&bytes).map_err(wrong)?;
        let document = Document::read(&bytes).map_err(|error| wrong(ConfigError::Policy(error)))?;
        let noticed = |severity, code, path: Path, sentence| {
            let at = document.position(&path).to_string();
            Noticed { severity, code, path, at, sentence }
        };
        let policy = &config.policy.policy;
        let rules = policy.check(Some(&Control::account().name)).into_iter();
        let mut found: Vec<_> =
            rules.map(|found| noticed(found.severity, found.code, found.path, found.sentence)).collect();
        for (name, entry) in policy.entries() {
            if let Some(sentence) = elsewhere(policy, entry) {
                let path = Path::default().member("actions").member(name).member("approval");
                found.push(noticed(Severity::Note, "people_elsewhere", path, sentence));
            }
        }
        for tool in config.tools.iter().map(Declared::name).filter(|name| policy.entry(name).is_none()) {
            let path = Path::default().member("tools").member(tool);
            let sentence =
                format!("no action is named `{tool}`, so the policy denies whatever is dispatched to it");
            found.push(noticed(Severity::Warning, "tool_not_listed", path, sentence));
        }
        for tool in config.tools.iter().filter(|tool| tool.contract().outlives_its_key()) {
            let path = Path::default().member("tools").member(tool.name()).member("key_ttl");
            let sentence = "is shorter than deliver_within: an attempt whose outcome is not known may be due after the \
                            remote has forgotten its key; it is not made then, and a person has to look";
            found.push(noticed(Severity::Warning, "key_ttl_short", path, sentence.to_owned()));
        }
        if config.settings.memory {
            let path = Path::default().member("settings").member("memory");
            found.push(noticed(Severity::Warning, "memory_forgets", path, FORGETS.to_owned()));
        }
        Ok(Checked { config, found })
    }
}

/// What a store in memory is worth to commands that end.
pub(crate) const FORGETS: &str = "`memory: true` keeps nothing from one command to the next: `exec` protects nothing, \
                                  and there is no record; it is for programs that embed Onceseal, and their tests";

/// How many people must answer elsewhere than at a command line, which proves
/// one: the account of this machine that owns the store.
fn elsewhere(policy: &Policy, entry: &Entry) -> Option<String> {
    let account = Control::account();
    let quorum = entry.approval.quorum;
    let here = u32::from(policy.entitles(entry, &account));
    let is_answerable = policy.answerable(entry, Some(&account.name)).is_ok();
    if !entry.can_be(Verdict::Approve) || here >= quorum || !is_answerable {
        return None;
    }
    Some(match here {
        0 => format!(
            "nobody can answer at a command line, which proves {account} alone: every yes must come from a `host` \
             person, whom a program that embeds Onceseal proves"
        ),
        _ => format!(
            "a command line proves one person, {account}: {} of {quorum} yes must come from `host` people, whom a \
             program that embeds Onceseal proves",
            quorum - here
        ),
    })
}

impl Noticed {
    /// Where, and what.
    pub(crate) fn told(&self) -> String {
        format!("{}: {}", self.path, self.sentence)
    }

    pub(super) fn line(&self) -> String {
        let Noticed { severity, code, path, at, sentence } = self;
        let style = state_style(if *severity == Severity::Error { "fail" } else { "" });
        let path = shown(&path.to_string());
        format!("{style}{severity}{style:#}: {at}: {path}: {} [{code}]\n", shown(sentence))
    }

    pub(super) fn object(&self) -> Value {
        let mut object = Object::new();
        object.insert("severity", self.severity.to_string());
        object.insert("code", self.code);
        object.insert("path", self.path.to_string());
        object.insert("position", self.at.as_str());
        object.insert("message", self.sentence.as_str());
        object.into()
    }
}

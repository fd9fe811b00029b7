//! The action that a command line describes.

use std::fs::File;
use std::io::{self, Read};

use clap::Args;
use onceseal::core::action::Action;
use onceseal::core::json::{self, Limits, Object, Value};
use onceseal::core::policy::{ArgumentPath, Policy, TemplateError};
use onceseal::{Control, Principal, Proposing};

use crate::context::Context;
use crate::error::CliError;
use crate::text::shown;

/// An action, as `exec`, `actions submit` and `policy explain` take it.
#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The action's name, as the policy lists it
    pub(crate) action: String,
    #[command(flatten)]
    with: With,
}

/// What an action has besides its name.
#[derive(Debug, Args)]
pub(crate) struct With {
    /// An argument of the action: text after `=`, JSON after `:=`
    #[arg(long = "arg", value_name = "NAME=TEXT|NAME:=JSON")]
    args: Vec<String>,
    /// An argument read from a file, `-` for stdin: for secrets, which a command line shows to everybody. One line end
    /// at the end of text is left out, as an editor or echo puts it there
    #[arg(long = "arg-file", value_name = "NAME=FILE|NAME:=FILE")]
    files: Vec<String>,
    /// The same byte for byte, with the line end
    #[arg(long = "arg-file-raw", value_name = "NAME=FILE")]
    raw_files: Vec<String>,
    /// Where the action acts [default: production]
    #[arg(long = "env", value_name = "NAME", env = "ONCESEAL_ENVIRONMENT", hide_env_values = true)]
    environment: Option<String>,
    /// Who acts [default: cli:<login>]
    #[arg(long, value_name = "NAME", env = "ONCESEAL_AGENT", hide_env_values = true)]
    agent: Option<String>,
    /// The person it acts for
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// What it acts on, where the policy has no template for it
    #[arg(long, value_name = "NAME")]
    resource: Option<String>,
}

impl CallArgs {
    /// The action, its JSON read as its policy entry accepts it.
    pub(crate) fn action(&self, context: &Context, policy: &Policy) -> Result<Action, CliError> {
        self.with.action(&self.action, context, policy)
    }
}

impl With {
    /// The action of this name, its JSON read as its policy entry accepts it.
    pub(crate) fn action(
        &self,
        action: &str,
        context: &Context,
        policy: &Policy,
    ) -> Result<Action, CliError> {
        let limits = policy.argument_limits(action);
        let mut arguments = Object::new();
        let flags = [("--arg", &self.args), ("--arg-file", &self.files), ("--arg-file-raw", &self.raw_files)];
        for (flag, given) in flags.into_iter().flat_map(|(flag, all)| all.iter().map(move |one| (flag, one)))
        {
            let (name, json, text) = split(given).ok_or_else(|| form(flag))?;
            let content = match flag {
                "--arg" => text.as_bytes().to_vec(),
                _ => read(name, text, limits.bytes)?,
            };
            let value = match (json, flag) {
                (true, "--arg-file-raw") => return Err(form(flag)),
                (true, _) => parse(name, &content, &limits)?,
                (false, "--arg-file") => as_text(name, without_line_end(content))?,
                (false, _) => as_text(name, content)?,
            };
            if arguments.insert(name, value).is_some() {
                return Err(CliError::usage(format!("the argument {name} is given twice")));
            }
            if flag == "--arg" && is_redacted(policy, action, name) {
                let name = shown(name);
                context.out.note(&format!(
                    "warning: the policy redacts {name}, and a command line shows it to everybody here; \
                     use --arg-file"
                ));
            }
        }
        let agent = self.agent.clone().unwrap_or_else(|| format!("cli:{}", Control::account().name));
        Ok(Action {
            name: action.to_owned(),
            arguments,
            principal: Principal { agent, user: self.user.clone() },
            environment: self.environment.clone().unwrap_or_else(|| Action::DEFAULT_ENVIRONMENT.to_owned()),
            resource: self.resource.clone(),
        })
    }
}

/// An action as the engine takes it.
pub(crate) fn proposed(control: &Control, action: &Action) -> Proposing {
    let Action { name, arguments, principal, environment, resource } = action.clone();
    let proposed = control.action(name).args(arguments).by(principal).environment(environment);
    match resource {
        Some(resource) => proposed.resource(resource),
        None => proposed,
    }
}

/// Why a template of the policy cannot be filled for an action, if so: what it
/// lacks, without any value.
pub(crate) fn unfit(policy: &Policy, action: &Action) -> Option<TemplateError> {
    let entry = policy.entry(&action.name)?;
    let arguments = &action.arguments;
    let resource = match entry.resource.as_ref().map(|template| template.resolve(arguments, None)) {
        Some(Ok(resource)) => Some(resource),
        Some(Err(error)) => return Some(error),
        None => action.resource.clone(),
    };
    entry.effect.as_ref()?.resolve(arguments, resource.as_deref()).err()
}

/// Name, whether JSON follows, and what follows. Values are in no message.
fn split(given: &str) -> Option<(&str, bool, &str)> {
    let (name, text) = given.split_once('=')?;
    let (name, json) = name.strip_suffix(':').map_or((name, false), |name| (name, true));
    (!name.is_empty()).then_some((name, json, text))
}

fn form(flag: &str) -> CliError {
    let what = match flag {
        "--arg" => "NAME=TEXT or NAME:=JSON",
        "--arg-file" => "NAME=FILE or NAME:=FILE",
        _ => "NAME=FILE",
    };
    CliError::usage(format!("{flag} is written {what}"))
}

fn read(name: &str, path: &str, most: usize) -> Result<Vec<u8>, CliError> {
    let most = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    let mut content = Vec::new();
    let read = match path {
        "-" => io::stdin().take(most).read_to_end(&mut content),
        path => File::open(path).and_then(|file| file.take(most).read_to_end(&mut content)),
    };
    match read {
        Ok(_) => Ok(content),
        Err(error) => {
            Err(CliError::usage(format!("the file of the argument {name} cannot be read: {}", error.kind())))
        }
    }
}

/// The content of a file as a value: with the line end that stands behind
/// every line, one value in a file and on a command line would be two effects.
fn without_line_end(mut content: Vec<u8>) -> Vec<u8> {
    if content.last() == Some(&b'\n') {
        content.pop();
        if content.last() == Some(&b'\r') {
            content.pop();
        }
    }
    content
}

fn parse(name: &str, content: &[u8], limits: &Limits) -> Result<Value, CliError> {
    json::read(content, limits).map_err(|error| {
        let error = CliError::new("invalid_argument", format!("argument {name}: {error}"), 2);
        error.next(format!("--arg {name}=TEXT takes text as it is"))
    })
}

fn as_text(name: &str, content: Vec<u8>) -> Result<Value, CliError> {
    match String::from_utf8(content) {
        Ok(text) => Ok(text.into()),
        Err(_) => Err(CliError::usage(format!("the file of the argument {name} is not UTF-8"))),
    }
}

fn is_redacted(policy: &Policy, action: &str, name: &str) -> bool {
    let within = |path: &ArgumentPath| path.names().first().is_some_and(|first| first == name);
    policy.entry(action).is_some_and(|entry| entry.redact.iter().any(within))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_text_after_an_equals_sign_and_json_after_a_colon_too() {
        assert_eq!(split("a=1"), Some(("a", false, "1")));
        assert_eq!(split("a:=1"), Some(("a", true, "1")));
        assert_eq!(split("a=b:=c"), Some(("a", false, "b:=c")));
        assert_eq!(split("url=http://x?y=z"), Some(("url", false, "http://x?y=z")));
        assert_eq!(split("a="), Some(("a", false, "")));
        assert_eq!(split("a:b=c"), Some(("a:b", false, "c")));
        for wrong in ["a", "=x", ":=1", ""] {
            assert_eq!(split(wrong), None, "{wrong}");
        }
    }
}

//! `policy`: whether it is sound, what it would say, and which one is active.

mod checked;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use onceseal::core::action::Proposal;
use onceseal::core::hash::BlindingKey;
use onceseal::core::json::{Object, Value};
use onceseal::core::policy::{ExplainedCondition, ExplainedRule, Severity, Shown, Truth, Verdict};
use onceseal::core::stream::Tenant;
use onceseal::{Control, Error};

pub(crate) use self::checked::{Checked, FORGETS, Noticed};
use super::call::{CallArgs, unfit};
use crate::context::{Context, wait};
use crate::error::{CliError, REFUSED, UNUSABLE};
use crate::table::state_style;
use crate::text::{counted, literal, shown};

/// What to do with the policy.
#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Say whether the policy means what its author means
    Check(File),
    /// Say what the policy would decide, and why; nothing is recorded
    Explain(Explain),
    /// Make the policy in the file the active one
    ///
    /// A policy that was never active becomes active by itself when something acts under it. This also brings back one
    /// that was active before. Requests that wait under a rule that changed are revoked when they are next met.
    Apply(File),
}

/// Which file.
#[derive(Debug, Args)]
pub(crate) struct File {
    /// The file, instead of the configuration in use
    file: Option<PathBuf>,
}

/// What would be decided.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    call: CallArgs,
}

pub(crate) fn run(context: &Context, policy: Policy) -> Result<ExitCode, CliError> {
    match policy {
        Policy::Check(file) => check(context, file),
        Policy::Explain(explain) => self::explain(context, &explain),
        Policy::Apply(file) => apply(context, file),
    }
}

fn path(context: &Context, file: File) -> Result<PathBuf, CliError> {
    match file.file {
        Some(file) => Ok(file),
        None => Ok(context.file()?),
    }
}

fn check(context: &Context, file: File) -> Result<ExitCode, CliError> {
    let file = path(context, file)?;
    let Checked { config, found } = Checked::read(&file)?;
    let count = |severity| found.iter().filter(|noticed| noticed.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let actions = config.policy.policy.entries().len();
    if context.out.is_json() {
        let mut object = Object::new();
        object.insert("file", file.display().to_string());
        object.insert("policy", config.policy.hash.to_string());
        object.insert("actions", super::refused::integer(actions as u64));
        object.insert("findings", Value::List(found.iter().map(Noticed::object).collect()));
        context.out.document(object)?;
    } else {
        let summary = format!(
            "{}, {}, {}\n",
            counted(actions, "action"),
            counted(errors, "error"),
            counted(warnings, "warning")
        );
        context.out.text(&(found.iter().map(Noticed::line).collect::<String>() + &summary))?;
    }
    Ok(ExitCode::from(if errors > 0 { REFUSED } else { 0 }))
}

fn apply(context: &Context, file: File) -> Result<ExitCode, CliError> {
    let file = path(context, file)?;
    let Checked { config, found } = Checked::read(&file)?;
    for noticed in found.iter().filter(|noticed| noticed.severity != Severity::Note) {
        context.out.note(noticed.line().trim_end());
    }
    let control = Control::found(&context.opening(config.settings.clone())?)?;
    let person = Control::account();
    let changed =
        wait(control.activate(config.policy.clone(), true, Some(person)))?.map_err(|error| match error {
            Error::Refused(refusal) => super::refused::plain(&refusal),
            error => error.into(),
        })?;
    let hash = config.policy.hash.to_string();
    if context.out.is_json() {
        let mut object = Object::new();
        object.insert("policy", hash);
        object.insert("changed", changed);
        context.out.document(object)?;
    } else {
        let what = if changed { "is active now" } else { "was active already" };
        context.out.text(&format!("{hash} {what}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn explain(context: &Context, explain: &Explain) -> Result<ExitCode, CliError> {
    let config = context.config()?;
    let policy = &config.policy.policy;
    let action = explain.call.action(context, policy)?;
    let lack = unfit(policy, &action).map(|lack| lack.to_string());
    // Nothing is recorded, and no hash is shown: any key will do.
    let tenant = Tenant { name: config.settings.tenant.clone(), id: [0; 16], key: BlindingKey([0; 32]) };
    let proposal = Proposal::prepare(&tenant, &config.policy, action)
        .map_err(|error| CliError::new("invalid_argument", error.to_string(), UNUSABLE))?;
    let explanation = policy.explain(&proposal.facts());
    let (verdict, reason) = match proposal.unfit() {
        Some(code) => (Verdict::Deny, code.to_string()),
        None => (explanation.decision.verdict, explanation.decision.reason.to_string()),
    };
    if context.out.is_json() {
        let optional = |text: Option<&str>| text.map_or(Value::Null, Value::from);
        let mut object = Object::new();
        object.insert("action", proposal.name());
        object.insert("decision", verdict.as_str());
        object.insert("reason", reason);
        object.insert("effect_key", optional(proposal.effect_key()));
        object.insert("resource", optional(proposal.resource()));
        object.insert("rules", Value::List(explanation.rules.iter().map(rule_object).collect()));
        let unknown = explanation.unknown.map_or(Value::Null, |unknown| {
            let mut object = Object::new();
            object.insert("line_to_add", unknown.line_to_add);
            object.insert("similar", unknown.similar.map_or(Value::Null, Value::Text));
            object.into()
        });
        object.insert("unlisted", unknown);
        object.insert("unfit", lack.map_or(Value::Null, Value::Text));
        context.out.document(object)?;
        return Ok(ExitCode::SUCCESS);
    }
    let style = state_style(verdict.as_str());
    let mut text = format!("{}: {style}{verdict}{style:#} ({reason})\n", shown(proposal.name()));
    if let Some(key) = proposal.effect_key() {
        text.push_str(&format!("  effect key {}\n", literal(&key.into())));
    }
    if let Some(code) = proposal.unfit() {
        text.push_str(&format!("  {}\n", code.sentence()));
    }
    if let Some(lack) = lack {
        text.push_str(&format!("  {}\n", shown(&lack)));
    }
    for (at, rule) in explanation.rules.iter().enumerate() {
        let decides = if reason.starts_with(&format!("rule[{at}]")) { ", and decides" } else { "" };
        text.push_str(&format!("  rule[{at}] {}: {}{decides}\n", rule.decision, told(rule.truth)));
        for condition in &rule.conditions {
            text.push_str(&condition_line(condition));
        }
    }
    if let Some(unknown) = explanation.unknown {
        let similar =
            unknown.similar.map(|name| format!(" Did you mean {}?", shown(&name))).unwrap_or_default();
        text.push_str(&format!("  The policy does not list this action.{similar}\n"));
        text.push_str(&format!("  To have people asked, add under `actions:`\n{}\n", unknown.line_to_add));
    }
    context.out.text(&text)?;
    Ok(ExitCode::SUCCESS)
}

const fn told(truth: Truth) -> &'static str {
    match truth {
        Truth::True => "holds",
        Truth::False => "does not hold",
        Truth::Unjudged => "cannot be judged",
    }
}

fn condition_line(explained: &ExplainedCondition<'_>) -> String {
    let condition = explained.condition;
    let saw = match &explained.value {
        Shown::Absent => "it is absent".to_owned(),
        Shown::Redacted => "it is [redacted]".to_owned(),
        Shown::Value(value) => format!("it is {}", literal(value)),
    };
    let (key, operand) = (shown(condition.key()), literal(condition.operand()));
    format!("    {key}: {operand} {}, {saw}\n", told(explained.truth))
}

fn rule_object(rule: &ExplainedRule<'_>) -> Value {
    let truth = |truth| match truth {
        Truth::True => "true",
        Truth::False => "false",
        Truth::Unjudged => "unjudged",
    };
    let condition = |explained: &ExplainedCondition<'_>| {
        let mut object = Object::new();
        object.insert("condition", explained.condition.key());
        object.insert("operand", explained.condition.operand().clone());
        object.insert("truth", truth(explained.truth));
        let (seen, value) = match &explained.value {
            Shown::Absent => ("absent", Value::Null),
            Shown::Redacted => ("redacted", onceseal::render::REDACTED.into()),
            Shown::Value(value) => ("value", value.clone()),
        };
        object.insert("seen", seen);
        object.insert("value", value);
        Value::Object(object)
    };
    let mut object = Object::new();
    object.insert("decision", rule.decision.as_str());
    object.insert("truth", truth(rule.truth));
    object.insert("conditions", Value::List(rule.conditions.iter().map(condition).collect()));
    object.into()
}

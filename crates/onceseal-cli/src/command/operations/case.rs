//! Case files: a model's call written down, for tests. The format is the
//! persistent tool runtime's, `persistent-tool-case-v1`.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use onceseal::core::action::{Action, Principal, Proposal};
use onceseal::core::approval::Said;
use onceseal::core::code::Code;
use onceseal::core::id::ApprovalId;
use onceseal::core::json::{self, Limits, Object, Value};
use onceseal::core::policy::Verdict;
use onceseal::fault::{self, point};
use onceseal::operations::{CallIdentity, Dispatching, Operations, Package, Subject};
use onceseal::store::StoreError;
use onceseal::store::clock::{Clock, ManualClock, Reading, SystemClock};
use onceseal::{AuditOptions, Control, Error, audit};

use super::tools;
use crate::context::{Context, wait};
use crate::error::{CliError, REFUSED, UNUSABLE};

const SCHEMA: &str = "persistent-tool-case-v1";
/// How large a case file may be.
const BYTES: u64 = 65_536;

/// Whether and how the call is approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Approval {
    /// It is not.
    None,
    /// By this account, as `onceseal approve` does.
    Valid,
    /// By this account, for another subject's wish, and it expired.
    Expired,
    /// By this account, for another subject's wish.
    Mismatched,
}

/// A call as it is written down.
#[derive(Debug, Clone)]
pub(super) struct Case {
    tenant: String,
    principal: Principal,
    tool: String,
    arguments: Object,
    call: CallIdentity,
    approval: Approval,
    /// What time it is, in seconds.
    now: i64,
}

/// Opens a regular file, without waiting for what is none.
fn open(path: &Path) -> std::io::Result<File> {
    match std::fs::metadata(path)?.is_file() {
        true => File::open(path),
        false => Err(ErrorKind::InvalidInput.into()),
    }
}

impl Case {
    /// Reads a case file.
    ///
    /// # Errors
    /// `case_unreadable` or `case_invalid`, without the path and without a value.
    pub(super) fn read(path: &Path) -> Result<Case, CliError> {
        let unreadable = |error: std::io::Error| {
            CliError::new(
                "case_unreadable",
                format!("the case file cannot be read: {}", error.kind()),
                UNUSABLE,
            )
        };
        let mut bytes = Vec::new();
        open(path).and_then(|file| file.take(BYTES + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
        if bytes.len() as u64 > BYTES {
            return Err(invalid("it is larger than 65,536 bytes"));
        }
        let value = json::read(&bytes, &Limits::DATA).map_err(|error| invalid(&error.to_string()))?;
        Case::of(&value).map_err(|what| invalid(&what))
    }

    fn of(value: &Value) -> Result<Case, String> {
        let names = ["schema_version", "principal", "proposal", "execution_context", "approval_mode", "now"];
        let root = members(value, "the root", &names)?;
        if root.get("schema_version").and_then(Value::as_text) != Some(SCHEMA) {
            return Err(format!("schema_version is {SCHEMA}"));
        }
        let member = |name: &str| root.get(name).unwrap_or(&Value::Null);
        let who = members(member("principal"), "principal", &["tenant_id", "subject_id", "roles"])?;
        roles(who.get("roles"))?;
        let proposal = members(member("proposal"), "proposal", &["name", "arguments"])?;
        let arguments = proposal.get("arguments").and_then(Value::as_object);
        let context = members(
            member("execution_context"),
            "execution_context",
            &[
                "provider",
                "api_family",
                "response_id",
                "call_id",
                "operation_id",
                "idempotency_key",
                "adapter_revision",
            ],
        )?;
        let call = CallIdentity {
            provider: text(context, "provider")?,
            api_family: text(context, "api_family")?,
            adapter_revision: text(context, "adapter_revision")?,
            response_id: text(context, "response_id")?,
            call_id: text(context, "call_id")?,
            operation_id: text(context, "operation_id")?,
            idempotency_key: Some(text(context, "idempotency_key")?),
        };
        call.check().map_err(|error| error.to_string())?;
        let approval = match member("approval_mode").as_text() {
            Some("none") => Approval::None,
            Some("valid") => Approval::Valid,
            Some("expired") => Approval::Expired,
            Some("mismatched") => Approval::Mismatched,
            _ => return Err("approval_mode is none, valid, expired or mismatched".to_owned()),
        };
        // A lease that ends in the future could be ended by nobody until then.
        let last = SystemClock.now().wall_us / 1_000_000;
        let now = member("now").as_integer().filter(|now| (DAY..=last).contains(now));
        Ok(Case {
            tenant: text(who, "tenant_id")?,
            principal: Principal { agent: "host".to_owned(), user: Some(text(who, "subject_id")?) },
            tool: text(proposal, "name")?,
            arguments: arguments.ok_or("arguments is an object")?.clone(),
            call,
            approval,
            now: now.ok_or("now is a second that has passed, 86,400 at least")?,
        })
    }

    fn clock(&self, after: i64) -> Arc<ManualClock> {
        Arc::new(ManualClock::new(Reading { wall_us: (self.now + after) * 1_000_000, boot_us: 0 }))
    }
}

const DAY: i64 = 86_400;

fn invalid(what: &str) -> CliError {
    CliError::new("case_invalid", format!("the case file is not in form: {what}"), UNUSABLE)
}

/// The object, with exactly these members.
fn members<'v>(value: &'v Value, of: &str, names: &[&str]) -> Result<&'v Object, String> {
    let object = value.as_object().ok_or_else(|| format!("{of} is an object"))?;
    let exact = object.iter().count() == names.len() && names.iter().all(|name| object.get(name).is_some());
    match exact {
        true => Ok(object),
        false => Err(format!("{of} has {}, and nothing else", names.join(", "))),
    }
}

fn text(object: &Object, name: &str) -> Result<String, String> {
    let text = object.get(name).and_then(Value::as_text);
    text.map(str::to_owned).ok_or_else(|| format!("{name} is a text"))
}

/// Roles are looked up, never taken from a call; but they are in form.
fn roles(roles: Option<&Value>) -> Result<(), String> {
    let names = roles.and_then(Value::as_list).map(|roles| roles.iter().map(Value::as_text));
    let names: Option<Vec<&str>> = names.and_then(Iterator::collect);
    let fits = names.is_some_and(|names| Subject::has_form(&names));
    fits.then_some(()).ok_or_else(|| "roles is a list of at most 32 texts, in order and each once".to_owned())
}

/// Dispatches the call of a case file, and carries it out here.
pub(super) fn dispatch(context: &Context, path: &Path, fault: Option<&str>) -> Result<ExitCode, CliError> {
    let case = Case::read(path)?;
    let clock = case.clock(0);
    let (control, operations) = opened(context, &case, clock.clone())?;
    let told = wait(async {
        let given = given(&operations, &case, &clock).await?;
        let asked = case.approval == Approval::Valid;
        arm(fault);
        let here = || sending(&operations, &case).at_once();
        let sent = || given.iter().fold(here(), |sending, id| sending.approval(*id));
        let mut told = sent().tell().await;
        if let (true, Some(approval)) = (asked, needed(&told)) {
            say_yes(&control, approval).await?;
            told = here().approval(approval).tell().await;
        }
        match (told, fault) {
            // Whoever asks after the crash is told what stands.
            (Err(_), Some(_)) => {
                fault::disarm();
                sent().tell().await
            }
            (told, _) => told,
        }
    })??;
    print(context, &control, &told)
}

/// Asks what became of the call of a case file, a second later.
pub(super) fn status(context: &Context, path: &Path, status_ref: &str) -> Result<ExitCode, CliError> {
    let case = Case::read(path)?;
    let (control, operations) = opened(context, &case, case.clock(1))?;
    let call = case.call.status_query(status_ref);
    let asking = operations.ask(case.tool, call, status_ref).args(case.arguments).by(case.principal);
    let told = wait(asking.tell())??;
    print(context, &control, &told)
}

fn opened(
    context: &Context,
    case: &Case,
    clock: Arc<ManualClock>,
) -> Result<(Control, Operations), CliError> {
    let config = context.config()?;
    if config.settings.tenant != case.tenant {
        return Err(invalid("its tenant is not the one of the configuration"));
    }
    let (tools, control) = (tools(&config)?, context.act_at(&config, clock)?);
    let operations = wait(Operations::of(&control, tools))??;
    Ok((control, operations))
}

fn sending(operations: &Operations, case: &Case) -> Dispatching {
    let sending = operations.dispatch(&case.tool).args(case.arguments.clone());
    sending.by(case.principal.clone()).call(case.call.clone())
}

/// The approvals that the case gives. They are of another subject's wish, so
/// that nothing which is asked for here is ever carried out.
async fn given(operations: &Operations, case: &Case, clock: &ManualClock) -> Result<Vec<ApprovalId>, Error> {
    let made = matches!(case.approval, Approval::Expired | Approval::Mismatched);
    if !made || !asks(operations.control(), case)? {
        return Ok(Vec::new());
    }
    let mut other = case.clone();
    // Of a wish that nobody has had: what was approved once would be accepted.
    let mut mark = [0; 8];
    getrandom::fill(&mut mark).map_err(|error| StoreError::with(Code::StoreFailed, error.to_string()))?;
    let mark = u64::from_be_bytes(mark);
    other.call.call_id = format!("another {mark}");
    other.call.idempotency_key = Some(format!("another {mark}"));
    other.principal.user = Some(format!("somebody else {mark}"));
    let told = sending(operations, &other).tell().await;
    let Some(approval) = needed(&told) else { return Ok(Vec::new()) };
    say_yes(operations.control(), approval).await?;
    if case.approval == Approval::Expired {
        let row = operations.control().approval(approval)?.ok_or(Error::Unexpected)?;
        let left = row.expires_at.since(operations.control().store().now());
        clock.advance(left.as_micros() + 1_000_000);
    }
    Ok(vec![approval])
}

/// Whether the policy asks a person before it lets this be dispatched.
fn asks(control: &Control, case: &Case) -> Result<bool, Error> {
    let Some(policy) = control.policy() else { return Ok(false) };
    let action = Action {
        name: case.tool.clone(),
        arguments: case.arguments.clone(),
        principal: case.principal.clone(),
        environment: Action::DEFAULT_ENVIRONMENT.to_owned(),
        resource: None,
    };
    let proposal = Proposal::prepare(control.store().tenant(), &policy, action)?;
    Ok(policy.policy.decide(&proposal.facts()).verdict == Verdict::Approve)
}

fn needed(told: &Result<Package, Error>) -> Option<ApprovalId> {
    match told.as_ref().ok()?.answer() {
        Err(Error::ApprovalNeeded { approval, .. }) => Some(*approval),
        _ => None,
    }
}

/// This account's yes; whether it counts is the policy's.
async fn say_yes(control: &Control, approval: ApprovalId) -> Result<(), Error> {
    let row = control.approval(approval)?.ok_or(Error::Unexpected)?;
    let shown = row.private.bound.binding.ok_or(Error::Unexpected)?;
    control.answer(approval, Control::account(), Said::Yes, shown).await.map(drop)
}

fn arm(fault: Option<&str>) {
    let fails = || Err(StoreError::with(Code::StoreFailed, "a fault was asked for"));
    if let Some(point) = fault.and_then(|fault| point::ALL.into_iter().find(|point| *point == fault)) {
        fault::on(point, fails);
    }
}

/// Prints what was told: PASS if it was done and the package holds.
fn print(context: &Context, control: &Control, told: &Package) -> Result<ExitCode, CliError> {
    let report = audit(control, &AuditOptions::default())?;
    let problems = told.problems();
    let passes = told.code().is_none() && problems.is_empty();
    let find = |half: &Value, path: &[&str]| {
        let found = path.iter().try_fold(half, |value, name| value.as_object()?.get(name));
        found.cloned().unwrap_or(Value::Null)
    };
    let (model, evidence) = (told.model_result(), told.protected_audit());
    let mut object = Object::new();
    object.insert("gate", gate(passes));
    object.insert("code", told.code().map_or("OK", |code| code.as_str()));
    object.insert("status", find(model, &["status"]));
    object.insert("delivery", find(model, &["execution", "delivery"]));
    object.insert("status_ref", find(evidence, &["downstream", "status_ref"]));
    object.insert("validation_errors", Value::List(problems.into_iter().map(Value::Text).collect()));
    object.insert("database", report.to_json());
    context.out.document(object)?;
    Ok(ExitCode::from(if passes { 0 } else { REFUSED }))
}

pub(super) const fn gate(passes: bool) -> &'static str {
    if passes { "PASS" } else { "BLOCK" }
}

/// Audits the store, with a gate.
pub(super) fn audited(context: &Context) -> Result<ExitCode, CliError> {
    let config = context.settings()?;
    let control = Control::reading(&context.opening(config)?)?;
    let report = control.map(|control| audit(&control, &AuditOptions::default())).transpose()?;
    let clean = report.as_ref().is_none_or(|report| report.is_clean());
    let mut object = match report.map(|report| report.to_json()) {
        Some(Value::Object(object)) => object,
        _ => Object::new(),
    };
    object.insert("clean", clean);
    object.insert("gate", gate(clean));
    context.out.document(object)?;
    Ok(ExitCode::from(if clean { 0 } else { REFUSED }))
}

//! A report as JSON: schema `onceseal.audit/v1`.

use onceseal_core::json::Value;

use super::{AuditReport, Finding};
use crate::render::{number, object, optional, text};

pub(super) fn report(report: &AuditReport) -> Value {
    let findings = |findings: &[Finding]| Value::List(findings.iter().map(finding).collect());
    object(vec![
        ("schema", text("onceseal.audit/v1")),
        ("clean", Value::Bool(report.is_clean())),
        ("events", number(report.events)),
        ("streams", number(report.streams)),
        ("keys", number(report.keys)),
        ("position", report.newest.map_or(Value::Null, |(position, _)| number(position))),
        ("hash", optional(report.newest.map(|(_, hash)| hash))),
        ("since", report.since.map_or(Value::Null, number)),
        ("findings", findings(&report.findings)),
        ("more", number(report.more)),
        ("notes", findings(&report.notes)),
    ])
}

fn finding(finding: &Finding) -> Value {
    object(vec![
        ("code", text(finding.code)),
        ("stream", optional(finding.stream)),
        ("sequence", finding.sequence.map_or(Value::Null, number)),
        ("position", finding.position.map_or(Value::Null, number)),
        ("sentence", text(&finding.sentence)),
    ])
}

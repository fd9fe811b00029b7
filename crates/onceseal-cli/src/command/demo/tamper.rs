//! A journal that is rewritten in the file, behind the back of every program.

use std::fs;

use onceseal::AuditOptions;
use onceseal::store::StoreError;
use onceseal::store::clock::SystemClock;
use std::sync::Arc;

use super::Outcome;
use super::stage::{SMALL, Stage, open, refund};
use crate::error::CliError;

pub(super) fn tampered_journal(_: &Stage) -> Result<Outcome, CliError> {
    // A store of its own, which is closed while its file is written.
    let stage = Stage::build()?;
    stage.pay(refund(&stage.control, "support-agent", "txn_7", SMALL), "txn_7")??;
    let before = onceseal::audit(&stage.control, &AuditOptions::default())?;
    stage.control.close();
    let changed = rewrite(&stage)?;
    let control = open(&stage.directory, Arc::new(SystemClock))?;
    let after = onceseal::audit(&control, &AuditOptions::default())?;
    control.close();
    stage.leave(false)?;
    let found = after.findings.first().filter(|_| before.is_clean() && changed > 0);
    let by = found.map(|finding| (finding.code, finding.sentence.clone()));
    let place = found.and_then(|finding| finding.position).map(|at| format!(", at position {at} of the log"));
    let evidence = format!(
        "`audit` found the store intact before, and {} after it{}.",
        if after.is_clean() { "intact" } else { "broken" },
        place.unwrap_or_default()
    );
    Ok(Outcome { by, evidence })
}

/// Writes another amount wherever the file has this one; returns how often.
fn rewrite(stage: &Stage) -> Result<usize, CliError> {
    const FROM: &[u8] = b"\"amount\":2000";
    const TO: &[u8] = b"\"amount\":1000";
    let path = stage.directory.join("state").join(onceseal::store::place::DATABASE);
    let mut bytes = fs::read(&path).map_err(StoreError::from)?;
    let mut changed = 0;
    for at in 0..bytes.len().saturating_sub(FROM.len()) {
        if bytes[at..].starts_with(FROM) {
            bytes[at..at + TO.len()].copy_from_slice(TO);
            changed += 1;
        }
    }
    fs::write(&path, bytes).map_err(StoreError::from)?;
    Ok(changed)
}

//! Whether anybody who held a resource has gone without a word.

use onceseal::Control;
use onceseal::core::journal::Row;
use onceseal::core::lease::Use;
use onceseal::core::stream::StreamKind;

use super::checks::{failed, oldest};
use super::{Check, Verdict};

pub(super) fn lapsed(control: &Control) -> Check {
    let now = control.store().now();
    let is_over = |row: &Row| matches!(row, Row::Lease(row) if row.lapsed(now).next().is_some());
    match oldest(control, StreamKind::Lease, Use::Held.as_str(), is_over) {
        Ok(None) => Check::new("leases", Verdict::Ok, "every resource that is held has a live lease"),
        Ok(Some((count, _))) => {
            let detail = format!(
                "{count} held by somebody who has gone without a word; whoever takes one, or a program that stays, \
                 records that, and interrupts a run"
            );
            Check::new("leases", Verdict::Warn, detail).next("onceseal runs list --state living")
        }
        Err(error) => failed("leases", &error),
    }
}

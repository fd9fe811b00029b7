//! Whether anybody who held a resource has gone without a word.

use std::cell::RefCell;

use onceseal::Control;
use onceseal::core::journal::Row;
use onceseal::core::lease::Use;
use onceseal::core::stream::StreamKind;

use super::checks::{failed, oldest};
use super::{Check, Verdict};
use crate::text::{cut, shell};

pub(super) fn lapsed(control: &Control) -> Check {
    let now = control.store().now();
    let named = RefCell::new(None);
    let is_over = |row: &Row| match row {
        Row::Lease(row) if row.lapsed(now).next().is_some() => {
            named.borrow_mut().get_or_insert_with(|| row.private.resource.clone());
            true
        }
        _ => false,
    };
    match oldest(control, StreamKind::Lease, Use::Held.as_str(), is_over) {
        Ok(None) => Check::new("leases", Verdict::Ok, "every resource that is held has a live lease"),
        Ok(Some((count, _))) => {
            let resource = named.take().flatten().unwrap_or_else(|| "erased".to_owned());
            let detail = format!(
                "{count} held by somebody who has gone without a word, as {}; whoever takes it next, or `onceseal \
                 worker`, records that, and interrupts a run",
                cut(&resource)
            );
            Check::new("leases", Verdict::Warn, detail)
                .next(format!("onceseal lease inspect {}", shell(&resource)))
        }
        Err(error) => failed("leases", &error),
    }
}

//! Whether runs wait for somebody.

use onceseal::runs::{Blocking, InTheWay, RunFilter, Stand};
use onceseal::{Control, Error};

use super::checks::failed;
use super::{Check, Verdict};
use crate::text::counted;

/// So many living runs are looked at; more are only said to be there.
const MOST: usize = 200;

pub(super) fn waiting(control: &Control) -> Check {
    match found(control) {
        Ok((0, ..)) => Check::new("runs", Verdict::Ok, "none lives"),
        Ok((living, more, 0)) => {
            Check::new("runs", Verdict::Ok, format!("{}, none waits for a person", lives(living, more)))
        }
        Ok((living, more, waiting)) => {
            let detail =
                format!("{}, {waiting} of them with something for a person to decide", lives(living, more));
            Check::new("runs", Verdict::Warn, detail)
                .next("onceseal runs list --state living, then onceseal runs blockers RUN")
        }
        Err(error) => failed("runs", &error),
    }
}

fn lives(living: usize, more: bool) -> String {
    format!("{}{} living", if more { "more than " } else { "" }, counted(living, "run"))
}

/// How many live, whether there are more, and how many of them wait for a decision.
fn found(control: &Control) -> Result<(usize, bool, usize), Error> {
    let filter = RunFilter { stand: Some(Stand::Living), ..RunFilter::default() };
    let listed = control.list_runs(&filter, MOST)?;
    let mut waiting = 0;
    for (id, _) in &listed.items {
        let blockers = control.blockers(*id)?.unwrap_or_default();
        // One that merely stands idle may be meant to.
        let waits = |it: &InTheWay| {
            it.blocker.blocking == Blocking::Decision && !it.blocker.code.starts_with("idle:")
        };
        waiting += usize::from(blockers.iter().any(waits));
    }
    Ok((listed.items.len(), listed.next.is_some(), waiting))
}

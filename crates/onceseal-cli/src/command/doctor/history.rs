//! Whether the store has all that was seen of it.

use std::time::Duration;

use onceseal::{Control, Error, MarkState, Seen};

use super::checks::failed;
use super::{Check, Verdict};

/// What an operator does about a store that went back.
pub(super) const fn accept(is_shared: bool) -> &'static str {
    match is_shared {
        false => "look at the remotes, then onceseal doctor --accept-went-back --reason '…'",
        true => {
            "is it the address that was used before? If so, look at the remotes, then onceseal doctor \
             --accept-went-back --reason '…', on each host that says so"
        }
    }
}

/// How long the mark may follow the log: so many looks, so far apart.
const LOOKS: u32 = 30;
const LOOK: Duration = Duration::from_millis(100);

/// `is_shared`: by other hosts, which this account's mark does not follow.
pub(super) fn seen(control: &Control, is_shared: bool) -> Check {
    match control.seen() {
        Seen::All(position) => match if is_shared { control.mark_state() } else { caught_up(control) } {
            Ok(Some(mark)) => marked(&mark, is_shared),
            Ok(None) => Check::new("history", Verdict::Ok, format!("nothing is older than entry {position}")),
            Err(error) => failed("history", &error),
        },
        Seen::WentBack { seen, found } => Check::new(
            "history",
            Verdict::Fail,
            format!(
                "the store went back: {}; what was done then may be repeated",
                super::lost(*seen, *found)
            ),
        )
        .next(accept(is_shared)),
        Seen::Unreadable(error) => {
            Check::new("history", Verdict::Unknown, format!("{}: {error}", error.code()))
                .next("onceseal doctor --accept-went-back --reason '…'")
        }
        _ => Check::new(
            "history",
            Verdict::Warn,
            "there is no mark of what was seen, so a store restored from a backup would not be noticed",
        ),
    }
}

/// The mark, which follows the log by a moment while programs write: it is
/// waited for until it has what the log had at first.
fn caught_up(control: &Control) -> Result<Option<MarkState>, Error> {
    let mut mark = control.mark_state()?;
    let Some(first) = mark.as_ref().map(|mark| mark.newest) else { return Ok(None) };
    for _ in 0..LOOKS {
        match &mut mark {
            Some(mark) if mark.failure.is_none() && mark.position < Some(first) => {}
            Some(mark) => {
                // What has been written since may still be on its way.
                mark.newest = mark.newest.min(mark.position.unwrap_or_default().max(first));
                break;
            }
            None => break,
        }
        std::thread::sleep(LOOK);
        mark = control.mark_state()?;
    }
    Ok(mark)
}

fn marked(mark: &MarkState, is_shared: bool) -> Check {
    let (position, newest) = (mark.position.unwrap_or_default(), mark.newest);
    if let Some(failure) = &mark.failure {
        let detail = format!(
            "the mark of what was seen cannot be written, it is at entry {position} and the log at {newest}: a \
             backup from between would not be noticed ({}: {})",
            failure.code, failure.message
        );
        let place = "the setting `mark`, by default onceseal/marks in the state home, names its directory";
        return Check::new("history", Verdict::Warn, detail).next(place);
    }
    if mark.behind() > 0 && is_shared {
        let detail = format!(
            "the log has all that this account has seen, up to entry {position}, and others went on to {newest}"
        );
        return Check::new("history", Verdict::Ok, detail);
    }
    if mark.behind() > 0 {
        let detail = format!("the mark of what was seen is at entry {position} and the log at {newest}");
        return Check::new("history", Verdict::Warn, detail)
            .next("end the programs that use the store, and look again");
    }
    Check::new("history", Verdict::Ok, format!("the log has all that was seen, up to entry {position}"))
}

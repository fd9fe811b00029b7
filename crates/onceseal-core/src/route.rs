//! Routes: whether the destination of a tool's attempts answers.
//!
//! A route is a circuit for each destination of a tenant. It is closed while
//! attempts are made as usual. After some failures in a row it is open: nothing
//! is attempted for a while, then one attempt as a probe, which closes it or
//! opens it for longer. A route delays operations. What becomes of an attempt,
//! it never says.

mod endpoint;
pub mod event;
mod row;

use crate::approval::{Identity, unheard};
use crate::case::Case;
use crate::code::Code;
use crate::effect::Holding;
use crate::journal::{Body, Nothing, Refs};
use crate::operation::event::PersonSaid;
use crate::reply::{Attempt, Reply};
use crate::stream::{StreamId, StreamKind};
use crate::time::{Span, Timestamp};
use crate::tool::Contract;
use crate::view::Halt;
use event::{Closed, Failed, FailedSealed, Opened, Probe};

pub use endpoint::{ReportRoute, TryRoute};
pub use row::{RoutePrivate, RouteRow, RouteState, evolve, state_number};

pub(crate) use endpoint::{reads as endpoint_reads, report, try_it};

/// So many failures in a row open a circuit: fewer would stop a busy destination
/// for a request that was lost by chance, more would pile unknown outcomes up.
pub const OPENS_AFTER: u32 = 5;
/// How long nothing is attempted the first time.
const FIRST_PAUSE: Span = Span::seconds(10);
/// However often it fails, it is probed after this.
const LONGEST_PAUSE: Span = Span::minutes(5);
/// While a probe is under way, others are put off for so long.
const PROBE_PAUSE: Span = Span::seconds(5);

/// What an attempt that came to nothing, or to nothing known, says of its
/// destination. One that came to something says that it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It answered.
    Well,
    /// It could not be reached, or could take on no more.
    Ill {
        /// A random number, which spreads the time of the next probe.
        spread: u8,
    },
}

/// Have a circuit closed.
#[derive(Debug, Clone)]
pub struct CloseRoute {
    /// The destination, as contracts name it.
    pub destination: String,
    /// Who says so.
    pub person: Identity,
    /// Why; not empty.
    pub reason: String,
}

/// Whether an attempt may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Yes.
    Free,
    /// Yes, to see whether the destination answers again.
    Probe,
    /// Not before then.
    Shut { until: Timestamp },
}

/// Whether an attempt under this contract may be made now. A route that cannot
/// be read stops it: it may be open.
pub(crate) fn way(case: &Case<'_>, contract: &Contract) -> Result<Way, Halt> {
    match &contract.destination {
        None => Ok(Way::Free),
        Some(destination) => way_to(case, destination),
    }
}

fn way_to(case: &Case<'_>, destination: &str) -> Result<Way, Halt> {
    let Some(row) = case.view.route(&case.pinned.tenant.route(destination))? else { return Ok(Way::Free) };
    match &row.state {
        RouteState::Closed { .. } => Ok(Way::Free),
        RouteState::Open { until, .. } if case.now < *until => Ok(Way::Shut { until: *until }),
        RouteState::Open { probe: Some(probe), .. } if is_under_way(case, probe)? => {
            Ok(Way::Shut { until: case.now + PROBE_PAUSE })
        }
        RouteState::Open { .. } => Ok(Way::Probe),
    }
}

/// A probe is over when its attempt is: reported, given back, or its lease ended.
fn is_under_way(case: &Case<'_>, probe: &Probe) -> Result<bool, Halt> {
    let live = match probe.by.kind {
        StreamKind::Lease => case
            .view
            .lease(&probe.by)
            .map(|row| row.is_some_and(|row| row.live(case.now).any(|live| live.fence == probe.fence))),
        _ => case
            .view
            .effect(&probe.by)
            .map(|row| row.is_some_and(|row| row.fence == probe.fence && row.live(case.now))),
    };
    match live {
        Ok(live) => Ok(live),
        // Nobody can renew beyond the deadline, whatever the row says.
        Err(Halt::Unreadable) => Ok(case.now <= probe.deadline),
        Err(need) => Err(need),
    }
}

/// Records that this attempt is the probe.
pub(crate) fn probe(case: &mut Case<'_>, contract: &Contract, attempt: &Attempt) {
    let Some(destination) = &contract.destination else { return };
    let data = Probe { by: attempt.effect, deadline: attempt.deadline, fence: attempt.fence };
    let refs = Refs { action: Some(attempt.action), ..Refs::NONE };
    case.record(case.pinned.tenant.route(destination), refs, Body::RouteProbed(data, Nothing {}));
}

/// Records what an operation's attempt says of its destination, if that changes
/// anything. While the circuit is open only the probe's word counts: the others
/// began before. Whatever cannot be read is left as it is, so that no outcome
/// goes unrecorded for it.
pub(crate) fn heard(case: &mut Case<'_>, attempt: Holding, health: Health) -> Result<(), Halt> {
    let Some(destination) = readable(destination(case, attempt))?.flatten() else { return Ok(()) };
    let refs = Refs { action: Some(attempt.action), ..Refs::NONE };
    judge(case, destination, health, Some((attempt.effect, attempt.fence)), refs).map(drop)
}

/// Records what an attempt says of a destination, if that changes anything. While
/// the circuit is open only the probe's word counts.
fn judge(
    case: &mut Case<'_>,
    destination: String,
    health: Health,
    attempt: Option<(StreamId, u64)>,
    refs: Refs,
) -> Result<bool, Halt> {
    let stream = case.pinned.tenant.route(&destination);
    let Some(row) = readable(case.view.route(&stream))? else { return Ok(false) };
    let state = row.map_or(RouteState::Closed { failures: 0 }, |row| row.state.clone());
    let destination = row.is_none().then_some(destination);
    let is_it = |probe: &Probe| Some((probe.by, probe.fence)) == attempt;
    let body = match (state, health) {
        (RouteState::Closed { failures: 0 }, Health::Well) => return Ok(false),
        (RouteState::Closed { .. }, Health::Well) => closed(),
        (RouteState::Closed { failures }, Health::Ill { .. }) if failures + 1 < OPENS_AFTER => {
            Body::RouteFailed(Failed { failures: failures + 1 }, FailedSealed { destination })
        }
        (RouteState::Closed { .. }, Health::Ill { spread }) => opened(case.now, 1, spread),
        (RouteState::Open { probe: Some(probe), times, .. }, health) if is_it(&probe) => match health {
            Health::Well => closed(),
            Health::Ill { spread } => opened(case.now, times + 1, spread),
        },
        (RouteState::Open { .. }, _) => return Ok(false),
    };
    case.record(stream, refs, body);
    Ok(true)
}

/// The destination of the operation that holds this attempt.
fn destination(case: &Case<'_>, attempt: Holding) -> Result<Option<String>, Halt> {
    let Some(row) = case.view.action(attempt.action)? else { return Ok(None) };
    match &row.operation {
        Some(operation) if row.held == Some((attempt.effect, attempt.fence)) => {
            Ok(case.pinned.tool(operation.contract)?.contract.destination.clone())
        }
        _ => Ok(None),
    }
}

fn readable<T>(found: Result<T, Halt>) -> Result<Option<T>, Halt> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Halt::Unreadable) => Ok(None),
        Err(need) => Err(need),
    }
}

const fn closed() -> Body {
    Body::RouteClosed(Closed { proof: None }, PersonSaid { person: None, reason: None })
}

/// Each time for twice as long, and a fifth more or less, so that what failed
/// together does not come again together.
fn opened(now: Timestamp, times: u32, spread: u8) -> Body {
    let pause = FIRST_PAUSE.times(1 << (times - 1).min(16)).min(LONGEST_PAUSE);
    let fifth = pause.divided_by(5);
    let until = now + fifth.times(4) + fifth.times(2 * u32::from(spread)).divided_by(255);
    Body::RouteOpened(Opened { times, until }, Nothing {})
}

pub(crate) fn close(case: &mut Case<'_>, close: &CloseRoute) -> Result<Reply, Halt> {
    let CloseRoute { destination, person, reason } = close;
    if let Some(code) = unheard(case, person, reason)? {
        return Ok(code.into());
    }
    let stream = case.pinned.tenant.route(destination);
    match case.view.route(&stream)?.map(|row| &row.state) {
        None => Ok(Code::RouteUnknown.into()),
        Some(RouteState::Closed { .. }) => Ok(Reply::Done { changed: false }),
        Some(RouteState::Open { .. }) => {
            let said = PersonSaid { person: Some(person.to_string()), reason: Some(reason.clone()) };
            let body = Body::RouteClosed(Closed { proof: Some(person.proof) }, said);
            case.record(stream, Refs::NONE, body);
            Ok(Reply::Done { changed: true })
        }
    }
}

//! Routes that a caller tries itself, as those to the endpoint of a model: the same
//! circuits, asked and told without an operation.

use crate::case::Case;
use crate::code::Code;
use crate::id::HolderKey;
use crate::journal::{Body, Nothing, Refs};
use crate::lease::{self, Lease, Resource};
use crate::limits;
use crate::reply::{Refusal, Reply};
use crate::route::event::Probe;
use crate::route::{Health, Way, judge, way_to};
use crate::time::Span;
use crate::view::{Halt, Pinned, Read};

/// Ask whether an endpoint may be tried.
///
/// Answered with `Done` if it may, with a lease if this is the probe of an endpoint
/// that did not answer, and refused with `route_open` if it is not to be tried yet.
#[derive(Debug, Clone)]
pub struct TryRoute {
    /// What names the endpoint everywhere: the fingerprint of how it is reached.
    pub destination: String,
    /// Who tries it: random for each process.
    pub holder: HolderKey,
    /// How long a probe may take.
    pub length: Span,
}

/// Say whether an endpoint answered.
#[derive(Debug, Clone)]
pub struct ReportRoute {
    /// The endpoint.
    pub destination: String,
    /// What it did.
    pub health: Health,
    /// The lease, if it was the probe: of an endpoint that did not answer no other
    /// word counts.
    pub under: Option<Lease>,
}

/// What a probe holds; `None` if the destination cannot be one.
fn probe_of(destination: &str) -> Option<Resource> {
    let name = format!("route/{destination}");
    let fits = limits::is_long_name(destination) && limits::is_long_name(&name);
    fits.then_some(Resource::Name(name))
}

pub(crate) fn try_it(case: &mut Case<'_>, wish: &TryRoute) -> Result<Reply, Halt> {
    let TryRoute { destination, holder, length } = wish;
    let field = |field| Ok(Refusal { field: Some(field), ..Refusal::new(Code::OutOfBounds) }.into());
    let Some(resource) = probe_of(destination) else { return field("destination") };
    if !(limits::LEASE_MIN..=limits::LEASE_MAX).contains(length) {
        return field("length");
    }
    match way_to(case, destination)? {
        Way::Free => Ok(Reply::Done { changed: false }),
        Way::Shut { until } => {
            let detail = Some(format!("until {until}"));
            Ok(Refusal { detail, ..Refusal::new(Code::RouteOpen) }.into())
        }
        Way::Probe => match lease::hand_over(case, &resource, case.pinned.tenant.holder(*holder), *length)? {
            Err(held) => Ok(held.into()),
            Ok(given) => {
                let by = case.pinned.tenant.lease(&resource.to_string());
                let data = Probe { by, deadline: given.until, fence: given.lease.fence };
                let stream = case.pinned.tenant.route(destination);
                case.record(stream, Refs::NONE, Body::RouteProbed(data, Nothing {}));
                Ok(Reply::Lease(Box::new(given)))
            }
        },
    }
}

pub(crate) fn report(case: &mut Case<'_>, report: &ReportRoute) -> Result<Reply, Halt> {
    let ReportRoute { destination, health, under } = report;
    let Some(resource) = probe_of(destination) else {
        return Ok(Refusal { field: Some("destination"), ..Refusal::new(Code::OutOfBounds) }.into());
    };
    let mut probe = None;
    if let Some(lease) = under {
        // A probe that took too long says nothing: another may be under way.
        if lease.resource != resource || lease::holds(case, lease)?.is_err() {
            return Ok(Code::LeaseFenced.into());
        }
        probe = Some((case.pinned.tenant.lease(&resource.to_string()), lease.fence));
    }
    let changed = judge(case, destination.clone(), *health, probe, Refs::NONE)?;
    if under.is_some() {
        lease::end_all(case, &resource)?;
    }
    Ok(Reply::Done { changed: changed || under.is_some() })
}

/// What is read to try an endpoint, or to say whether it answered.
pub(crate) fn reads(pinned: &Pinned, destination: &str) -> Vec<Read> {
    let mut reads = vec![Read::Stream(pinned.tenant.route(destination))];
    reads.extend(probe_of(destination).map(|resource| lease::read(pinned, &resource)));
    reads
}

//! What proves a lease, as it is handed on: in a file, or in the environment of a
//! program that runs under it. Never in a command line, which everybody sees.

use std::path::Path;

use onceseal::core::hash::{read_hex, write_hex};
use onceseal::core::id::HolderId;
use onceseal::core::json::{self, Limits, Object, Value};
use onceseal::runs::{Lease, LeaseNow, Resource};

use super::Proven;
use crate::command::refused::integer;
use crate::error::CliError;
use crate::files;
use crate::out::SCHEMA;

/// The variable that a program finds its lease in.
pub(crate) const VARIABLE: &str = "ONCESEAL_LEASE";
/// Many times what is written.
const MOST: usize = 16 * 1024;

/// A lease as JSON has it, with its token.
pub(crate) fn object(now: &LeaseNow) -> Object {
    let LeaseNow { lease, shared, until } = now;
    let mut object = of_lease(lease);
    object.insert("shared", *shared);
    object.insert("until", until.to_string());
    object
}

fn of_lease(lease: &Lease) -> Object {
    let mut token = String::new();
    write_hex(&lease.token(), &mut token);
    let mut object = Object::new();
    object.insert("resource", lease.resource.to_string());
    object.insert("holder", lease.holder.to_string());
    object.insert("fence", integer(lease.fence));
    object.insert("token", token);
    object
}

/// What a program is told of the lease that it runs under.
pub(crate) fn text(lease: &Lease) -> String {
    let mut object = of_lease(lease);
    object.insert("schema", SCHEMA);
    json::canonical(&object.into())
}

impl Proven {
    pub(crate) fn read(&self) -> Result<Lease, CliError> {
        match &self.lease {
            Some(file) => read(file),
            None => told()?.ok_or_else(|| {
                CliError::usage(format!("--lease FILE is needed, since {VARIABLE} is not set"))
            }),
        }
    }
}

/// Reads it from a file, `-` for stdin.
pub(crate) fn read(path: &Path) -> Result<Lease, CliError> {
    let content = files::read(path, MOST)?;
    parse(&content).ok_or_else(|| {
        CliError::usage(format!("{} does not hold what `lease acquire` wrote", files::named(path)))
    })
}

/// What the environment says, if it says anything.
pub(crate) fn told() -> Result<Option<Lease>, CliError> {
    // Blank where a program is told that it has none.
    let Some(text) = std::env::var_os(VARIABLE).filter(|text| !text.is_empty()) else { return Ok(None) };
    let lease = text.to_str().and_then(|text| parse(text.as_bytes()));
    let wrong = || CliError::usage(format!("{VARIABLE} does not hold what `lease run` tells a program"));
    lease.map(Some).ok_or_else(wrong)
}

fn parse(content: &[u8]) -> Option<Lease> {
    let Ok(Value::Object(object)) = json::read(content, &Limits::DATA) else { return None };
    let text = |name: &str| object.get(name).and_then(Value::as_text);
    let resource = Resource::parse(text("resource")?)?;
    let holder = HolderId::parse(text("holder")?)?;
    let fence = u64::try_from(object.get("fence")?.as_integer()?).ok()?;
    let mut token = [0; 16];
    read_hex(text("token")?, &mut token)?;
    Some(Lease::handed_on(resource, fence, holder, token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else_is() {
        let resource = Resource::Name("deploy".to_owned());
        let lease = Lease::handed_on(resource, 7, HolderId([1; 16]), [2; 16]);
        let text = text(&lease);
        assert!(parse(text.as_bytes()).is_some_and(|read| read == lease));
        for (from, to) in [
            ("name/deploy", "deploy"),
            ("holder_", "run_"),
            ("\"fence\":7", "\"fence\":-7"),
            ("\"fence\":7", "\"fence\":\"7\""),
            ("\"token\":\"02", "\"token\":\"0"),
            ("{", "["),
        ] {
            assert!(text.contains(from), "{text}");
            assert!(parse(text.replacen(from, to, 1).as_bytes()).is_none(), "{to}");
        }
    }
}

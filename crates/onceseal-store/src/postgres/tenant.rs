//! The tenant as a database has it.

use onceseal_core::code::Code;
use onceseal_core::hash::BlindingKey;
use onceseal_core::stream::Tenant;
use tokio_postgres::types::Type;

use super::connect::Connector;
use super::failure::{Clash, Failure};
use super::link::Link;
use super::patience::Patience;
use super::schema::{self, Found};
use super::statements::BEGIN;
use crate::columns;
use crate::error::StoreError;

/// A tenant as a database has it.
pub(crate) struct Founded {
    /// Its number.
    pub(crate) row: i32,
    pub(crate) tenant: Tenant,
    /// Whoever made it.
    pub(crate) owner: Option<String>,
}

impl Connector {
    /// Brings the database to this program's schema and finds the tenant of this name,
    /// or makes this one, which `owner` then owns. Also the server's clock. `accepts`
    /// that its standby may lose commits.
    pub(crate) fn found(
        &self,
        new: &Tenant,
        owner: Option<&str>,
        accepts: bool,
    ) -> Result<(Founded, i64), StoreError> {
        patiently(|| {
            let mut link = self.connect()?;
            let server = self.server(&link)?;
            server.or_accepted(accepts)?;
            let now = server.clock_us;
            // Other hosts may run the program that made it: an older one is theirs to bring on,
            // all together.
            match link.wait(schema::look(self, &link))? {
                Found::Ours(found) => schema::check_version(found, schema::version(self.migrations))?,
                Found::Empty => {
                    link = self.connect_to_act()?;
                    schema::migrate(self, &link, now)?;
                }
            }
            let founded = match find(&link, &new.name, false)? {
                Some(founded) => founded,
                None => self.make(&self.connect_to_act()?, new, owner, now)?,
            };
            Ok((founded, now))
        })
    }

    /// The tenant, if the database has it; changes nothing. Also the server's clock.
    /// `arrives`: it may be on its way from a file.
    pub(crate) fn find(&self, tenant: &str, arrives: bool) -> Result<Option<(Founded, i64)>, StoreError> {
        patiently(|| {
            let link = self.connect()?;
            let now = self.server(&link)?.clock_us;
            match link.wait(schema::look(self, &link))? {
                Found::Empty => Ok(None),
                Found::Ours(_) => Ok(find(&link, tenant, arrives)?.map(|founded| (founded, now))),
            }
        })
    }

    /// Brings the schema to this program's; says from which version, and to which.
    pub(super) fn migrate(&self) -> Result<(i64, i64), StoreError> {
        let link = self.connect_to_act().map_err(Failure::told)?;
        let now = self.server(&link).map_err(Failure::told)?.clock_us;
        let found = link.wait(schema::look(self, &link)).map_err(Failure::told)?;
        schema::migrate(self, &link, now).map_err(Failure::told)?;
        Ok((if let Found::Ours(version) = found { version } else { 0 }, schema::version(self.migrations)))
    }

    fn make(&self, link: &Link, new: &Tenant, owner: Option<&str>, now: i64) -> Result<Founded, Failure> {
        let parameters: [super::link::Parameter<'_>; 5] = [
            (&new.name, Type::TEXT),
            (&owner, Type::TEXT),
            (&&new.id[..], Type::BYTEA),
            (&&new.key.0[..], Type::BYTEA),
            (&now, Type::INT8),
        ];
        let made = link.wait(async {
            // Durable whatever the server's own setting is.
            link.run(BEGIN).await?;
            let rows = link.rows(&link.sql.insert_tenant, &parameters).await;
            let committed = link.run("COMMIT").await;
            let rows = rows?;
            committed.map(|()| rows)
        });
        match made {
            Ok(rows) => {
                let row = rows.first().and_then(|row| row.try_get(0).ok());
                let row = row.ok_or_else(|| StoreError::new(Code::Internal))?;
                Ok(Founded { row, tenant: new.clone(), owner: owner.map(str::to_owned) })
            }
            // Another made it at the same moment.
            Err(Failure::Stale(Clash::Row)) => {
                find(link, &new.name, false)?.ok_or(Failure::Again("the tenant is being made"))
            }
            Err(failure) => Err(failure),
        }
    }
}

/// Does what is to be done to a server, which is waited for if it is gone.
pub(super) fn patiently<T>(mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T, StoreError> {
    let mut patience = Patience::new();
    loop {
        match attempt() {
            Err(Failure::Lost(_) | Failure::Again(_)) if patience.is_left() => patience.pause(),
            done => return done.map_err(Failure::told),
        }
    }
}

/// The tenant of this name, if it is there.
///
/// The default tenant may not be gone from a database that has been written to:
/// what was recorded for it would be forgotten under another key.
fn find(link: &Link, name: &str, arrives: bool) -> Result<Option<Founded>, Failure> {
    let rows = link.wait(link.rows(&link.sql.tenant, &[(&name, Type::TEXT)]))?;
    let Some(row) = rows.first() else {
        if name == Tenant::DEFAULT && !link.wait(link.rows(&link.sql.any_stream, &[]))?.is_empty() {
            let what = "it has been written to and has no default tenant; restore it, or set `tenant`";
            return Err(StoreError::with(Code::StoreForeign, what).into());
        }
        return Ok(None);
    };
    if row.try_get(4)? && !arrives {
        return Err(StoreError::new(Code::StoreArriving).into());
    }
    let id = columns::bytes(row, 1, "tenants.tenant_id")?;
    let key = BlindingKey(columns::bytes(row, 2, "tenants.blinding_key")?);
    let tenant = Tenant { name: name.to_owned(), id, key };
    Ok(Some(Founded { row: row.try_get(0)?, tenant, owner: row.try_get(3)? }))
}

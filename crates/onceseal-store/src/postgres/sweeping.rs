//! One process sweeps at a time: by a row with an end, since a lock would have to be
//! held by a session, and a pooler may have few of them.

use std::sync::Arc;

use futures_util::future::join;
use tokio_postgres::types::Type;

use super::failure::Failure;
use super::link::Parameter;
use super::pool::Pool;
use super::statements::BEGIN;
use crate::columns::integer;
use crate::error::StoreError;
use crate::sweeps::Sweeps;

/// How long others leave it to one who does not say that he is done, in microseconds.
const MOST: i64 = 60_000_000;

impl Sweeps for Arc<Pool> {
    fn alone(&self, sweep: &mut dyn FnMut()) -> Result<(), StoreError> {
        let change = |sql: &str, number: i64| {
            let parameters: [Parameter<'_>; 2] = [(&self.tenant, Type::INT4), (&number, Type::INT8)];
            let _turn = self.turn()?;
            let link = self.link()?;
            let rows = link.wait(async {
                // Nothing rests on it, so it waits for no standby.
                link.run(BEGIN).await?;
                link.run("SET LOCAL synchronous_commit = off").await?;
                let (rows, committed) = join(link.rows(sql, &parameters), link.run("COMMIT")).await;
                let rows = rows?;
                committed.map(|()| rows)
            })?;
            self.give_back(link);
            rows.first().map(|row| Ok(integer(row, 0, "sweeps.until")?)).transpose()
        };
        let sql = self.statements();
        let Some(until) = change(&sql.take_sweep, MOST).map_err(Failure::told)? else { return Ok(()) };
        sweep();
        // One that cannot be taken back ends by itself.
        let _ = change(&sql.end_sweep, until);
        Ok(())
    }
}

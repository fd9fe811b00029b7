//! All columns of all rows, for whoever checks them.

use onceseal_core::journal::Key;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::{PostgresSnapshot, limit};
use crate::columns::{Columns, integer};
use crate::error::StoreError;
use crate::postgres::link::Parameter;
use crate::raw::rows::{Gathering, entry};
use crate::raw::{Entry, Misshapen, Raw, RawKey, Wholes};

impl Raw for PostgresSnapshot<'_> {
    fn owner(&self) -> Result<Option<Option<String>>, StoreError> {
        let rows = self.rows(&self.link()?.sql.owner, &[])?;
        let row = rows.first().ok_or(Misshapen("owner"))?;
        Ok(Some(row.try_get(0).map_err(|_| Misshapen("owner"))?))
    }

    fn ordinals(&self, after: i64, most: usize) -> Result<Vec<i64>, StoreError> {
        let most = limit(most);
        let rows = self.rows(&self.link()?.sql.ordinals, &[(&after, Type::INT8), (&most, Type::INT8)])?;
        Ok(rows.iter().map(|row| integer(row, 0, "streams.id")).collect::<Result<_, Misshapen>>()?)
    }

    fn wholes(&self, from: i64, to: i64, after: i64, most: usize) -> Result<Wholes, StoreError> {
        // A stream without events has a row too.
        let rows = limit(most).saturating_add(1);
        let parameters: [Parameter<'_>; 4] =
            [(&from, Type::INT8), (&to, Type::INT8), (&after, Type::INT8), (&rows, Type::INT8)];
        let found = self.rows(&self.link()?.sql.wholes, &parameters)?;
        let mut page = Gathering::new(most);
        for row in &found {
            if !page.take(row)? {
                break;
            }
        }
        Ok(page.page(limit(found.len()) == rows))
    }

    fn entries(&self, after: i64, most: usize) -> Result<Vec<Entry>, StoreError> {
        let most = limit(most);
        let rows = self.rows(&self.link()?.sql.entries, &[(&after, Type::INT8), (&most, Type::INT8)])?;
        let tenant = i64::from(self.tenant);
        Ok(rows.iter().map(|row| entry(row, tenant, false)).collect::<Result<_, Misshapen>>()?)
    }

    fn raw_keys(&self, after: Option<&RawKey>, most: usize) -> Result<Vec<RawKey>, StoreError> {
        let (index, bytes, ordinal) =
            after.map_or((i64::MIN, &[][..], i64::MIN), |key| (key.index, &key.bytes, key.ordinal));
        let (index, most) = (i16::try_from(index).unwrap_or(i16::MIN), limit(most));
        let parameters: [Parameter<'_>; 4] =
            [(&index, Type::INT2), (&bytes, Type::BYTEA), (&ordinal, Type::INT8), (&most, Type::INT8)];
        let rows = self.rows(&self.link()?.sql.all_keys, &parameters)?;
        let key = |row: &Row| {
            Ok(RawKey {
                index: integer(row, 0, "keys.index")?,
                bytes: row.bytes(1).ok_or(Misshapen("keys.key"))?.to_owned(),
                ordinal: integer(row, 2, "keys.stream")?,
                sequence: integer(row, 3, "keys.sequence")?,
            })
        };
        Ok(rows.iter().map(key).collect::<Result<_, Misshapen>>()?)
    }

    fn raw_key(&self, key: &Key, ordinal: i64) -> Result<Option<i64>, StoreError> {
        let index = i16::from(key.index.number());
        let parameters: [Parameter<'_>; 3] =
            [(&index, Type::INT2), (&key.bytes, Type::BYTEA), (&ordinal, Type::INT8)];
        let rows = self.rows(&self.link()?.sql.key, &parameters)?;
        Ok(rows.first().map(|row| integer(row, 0, "keys.sequence")).transpose()?)
    }
}

//! All columns of all rows, for whoever checks them.

use onceseal_core::journal::Key;
use rusqlite::OptionalExtension;

use super::{SqliteSnapshot, limit};
use crate::error::StoreError;
use crate::raw::rows::{Gathering, entry};
use crate::raw::{Entry, Misshapen, Raw, RawKey, Wholes};

fn text(text: Option<&str>) -> Option<String> {
    text.map(str::to_owned)
}

const ORDINALS: &str =
    "SELECT id FROM streams NOT INDEXED WHERE tenant = ?1 AND id > ?2 ORDER BY id LIMIT ?3";

/// As [`Gathering`] takes them. The lowest integer is no sequence.
const WHOLES: &str = "\
    SELECT e.position, e.sequence, e.kind, e.at, e.command, e.part, e.of, e.refs,
           e.data, e.sealed, e.salt, e.seal, e.hash, s.kind, s.name,
           s.id, s.sequence, s.head, s.open, s.private, p.salt, p.text
    FROM streams s NOT INDEXED
    LEFT JOIN events e ON e.stream = s.id
         AND e.sequence > iif(s.id = ?2, ?4, -9223372036854775807 - 1)
    LEFT JOIN payloads p ON p.event = e.position
    WHERE s.tenant = ?1 AND s.id BETWEEN ?2 AND ?3
    ORDER BY s.id, e.sequence";

const ENTRIES: &str = "\
    SELECT e.position, e.sequence, e.at, e.command, e.part, e.of, s.kind, s.name, e.stream, e.hash, s.tenant
    FROM events e LEFT JOIN streams s ON s.id = e.stream
    WHERE e.position > ?1 ORDER BY e.position LIMIT ?2";

const KEYS: &str = "\
    SELECT \"index\", key, stream, sequence FROM keys
    WHERE tenant = ?1 AND (\"index\", key, stream) > (?2, ?3, ?4)
    ORDER BY \"index\", key, stream LIMIT ?5";

const KEY: &str = "\
    SELECT sequence FROM keys WHERE tenant = ?1 AND \"index\" = ?2 AND key = ?3 AND stream = ?4";

impl Raw for SqliteSnapshot<'_> {
    fn owner(&self) -> Result<Option<Option<String>>, StoreError> {
        let mut statement = self.connection()?.prepare_cached("SELECT owner FROM tenants WHERE id = ?1")?;
        let found = statement.query_row([self.tenant], |row| Ok(row.get_ref(0)?.as_str_or_null().map(text)));
        match found.optional()? {
            Some(Ok(owner)) => Ok(Some(owner)),
            Some(Err(_)) | None => Err(Misshapen("owner").into()),
        }
    }

    fn ordinals(&self, after: i64, most: usize) -> Result<Vec<i64>, StoreError> {
        let mut statement = self.connection()?.prepare_cached(ORDINALS)?;
        let mut found = statement.query((self.tenant, after, limit(most)))?;
        let mut ordinals = Vec::with_capacity(most.min(1024));
        while let Some(row) = found.next()? {
            ordinals.push(row.get(0)?);
        }
        Ok(ordinals)
    }

    fn wholes(&self, from: i64, to: i64, after: i64, most: usize) -> Result<Wholes, StoreError> {
        let mut statement = self.connection()?.prepare_cached(WHOLES)?;
        let mut found = statement.query((self.tenant, from, to, after))?;
        let mut page = Gathering::new(most);
        while let Some(row) = found.next()? {
            if !page.take(row)? {
                break;
            }
        }
        Ok(page.page(false))
    }

    fn entries(&self, after: i64, most: usize) -> Result<Vec<Entry>, StoreError> {
        let mut statement = self.connection()?.prepare_cached(ENTRIES)?;
        let mut found = statement.query((after, limit(most)))?;
        let mut entries = Vec::new();
        while let Some(row) = found.next()? {
            entries.push(entry(row, self.tenant, true)?);
        }
        Ok(entries)
    }

    fn raw_keys(&self, after: Option<&RawKey>, most: usize) -> Result<Vec<RawKey>, StoreError> {
        let mut statement = self.connection()?.prepare_cached(KEYS)?;
        let (index, bytes, ordinal) =
            after.map_or((i64::MIN, &[][..], i64::MIN), |key| (key.index, &key.bytes, key.ordinal));
        let mut found = statement.query((self.tenant, index, bytes, ordinal, limit(most)))?;
        let mut keys = Vec::new();
        while let Some(row) = found.next()? {
            // What is no integer leads nowhere, and is not the key that should be there.
            let integer = |at: usize| row.get::<_, i64>(at).unwrap_or(i64::MAX);
            let bytes = row.get_ref(1)?.as_bytes().unwrap_or_default().to_owned();
            keys.push(RawKey { index: integer(0), bytes, ordinal: integer(2), sequence: integer(3) });
        }
        Ok(keys)
    }

    fn raw_key(&self, key: &Key, ordinal: i64) -> Result<Option<i64>, StoreError> {
        let mut statement = self.connection()?.prepare_cached(KEY)?;
        let values = (self.tenant, key.index.number(), &key.bytes, ordinal);
        let found = statement.query_row(values, |row| Ok(row.get(0).unwrap_or(i64::MAX))).optional()?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, params_from_iter};

    use super::*;

    #[test]
    fn every_page_is_read_in_the_order_it_lies_in_and_never_sorted() {
        let connection = Connection::open_in_memory().expect("a database");
        connection.execute_batch(include_str!("../0001_first.sql")).expect("the schema");
        for (sql, first) in [
            (ORDINALS, "SEARCH streams USING INTEGER PRIMARY KEY (rowid>?)"),
            (WHOLES, "SEARCH s USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
            (ENTRIES, "SEARCH e USING INTEGER PRIMARY KEY (rowid>?)"),
            (KEYS, "SEARCH keys USING PRIMARY KEY (tenant=? AND (index,key,stream)>(?,?,?))"),
            (KEY, "SEARCH keys USING PRIMARY KEY (tenant=? AND index=? AND key=? AND stream=?)"),
        ] {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect(sql);
            let none = vec![None::<i64>; statement.parameter_count()];
            let found =
                statement.query_map(params_from_iter(none), |row| row.get::<_, String>(3)).expect("a plan");
            let plan: Vec<_> = found.collect::<Result<_, _>>().expect("steps");
            assert_eq!(plan.first().map(String::as_str), Some(first), "{plan:?}");
            assert!(plan.iter().all(|step| step.starts_with("SEARCH")), "{plan:?}");
        }
    }
}

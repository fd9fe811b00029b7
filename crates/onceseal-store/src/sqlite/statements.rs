//! Every statement that finds something, in one place.
//!
//! Each reaches its rows by an index or a primary key and in the order they
//! are wanted: nothing is scanned, nothing is sorted. A test asks SQLite. CROSS
//! JOIN keeps its planner to the order of the tables as they are written, also
//! where somebody has run ANALYZE.

/// The size of the file; a look at its head.
pub(super) const BYTES: &str = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:expr;)*) => {
        $($(#[$doc])* pub(super) const $name: &str = $sql;)*

        #[cfg(test)]
        const ALL: &[(&str, &str)] = &[$((stringify!($name), $name)),*];
    };
}

/// Columns of an event, in the order `rows::event` reads them.
macro_rules! event {
    ($rest:literal) => {
        concat!(
            "SELECT e.position, e.sequence, e.kind, e.at, e.command, e.part, e.of, e.refs, e.data, e.sealed, \
                    e.salt, e.seal, e.hash, s.kind, s.name
             FROM events e CROSS JOIN streams s ON s.id = e.stream ",
            $rest
        )
    };
}

/// Keys of one index of a tenant.
macro_rules! keys {
    ($rest:literal) => {
        concat!(
            "SELECT k.key, s.kind, s.name, k.sequence FROM keys k CROSS JOIN streams s ON s.id = k.stream
             WHERE k.tenant = ?1 AND k.\"index\" = ?2 ",
            $rest
        )
    };
}

statements! {
    /// The tenant of a name.
    TENANT = "SELECT id, tenant_id, blinding_key, owner FROM tenants WHERE tenant = ?1";
    /// Whether the tenant is the one that was opened.
    TENANT_ID = "SELECT tenant_id FROM tenants WHERE id = ?1";
    /// Anything recorded, for whatever tenant.
    ANY_STREAM = "SELECT id FROM streams WHERE id > 0 LIMIT 1";
    /// A stream's number.
    STREAM_ID = "SELECT id FROM streams WHERE tenant = ?1 AND kind = ?2 AND name = ?3";
    /// A stream's row.
    STREAM = "SELECT id, sequence, head, open, private FROM streams
              WHERE tenant = ?1 AND kind = ?2 AND name = ?3";
    /// The tenant's streams, one after another.
    STREAMS = "SELECT kind, name FROM streams WHERE tenant = ?1 AND (kind, name) > (?2, ?3)
               ORDER BY kind, name LIMIT ?4";
    /// A caller's own row.
    OWN = "SELECT value FROM own_rows WHERE tenant = ?1 AND key = ?2";
    /// The newest position of the file.
    NEWEST = "SELECT coalesce(max(position), 0) FROM events";
    /// The newest position of the tenant, from the newest of the file downwards.
    NEWEST_OF_TENANT = "SELECT e.position FROM events e CROSS JOIN streams s ON s.id = e.stream
                        WHERE e.position <= ?2 AND s.tenant = ?1 ORDER BY e.position DESC LIMIT 1";
    /// The hash of the event at a position.
    HASH = "SELECT hash FROM events WHERE position = ?1";
    /// A stream's events.
    EVENTS = event!("WHERE e.stream = ?1 AND e.sequence >= ?2 ORDER BY e.sequence LIMIT ?3");
    /// The tenant's events in the order of the log.
    LOG = event!("WHERE e.position > ?1 AND s.tenant = ?2 ORDER BY e.position LIMIT ?3");
    /// The text beside an event.
    PAYLOAD = "SELECT p.salt, p.text FROM events e CROSS JOIN payloads p ON p.event = e.position
               WHERE e.stream = ?1 AND e.sequence = ?2";
    /// The newest event under a key.
    EVENT_OF_KEY = "SELECT s.kind, s.name, k.sequence FROM keys k CROSS JOIN streams s ON s.id = k.stream
                    WHERE k.tenant = ?1 AND k.\"index\" = ?2 AND k.key = ?3 ORDER BY k.stream DESC LIMIT 1";
    /// The first page of keys, oldest first.
    OLDEST = keys!("AND k.key BETWEEN ?3 AND ?4 ORDER BY k.key, k.stream LIMIT ?5");
    /// What comes after a key and stream, oldest first.
    OLDEST_AFTER = keys!("AND (k.key, k.stream) > (?3, ?6) AND k.key <= ?4 ORDER BY k.key, k.stream LIMIT ?5");
    /// The first page of keys, newest first.
    NEWEST_FIRST = keys!("AND k.key BETWEEN ?3 AND ?4 ORDER BY k.key DESC, k.stream DESC LIMIT ?5");
    /// What comes after a key and stream, newest first.
    NEWEST_AFTER =
        keys!("AND (k.key, k.stream) < (?4, ?6) AND k.key >= ?3 ORDER BY k.key DESC, k.stream DESC LIMIT ?5");
}

#[cfg(test)]
mod tests {
    use rusqlite::types::Null;
    use rusqlite::{Connection, params_from_iter};

    use super::ALL;
    use crate::sqlite::schema;

    /// What SQLite would do: one line for each step.
    fn plan(connection: &Connection, sql: &str) -> Vec<String> {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("prepared");
        // What is bound does not matter for the plan.
        let nothing = vec![Null; statement.parameter_count()];
        let steps = statement.query_map(params_from_iter(nothing), |row| row.get(3)).expect("asked");
        steps.map(|step| step.expect("a step")).collect()
    }

    fn is_search(steps: &[String]) -> bool {
        !steps.is_empty() && steps.iter().all(|step| step.starts_with("SEARCH "))
    }

    #[test]
    fn every_look_up_and_list_uses_an_index_and_sorts_nothing() {
        let mut connection = Connection::open_in_memory().expect("a database");
        schema::migrate(&mut connection, 0).expect("the schema");
        for (name, sql) in ALL {
            let steps = plan(&connection, sql);
            assert!(is_search(&steps), "{name}: {steps:#?}");
        }
        for scans in [
            "SELECT id FROM streams WHERE open = ?1",
            "SELECT key FROM keys WHERE key > ?1",
            "SELECT position FROM events WHERE stream = ?1 ORDER BY hash",
        ] {
            assert!(!is_search(&plan(&connection, scans)), "the test cannot see a scan: {scans}");
        }
    }

    #[test]
    fn no_other_module_looks_anything_up() {
        for (name, source) in [
            ("open.rs", include_str!("open.rs")),
            ("pool.rs", include_str!("pool.rs")),
            ("recent.rs", include_str!("recent.rs")),
            ("rows.rs", include_str!("rows.rs")),
            ("transaction.rs", include_str!("transaction.rs")),
            ("writer.rs", include_str!("writer.rs")),
        ] {
            let found: Vec<&str> = source.lines().filter(|line| line.contains("SELECT ")).collect();
            assert!(found.iter().all(|line| line.contains("SELECT count(*)")), "{name}: {found:#?}");
        }
    }
}

//! Rows that do not fit together, which no constraint keeps apart: what foreign keys
//! would forbid, what waits for the log, and what sequences give.

use std::collections::BTreeSet;

use tokio_postgres::types::Type;

use crate::columns::integer;
use crate::postgres::failure::Failure;
use crate::postgres::link::Link;
use crate::postgres::numbers::NUMBERINGS;
use crate::postgres::statements::{HIDDEN, Statements};

/// Counts rows that should not be there, and says in what number of `unsequenced` the
/// first of them is, where they are about that.
struct Stray {
    count: fn(&Statements) -> &str,
    /// Tables that it looks at.
    looks_at: &'static [&'static str],
    what: &'static str,
}

const STRAYS: [Stray; 15] = [
    Stray {
        count: |sql| &sql.stray_events,
        looks_at: &["events", "streams"],
        what: "events name a stream that is not there",
    },
    Stray {
        count: |sql| &sql.stray_payloads,
        looks_at: &["payloads", "events"],
        what: "payloads name an event that is not there",
    },
    Stray {
        count: |sql| &sql.stray_keys,
        looks_at: &["keys", "streams"],
        what: "keys name a stream that is not there",
    },
    Stray {
        count: |sql| &sql.stray_log,
        looks_at: &["log", "events"],
        what: "places of the log name an event that is not there",
    },
    Stray {
        count: |sql| &sql.stray_tenants_streams,
        looks_at: &["streams", "tenants"],
        what: "streams, with their events and payloads, are of a tenant that is not there",
    },
    Stray {
        count: |sql| &sql.stray_tenants_keys,
        looks_at: &["keys", "tenants"],
        what: "keys are of a tenant that is not there",
    },
    Stray {
        count: |sql| &sql.stray_tenants_log,
        looks_at: &["log", "tenants"],
        what: "places of the log are of a tenant that is not there",
    },
    Stray {
        count: |sql| &sql.stray_tenants_unsequenced,
        looks_at: &["unsequenced", "tenants"],
        what: "rows of unsequenced are of a tenant that is not there",
    },
    Stray {
        count: |sql| &sql.stray_tenants_own_rows,
        looks_at: &["own_rows", "tenants"],
        what: "own_rows are of a tenant that is not there",
    },
    Stray {
        count: |sql| &sql.stray_tenants_sweeps,
        looks_at: &["sweeps", "tenants"],
        what: "rows of sweeps are of a tenant that is not there",
    },
    Stray {
        count: |sql| &sql.stray_misshapen,
        looks_at: &["unsequenced"],
        what: "rows of unsequenced do not hold what is written there; commands fail until they are taken out",
    },
    Stray {
        count: |sql| &sql.stray_absent,
        looks_at: &["unsequenced", "events", "streams"],
        what: "places in unsequenced name an event that is not there, or is another tenant's; take the row out",
    },
    Stray {
        count: |sql| &sql.stray_placed,
        looks_at: &["unsequenced", "log"],
        what: "places in unsequenced name an event that is in the log already; commands fail until the row is \
               taken out",
    },
    Stray {
        count: |sql| &sql.stray_repeated,
        looks_at: &["unsequenced"],
        what: "events are named more than once in unsequenced; commands fail until they are named once",
    },
    Stray {
        count: |sql| &sql.stray_unplaced,
        looks_at: &["events", "streams", "log", "unsequenced"],
        what: "events are neither in the log of their tenant nor in unsequenced: they were taken out of it",
    },
];

/// One sentence for each of these things that is wrong. Nothing is looked at in what
/// is `lost`, or hidden from the role.
pub(super) async fn faults(
    link: &Link,
    schema: &str,
    lost: &BTreeSet<String>,
) -> Result<Vec<String>, Failure> {
    let mut hidden = hidden(link, schema).await?;
    hidden.extend(lost.iter().cloned());
    let is_seen = |names: &[&str]| !names.iter().any(|name| hidden.contains(*name));
    let mut faults = Vec::new();
    for Stray { count, looks_at, what } in &STRAYS {
        if !is_seen(looks_at) {
            continue;
        }
        let rows = link.rows(count(&link.sql), &[]).await?;
        let Some(row) = rows.first() else { continue };
        let first: Option<i64> = if row.len() > 1 { row.try_get(1)? } else { None };
        match (integer(row, 0, "count")?, first) {
            (0, _) => {}
            (n, None) => faults.push(format!("{n} {what}")),
            (n, Some(id)) => faults.push(format!("{n} {what} (the first: id {id})")),
        }
    }
    for numbering in &NUMBERINGS {
        if !is_seen(&[numbering.sequence, numbering.table]) {
            continue;
        }
        let rows = link.rows((numbering.given)(&link.sql), &[]).await?;
        let Some(row) = rows.first() else { continue };
        let (last, highest) = (integer(row, 0, numbering.sequence)?, integer(row, 1, numbering.table)?);
        faults.extend(numbering.fault(schema, last, highest));
    }
    Ok(faults)
}

/// Tables and sequences that the role may not look into.
pub(in crate::postgres) async fn hidden(link: &Link, schema: &str) -> Result<BTreeSet<String>, Failure> {
    let rows = link.rows(HIDDEN, &[(&schema, Type::TEXT)]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

//! What a role may do in the schema, and what it would have to be granted to act.

use std::collections::BTreeMap;

use tokio_postgres::types::Type;

use super::failure::Failure;
use super::link::Link;
use super::statements::LACKING;

/// What commands do with each table; of `tenants` whoever makes one does more.
const ON_TABLES: [(&str, &[&str]); 10] = [
    ("schema_migrations", &["SELECT"]),
    ("tenants", &["SELECT"]),
    ("streams", &["SELECT", "INSERT", "UPDATE"]),
    ("events", &["SELECT", "INSERT"]),
    ("payloads", &["SELECT", "INSERT"]),
    ("keys", &["SELECT", "INSERT", "DELETE"]),
    ("log", &["SELECT", "INSERT"]),
    ("unsequenced", &["SELECT", "INSERT", "DELETE"]),
    ("own_rows", &["SELECT", "INSERT", "UPDATE", "DELETE"]),
    ("sweeps", &["SELECT", "INSERT", "UPDATE", "DELETE"]),
];

/// The functions that commands are.
const FUNCTIONS: [&str; 7] =
    ["facts", "find_event", "find_keys", "load_payloads", "load_streams", "lock", "save"];

/// Statements that grant what the role lacks to act in the schema; none where it lacks
/// nothing. `makes` that it has to make its tenant first.
pub(super) async fn lacking(link: &Link, schema: &str, makes: bool) -> Result<Vec<String>, Failure> {
    let mut wanted = vec![("SCHEMA", "", "USAGE"), ("SEQUENCE", "stream_blocks", "USAGE")];
    let on_tables = ON_TABLES.iter().flat_map(|(table, rights)| rights.iter().map(|right| (*table, *right)));
    wanted.extend(on_tables.map(|(table, right)| ("TABLE", table, right)));
    if makes {
        wanted.push(("TABLE", "tenants", "INSERT"));
    }
    wanted.extend(FUNCTIONS.map(|function| ("FUNCTION", function, "EXECUTE")));
    let kinds: Vec<&str> = wanted.iter().map(|(kind, ..)| *kind).collect();
    let names: Vec<&str> = wanted.iter().map(|(_, name, _)| *name).collect();
    let rights: Vec<&str> = wanted.iter().map(|(.., right)| *right).collect();
    let parameters: [super::link::Parameter<'_>; 4] = [
        (&schema, Type::TEXT),
        (&kinds, Type::TEXT_ARRAY),
        (&names, Type::TEXT_ARRAY),
        (&rights, Type::TEXT_ARRAY),
    ];
    let mut grants: BTreeMap<(String, String), (Vec<String>, String)> = BTreeMap::new();
    for row in link.rows(LACKING, &parameters).await? {
        let grant = grants.entry((row.try_get(0)?, row.try_get(1)?)).or_default();
        grant.0.push(row.try_get(2)?);
        grant.1 = row.try_get(3)?;
    }
    let told = |((kind, right), (on, role)): ((String, String), (Vec<String>, String))| {
        format!("GRANT {right} ON {kind} {} TO {role}", on.join(", "))
    };
    Ok(grants.into_iter().map(told).collect())
}

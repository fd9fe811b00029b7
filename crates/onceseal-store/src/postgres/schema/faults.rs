//! What an audit finds out about a schema before it looks at any tenant.

mod rows;

use std::collections::{BTreeMap, BTreeSet};

use onceseal_core::json::escape_for_display;
use tokio_postgres::types::Type;

use super::MIGRATIONS;
use crate::postgres::failure::Failure;
use crate::postgres::link::Link;

pub(in crate::postgres) use rows::hidden;

/// What the migrations make, as [`OBJECTS`] tells it: kind, name and how it is.
const MADE: &str = include_str!("made.txt");

/// Everything in a schema, and what is tied to its tables: kind, name and how it is.
/// Only what every server tells in the same words is asked for, and nothing that may
/// be tuned. How functions are written is told by a hash, with `@` for the schema.
const OBJECTS: &str = r#"
    WITH named AS (SELECT n.oid, n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname = $1),
    relations AS (SELECT c.* FROM pg_catalog.pg_class c JOIN named n ON n.oid = c.relnamespace),
    objects(kind, name, how) AS (
        SELECT CASE c.relkind WHEN 'r' THEN 'table' WHEN 'S' THEN 'sequence' WHEN 'v' THEN 'view' ELSE 'relation' END,
               c.relname::text,
               concat_ws(' ', c.relkind, c.relpersistence,
                   CASE WHEN c.relrowsecurity OR c.relforcerowsecurity THEN 'row security' END,
                   CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE c.oid IN (i.inhrelid, i.inhparent))
                        THEN 'inherits' END,
                   (SELECT concat_ws(' ', format_type(s.seqtypid, NULL), s.seqstart, s.seqincrement, s.seqmin, s.seqmax,
                                     CASE WHEN s.seqcycle THEN 'cycles' END,
                                     CASE WHEN s.seqcache <> 1 THEN concat('cache ', s.seqcache) END)
                    FROM pg_catalog.pg_sequence s WHERE s.seqrelid = c.oid))
        FROM relations c WHERE c.relkind NOT IN ('i', 'I')
        UNION ALL
        SELECT 'column', concat(c.relname, '.', a.attname),
               concat_ws(' ', format_type(a.atttypid, a.atttypmod),
                   CASE WHEN a.attcollation <> t.typcollation THEN
                        (SELECT concat('collate ', l.collname) FROM pg_catalog.pg_collation l WHERE l.oid = a.attcollation) END,
                   CASE WHEN a.attnotnull THEN 'not null' END,
                   CASE WHEN a.attidentity <> '' THEN concat('identity ', a.attidentity) END,
                   CASE WHEN a.attgenerated <> '' THEN concat('generated ', a.attgenerated) END,
                   (SELECT concat('default ', pg_get_expr(d.adbin, d.adrelid)) FROM pg_catalog.pg_attrdef d
                    WHERE d.adrelid = c.oid AND d.adnum = a.attnum))
        FROM relations c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
        JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
        WHERE c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
        UNION ALL
        -- What is not null is told with its column: not every server has it here.
        SELECT 'constraint', concat(o.conname, ' on ', c.relname), pg_get_constraintdef(o.oid)
        FROM relations c JOIN pg_catalog.pg_constraint o ON o.conrelid = c.oid WHERE o.contype NOT IN ('n', 't')
        UNION ALL
        SELECT 'index', i.relname::text,
               concat_ws(' ', CASE WHEN x.indisunique THEN 'unique' END,
                   CASE WHEN NOT (x.indisvalid AND x.indisready) THEN 'invalid' END, 'on', c.relname,
                   regexp_replace(pg_get_indexdef(x.indexrelid), '^.*? USING |( WITH \(.*\))$', '', 'g'))
        FROM relations c JOIN pg_catalog.pg_index x ON x.indrelid = c.oid
        JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
        UNION ALL
        SELECT 'function', p.proname::text,
               string_agg(concat_ws(' ', l.lanname, p.prokind, p.provolatile, p.proparallel,
                   CASE WHEN p.proisstrict THEN 'strict' END, CASE WHEN p.prosecdef THEN 'as its owner' END,
                   CASE WHEN p.proleakproof THEN 'leakproof' END, concat('(', pg_get_function_arguments(p.oid), ')'),
                   pg_get_function_result(p.oid), array_to_string(p.proconfig, '; '),
                   encode(sha256(convert_to(replace(p.prosrc, concat('"', n.nspname, '"'), '@'), 'UTF8')), 'hex')),
                   ' and ' ORDER BY p.oid)
        FROM pg_catalog.pg_proc p JOIN named n ON n.oid = p.pronamespace
        JOIN pg_catalog.pg_language l ON l.oid = p.prolang GROUP BY p.proname
        UNION ALL
        SELECT 'trigger', concat(t.tgname, ' on ', c.relname), ''
        FROM relations c JOIN pg_catalog.pg_trigger t ON t.tgrelid = c.oid WHERE NOT t.tgisinternal
        UNION ALL
        SELECT 'rule', concat(r.rulename, ' on ', c.relname), ''
        FROM relations c JOIN pg_catalog.pg_rewrite r ON r.ev_class = c.oid WHERE c.relkind IN ('r', 'p')
        UNION ALL
        SELECT 'policy', concat(y.polname, ' on ', c.relname), ''
        FROM relations c JOIN pg_catalog.pg_policy y ON y.polrelid = c.oid
    )
    SELECT kind, name, how FROM objects"#;

type Objects = BTreeMap<(String, String), String>;

/// How a schema differs from the one that the migrations make, rows that do not fit
/// together, and another list of migrations: one sentence each.
pub(in crate::postgres) async fn faults(link: &Link, schema: &str) -> Result<Vec<String>, Failure> {
    let (mut faults, lost) = unlike_made(objects(link, schema).await?);
    faults.extend(rows::faults(link, schema, &lost).await?);
    let applied = link.rows(&link.sql.migrations, &[]).await?;
    let known = (1..).zip(MIGRATIONS.iter().map(|(name, _)| *name));
    let is_known = applied
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect::<Result<Vec<(i64, &str)>, Failure>>()?
        .into_iter()
        .eq(known);
    if !is_known {
        faults.push("schema_migrations does not list the migrations of this program".to_owned());
    }
    Ok(faults)
}

async fn objects(link: &Link, schema: &str) -> Result<Objects, Failure> {
    let mut objects = Objects::new();
    for row in link.rows(OBJECTS, &[(&schema, Type::TEXT)]).await? {
        objects.insert((row.try_get(0)?, row.try_get(1)?), row.try_get(2)?);
    }
    Ok(objects)
}

/// What is not as it was made, and the tables and sequences that are not there, or not
/// all of them.
fn unlike_made(mut found: Objects) -> (Vec<String>, BTreeSet<String>) {
    let (mut faults, mut lost) = (Vec::new(), BTreeSet::new());
    for line in MADE.lines() {
        let mut parts = line.splitn(3, '\t').map(str::to_owned);
        let (Some(kind), Some(name)) = (parts.next(), parts.next()) else { continue };
        let how = parts.next().unwrap_or_default();
        match found.remove(&(kind.clone(), name.clone())) {
            Some(other) if other == how => {}
            Some(_) => faults.push(format!("the {kind} {name} is not as this program makes it")),
            None => {
                if ["table", "column", "sequence"].contains(&kind.as_str()) {
                    lost.extend(name.split('.').next().map(str::to_owned));
                }
                faults.push(format!("the {kind} {name} is missing"));
            }
        }
    }
    let more = found.into_keys();
    faults
        .extend(more.map(|(kind, name)| format!("the {kind} {} is none of ours", escape_for_display(&name))));
    (faults, lost)
}

#[cfg(test)]
mod tests;

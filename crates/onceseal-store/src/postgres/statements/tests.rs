//! Every statement is understood by a server, and planned as it has to be.

use onceseal_servers::{Database, server};

use super::Statements;
use crate::postgres::connect::Connector;
use crate::postgres::schema;

fn database() -> Database {
    let database = server().new_database();
    let url = database.url().parse().expect("an address");
    let connector = Connector::new(url).expect("a connector");
    let link = connector.connect().expect("connected");
    schema::migrate(&connector, &link, 0).expect("the schema");
    database
}

/// What the server would do, whatever is bound.
fn plan(database: &Database, sql: &str) -> String {
    let parameters = (1..50).take_while(|n| sql.contains(&format!("${n}"))).map(|_| "NULL");
    let bound = parameters.collect::<Vec<_>>().join(", ");
    let bound = if bound.is_empty() { bound } else { format!("({bound})") };
    database.sql(&format!(
        "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; \
         PREPARE asked AS {sql}; EXPLAIN (COSTS OFF) EXECUTE asked{bound}"
    ))
}

/// So much of everything that whoever reads all of it would notice.
const FILL: &str = "\
    INSERT INTO onceseal.tenants (tenant, tenant_id, blinding_key, created_at) \
        VALUES ('default', decode(repeat('01', 16), 'hex'), decode(repeat('01', 32), 'hex'), 0); \
    INSERT INTO onceseal.streams SELECT n, 1, n % 10 + 1, uuid_send(gen_random_uuid()), 1, \
        decode(repeat('01', 32), 'hex'), '\\x0102', '\\x0102' FROM generate_series(1, 20000) AS n; \
    INSERT INTO onceseal.events SELECT n, 1, 1, 0, decode(repeat('01', 16), 'hex'), 1, 1, '', '', '', NULL, \
        NULL, decode(repeat('01', 32), 'hex') FROM generate_series(1, 20000) AS n; \
    INSERT INTO onceseal.log SELECT 1, n, n, 1 FROM generate_series(1, 20000) AS n; \
    INSERT INTO onceseal.payloads SELECT n, 1, decode(repeat('01', 32), 'hex'), '{}' \
        FROM generate_series(1, 20000) AS n; \
    INSERT INTO onceseal.unsequenced (tenant, events) SELECT 1, decode(repeat('01', 16), 'hex') \
        FROM generate_series(1, 2000) AS n; \
    INSERT INTO onceseal.keys SELECT 1, n % 8, int8send(n), n, 0 FROM generate_series(1, 20000) AS n; \
    INSERT INTO onceseal.own_rows SELECT 1, n, '' FROM generate_series(1, 20000) AS n";

/// What a plan does that takes the longer the more there is.
fn faults(name: &str, plan: &str) -> Vec<String> {
    let lines: Vec<&str> = plan.lines().map(|line| line.trim_start_matches([' ', '-', '>'])).collect();
    // By the column that the index begins with.
    let is_led = |line: &str| ["(tenant = ", "(stream = ", "(id "].iter().any(|by| line.contains(by));
    let is_whole = |(n, line): &(usize, &&str)| {
        let next = lines.get(n + 1).copied().unwrap_or_default();
        let is_search = next.starts_with("Index Cond:") && is_led(next);
        line.starts_with("Seq Scan on")
            || line.contains("Index ") && line.contains(" Scan") && !is_search
            // What comes from several streams is in no order.
            || line.ends_with("Sort") && name != "wholes"
    };
    // There are a handful of migrations, and a tenant has an id of its own.
    let is_large =
        |line: &str| !line.contains("schema_migrations") && !line.contains("tenants_tenant_id_key");
    let found = lines.iter().enumerate().filter(is_whole).filter(|(_, line)| is_large(line));
    found.map(|(_, line)| (*line).to_owned()).collect()
}

#[test]
fn every_look_up_and_list_uses_an_index_and_sorts_nothing() {
    let database = database();
    database.sql(FILL);
    // Also before the server has looked at what there is.
    for _ in 0..2 {
        for (name, sql) in Statements::new("onceseal").all() {
            // Two look for anything or the last one, the others at everything, or all of a tenant.
            let is_of_few = !["any_stream", "block", "counts", "forget_arriving"].contains(&name);
            if is_of_few && !["stray_", "given_"].iter().any(|kind| name.starts_with(kind)) {
                let plan = plan(&database, sql);
                assert_eq!(faults(name, &plan), Vec::<String>::new(), "{name}:\n{plan}");
            }
        }
        database.sql("ANALYZE");
    }
    for scans in [
        "SELECT id FROM onceseal.streams WHERE open = $1",
        "SELECT index FROM onceseal.keys WHERE stream > $1",
        "SELECT sequence FROM onceseal.events WHERE stream = $1 ORDER BY hash",
    ] {
        let plan = plan(&database, scans);
        assert_ne!(faults("", &plan), Vec::<String>::new(), "the test cannot see a scan:\n{plan}");
    }
}

/// Tables of which a statement reads more than a few rows.
fn read_much_of(database: &Database, statement: &str) -> String {
    let read = "SELECT relname, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) \
                FROM pg_stat_xact_user_tables WHERE schemaname = 'onceseal' \
                AND coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) > 50";
    // The sixth time a plan for whatever is bound may be used.
    let again = format!("SELECT count(*) FROM ({statement}) AS once;").repeat(6);
    let out = database.sql(&format!("BEGIN; {again} {read}; ROLLBACK"));
    out.lines().filter(|line| line.contains('|')).collect::<Vec<_>>().join("\n")
}

#[test]
fn functions_read_the_rows_that_they_are_asked_for_and_no_others() {
    let database = database();
    database.sql(FILL);
    // Of one stream that is there: it changes, loses its key, and one waits no more.
    let hash = "decode(repeat('01', 32), 'hex')";
    let save = format!(
        "SELECT onceseal.save(1, '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', \
         '{{7}}', '{{1}}', '{{1}}', ARRAY[{hash}], ARRAY[''::bytea], ARRAY[''::bytea], \
         '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', \
         '{{}}', '{{}}', '{{}}', '{{}}', '{{7}}', ARRAY[int8send(7)], '{{7}}', \
         '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', 0, '{{}}', '{{}}', '')"
    );
    let load = "SELECT * FROM onceseal.load_streams(1, '{8}', ARRAY[(SELECT name FROM onceseal.streams \
                WHERE id = 7)])";
    let name = "(SELECT name FROM onceseal.streams WHERE id = 7)";
    let texts = format!("SELECT * FROM onceseal.load_payloads(1, '{{8}}', ARRAY[{name}], '{{1}}')");
    let keys = "SELECT * FROM onceseal.find_keys(1, '{1,2}', ARRAY[int8send(1), int8send(1)], \
                ARRAY[int8send(9000), int8send(9000)], '{5,3}')";
    let event = "SELECT * FROM onceseal.find_event(1, 7::int2, int8send(7))";
    assert_eq!(database.sql(&format!("SELECT count(*) FROM ({texts}) AS found")), "1");
    assert_eq!(database.sql(&format!("SELECT array_agg(n) FROM ({keys}) AS found")), "{1,1,1,1,1,2,2,2}");
    assert_eq!(database.sql(&format!("SELECT count(*) FROM ({event}) AS found")), "1");
    let statements = [&save, load, &texts, keys, event, "SELECT * FROM onceseal.facts(1, 2)"];
    for _ in 0..2 {
        for statement in statements {
            assert_eq!(read_much_of(&database, statement), "", "{statement}");
        }
        database.sql("ANALYZE");
    }
    let scan = "SELECT id FROM onceseal.streams WHERE open = ''";
    assert!(read_much_of(&database, scan).starts_with("streams|"), "the test cannot see a scan");
}

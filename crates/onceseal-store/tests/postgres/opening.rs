//! Opening: many at once make one schema and one tenant, and a newer schema is
//! left as it is.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

use onceseal_core::code::Code;
use onceseal_servers::{Database, server};
use onceseal_store::{Options, Store};

use crate::base::*;

#[test]
fn many_that_open_an_empty_database_at_once_find_one_schema_and_one_tenant() {
    const MANY: usize = 6;
    for _ in 0..4 {
        let database = server().new_database();
        let together = Barrier::new(MANY);
        let tenants: BTreeSet<[u8; 16]> = thread::scope(|scope| {
            let (together, database) = (&together, &database);
            let threads: Vec<_> = (0..MANY)
                .map(|n| {
                    scope.spawn(move || {
                        together.wait();
                        let store = open(database, &format!("opener{n}"));
                        assert_eq!(code(&store.run(note(&n.to_string()))), None);
                        store.tenant().id
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert_eq!(tenants.len(), 1);
        let count = |table: &str| database.sql(&format!("SELECT count(*) FROM onceseal.{table}"));
        assert_eq!((count("schema_migrations"), count("tenants")), ("1".to_owned(), "1".to_owned()));
        let store = open(&database, "one");
        assert_eq!(log(&store).len(), MANY + 1, "each has written, and one made the store");
        assert_sound(&store);
    }
}

/// All that is there.
fn contents(database: &Database) -> String {
    let tables =
        database.sql("SELECT table_name FROM information_schema.tables WHERE table_schema = 'onceseal'");
    let rows = |table: &str| format!("SELECT '{table}', t::text FROM onceseal.{table} AS t");
    let all = tables.lines().map(rows).collect::<Vec<_>>().join(" UNION ALL ");
    database.sql(&format!("{all} ORDER BY 1, 2"))
}

#[test]
fn a_newer_schema_is_refused_untouched_also_by_who_has_it_open() {
    let database = server().new_database();
    let one = open(&database, "one");
    let taken = started(&one, "k", 1);
    database.sql("INSERT INTO onceseal.schema_migrations VALUES (2, 'second', 0)");
    let before = contents(&database);
    for answer in [one.run(reserve("new", 1)), one.run(failed(&taken)), one.run(note("x"))] {
        refused(answer, Code::StoreForeign);
    }
    let read = one.read(|snapshot| snapshot.newest());
    assert_eq!(read.expect_err("not as it was opened").code(), Code::StoreForeign);
    let address = named(&database, "two");
    let opened = Store::postgres(address.clone(), &Options::default()).err().expect("refused");
    assert_eq!(opened.code(), Code::StoreForeign, "{opened}");
    let reader = Store::postgres_reader(address, &Options::default()).err().expect("refused");
    assert_eq!(reader.code(), Code::StoreForeign, "{reader}");
    one.close();
    assert_eq!(contents(&database), before);
}

#[test]
fn a_schema_of_another_program_is_refused_untouched() {
    let database = server().new_database();
    database.sql("CREATE SCHEMA onceseal; CREATE TABLE onceseal.orders (n int); INSERT INTO onceseal.orders VALUES (1)");
    let before = contents(&database);
    let opened = Store::postgres(named(&database, "one"), &Options::default()).err().expect("refused");
    assert_eq!(opened.code(), Code::StoreForeign, "{opened}");
    assert_eq!(contents(&database), before);
}

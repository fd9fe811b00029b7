//! What stands beside the journal: whose the store is, and which schema it has.

use crate::ground::{Ground, audited, codes};

/// Closes the store after each change, so that the audit reads it as a stranger.
fn found_after(sql: &str) -> Vec<&'static str> {
    let ground = Ground::new();
    let control = ground.open().expect("a store");
    assert!(audited(&control).is_clean());
    drop(control);
    ground.intruder().execute_batch(sql).expect("whoever can write the file");
    codes(&audited(&ground.read()))
}

#[test]
fn another_owner_than_the_one_who_made_the_store_is_found() {
    for owner in ["'os:eve'", "'host:eve'", "''", "NULL"] {
        let sql = format!("UPDATE tenants SET owner = {owner}");
        assert_eq!(found_after(&sql), ["row_differs"], "{owner}");
    }
}

#[test]
fn a_record_of_migrations_that_is_not_this_programs_is_found() {
    for sql in [
        "UPDATE schema_migrations SET name = 'other' WHERE id = 1",
        "DELETE FROM schema_migrations WHERE id = 2",
        "INSERT INTO schema_migrations (id, name, applied_at) VALUES (9, 'more', 0)",
    ] {
        assert_eq!(found_after(sql), ["integrity"], "{sql}");
    }
}

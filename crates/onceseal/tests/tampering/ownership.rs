//! What stands beside the journal: whose the store is, and which schema it has.

use onceseal::Control;

use crate::ground::{Ground, audited, codes};
use crate::sample::{policy, wait};

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
fn a_maker_that_was_taken_away_is_found_also_once_another_has_made_the_store_anew() {
    for to in [2, 77] {
        let ground = Ground::new();
        let mut opening = ground.opening();
        opening.settings.tenant = "other".to_owned();
        let control = ground.open().expect("a store");
        wait(control.activate(policy(""), false, None)).expect("active");
        drop(Control::found(&opening).expect("another tenant"));
        assert!(audited(&control).is_clean());
        drop(control);
        let sql = format!(
            "UPDATE streams SET tenant = {to}, name = randomblob(16) WHERE kind = 5 AND tenant = 1;
             UPDATE tenants SET owner = 'os:eve' WHERE id = 1"
        );
        ground.intruder().execute_batch(&sql).expect("whoever can write the file");
        assert!(codes(&audited(&ground.read())).contains(&"event_missing"), "to {to}");
        std::fs::remove_dir_all(ground.marks()).expect("no mark");
        let anew = ground.open().expect("a store");
        assert!(codes(&audited(&anew)).contains(&"event_missing"), "to {to}");
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

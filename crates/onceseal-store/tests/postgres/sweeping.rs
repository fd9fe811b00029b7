//! One process sweeps at a time, and one that is gone keeps nobody from it for long.

use std::panic::{AssertUnwindSafe, catch_unwind};

use onceseal_core::code::Code;
use onceseal_servers::{Database, server};
use onceseal_store::{Store, StoreError};

use crate::base::*;

fn sweeps(store: &Store) -> bool {
    store.try_sweep(|| Ok(())).expect("asked").is_some()
}

fn turns(database: &Database) -> String {
    database.sql("SELECT count(*) FROM onceseal.sweeps")
}

#[test]
fn one_process_sweeps_at_a_time() {
    let database = server().new_database();
    let (one, two) = (open(&database, "one"), open(&database, "two"));
    let beside = one.try_sweep(|| Ok((sweeps(&one), sweeps(&two)))).expect("asked");
    assert_eq!(beside, Some((false, false)), "it is left to the one");
    assert_eq!(turns(&database), "0", "he has given it up");
    assert!(sweeps(&two) && sweeps(&one));
    // Also one that fails.
    let failed = one.try_sweep(|| Err::<(), _>(StoreError::new(Code::StoreBusy)));
    assert_eq!(failed.expect_err("told").code(), Code::StoreBusy);
    assert!(sweeps(&two));
}

#[test]
fn who_is_gone_while_he_sweeps_keeps_others_from_it_for_a_minute() {
    let database = server().new_database();
    let (one, two) = (open(&database, "one"), open(&database, "two"));
    let later = |by: &str| drop(database.sql(&format!("UPDATE onceseal.sweeps SET until = until - {by}")));
    let gone = catch_unwind(AssertUnwindSafe(|| one.try_sweep(|| -> Result<(), _> { panic!("gone") })));
    assert!(gone.is_err() && turns(&database) == "1");
    assert!(!sweeps(&two));
    later("30000000");
    assert!(!sweeps(&two));
    later("30000000");
    assert!(sweeps(&two));
    // Who is late takes away the turn of no other.
    let late = one.try_sweep(|| Ok(database.sql("UPDATE onceseal.sweeps SET until = until + 1000000")));
    assert!(late.is_ok() && turns(&database) == "1");
    // A turn that ends in many years was taken before the clock went back.
    database.sql("UPDATE onceseal.sweeps SET until = 4102444800000000");
    assert!(sweeps(&two));
}

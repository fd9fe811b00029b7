//! Places that are broken: what is opened is not what was meant.

use onceseal_core::journal::Row;
use onceseal_core::stream::Tenant;
use onceseal_store::Options;
use onceseal_store::conformance::InMemory;

use crate::break_it::saving;
use crate::{Place, broken};

broken! {
    what_was_acknowledged_is_forgotten: [
        what_was_acknowledged_is_there_after_reopening, what_was_renewed_is_renewed_after_reopening,
        a_key_stays_blocked_after_reopening, two_openings_share_one_truth,
    ], |place| Place { subject: Box::new(InMemory), durable: Some(true), ..place };

    any_name_is_a_tenants: [
        a_tenant_has_a_name_of_its_grammar,
    ], |place| Place { options: |options| match Tenant::name_is_valid(&options.tenant) {
        true => options.clone(),
        false => Options { tenant: "other".to_owned(), ..options.clone() },
    }, ..place };

    tenants_share_everything_in_a_file: [
        tenants_do_not_see_each_other,
    ], |place| Place { options: |options| Options { tenant: "all".to_owned(), ..options.clone() }, ..place };

    saving_is_forgotten_in_a_file: [
        a_closed_store_runs_what_waits_and_takes_no_more,
    ], |place| Place { parts: |parts| saving(parts, |changes| {
        if changes.rows.iter().any(|change| matches!(change.after.row, Row::Effect(_))) {
            changes.rows.clear();
        }
    }), ..place };
}

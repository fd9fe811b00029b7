//! Numbers that the server's sequences give. A restore or a switch of replication
//! may bring rows along and leave sequences where they were: then numbers are given
//! that are taken, and whatever is to be saved under them fails.

use onceseal_core::code::Code;

use super::failure::Failure;
use super::link::Link;
use super::statements::Statements;
use crate::columns::integer;
use crate::error::StoreError;

/// Streams are numbered by so many: what the sequence of blocks gives is the
/// number of a block.
pub(super) const BLOCK: i64 = 1_000;
/// A sequence with fewer numbers left is near its end.
const FEW: i64 = 1_000_000;

/// The number of the next block, all of whose numbers are free.
pub(super) async fn next_block(link: &Link) -> Result<i64, Failure> {
    let rows = link.rows(&link.sql.block, &[]).await?;
    let row = rows.first().ok_or_else(taken)?;
    let (block, highest) = (integer(row, 0, "stream_blocks")?, integer(row, 1, "streams.id")?);
    // A block that another got later cannot have been seen here.
    match block.checked_add(1).and_then(|next| next.checked_mul(BLOCK)) {
        Some(_) if highest < block * BLOCK => Ok(block),
        _ => Err(taken().into()),
    }
}

/// What whoever got such a number is told.
pub(super) fn taken() -> StoreError {
    let what = "the server numbers by a sequence that is behind its table, or at its end";
    StoreError::with(Code::Corrupt, what)
}

/// A sequence, and where its numbers stand.
pub(super) struct Numbering {
    pub(super) sequence: &'static str,
    pub(super) table: &'static str,
    /// The number it gave last, and the highest that is in the table.
    pub(super) given: fn(&Statements) -> &str,
    /// One of its numbers stands for so many in the table.
    per: i64,
    /// Its last number that can be used.
    end: i64,
}

pub(super) const NUMBERINGS: [Numbering; 3] = [
    Numbering {
        sequence: "stream_blocks",
        table: "streams",
        given: |sql| &sql.given_blocks,
        per: BLOCK,
        end: i64::MAX / BLOCK - 1,
    },
    Numbering {
        sequence: "tenants_id_seq",
        table: "tenants",
        given: |sql| &sql.given_tenants,
        per: 1,
        end: i32::MAX as i64,
    },
    Numbering {
        sequence: "unsequenced_id_seq",
        table: "unsequenced",
        given: |sql| &sql.given_unsequenced,
        per: 1,
        end: i64::MAX,
    },
];

impl Numbering {
    /// What is wrong with it and how that is put right, if something is: it gave `last`,
    /// and the highest number in its table is `highest`.
    pub(super) fn fault(&self, schema: &str, last: i64, highest: i64) -> Option<String> {
        let Numbering { sequence, table, per, end, .. } = *self;
        let used = highest.max(0) / per;
        let is_near = |number: i64| end.saturating_sub(number) < FEW;
        let wrong = match () {
            () if is_near(used) => {
                return Some(format!(
                    "{table} has the number {highest}, behind which there are hardly any left for the sequence \
                     {sequence}: restore a backup from before it came there"
                ));
            }
            () if last < used => "is behind its table, as where rows came from elsewhere without it",
            () if is_near(last) => "is near its end",
            () => return None,
        };
        let to = used.max(1);
        Some(format!(
            "the sequence {sequence} of {table} {wrong}; stop all programs, then \
             SELECT setval('{schema}.{sequence}', {to})"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_is_named_where_it_is_behind_or_near_its_end_with_what_puts_it_right() {
        let [blocks, tenants, _] = NUMBERINGS;
        let fault = |numbering: &Numbering, last, highest| numbering.fault("s", last, highest);
        for (last, highest) in [(0, 0), (1, 1_999), (7, 7_000), (9, 7_000), (i64::MAX / 1_000 - FEW - 1, 0)] {
            assert_eq!(fault(&blocks, last, highest), None, "{last}, {highest}");
        }
        for (last, highest, to) in [(0, 1_000, 1), (6, 7_000, 7), (i64::MAX, 7_000, 7), (i64::MAX, 0, 1)] {
            let fault = fault(&blocks, last, highest).expect("named");
            assert!(fault.ends_with(&format!("SELECT setval('s.stream_blocks', {to})")), "{fault}");
        }
        assert_eq!(fault(&tenants, 3, 3), None);
        assert!(fault(&tenants, 2, 3).expect("behind").ends_with("setval('s.tenants_id_seq', 3)"));
        let spent = fault(&tenants, i64::from(i32::MAX), i64::from(i32::MAX)).expect("spent");
        assert!(spent.contains("restore a backup"), "{spent}");
    }
}

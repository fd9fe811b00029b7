//! What commands want of a database, each thing once, and how it is asked for.

use onceseal_core::lock::Hold;
use onceseal_core::stream::StreamId;
use onceseal_core::view::{Range, Read};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::postgres::failure::Failure;
use crate::postgres::link::{Link, Parameter};
use crate::raw::Misshapen;

pub(super) fn wanted_streams(reads: &[&Read]) -> Vec<StreamId> {
    let mut streams: Vec<StreamId> = reads
        .iter()
        .filter_map(|read| match read {
            Read::Stream(stream) => Some(*stream),
            _ => None,
        })
        .collect();
    streams.sort_unstable();
    streams.dedup();
    streams
}

pub(super) fn wanted_payloads(reads: &[&Read]) -> Vec<(StreamId, u64)> {
    let wanted = reads.iter().filter_map(|read| match read {
        Read::Payload(stream, sequence) => Some((*stream, *sequence)),
        _ => None,
    });
    let mut wanted: Vec<(StreamId, u64)> = wanted.collect();
    wanted.sort_unstable();
    wanted.dedup();
    wanted
}

pub(super) fn wanted_ranges<'r>(reads: &[&'r Read]) -> Vec<&'r Range> {
    let mut wanted = Vec::new();
    for read in reads {
        match read {
            Read::Range(range) if !wanted.contains(&range) => wanted.push(range),
            _ => {}
        }
    }
    wanted
}

pub(super) async fn take_locks(
    link: &Link,
    waited: &[(i64, Hold)],
    tried: &[(i64, Hold)],
) -> Result<Vec<bool>, Failure> {
    let columns = |locks: &[(i64, Hold)]| -> (Vec<i64>, Vec<bool>) {
        locks.iter().map(|(number, hold)| (*number, *hold == Hold::Exclusive)).unzip()
    };
    let ((waited, waited_alone), (tried, tried_alone)) = (columns(waited), columns(tried));
    let parameters: [Parameter<'_>; 4] = [
        (&waited, Type::INT8_ARRAY),
        (&waited_alone, Type::BOOL_ARRAY),
        (&tried, Type::INT8_ARRAY),
        (&tried_alone, Type::BOOL_ARRAY),
    ];
    let rows = link.rows(&link.sql.lock, &parameters).await?;
    Ok(rows.first().ok_or(Misshapen("locks"))?.try_get(0)?)
}

pub(super) async fn find_ranges(link: &Link, tenant: i32, ranges: &[&Range]) -> Result<Vec<Row>, Failure> {
    let indexes: Vec<i16> = ranges.iter().map(|range| i16::from(range.index.number())).collect();
    let (low, high): (Vec<&[u8]>, Vec<&[u8]>) =
        ranges.iter().map(|range| (&range.from[..], &range.to[..])).unzip();
    let most: Vec<i64> = ranges.iter().map(|range| i64::try_from(range.limit).unwrap_or(i64::MAX)).collect();
    let parameters: [Parameter<'_>; 5] = [
        (&tenant, Type::INT4),
        (&indexes, Type::INT2_ARRAY),
        (&low, Type::BYTEA_ARRAY),
        (&high, Type::BYTEA_ARRAY),
        (&most, Type::INT8_ARRAY),
    ];
    link.rows_for(!ranges.is_empty(), &link.sql.ranges, &parameters).await
}

pub(super) async fn find_payloads(
    link: &Link,
    tenant: i32,
    wanted: &[(StreamId, u64)],
) -> Result<Vec<Row>, Failure> {
    let kinds: Vec<i16> = wanted.iter().map(|(stream, _)| i16::from(stream.kind.number())).collect();
    let names: Vec<&[u8]> = wanted.iter().map(|(stream, _)| &stream.name[..]).collect();
    let sequences: Vec<i64> =
        wanted.iter().map(|(_, sequence)| i64::try_from(*sequence).unwrap_or(i64::MAX)).collect();
    let parameters: [Parameter<'_>; 4] = [
        (&tenant, Type::INT4),
        (&kinds, Type::INT2_ARRAY),
        (&names, Type::BYTEA_ARRAY),
        (&sequences, Type::INT8_ARRAY),
    ];
    link.rows_for(!wanted.is_empty(), &link.sql.payloads, &parameters).await
}

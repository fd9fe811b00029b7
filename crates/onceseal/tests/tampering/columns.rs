//! Every column of every row changed, one at a time.

use onceseal::Control;
use onceseal::core::effect::EffectRow;
use onceseal::core::journal::Row;
use onceseal::core::stream::{StreamId, StreamKind};
use onceseal::core::view::Loaded;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::ground::{Places, audited};
use crate::sample::sample;

/// All rows of a table.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Value>>,
}

impl Table {
    pub(crate) fn read(connection: &Connection, name: &'static str) -> Table {
        let mut statement = connection.prepare(&format!("SELECT * FROM {name}")).expect("a table");
        let columns: Vec<_> = statement.column_names().map(|name| format!("\"{name}\"")).collect();
        let row = |row: &rusqlite::Row<'_>| (0..columns.len()).map(|at| row.get(at)).collect();
        let rows = statement.query_map([], row).expect("rows").collect::<Result<_, _>>().expect("values");
        Table { name, columns, rows }
    }

    pub(crate) fn place(&self, column: &str) -> usize {
        self.columns.iter().position(|name| name.trim_matches('"') == column).expect("a column")
    }

    fn condition(&self, from: usize) -> String {
        let terms = self.columns.iter().zip(from..).map(|(column, at)| format!("{column} IS ?{at}"));
        terms.collect::<Vec<_>>().join(" AND ")
    }

    /// Puts another value into one column of one row; `false` if the database
    /// does not take it.
    pub(crate) fn set(&self, connection: &Connection, row: &[Value], column: usize, value: &Value) -> bool {
        let sql =
            format!("UPDATE {} SET {} = ?1 WHERE {}", self.name, self.columns[column], self.condition(2));
        let values = std::iter::once(value).chain(row);
        matches!(connection.execute(&sql, params_from_iter(values)), Ok(1))
    }

    pub(crate) fn delete(&self, connection: &Connection, row: &[Value]) {
        let sql = format!("DELETE FROM {} WHERE {}", self.name, self.condition(1));
        assert_eq!(connection.execute(&sql, params_from_iter(row)), Ok(1));
    }

    pub(crate) fn insert(&self, connection: &Connection, row: &[Value]) {
        let marks = vec!["?"; row.len()].join(", ");
        let sql = format!("INSERT INTO {} VALUES ({marks})", self.name);
        assert_eq!(connection.execute(&sql, params_from_iter(row)), Ok(1));
    }

    /// Where a row stands, as findings name it.
    pub(crate) fn places(&self, row: &[Value], streams: &[(i64, StreamId)]) -> Places {
        let integer = |column: &str| match row[self.place(column)] {
            Value::Integer(n) => n,
            _ => i64::MIN,
        };
        let mut places = Places::default();
        match self.name {
            "events" => {
                places.positions.push(integer("position"));
                places.numbers.push(integer("stream"));
            }
            "payloads" => places.positions.push(integer("event")),
            "keys" => places.numbers.push(integer("stream")),
            _ => places.numbers.push(integer("id")),
        }
        if self.name == "streams"
            && let Value::Blob(name) = &row[self.place("name")]
        {
            places.streams.extend(stream_id(integer("kind"), name));
        }
        let named = streams.iter().filter(|(number, _)| places.numbers.contains(number));
        places.streams.extend(named.map(|(_, stream)| *stream));
        places
    }
}

pub(crate) fn stream_id(kind: i64, name: &[u8]) -> Option<StreamId> {
    let kind = StreamKind::ALL.iter().copied().find(|known| i64::from(known.number()) == kind)?;
    Some(StreamId { kind, name: name.try_into().ok()? })
}

/// Numbers of streams and what they are called.
pub(crate) fn streams(connection: &Connection) -> Vec<(i64, StreamId)> {
    let mut statement = connection.prepare("SELECT id, kind, name FROM streams").expect("streams");
    let stream = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get::<_, Vec<u8>>(2)?));
    let found = statement.query_map([], stream).expect("rows").map(|row| row.expect("values"));
    found.filter_map(|(id, kind, name)| Some((id, stream_id(kind, &name)?))).collect()
}

/// Other values than this one; which byte of a blob differs varies by `turn`.
fn others(value: &Value, turn: usize) -> Vec<Value> {
    match value {
        Value::Integer(n) => vec![Value::Integer(n + 1), Value::Integer(-n - 1)],
        Value::Blob(bytes) => {
            let mut flipped = bytes.clone();
            let place = turn * 7 % bytes.len().max(1);
            match flipped.get_mut(place) {
                Some(byte) => *byte ^= 1,
                None => flipped.push(0),
            }
            let cut = match turn % 2 {
                0 => [&bytes[..], &[0]].concat(),
                _ => bytes[..bytes.len().saturating_sub(1)].to_vec(),
            };
            let mut others = vec![flipped, cut];
            others.retain(|other| other != bytes);
            others.into_iter().map(Value::Blob).chain([Value::Null]).collect()
        }
        Value::Text(text) => vec![Value::Text(format!("{text} ")), Value::Text(text[1..].to_owned())],
        Value::Null => vec![Value::Blob(vec![7; 32])],
        Value::Real(x) => vec![Value::Real(x + 1.0)],
    }
}

/// The one thing outside the fold: a lease moved within its bounds.
fn only_moves_a_lease(before: &Loaded, after: &Loaded) -> bool {
    let row = |loaded: &Loaded| match loaded {
        Loaded::Row(stored) => match &stored.row {
            Row::Effect(row) => Some(row.clone()),
            _ => None,
        },
        _ => None,
    };
    let (Some(before), Some(after)) = (row(before), row(after)) else { return false };
    after.lease_until <= Some(after.deadline)
        && EffectRow { lease_until: before.lease_until, ..after.clone() } == before
        && after != before
}

fn load(control: &Control, stream: Option<&StreamId>) -> Loaded {
    let Some(stream) = stream else { return Loaded::Absent };
    control.store().read(|snapshot| snapshot.stream(stream)).expect("readable")
}

fn every_column_of(name: &'static str) {
    let ground = sample();
    let control = ground.open().expect("opens");
    let intruder = ground.intruder();
    let streams = streams(&intruder);
    let table = Table::read(&intruder, name);
    assert!(!table.rows.is_empty());
    let (mut done, mut refused) = (0, 0);
    for column in 0..table.columns.len() {
        for (turn, row) in table.rows.iter().enumerate() {
            for value in others(&row[column], turn) {
                let mut changed = row.clone();
                changed[column] = value.clone();
                let mut places = table.places(row, &streams);
                let after = table.places(&changed, &streams);
                let stream = places.streams.first().copied();
                let before = load(&control, stream.as_ref());
                if !table.set(&intruder, row, column, &value) {
                    refused += 1;
                    continue;
                }
                done += 1;
                let report = audited(&control);
                let what = format!("{name}.{} of {places:?} set to {value:?}", table.columns[column]);
                if !(report.is_clean() && only_moves_a_lease(&before, &load(&control, stream.as_ref()))) {
                    places.positions.extend(after.positions);
                    places.streams.extend(after.streams);
                    places.numbers.extend(after.numbers);
                    places.found(&what, &report);
                }
                assert!(table.set(&intruder, &changed, column, &row[column]), "{what}: put back");
            }
        }
    }
    assert_eq!(audited(&control).findings, [], "all was put back");
    assert!(done > refused, "{done} changes were made, {refused} not taken");
}

#[test]
fn every_column_of_every_event() {
    every_column_of("events");
}

#[test]
fn every_column_of_every_stream() {
    every_column_of("streams");
}

#[test]
fn every_column_of_every_key() {
    every_column_of("keys");
}

#[test]
fn every_column_of_every_payload() {
    every_column_of("payloads");
}

/// What stands in `tenants` is read when a store is opened, so each change is
/// followed by an opening.
#[test]
fn every_column_of_the_tenant() {
    let ground = sample();
    let table = Table::read(&ground.intruder(), "tenants");
    let row = &table.rows[0];
    for (column, name) in table.columns.iter().enumerate() {
        for value in others(&row[column], 3) {
            let copy = ground.copy();
            if !table.set(&copy.intruder(), row, column, &value) {
                continue;
            }
            let mut opening = copy.opening();
            if let (Value::Text(name), "\"tenant\"") = (&value, name.as_str()) {
                opening.settings.tenant.clone_from(name);
            }
            match Control::found(&opening) {
                // A tenant without a name, an id or a key is none.
                Err(error) => {
                    assert!(["store_failed", "corrupt", "out_of_bounds"].contains(&error.code()), "{error}")
                }
                Ok(control) => {
                    let report = audited(&control);
                    // Nothing recorded is derived from when the tenant was made.
                    let made = name == "\"created_at\"";
                    assert_eq!(report.is_clean(), made, "{name} set to {value:?}");
                }
            }
        }
    }
}

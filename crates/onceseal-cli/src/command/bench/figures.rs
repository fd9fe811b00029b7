//! What a round measured: medians, JSON and the table.

use onceseal::core::json::{self, Limits, Object, Value};

/// One figure: its name in JSON, its heading and its width in the table, and
/// how many decimals it has.
struct Column {
    name: &'static str,
    heading: &'static str,
    decimals: usize,
}

const COLUMNS: [Column; 8] = [
    Column { name: "callers", heading: "callers", decimals: 0 },
    Column { name: "actions_per_s", heading: "actions/s", decimals: 0 },
    Column { name: "p50_us", heading: "p50 us", decimals: 0 },
    Column { name: "p99_us", heading: "p99 us", decimals: 0 },
    Column { name: "raw_ratio", heading: "of raw", decimals: 2 },
    Column { name: "bytes_per_action", heading: "bytes/action", decimals: 0 },
    Column { name: "audited_per_s", heading: "audited/s", decimals: 0 },
    Column { name: "memory_mib", heading: "memory MiB", decimals: 0 },
];

/// The figures of one round, in the order of the columns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figures(pub(super) [f64; COLUMNS.len()]);

impl Figures {
    /// The median of each figure, of one round at least.
    pub(super) fn median(rounds: &[Figures]) -> Figures {
        Figures(std::array::from_fn(|at| {
            let mut values: Vec<f64> = rounds.iter().map(|round| round.0[at]).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        }))
    }

    fn json(&self) -> Value {
        let mut object = Object::new();
        for (column, figure) in COLUMNS.iter().zip(self.0) {
            let scale = 10_f64.powi(column.decimals as i32);
            let rounded = Value::number((figure * scale).round() / scale);
            object.insert(column.name, rounded.unwrap_or(Value::Null));
        }
        Value::Object(object)
    }

    /// Those of the first row that [`document`] wrote.
    pub(super) fn read(document: &[u8]) -> Option<Figures> {
        let document = json::read(document.trim_ascii(), &Limits::RESULT).ok()?;
        let row = document.as_object()?.get("figures")?.as_list()?.first()?.as_object()?;
        let mut figures = Figures([0.0; COLUMNS.len()]);
        for (column, figure) in COLUMNS.iter().zip(&mut figures.0) {
            *figure = match row.get(column.name)? {
                Value::Integer(n) => *n as f64,
                Value::Float(x) => *x,
                _ => return None,
            };
        }
        Some(figures)
    }
}

/// What a process of the measurement says went wrong.
pub(super) fn error_of(stderr: &[u8]) -> Option<String> {
    let line = stderr.trim_ascii().rsplit(|byte| *byte == b'\n').next()?;
    let document = json::read(line, &Limits::RESULT).ok()?;
    let error = document.as_object()?.get("error")?.as_object()?;
    error.get("message")?.as_text().map(str::to_owned)
}

pub(super) fn document(rows: &[Figures]) -> Object {
    let mut object = Object::new();
    object.insert("figures", Value::List(rows.iter().map(Figures::json).collect()));
    object
}

pub(super) fn table(rows: &[Figures]) -> String {
    let mut text = COLUMNS.map(|column| column.heading).join("  ");
    text.push('\n');
    for row in rows {
        let cells = COLUMNS.iter().zip(row.0).map(|(column, figure)| {
            let width = column.heading.len();
            // A server is not held against a file.
            if column.name == "raw_ratio" && figure == 0.0 {
                return format!("{:>width$}", "-");
            }
            format!("{figure:width$.decimals$}", decimals = column.decimals)
        });
        text.push_str(&cells.collect::<Vec<_>>().join("  "));
        text.push('\n');
    }
    text.push_str("synchronous=FULL, full evidence, audited clean after each round; medians.\n");
    text
}

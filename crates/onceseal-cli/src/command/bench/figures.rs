//! What was measured: medians, JSON and tables.

use onceseal::core::json::{self, Limits, Object, Value};

/// One figure: its name in JSON, its heading in the table, and how many decimals
/// it has. A heading that ends with `?` is of a figure that is not always measured.
pub(super) struct Column(pub(super) &'static str, pub(super) &'static str, pub(super) usize);

/// What the figures of a row are, in their order.
pub(super) struct Columns<const N: usize>(pub(super) [Column; N]);

/// The figures of a row; what is not measured is 0.
pub(super) type Row<const N: usize> = [f64; N];

impl<const N: usize> Columns<N> {
    pub(super) fn object(&self, row: &Row<N>) -> Object {
        let mut object = Object::new();
        for (Column(name, _, decimals), figure) in self.0.iter().zip(row) {
            let scale = 10_f64.powi(*decimals as i32);
            let rounded = Value::number((figure * scale).round() / scale);
            object.insert(*name, rounded.unwrap_or(Value::Null));
        }
        object
    }

    /// The document with these rows under a name.
    pub(super) fn document(&self, name: &str, rows: &[Row<N>]) -> Object {
        let mut object = Object::new();
        object.insert(name, Value::List(rows.iter().map(|row| self.object(row).into()).collect()));
        object
    }

    /// The first row of such a document.
    pub(super) fn read(&self, name: &str, document: &[u8]) -> Option<Row<N>> {
        let document = json::read(document.trim_ascii(), &Limits::RESULT).ok()?;
        let object = document.as_object()?.get(name)?.as_list()?.first()?.as_object()?;
        let mut row = [0.0; N];
        for (Column(name, ..), figure) in self.0.iter().zip(&mut row) {
            *figure = match object.get(name)? {
                Value::Integer(n) => *n as f64,
                Value::Float(x) => *x,
                _ => return None,
            };
        }
        Some(row)
    }

    pub(super) fn table(&self, rows: &[Row<N>]) -> String {
        let headings = self.0.each_ref().map(|Column(_, heading, _)| heading.trim_end_matches('?'));
        let mut text = headings.join("  ") + "\n";
        for row in rows {
            let cells = self.0.iter().zip(headings).zip(row).map(|((column, heading), figure)| {
                let (width, decimals) = (heading.len(), column.2);
                if column.1.ends_with('?') && *figure == 0.0 {
                    return format!("{:>width$}", "-");
                }
                format!("{figure:width$.decimals$}")
            });
            text.push_str(&cells.collect::<Vec<_>>().join("  "));
            text.push('\n');
        }
        text
    }
}

/// The median of each figure, of one round at least.
pub(super) fn median<const N: usize>(rounds: &[Row<N>]) -> Row<N> {
    std::array::from_fn(|at| {
        let mut values: Vec<f64> = rounds.iter().map(|round| round[at]).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    })
}

/// What a process of the measurement says went wrong.
pub(super) fn error_of(stderr: &[u8]) -> Option<String> {
    let line = stderr.trim_ascii().rsplit(|byte| *byte == b'\n').next()?;
    let document = json::read(line, &Limits::RESULT).ok()?;
    let error = document.as_object()?.get("error")?.as_object()?;
    error.get("message")?.as_text().map(str::to_owned)
}

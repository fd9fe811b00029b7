//! Aligned columns for people.

use anstyle::Style;

/// A cell of a table.
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell { text, style: Style::new() }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::from(text.to_owned())
    }
}

impl Cell {
    /// A word for a state, in the colour of what it asks of people.
    pub(crate) fn state(word: &str) -> Cell {
        Cell { text: word.to_owned(), style: state_style(word) }
    }

    /// The same, marked if its time is over.
    pub(crate) fn over(mut self, is_over: bool) -> Cell {
        if is_over {
            self.text.push_str(" (over)");
        }
        self
    }
}

/// Green for what is well, yellow for what waits for somebody, red for a no.
pub(crate) fn state_style(word: &str) -> Style {
    use anstyle::AnsiColor as C;
    match word {
        "committed" | "completed" | "granted" | "allow" | "ok" | "intact" | "verified" => {
            C::Green.on_default()
        }
        "ambiguous" | "pending" | "waiting" | "approve" | "warn" | "unknown" | "paused"
        | "approval-needed" | "approval_needed" | "repairable" | "retryable" => C::Yellow.on_default().bold(),
        "failed" | "denied" | "blocked" | "deny" | "fail" | "broken" => C::Red.on_default(),
        _ => Style::new(),
    }
}

/// Rows under a head; every row has as many cells as the head.
pub(crate) struct Table {
    head: &'static [&'static str],
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) const fn new(head: &'static [&'static str]) -> Table {
        Table { head, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The lines, with styles that the output takes out where it has no colour.
    pub(crate) fn render(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].text.chars().count());
            cells.chain([self.head[column].chars().count()]).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let mut out = String::new();
        let head: Vec<Cell> = self
            .head
            .iter()
            .map(|name| Cell { text: (*name).to_owned(), style: Style::new().bold() })
            .collect();
        for row in std::iter::once(&head).chain(&self.rows) {
            line(row, &widths, &mut out);
        }
        out
    }
}

fn line(row: &[Cell], widths: &[usize], out: &mut String) {
    for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
        let Cell { text, style } = cell;
        out.push_str(&format!("{style}{text}{style:#}"));
        if at + 1 < row.len() {
            let gap = width - text.chars().count() + 2;
            out.extend(std::iter::repeat_n(' ', gap));
        }
    }
    out.push('\n');
}

/// Names and values under each other, two spaces in.
pub(crate) fn fields(fields: &[(&str, String)]) -> String {
    let width = fields.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    fields.iter().map(|(name, value)| format!("  {name:width$}  {value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_nothing_follows_the_last() {
        let mut table = Table::new(&["KEY", "STATE"]);
        table.row(vec!["refund:txn_1".into(), Cell::state("ambiguous")]);
        table.row(vec!["é".into(), "x".into()]);
        let plain = anstream::adapter::strip_str(&table.render()).to_string();
        assert_eq!(plain, "KEY           STATE\nrefund:txn_1  ambiguous\né             x\n");
    }
}

//! A row of SQLite as columns.

use rusqlite::Row;
use rusqlite::types::ValueRef;

use crate::columns::Columns;

impl Columns for Row<'_> {
    fn integer(&self, at: usize) -> Option<i64> {
        self.get(at).ok()
    }

    fn bytes(&self, at: usize) -> Option<&[u8]> {
        self.get_ref(at).ok()?.as_blob().ok()
    }

    fn text(&self, at: usize) -> Option<&str> {
        self.get_ref(at).ok()?.as_str().ok()
    }

    fn is_null(&self, at: usize) -> bool {
        matches!(self.get_ref(at), Ok(ValueRef::Null))
    }
}

//! A row of PostgreSQL as columns.

use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use crate::columns::Columns;

impl Columns for Row {
    fn integer(&self, at: usize) -> Option<i64> {
        match *self.columns().get(at)?.type_() {
            Type::INT2 => self.try_get::<_, i16>(at).ok().map(i64::from),
            Type::INT4 => self.try_get::<_, i32>(at).ok().map(i64::from),
            _ => self.try_get(at).ok(),
        }
    }

    fn bytes(&self, at: usize) -> Option<&[u8]> {
        self.try_get(at).ok()
    }

    fn text(&self, at: usize) -> Option<&str> {
        std::str::from_utf8(self.bytes(at)?).ok()
    }

    fn is_null(&self, at: usize) -> bool {
        matches!(self.try_get::<_, Option<Anything>>(at), Ok(None))
    }
}

/// A value of whatever type, of which only is asked whether it is there.
struct Anything;

impl FromSql<'_> for Anything {
    fn from_sql(_: &Type, _: &[u8]) -> Result<Anything, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Anything)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

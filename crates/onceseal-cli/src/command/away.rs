//! Whoever stays outlives the store's server: it is said once that it is gone, and
//! once that it is back.

use onceseal::core::json::{Object, Value};

use crate::error::CliError;
use crate::out::Out;

/// Whether the store was there when it was last looked at.
pub(crate) struct Away {
    out: Out,
    is_away: bool,
}

impl Away {
    pub(crate) const fn new(out: Out) -> Away {
        Away { out, is_away: false }
    }

    pub(crate) const fn is_away(&self) -> bool {
        self.is_away
    }

    /// What was found, or nothing while the store is gone.
    pub(crate) fn passes<T>(&mut self, looked: Result<T, CliError>) -> Result<Option<T>, CliError> {
        match looked {
            Err(error) if error.is_away() => {
                if !self.is_away {
                    missed(self.out, Some((error.code(), error.message())));
                }
                self.is_away = true;
                Ok(None)
            }
            looked => {
                let found = looked?;
                if self.is_away {
                    missed(self.out, None);
                }
                self.is_away = false;
                Ok(Some(found))
            }
        }
    }
}

/// Says that the store does not answer, or that it does again.
pub(crate) fn missed(out: Out, why: Option<(&str, &str)>) {
    if !out.is_json() {
        return match why {
            Some((code, message)) => {
                out.note(&format!("{code}: {message}; it is asked again until it answers"))
            }
            None => out.note("the store answers again"),
        };
    }
    let told = why.map(|(code, message)| {
        let mut told = Object::new();
        told.insert("code", code);
        told.insert("message", message);
        Value::from(told)
    });
    let mut object = Object::new();
    object.insert("store", told.unwrap_or(Value::Null));
    out.json_note(object);
}

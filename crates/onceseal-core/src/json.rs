//! Strict JSON in, canonical JSON out (RFC 8785).
//!
//! This is the only reader of JSON that is hashed, and the only writer of text
//! that is hashed. It never repairs: what it does not accept, it names.

mod display;
mod error;
mod read;
mod value;
mod write;

pub use display::{escape_for_display, is_suspicious, is_suspicious_value};
pub use error::{JsonError, JsonErrorKind};
pub use read::{Limits, MAX_DEPTH, Numbers, read, read_canonical};
pub use value::{Object, SAFE_INTEGER, Value, compare_names};
pub use write::{canonical, write, write_integer, write_text};

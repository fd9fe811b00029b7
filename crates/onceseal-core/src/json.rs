//! Strict JSON in, canonical JSON out (RFC 8785).
//!
//! This is the only reader of JSON that is hashed, and the only writer of text
//! that is hashed. It never repairs: what it does not accept, it names.

mod value;

pub use value::{Object, SAFE_INTEGER, Value, compare_names};

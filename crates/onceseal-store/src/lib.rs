//! Where Onceseal keeps what it knows.
//!
//! Nothing here decides: the rules are `onceseal-core`'s, this crate moves
//! their bytes.

pub mod clock;
pub mod mark;
pub mod place;
pub mod turnstile;

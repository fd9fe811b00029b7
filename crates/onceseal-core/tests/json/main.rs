//! What the JSON reader and writer promise.

mod grammar;
mod messy;
mod node;
mod properties;
mod rfc8785;
mod users;

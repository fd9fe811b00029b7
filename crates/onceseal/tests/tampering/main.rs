//! A store that nobody touched is found clean; whatever is changed behind our
//! back is found and named, or listed as what only signatures can find.

mod clean;
mod codes;
mod columns;
mod damage;
mod ground;
mod ownership;
mod random;
mod rehash;
mod rows;
mod sample;
#[cfg(feature = "postgres")]
mod server;
mod vectors;

//! A store that nobody touched is found clean; whatever is changed behind our
//! back is found and named, or listed as what only signatures can find.

mod clean;
mod columns;
mod ground;
mod rehash;
mod rows;
mod sample;

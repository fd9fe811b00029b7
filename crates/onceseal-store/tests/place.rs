//! The place of the state, the projects it serves, and the mark outside it, on
//! real files.

#[path = "place/base.rs"]
mod base;
#[path = "place/location.rs"]
mod location;
#[path = "place/mark.rs"]
mod mark;
#[path = "place/project.rs"]
mod project;

//! The place of the state and the projects it serves, on real files.

#[path = "place/base.rs"]
mod base;
#[path = "place/location.rs"]
mod location;
#[path = "place/project.rs"]
mod project;

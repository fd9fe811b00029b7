//! The cases of the persistent tool runtime, as they are written down.

use serde_json::Value as Vector;

pub(crate) fn vectors() -> Vector {
    let path = format!("{}/../../vectors/operations.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_slice(&text).expect("JSON")
}

pub(crate) fn text<'v>(value: &'v Vector, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} is text in {value}"))
}

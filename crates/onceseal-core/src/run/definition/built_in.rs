//! The definitions that need not be written.

use super::Definition;
use crate::json::{self, Limits, Value};

/// Kind and document of each. `design` and `delivery` have the states of the
/// cadence run store; a design may be begun before its change has a name.
const DOCUMENTS: [(&str, &str); 3] = [
    ("delivery", include_str!("delivery.json")),
    ("design", include_str!("delivery.json")),
    ("simple", include_str!("simple.json")),
];

pub(super) fn all() -> Vec<Definition> {
    let read = |(kind, text): &(&str, &str)| match json::read(text.as_bytes(), &Limits::DATA) {
        Ok(Value::Object(mut document)) => {
            document.insert("provisional", *kind == "design");
            Definition::compile(kind, &document).ok()
        }
        _ => None,
    };
    // A test holds that none is left out.
    DOCUMENTS.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_compiles() {
        assert_eq!(all().len(), DOCUMENTS.len());
    }
}

//! A run with tasks that the tests of the whole carry out.

use onceseal_core::run::Definition;

/// Its tasks.
pub const TASKS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Some of them wait for others, and two are in each other's way.
pub const PLAN: &str = r#"{"capacity":2,"tasks":[
    {"id":"a","attempts":1000},
    {"id":"b","attempts":1000,"depends_on":["a"]},
    {"id":"c","attempts":1000,"writes":["src"]},
    {"id":"d","attempts":1000,"writes":["src/d"]},
    {"id":"e","attempts":1000,"depends_on":["b","d"]}]}"#;

/// `simple`, with a gate that asks for no proof.
///
/// # Panics
/// If it is no definition.
#[must_use]
pub fn definition() -> Definition {
    let simple = Definition::built_in().into_iter().find(|found| found.kind() == "simple");
    let text = simple.expect("built in").text().replacen('{', r#"{"gates":{"free":{"proof":"none"}},"#, 1);
    Definition::restore(&text).expect("a definition")
}

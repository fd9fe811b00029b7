//! What a plan may be.

use std::fmt::Write;

use super::*;
use crate::json::Limits;

fn compiled(text: &str) -> Result<Plan, DocumentError> {
    match json::read(text.as_bytes(), &Limits::DATA) {
        Ok(Value::Object(document)) => Plan::compile(&document),
        other => panic!("no document: {other:?}"),
    }
}

/// Tasks of which each waits for the next, and the last for the first.
fn ring(size: usize) -> String {
    let task = |at: usize| format!(r#"{{"id":"r{at}","depends_on":["r{}"]}}"#, (at + 1) % size);
    (0..size).map(task).collect::<Vec<_>>().join(",")
}

#[test]
fn each_kind_of_mistake_is_told_with_its_place_and_what_is_right() {
    let tasks = |tasks: &str| format!(r#"{{"tasks":[{tasks}]}}"#);
    let many: Vec<_> = (0..257).map(|n| format!("\"n{n}\"")).collect();
    let mistakes = [
        "{}".to_owned(),
        r#"{"tasks":{}}"#.to_owned(),
        r#"{"tasks":[]}"#.to_owned(),
        r#"{"tasks":[],"task":[]}"#.to_owned(),
        r#"{"tasks":[],"capacity":0}"#.to_owned(),
        r#"{"tasks":[],"capacity":257}"#.to_owned(),
        tasks("1"),
        tasks("{}"),
        tasks(r#"{"id":"-"}"#),
        tasks(r#"{"id":"a"},{"id":"a"}"#),
        tasks(r#"{"id":"a","dependson":[]}"#),
        tasks(r#"{"id":"a","depends_on":"b"}"#),
        tasks(r#"{"id":"a","depends_on":["b"]}"#),
        tasks(r#"{"id":"build"},{"id":"b","depends_on":["biuld"]}"#),
        tasks(r#"{"id":"a","depends_on":["a"]}"#),
        tasks(r#"{"id":"a","conflicts":["a"]}"#),
        tasks(r#"{"id":"a","depends_on":["c"]},{"id":"b","depends_on":["a"]},{"id":"c","depends_on":["b"]}"#),
        tasks(r#"{"id":"x","depends_on":["a"]},{"id":"a","depends_on":["b"]},{"id":"b","depends_on":["a"]}"#),
        tasks(&ring(12)),
        tasks(r#"{"id":"a","resources":["x","x"]}"#),
        tasks(r#"{"id":"a","resources":["x\ny"]}"#),
        tasks(r#"{"id":"a","reads":["/etc"]}"#),
        tasks(r#"{"id":"a","writes":["a/../b"]}"#),
        tasks(r#"{"id":"a","writes":[7]}"#),
        tasks(&format!(r#"{{"id":"a","resources":[{}]}}"#, many.join(","))),
        tasks(r#"{"id":"a","phases":["Red"]}"#),
        tasks(r#"{"id":"a","phases":["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q"]}"#),
        tasks(r#"{"id":"a","attempts":0}"#),
        tasks(r#"{"id":"a","attempts":1.5}"#),
        tasks(r#"{"id":"a","input":[]}"#),
        tasks(&format!(r#"{{"id":"a","input":{{"x":"{}"}}}}"#, "y".repeat(65_536))),
    ];
    let mut told = String::new();
    for mistake in mistakes {
        let error = compiled(&mistake).expect_err(&mistake);
        let _ = writeln!(told, "{}\n    {error}", mistake.chars().take(100).collect::<String>());
    }
    insta::assert_snapshot!(told);
}

#[test]
fn a_plan_has_what_is_said_and_no_more_than_it_may() {
    let plan = compiled(r#"{"tasks":[{"id":"b","depends_on":["a"]},{"id":"a"}]}"#).expect("a plan");
    assert_eq!((plan.capacity(), plan.order(), plan.dependencies(0)), (4, &[1, 0][..], &[1][..]));
    assert_eq!((plan.tasks()[1].phases.as_slice(), plan.tasks()[1].attempts), (&["work".to_owned()][..], 3));
    let again = compiled(r#"{"tasks":[{"depends_on":["a"],"id":"b"},{"id":"a"}]}"#).expect("a plan");
    assert_eq!(plan.digest(), again.digest(), "however it is written");
    let most: Vec<_> = (0..=TASKS).map(|n| format!(r#"{{"id":"t{n}"}}"#)).collect();
    let document = |count: usize| format!(r#"{{"tasks":[{}]}}"#, most[..count].join(","));
    assert!(compiled(&document(TASKS)).is_ok());
    assert_eq!(compiled(&document(TASKS + 1)).expect_err("too many").path, "tasks");
}

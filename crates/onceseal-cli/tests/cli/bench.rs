//! What can be measured together, and that it is; how fast is no test.

use serde_json::{Value, json};

use crate::base::Project;

/// A round as short as can be.
pub(crate) const SHORT: &[&str] = &["bench", "--seconds", "0.2", "--rounds", "1"];

/// Each way to measure, and the rows that it tells.
pub(crate) const WAYS: &[(&[&str], &str, usize)] = &[
    (&["--callers", "1,2", "--hot", "2"], "figures", 2),
    (&["--callers", "2", "--beside", "2"], "figures", 1),
    (&["--processes", "2"], "processes", 2),
    (&["--processes", "2", "--callers", "2", "--hot", "2"], "processes", 2),
    (&["--processes", "2", "--callers", "2", "--beside", "2"], "processes", 2),
];

/// Every row of such a document is of callers that acted, and of others if there were any.
pub(crate) fn check(way: &(&[&str], &str, usize), document: &Value) {
    let (args, name, expected) = way;
    let rows = document[name].as_array().expect("rows");
    assert_eq!(rows.len(), *expected, "{args:?}: {document}");
    let others = args.iter().any(|arg| ["--hot", "--beside"].contains(arg));
    for row in rows {
        let positive = |name: &str| row[name].as_f64().expect("a number") > 0.0;
        assert!(positive("actions_per_s") && positive("p50_us") && positive("p99_us"), "{args:?}: {row}");
        assert_eq!(positive("others_per_s"), others, "{args:?}: {row}");
    }
    if *name == "processes" {
        let shares: f64 = rows.iter().map(|row| row["fair_share"].as_f64().expect("a number")).sum();
        assert!((shares - *expected as f64).abs() < 0.05, "{document}");
    }
}

#[test]
fn several_processes_and_others_on_one_key_or_their_own_are_measured_on_a_file() {
    let project = Project::empty();
    for way in WAYS {
        check(way, &project.json(&[SHORT, way.0].concat()));
    }
    let left = std::fs::read_dir(project.base().join("tmp")).expect("a directory").count();
    assert_eq!(left, 0, "nothing is left");
}

#[test]
fn operations_are_accepted_from_as_many_callers_as_are_named() {
    let told = Project::empty().json(&[SHORT, &["--operations", "--callers", "3"]].concat());
    assert_eq!(told["callers"], json!(3), "{told}");
}

#[test]
fn what_cannot_be_measured_together_is_refused() {
    let project = Project::empty();
    for args in [
        &["--hot", "1", "--beside", "1"][..],
        &["--hot", "1", "--operations"],
        &["--beside", "1", "--operations"],
        &["--processes", "1", "--operations"],
        &["--processes", "1", "--callers", "1,2"],
        &["--operations", "--callers", "1,2"],
        &["--processes", "0"],
        &["--hot", "0"],
        &["--beside", "0"],
        &["--callers", "0"],
        &["--backlog", "1"],
    ] {
        let ran = project.run(&[SHORT, args, &["--json"]].concat());
        assert_eq!((ran.code, &ran.error()["code"]), (2, &json!("usage")), "{args:?}: {ran:?}");
    }
}

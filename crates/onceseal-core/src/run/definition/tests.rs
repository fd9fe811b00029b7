//! What a definition may be, and its whole table.

use std::fmt::Write;

use super::*;

fn compiled(text: &str) -> Result<Definition, Vec<DocumentError>> {
    match json::read(text.as_bytes(), &Limits::DATA) {
        Ok(Value::Object(document)) => Definition::compile("job", &document),
        other => panic!("no document: {other:?}"),
    }
}

#[test]
fn every_definition_that_is_built_in_is_this_table() {
    let mut table = String::new();
    for definition in Definition::built_in() {
        let Definition { kind, digest, initial, provisional, gates, .. } = &definition;
        let _ =
            writeln!(table, "{kind} {digest}\ninitial {initial}, provisional {provisional}, gates {gates:?}");
        for state in definition.states.keys() {
            let next: Vec<_> =
                definition.edges().filter(|(from, _)| from == state).map(|(_, to)| to).collect();
            let commands: Vec<_> = definition
                .commands(state)
                .map(|(name, to)| format!("{name}>{}", to.unwrap_or("?")))
                .collect();
            let interrupted = definition.interrupted(state).unwrap_or("-");
            let idle = if definition.is_idle(state) && !definition.is_terminal(state) { " idle" } else { "" };
            let lines = [
                format!("    {state:<20} {}", next.join(" ")),
                format!("{:25}interrupted>{interrupted}{idle} {}", "", commands.join(" ")),
            ];
            let _ = writeln!(table, "{}\n{}", lines[0].trim_end(), lines[1].trim_end());
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_definition_is_restored_from_its_text_alone() {
    for definition in Definition::built_in() {
        assert_eq!(Definition::restore(&definition.text), Ok(definition.clone()));
        assert!(Definition::restore(&definition.text.replace("\"initial\"", "\"initiaal\"")).is_err());
        assert!(Definition::restore(&format!(" {}", definition.text)).is_err());
    }
}

#[test]
fn two_kinds_with_the_same_states_are_two_definitions() {
    let built_in = Definition::built_in();
    let of = |kind: &str| built_in.iter().find(|definition| definition.kind == kind).expect("built in");
    assert_eq!(of("design").states, of("delivery").states);
    assert_ne!(of("design").digest, of("delivery").digest);
    assert!(of("design").provisional && !of("delivery").provisional);
}

#[test]
fn every_mistake_is_told_at_once_with_its_place_and_what_is_right() {
    let a = r#""a":{"to":["b"],"interrupted":"b"}"#;
    let states = |states: &str| format!(r#"{{"initial":"a","states":{{{states}}}}}"#);
    let mut table = String::new();
    for text in [
        "{}".to_owned(),
        r#"{"initial":"a"}"#.to_owned(),
        r#"{"kind":"other"}"#.to_owned(),
        r#"{"initial":"a","states":[]}"#.to_owned(),
        format!(r#"{{"initial":"a","stats":{{}},"states":{{{a},"b":{{"terminal":true}}}}}}"#),
        format!(r#"{{"initial":"x","states":{{{a},"b":{{"terminal":true}}}}}}"#),
        format!(r#"{{"initial":"b","states":{{{a},"b":{{"terminal":true}}}}}}"#),
        format!(r#"{{"initial":"a","provisional":1,"states":{{{a},"b":{{"terminal":true}}}}}}"#),
        format!(
            r#"{{"initial":"a","gates":{{"g":{{"proof":"maybe"}}}},"states":{{{a},"b":{{"terminal":true}}}}}}"#
        ),
        format!(
            r#"{{"initial":"a","gates":{{"G":{{"proof":"none"}}}},"states":{{{a},"b":{{"terminal":true}}}}}}"#
        ),
        states(&format!(r#"{a},"b":{{"terminal":true,"to":["a"]}}"#)),
        states(&format!(r#"{a},"b":{{"terminal":"yes"}}"#)),
        states(&format!(r#"{a},"b":{{}}"#)),
        states(&format!(r#"{a},"b":{{"to":[],"interrupted":"a"}}"#)),
        states(r#""a":{"to":["b","b"],"interrupted":"b"},"b":{"terminal":true}"#),
        states(r#""a":{"to":[1],"interrupted":"b"},"b":{"terminal":true}"#),
        states(r#""a":{"to":["b"]},"b":{"terminal":true}"#),
        states(r#""a":{"to":["b"],"interrupted":"a"},"b":{"terminal":true}"#),
        states(r#""a":{"to":["bb"],"interrupted":"b"},"b":{"terminal":true}"#),
        states(r#""a":{"to":["b"],"interrupted":"b","commands":{"stop":"a"}},"b":{"terminal":true}"#),
        states(r#""a":{"to":["b"],"interrupted":"b","commands":{"stop":1}},"b":{"terminal":true}"#),
        states(r#""a":{"to":["b"],"interrupted":"b","commands":{"-":null}},"b":{"terminal":true}"#),
        states(&format!(r#"{a},"b":{{"terminal":true}},"c":{{"to":["b"],"interrupted":"b"}}"#)),
        states(
            r#""a":{"to":["b","c"],"interrupted":"b"},"b":{"terminal":true},"c":{"to":["c"],"interrupted":"c"}"#,
        ),
        states(&format!(r#"{a},"b":{{"terminal":true}},"C c":{{"terminal":true}}"#)),
        states(r#""a":{"to":["b"],"interupted":"b"},"b":{"terminal":true}"#),
        states(r#""a":{"too":["b"],"interrupted":"bb","idle":1,"commands":{"x":"y","z":2}},"b":7"#),
        format!(r#"{{"intial":"a","gates":["g"],"provisional":"no","states":{{{a},"b":{{"terminall":true}}}}}}"#),
        r#"{"initial":"opne","gates":{"g":"required"},"states":{"open":{"to":["closed","waitng"]},"closed":{}}}"#
            .to_owned(),
    ] {
        let _ = writeln!(table, "{text}");
        for error in compiled(&text).expect_err(&text) {
            let _ = writeln!(table, "    {error}");
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn no_kind_is_called_as_other_resources_are() {
    let text = br#"{"initial":"a","states":{"a":{"to":["b"],"interrupted":"b"},"b":{"terminal":true}}}"#;
    let Ok(Value::Object(document)) = json::read(text, &Limits::DATA) else { panic!("no document") };
    for kind in ["name", "path", "root", "run", "workspace"] {
        let found = Definition::compile(kind, &document).expect_err(kind);
        assert_eq!((found.len(), found[0].path.as_str()), (1, "kind"), "{kind}");
    }
    Definition::compile("task", &document).expect("a name like another");
}

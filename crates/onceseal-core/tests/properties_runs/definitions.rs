//! Definitions, as they are drawn: those that are built in, and random ones.

use onceseal_core::run::Definition;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// The kinds of every play: `design`, `simple` and a random one.
pub(crate) const KINDS: usize = 3;

/// Texts of `design`, of `simple`, and of a random definition.
pub(crate) fn definitions() -> impl Strategy<Value = Vec<String>> {
    random().prop_map(|random| {
        let built_in = |kind: &str| {
            let all = Definition::built_in();
            all.iter().find(|found| found.kind() == kind).expect("built in").text().to_owned()
        };
        // One of the gates asks for no proof.
        let design = built_in("design").replacen("required", "none", 1);
        vec![design, built_in("simple"), random]
    })
}

/// States in a row of which each may be followed by the next, the last of them
/// terminal, and whatever else is drawn.
fn random() -> impl Strategy<Value = String> {
    let state = (any::<u8>(), any::<u8>(), any::<u8>(), any::<bool>());
    (prop::collection::vec(state, 1..5), any::<bool>(), any::<bool>()).prop_map(|(states, gates, provisional)| {
        let name = |at: usize| format!("s{at}");
        let (last, mut all) = (states.len(), Map::new());
        for (at, (more, interrupted, command, elsewhere)) in states.iter().enumerate() {
            let to: Vec<usize> = (0..=last).filter(|to| *to == at + 1 || more & (1 << to) != 0).collect();
            let chosen = |n: &u8| name(to[usize::from(*n) % to.len()]);
            let mut commands = Map::from_iter([("go".to_owned(), Value::from(chosen(command)))]);
            if *elsewhere {
                commands.insert("wait".to_owned(), Value::Null);
            }
            let names: Vec<_> = to.iter().map(|to| name(*to)).collect();
            let state = json!({"to": names, "interrupted": chosen(interrupted), "commands": commands});
            all.insert(name(at), state);
        }
        all.insert(name(last), json!({"terminal": true}));
        let gates = if gates { json!({"gate-a": {"proof": "none"}}) } else { json!({}) };
        let whole =
            json!({"initial": "s0", "kind": "random", "states": all, "gates": gates, "provisional": provisional});
        serde_json_canonicalizer::to_string(&whole).expect("a text")
    })
}

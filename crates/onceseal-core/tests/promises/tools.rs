//! Tools and their contracts.

use std::sync::Arc;

use onceseal_core::command::Command;
use onceseal_core::hash::Hash;
use onceseal_core::journal::{Body, Row};
use onceseal_core::reply::Reply;
use onceseal_core::tool::{ContractError, Declare, Recovery, Tool};

use crate::operating::compile;
use crate::pay_world;

fn tool(revision: &str) -> Arc<Tool> {
    let text = format!(
        "{{\"name\":\"refund\",\"recovery\":\"ask\",\"settle\":\"60s\",\"revisions\":{{\"effect\":\"{revision}\"}}}}"
    );
    Arc::new(compile(&text).expect("a contract"))
}

fn active(world: &crate::World<'_>) -> Vec<Hash> {
    match world.rows.get(&world.pinned.tenant.tool("refund")).map(|stored| &stored.row) {
        Some(Row::Tool(row)) => row.active.clone(),
        _ => Vec::new(),
    }
}

#[test]
fn several_contracts_of_a_tool_may_be_active_and_each_is_kept_by_its_text() {
    let mut world = pay_world();
    let (old, new) = (tool("v1"), tool("v2"));
    for (declare, changed) in [
        (Declare::Activate(old.clone()), true),
        (Declare::Activate(old.clone()), false),
        (Declare::Activate(new.clone()), true),
    ] {
        assert_eq!(world.run(Command::Declare(declare)), Reply::Done { changed });
    }
    assert_eq!(active(&world), [old.digest, new.digest]);
    let retire = || Command::Declare(Declare::Retire { name: "refund".into(), contract: old.digest });
    assert_eq!(world.run(retire()), Reply::Done { changed: true });
    assert_eq!(world.run(retire()), Reply::Done { changed: false });
    assert_eq!(active(&world), [new.digest]);
    let kept = world.events.iter().filter(|event| matches!(event.event.body, Body::ToolActivated(..)));
    let texts: Vec<Tool> = kept
        .map(|event| {
            Tool::restore(&event.payload.as_ref().expect("its text").text).expect("it compiles again")
        })
        .collect();
    assert_eq!(texts, [(*old).clone(), (*new).clone()]);
    world.check();
}

#[test]
fn p14_a_tool_has_so_many_active_contracts_at_most_and_the_oldest_goes_first() {
    let mut world = pay_world();
    let tools: Vec<_> = (0..65).map(|n| tool(&format!("v{n}"))).collect();
    for tool in &tools {
        let declared = world.run(Command::Declare(Declare::Activate(tool.clone())));
        assert_eq!(declared, Reply::Done { changed: true });
    }
    let expected: Vec<_> = tools[1..].iter().map(|tool| tool.digest).collect();
    assert_eq!(active(&world), expected);
    world.check();
}

#[test]
fn a_contract_whose_request_may_outlast_what_is_known_of_it_is_refused() {
    for (more, expected) in [
        (r#""lease":"20s""#, Err(ContractError::TimeoutTooLong)),
        (r#""recovery":"ask","settle":"20s""#, Err(ContractError::TimeoutTooLong)),
        (
            r#""recovery":"ask","settle":"21s""#,
            Ok(Recovery::Ask { settle: onceseal_core::time::Span::seconds(21) }),
        ),
        (
            r#""recovery":"ask""#,
            Err(ContractError::Member("settle", "is needed by this recovery: a time between 1s and 30d")),
        ),
        (
            r#""recovery":"ask","settle":"40d""#,
            Err(ContractError::Member("settle", "must be a time between 1s and 30d, as in 90s, 15m or 2h")),
        ),
        (r#""recovery":"maybe""#, Err(ContractError::Member("recovery", "must be never, same_key or ask"))),
        (r#""recovery":"never""#, Ok(Recovery::Never)),
    ] {
        let found = compile(&format!("{{\"name\":\"refund\",{more}}}")).map(|tool| tool.contract.recovery);
        assert_eq!(found, expected, "{more}");
    }
}

//! Lists by pages: each thing once, in order, by state, name and age.

use onceseal::Failure;
use onceseal::core::action::Answer;
use onceseal::core::effect::EffectState;
use onceseal::core::id::ActionId;
use onceseal::core::journal::Row;
use onceseal::core::stream::{StreamId, StreamKind};
use onceseal::views::{Cursor, Filter, Listed, action_state, state_numbers};

use crate::support::{POLICY, World, never, policy};

/// Actions of four states, several made at each of three moments.
async fn filled(world: &World) {
    for moment in 0..3 {
        for n in 0..3 {
            let order = format!("{moment}-{n}");
            let fine = |_| async { Ok::<_, Failure>(()) };
            world.pay(&format!("c{order}"), 5).execute(fine).await.expect("committed");
            let no = |_| async { Err::<(), _>(Failure::not_executed("no")) };
            assert!(world.pay(&format!("f{order}"), 5).execute(no).await.is_err());
            assert!(world.pay(&format!("d{order}"), 9_999).execute(never).await.is_err());
            assert!(world.ask(&format!("w{order}")).execute(never).await.is_err());
        }
        world.clock.advance(1_000_000);
    }
}

/// Every page, through the printed form of its cursor.
fn pages(world: &World, kind: StreamKind, filter: &Filter, limit: usize) -> Vec<(StreamId, Row)> {
    let (mut found, mut filter) = (Vec::new(), filter.clone());
    loop {
        let Listed { items, unreadable, next } = world.control.list(kind, &filter, limit).expect("readable");
        assert!(items.len() <= limit && unreadable.is_empty());
        found.extend(items);
        let Some(next) = next else { return found };
        let printed = next.to_string();
        assert_eq!((printed.len(), Cursor::parse(&printed)), (52, Some(next)));
        filter.after = Cursor::parse(&printed);
    }
}

fn made(row: &Row) -> i64 {
    match row {
        Row::Action(row) => row.created_at.micros(),
        Row::Approval(row) => row.created_at.micros(),
        Row::Effect(row) => row.created_at.micros(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn every_action_is_listed_once_in_order_whatever_the_size_of_a_page() {
    for world in World::both().await {
        filled(&world).await;
        for newest_first in [false, true] {
            let filter = Filter { newest_first, ..Filter::default() };
            let all = pages(&world, StreamKind::Action, &filter, 1_000);
            assert_eq!(all.len(), 36);
            let ordered = |two: &[(StreamId, Row)]| match newest_first {
                false => made(&two[0].1) <= made(&two[1].1),
                true => made(&two[0].1) >= made(&two[1].1),
            };
            assert!(all.windows(2).all(ordered));
            for limit in [1, 2, 5, 11, 35, 36] {
                assert_eq!(pages(&world, StreamKind::Action, &filter, limit), all, "pages of {limit}");
            }
        }
    }
}

#[tokio::test]
async fn a_list_is_of_one_state_one_name_or_one_age() {
    for world in World::both().await {
        filled(&world).await;
        for (state, name) in state_numbers(StreamKind::Action) {
            let filter = Filter { state: Some(state), ..Filter::default() };
            let found = pages(&world, StreamKind::Action, &filter, 4);
            let expected = if ["committed", "failed", "denied", "waiting"].contains(&name) { 9 } else { 0 };
            assert_eq!(found.len(), expected, "{name}");
            let all = found
                .iter()
                .all(|(_, row)| matches!(row, Row::Action(row) if action_state(&row.state) == name));
            assert!(all, "{name}");
        }
        let by_name = Filter { name: Some("ask".into()), ..Filter::default() };
        assert_eq!(pages(&world, StreamKind::Action, &by_name, 4).len(), 9);
        let prefix = Filter { name: Some("as".into()), ..Filter::default() };
        assert_eq!(pages(&world, StreamKind::Action, &prefix, 4).len(), 0, "names are whole");
        let both = Filter { name: Some("pay".into()), state: Some(14), ..Filter::default() };
        assert_eq!(onceseal::core::action::ended_number(Answer::Denied), 14);
        assert_eq!(pages(&world, StreamKind::Action, &both, 4).len(), 9);
        let start = world.control.list(StreamKind::Action, &Filter::default(), 1).expect("readable");
        let first = onceseal::core::time::Timestamp::from_micros(made(&start.items[0].1));
        let old = Filter { until: first, ..Filter::default() };
        assert_eq!(pages(&world, StreamKind::Action, &old, 5).len(), 12, "made at the first moment");
        let old = Filter { until: first, newest_first: true, ..Filter::default() };
        assert_eq!(pages(&world, StreamKind::Action, &old, 5).len(), 12);
        // The filter by name is of actions: other lists have no names.
        assert_eq!(pages(&world, StreamKind::Approval, &by_name, 4).len(), 9);
        let failed = Filter { state: Some(EffectState::Failed.number()), ..Filter::default() };
        assert_eq!(pages(&world, StreamKind::Effect, &failed, 2).len(), 9);
    }
}

#[tokio::test]
async fn a_list_goes_on_where_it_was_although_its_last_row_has_moved_on() {
    for world in World::both().await {
        filled(&world).await;
        let filter = Filter { state: Some(2), ..Filter::default() };
        let first = world.control.list(StreamKind::Action, &filter, 4).expect("readable");
        // The last one of the page is no longer waiting when the next is read.
        let (stream, _) = first.items[3];
        let row = world.control.action_row(ActionId(stream.name)).expect("readable").expect("there");
        let approval = row.approval.expect("it waits");
        world.answer(approval, "ann", onceseal::core::approval::Said::No).await.expect("counted");
        let filter = Filter { after: first.next, ..filter };
        let rest = world.control.list(StreamKind::Action, &filter, 100).expect("readable");
        assert_eq!(rest.items.len(), 5);
        assert!(rest.items.iter().all(|item| !first.items.contains(item)));
    }
}

#[tokio::test]
async fn a_row_that_does_not_decode_is_named_and_hides_no_other() {
    let world = World::sqlite(POLICY).await;
    filled(&world).await;
    let poison = world.control.store().tenant().effect("pay:c1-1");
    let file = world.home.as_ref().expect("on disk").dir.path().join("state/onceseal.db");
    let database = rusqlite::Connection::open(file).expect("the file");
    let sql = "UPDATE streams SET open = x'ff' WHERE kind = ?1 AND name = ?2";
    assert_eq!(database.execute(sql, (poison.kind.number(), poison.name)).expect("changed"), 1);
    let listed = world.control.list(StreamKind::Effect, &Filter::default(), 100).expect("readable");
    assert_eq!((listed.items.len(), listed.unreadable), (17, vec![poison]));
    assert_eq!(crate::support::code(world.control.effect("pay:c1-1")), "corrupt");
}

#[tokio::test]
async fn a_cursor_that_is_none_is_not_taken() {
    for text in ["", "zz", "00", &"0".repeat(50), &"f".repeat(52), &"0".repeat(53)] {
        assert_eq!(Cursor::parse(text), None, "{text}");
    }
    let world = World::memory(POLICY).await;
    assert_eq!(policy(POLICY).hash, world.control.policy().expect("one").hash);
    let empty = world.control.list(StreamKind::Action, &Filter::default(), 0).expect("readable");
    assert!(empty.items.is_empty() && empty.next.is_none());
}

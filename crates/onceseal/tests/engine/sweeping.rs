//! What ends by itself is ended by the sweeper.

use std::time::Duration;

use onceseal::core::approval::Status;
use onceseal::core::effect::EffectState;
use onceseal::core::reply::Reply;
use onceseal::{Control, Failure, sweep};

use crate::support::{Home, POLICY, World, clock, needed, never, pay, policy};

const MINUTE: i64 = 60_000_000;

/// As the sweeping thread does.
async fn swept(control: &Control) -> usize {
    let control = control.clone();
    tokio::task::spawn_blocking(move || sweep(control.store())).await.expect("no panic").expect("swept")
}

/// A call whose process has gone: an attempt, and nobody to settle it.
async fn abandoned(control: &Control, order: &str) {
    let mut call =
        Box::pin(pay(control, order, 5).execute(|_| std::future::pending::<Result<(), Failure>>()));
    while control.effect(&format!("pay:{order}")).expect("readable").is_none() {
        assert!(crate::support::poll_once(call.as_mut()).is_pending());
        tokio::task::yield_now().await;
    }
    std::mem::forget(call);
}

#[tokio::test]
async fn a_sweep_ends_lapsed_leases_expired_requests_and_proposals_that_nobody_started() {
    for world in World::both().await {
        abandoned(&world.control, "lapsed").await;
        let (asked, approval) = needed(world.ask("o").execute(never).await);
        let Ok(Reply::Ready { action: ready, .. }) = world.pay("ready", 5).propose().await else { panic!() };
        assert_eq!(swept(&world.control).await, 0, "nothing is due");
        world.clock.advance(15 * MINUTE);
        assert_eq!(swept(&world.control).await, 1, "the lease; the other two end after this moment");
        assert_eq!(world.state("pay:lapsed"), Some(EffectState::Ambiguous));
        world.clock.advance(1);
        assert_eq!(swept(&world.control).await, 2);
        let row = world.control.approval(approval).expect("readable").expect("there");
        assert_eq!(row.status, Status::Expired);
        for (action, code) in [(asked, "approval_expired"), (ready, "not_started")] {
            let row = world.control.action_row(action).expect("readable").expect("there");
            let document = world.control.receipt(row.receipt().expect("a receipt")).expect("readable");
            let document = document.expect("there");
            let member = |name: &str| document.as_object().and_then(|object| object.get(name)).cloned();
            assert_eq!(member("result"), Some("blocked".into()));
            assert_eq!(member("code"), Some(code.into()));
        }
        assert_eq!(swept(&world.control).await, 0, "once");
    }
}

#[tokio::test]
async fn more_than_one_page_is_swept_in_one_go() {
    let world = World::memory(POLICY).await;
    for n in 0..600 {
        world.pay(&format!("o{n}"), 5).propose().await.expect("ready");
    }
    world.clock.advance(15 * MINUTE + 1);
    assert_eq!(swept(&world.control).await, 600);
}

#[tokio::test]
async fn ua_085_a_row_that_does_not_decode_holds_up_no_other() {
    let world = World::sqlite(POLICY).await;
    abandoned(&world.control, "poison").await;
    world.clock.advance(1);
    abandoned(&world.control, "lapsed").await;
    let file = world.home.as_ref().expect("on disk").dir.path().join("state/onceseal.db");
    let database = rusqlite::Connection::open(file).expect("the file");
    let poison = world.control.store().tenant().effect("pay:poison");
    let sql = "UPDATE streams SET open = x'ff' WHERE kind = ?1 AND name = ?2";
    let changed = database.execute(sql, (poison.kind.number(), poison.name)).expect("changed");
    assert_eq!(changed, 1);
    world.clock.advance(6 * MINUTE);
    assert_eq!(swept(&world.control).await, 1);
    assert_eq!(world.state("pay:lapsed"), Some(EffectState::Ambiguous));
    // P08: and the row itself permits nothing.
    assert_eq!(crate::support::code(world.pay("poison", 5).execute(never).await), "corrupt");
}

#[tokio::test]
async fn one_handle_sweeps_at_a_time() {
    let world = World::sqlite(POLICY).await;
    let other = world.home.as_ref().expect("on disk").control(world.clock.clone()).await.expect("the store");
    world.pay("o", 5).propose().await.expect("ready");
    world.clock.advance(15 * MINUTE + 1);
    let swept = world.control.store().try_sweep(|| {
        let other = std::thread::spawn(move || sweep(other.store()));
        other.join().expect("no panic")
    });
    assert_eq!(swept.expect("swept"), Some(0), "the other left it to this one");
    assert_eq!(self::swept(&world.control).await, 1);
}

#[tokio::test]
async fn a_process_that_opens_the_store_ends_at_once_what_a_dead_one_left() {
    let (home, clock) = (Home::new(), clock());
    let control = home.control(clock.clone()).await.expect("a store");
    control.activate(policy(POLICY), false, None).await.expect("active");
    abandoned(&control, "o").await;
    clock.advance(6 * MINUTE);
    let mut opening = home.opening(clock);
    opening.sweep = true;
    let other = tokio::task::spawn_blocking(move || Control::found(&opening)).await.expect("no panic");
    let other = other.expect("the store");
    let late = std::time::Instant::now() + Duration::from_secs(30);
    while control.effect("pay:o").expect("readable").expect("there").state != EffectState::Ambiguous {
        assert!(std::time::Instant::now() < late, "nobody swept");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    other.close();
}

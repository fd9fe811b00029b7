//! Clocks that jump, and order that does not depend on them: section F.

use onceseal::core::effect::EffectState;
use onceseal::core::json::Value;
use onceseal::{Control, Error, Failure};

use crate::support::{World, code, needed, never};

const MINUTE: i64 = 60_000_000;
const HOUR: i64 = 60 * MINUTE;

async fn fine(_: onceseal::Call) -> Result<&'static str, Failure> {
    Ok("done")
}

/// Every event, by position: its stream, its number there, its time.
fn log(control: &Control) -> Vec<(String, u64, i64)> {
    let events = control.log(0, 1_000).expect("readable");
    assert!(events.windows(2).all(|two| two[0].position + 1 == two[1].position));
    events.iter().map(|e| (e.stamp.stream.to_string(), e.stamp.sequence, e.stamp.at.micros())).collect()
}

#[tokio::test]
async fn ua_100_order_is_sequence_and_never_time() {
    for world in World::both().await {
        world.pay("a", 5).execute(fine).await.expect("committed");
        world.clock.step_wall(-50 * MINUTE);
        world.pay("b", 5).execute(fine).await.expect("committed");
        world.clock.step_wall(30 * MINUTE);
        world.pay("c", 5).execute(fine).await.expect("committed");
        let mut streams = std::collections::BTreeMap::new();
        for (stream, sequence, at) in log(&world.control) {
            let (before, earlier) = streams.insert(stream, (sequence, at)).unwrap_or((0, 0));
            assert_eq!(sequence, before + 1);
            assert!(at >= earlier, "no stream goes back in time");
        }
    }
}

#[tokio::test]
async fn a_clock_within_the_hour_ends_no_lease_twice_and_gives_none_back() {
    for world in World::both().await {
        let started = world.pay("o", 5);
        let mut call = Box::pin(started.execute(|_| std::future::pending::<Result<(), Failure>>()));
        while world.state("pay:o").is_none() {
            assert!(crate::support::poll_once(call.as_mut()).is_pending());
            tokio::task::yield_now().await;
        }
        // Forward: the lease is over, and what is recorded of that stays.
        world.clock.step_wall(59 * MINUTE);
        assert_eq!(code(world.pay("o", 5).execute(never).await), "ambiguous");
        // Back: it does not live again.
        world.clock.step_wall(-59 * MINUTE);
        assert_eq!(code(world.pay("o", 5).execute(never).await), "ambiguous");
        assert_eq!(world.state("pay:o"), Some(EffectState::Ambiguous));
    }
}

#[tokio::test]
async fn p08_a_clock_that_jumps_by_more_than_an_hour_stops_everything_until_it_is_accepted() {
    for (world, direction) in World::both().await.into_iter().zip([1, -1]) {
        world.pay("a", 5).execute(fine).await.expect("committed");
        world.clock.step_wall(direction * (HOUR + 1));
        assert_eq!(code(world.pay("b", 5).execute(never).await), "clock_jump");
        // It may be right again: what was promised meanwhile was promised by a wrong clock.
        world.clock.step_wall(-direction * (HOUR + 1));
        assert_eq!(code(world.pay("b", 5).execute(never).await), "clock_jump");
        world.control.store().accept_clock();
        // Taken by the writer before the next batch.
        world.pay("b", 5).execute(fine).await.expect("committed");
    }
}

#[tokio::test]
async fn an_outcome_is_taken_although_the_clock_went_back_meanwhile() {
    for world in World::both().await {
        let clock = world.clock.clone();
        let receipt = world.pay("o", 5).execute(|_| async move {
            clock.step_wall(-30 * MINUTE);
            Ok::<_, Failure>("done")
        });
        let document = world.receipt(&receipt.await.expect("committed"));
        let member = |name: &str| document.as_object().and_then(|o| o.get(name)).and_then(Value::as_text);
        assert!(member("finished_at") >= member("started_at"));
    }
}

#[tokio::test]
async fn an_expiry_that_nobody_recorded_is_recorded_by_whoever_meets_it() {
    for world in World::both().await {
        let (action, approval) = needed(world.ask("o").execute(never).await);
        world.clock.advance(15 * MINUTE + 1);
        let row = world.control.approval(approval).expect("readable").expect("there");
        assert_eq!(row.status.as_str(), "pending", "not a fact yet");
        let error: Error = world.control.resume(action).execute(never).await.expect_err("expired");
        assert_eq!(error.code(), "approval_expired");
        let row = world.control.approval(approval).expect("readable").expect("there");
        assert_eq!(row.status.as_str(), "expired");
    }
}

//! Endpoints that a program tries itself: remembered across processes.

use onceseal::core::json::Object;
use onceseal::core::route::OPENS_AFTER;
use onceseal::{Control, Endpoint};

use crate::support::{World, code};

const POLICY: &str = "schema: onceseal.policy/v1\nactions: {}\n";

fn endpoint(control: &Control, model: &str) -> Endpoint {
    let mut reached = Object::new();
    reached.insert("url", "https://models.example/v1");
    reached.insert("model", model);
    control.endpoint(&reached)
}

#[tokio::test]
async fn an_endpoint_that_fails_is_left_alone_and_its_probe_is_one_callers() {
    for world in [World::memory(POLICY).await, World::sqlite(POLICY).await] {
        let large = endpoint(&world.control, "large");
        for _ in 0..OPENS_AFTER {
            let trying = large.attempt().await.expect("it may be tried");
            assert!(!trying.is_probe());
            trying.failed().await.expect("recorded");
        }
        assert_eq!(code(large.attempt().await), "route_open");
        let small = endpoint(&world.control, "small");
        assert_ne!(small.fingerprint(), large.fingerprint());
        small.attempt().await.expect("another one").answered().await.expect("recorded");
        world.clock.advance(60_000_000);
        let probe = endpoint(&world.control, "large").attempt().await.expect("the probe");
        assert!(probe.is_probe());
        assert_eq!(code(large.attempt().await), "route_open", "one probes");
        probe.answered().await.expect("recorded");
        assert!(!large.attempt().await.expect("it may be tried").is_probe());
    }
}

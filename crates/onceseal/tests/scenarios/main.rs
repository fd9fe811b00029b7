//! The scenarios of the persistent tool runtime, played through the public
//! interface; where Onceseal departs, the reason stands beside the case.
//!
//! What every answer must keep to besides is checked at each step: packages
//! hold against their call, nothing is done twice at the remote, and the store
//! is audited at the end.

#[path = "../engine/support.rs"]
#[expect(dead_code, reason = "what other tests need")]
mod support;

mod adapted;
mod arranging;
mod behaviours;
mod drafts;
mod scene;
mod steps;
mod story;
#[path = "../../../onceseal-core/tests/support/vectors.rs"]
mod vectors;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::adapted::{Adapted, Instead};
use crate::scene::Scene;

#[test]
fn every_scenario_passes_or_is_adapted_with_a_reason() {
    let vectors = vectors::vectors();
    let scenarios = vectors["scenarios"].as_array().expect("scenarios");
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut passed, mut failed) = (0, Vec::new());
    for scenario in scenarios {
        match play(scenario) {
            Ok(adapted) if adapted.is_empty() => passed += 1,
            Ok(adapted) => adapted.into_iter().for_each(|reason| *reasons.entry(reason).or_default() += 1),
            Err(wrong) => failed.push(wrong),
        }
    }
    println!("{} scenarios: {passed} passed as they stand; steps adapted:", scenarios.len());
    for (reason, steps) in &reasons {
        println!("  {steps:3} {reason}");
    }
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), scenarios.len(), failed.join("\n"));
}

/// Plays a scenario: why steps of it were adapted.
///
/// # Errors
/// What came out otherwise than told.
fn play(scenario: &Value) -> Result<Vec<&'static str>, String> {
    let name = scenario["name"].as_str().expect("a name");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        // Points are of the process, and scenarios follow one another.
        onceseal::fault::disarm();
        let steps = scenario["steps"].as_array().expect("steps");
        let mut scene = Scene::new(steps).await;
        let mut reasons = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            let adapted = adapted::adapted(name, at, step);
            if let Some(Adapted { reason, instead: Instead::Unplayed }) = adapted {
                reasons.push(reason);
                continue;
            }
            let mut came = scene.step(step).await;
            if let Some(Instead::Later(seconds)) = adapted.as_ref().map(|adapted| &adapted.instead) {
                came = scene.step(&later(step, *seconds)).await;
            }
            came.learn(&step["expect"], &mut scene);
            let wrong = match &adapted {
                None => came.differs(&step["expect"], &step["state_after"], &scene),
                Some(adapted) => came.differs_adapted(&adapted.instead, &step["expect"], &scene),
            };
            if let Some(wrong) = wrong {
                return Err(format!("{name}, step {at}: {wrong}"));
            }
            reasons.extend(adapted.map(|adapted| adapted.reason));
            scene.once().map_err(|wrong| format!("{name}, step {at}: {wrong}"))?;
        }
        Ok(reasons)
    })
}

/// The same step, so many seconds later.
fn later(step: &Value, seconds: i64) -> Value {
    let mut later = step.clone();
    later["now"] = (step["now"].as_i64().expect("a moment") + seconds).into();
    later
}

//! Short stories in the words of the scenarios, for tests that tell one each.

use onceseal::operations::Package;
use serde_json::{Value, json};

use crate::scene::Scene;
use crate::steps::Came;
use crate::vectors::{text, vectors};

/// When stories begin.
pub(crate) const NOW: i64 = 1_784_419_200;

/// A story of its own: a store, a clock, a remote.
pub(crate) fn story(tell: impl AsyncFnOnce(&mut Scene)) {
    let _alone = onceseal::fault::alone();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let mut scene = Scene::new(&[json!({ "now": NOW })]).await;
        tell(&mut scene).await;
        scene.once().expect("nothing is done twice");
    });
}

/// The object with these members, and those of the other where it has none.
fn over(changes: Value, base: &Value) -> Value {
    let mut merged = base.clone();
    for (name, value) in changes.as_object().expect("changes") {
        merged[name] = value.clone();
    }
    merged
}

/// The base call with these changes.
pub(crate) fn call(changes: Value) -> Value {
    over(changes, &vectors()["scenario_language"]["defaults"]["call"])
}

/// A dispatch of the base call, with these members of the step besides.
pub(crate) fn dispatch(more: Value) -> Value {
    let base = json!({
        "op": "dispatch", "now": NOW, "call": call(json!({})),
        "principal": vectors()["scenario_language"]["defaults"]["principal"],
    });
    over(more, &base)
}

/// The status query of what the base call dispatched, a second later.
pub(crate) fn query(scene: &Scene, more: Value) -> Value {
    let mut base = dispatch(json!({
        "op": "query", "now": NOW + 1,
        "status_ref": scene.references.values().next().map_or("none", String::as_str),
        "expected_request_sha256": vectors()["digests"][0]["request_sha256"],
    }));
    base["call"] = call(json!({ "call_id": "status-call", "response_id": "status-response" }));
    over(more, &base)
}

/// A worker that comes by at this second.
pub(crate) fn work(now: i64) -> Value {
    json!({ "op": "process", "now": now })
}

impl Scene {
    /// Plays a step, and says what came of it: a code, or how it was delivered.
    pub(crate) async fn says(&mut self, step: Value) -> String {
        let came = self.step(&step).await;
        came.learn(&json!({ "downstream": { "status_ref": "the reference" } }), self);
        match &came {
            Came::Told(package) if package.code().is_none() => delivery(package),
            came => came.word(),
        }
    }

    /// Plays a step whose package is looked at.
    pub(crate) async fn package(&mut self, step: Value) -> Package {
        match self.step(&step).await {
            Came::Told(package) => *package,
            other => panic!("nothing was told: {}", other.word()),
        }
    }

    /// How many drafts the remote has.
    pub(crate) fn drafts(&self) -> usize {
        self.world.outside().drafts.len()
    }
}

fn delivery(package: &Package) -> String {
    text(&crate::scene::plain(package)["model_result"]["execution"], "delivery").to_owned()
}

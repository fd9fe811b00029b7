//! Closing a store ends its threads: alone in its process, since it counts them.

#![cfg(target_os = "linux")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use onceseal::config::{Config, Settings};
use onceseal::store::clock::SystemClock;
use onceseal::store::place::Surroundings;
use onceseal::{Control, Failure, Opening, Principal};

/// Names of this process's threads that are the engine's, as far as Linux
/// keeps them: 15 bytes.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads");
    // A thread may end while it is looked at.
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    let mut names: Vec<_> = names.map(|name| name.trim().to_owned()).collect();
    names.retain(|name| name.starts_with("onceseal-"));
    names.sort();
    names
}

/// Waits until these are there: a thread takes its name, and goes, in its own time.
async fn until_there_are(expected: &[&str]) {
    let late = Instant::now() + Duration::from_secs(30);
    while threads() != expected {
        assert!(Instant::now() < late, "{:?}", threads());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn keeper_sweeper_and_writer_stop_when_the_store_is_closed_or_dropped() {
    let home = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(home.path().join("work")).expect("a directory");
    let surroundings = Surroundings {
        state: Some(home.path().join("state").into()),
        xdg_state_home: Some(home.path().join("marks").into()),
        home: None,
        ..Surroundings::of_process(home.path().join("work"))
    };
    let opening =
        Opening { surroundings, settings: Settings::default(), clock: Arc::new(SystemClock), sweep: true };
    let file = b"schema: onceseal.policy/v1\nactions:\n  pay: { effect: 'pay:{order}', decision: allow }\n";
    let policy = Config::parse(file).expect("a policy").policy;
    for closing in [true, false] {
        let opening = opening.clone();
        let found = tokio::task::spawn_blocking(move || Control::found(&opening)).await.expect("no panic");
        let control = found.expect("a store");
        until_there_are(&["onceseal-chores", "onceseal-keeper", "onceseal-sweepe", "onceseal-writer"]).await;
        control.activate(policy.clone(), false, None).await.expect("active");
        let call = control.action("pay").arg("order", format!("{closing}")).by(Principal::agent("bot"));
        // A lease is being kept while the store is closed under it.
        let other = control.clone();
        let result = call.execute(|_| async move {
            if closing {
                other.close();
            }
            Ok::<_, Failure>(())
        });
        assert_eq!(result.await.is_ok(), !closing);
        drop(control);
        until_there_are(&[]).await;
    }
}

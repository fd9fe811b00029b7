//! Several processes on one file: this test program, run again as its own
//! children.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use onceseal::core::approval::{Said, Status};
use onceseal::core::effect::EffectState;
use onceseal::core::id::ApprovalId;
use onceseal::core::stream::StreamKind;
use onceseal::store::clock::SystemClock;
use onceseal::views::Filter;
use onceseal::{Control, Failure, Opening};

use crate::support::{Home, POLICY, bot, pay, policy, surroundings};

/// Where a child finds the store.
pub(crate) const PLACE: &str = "ONCESEAL_TEST_PLACE";
/// Effects that two processes fight over.
const ORDERS: usize = 12;

/// Runs a test of this program in a process of its own, until it says so.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(test: &str, base: &Path, told: &[(&str, &str)]) -> Process {
        let program = std::env::current_exe().expect("this program");
        let child = Command::new(program)
            .args(["--exact", test, "--ignored", "--nocapture"])
            .env(PLACE, base)
            .envs(told.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        Process(child)
    }

    /// Waits until the child is ready.
    pub(crate) fn ready(&mut self) {
        let out = self.0.stdout.as_mut().expect("its output");
        let ready = BufReader::new(out).lines().map_while(Result::ok).any(|line| line.ends_with("ready"));
        assert!(ready, "the child ended");
    }

    pub(crate) fn go(&mut self) {
        self.0.stdin.as_mut().expect("its input").write_all(b"go\n").expect("heard");
    }

    /// Waits until it has ended, and says whether it ended well.
    pub(crate) fn success(mut self) -> bool {
        self.0.wait().expect("it ends").success()
    }
}

/// What a child says and waits for before it does its part.
pub(crate) fn wait_for_go() {
    println!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("told");
}

fn opening(base: &Path) -> Opening {
    Opening {
        surroundings: surroundings(base),
        settings: onceseal::config::Settings::default(),
        clock: Arc::new(SystemClock),
        sweep: true,
    }
}

pub(crate) async fn open(base: &Path) -> Control {
    let opening = opening(base);
    tokio::task::spawn_blocking(move || Control::found(&opening)).await.expect("no panic").expect("the store")
}

/// A remote without keys: a line in a file for each hit.
fn hit(base: &Path, order: usize) {
    let file = std::fs::OpenOptions::new().create(true).append(true).open(base.join("hits"));
    writeln!(file.expect("a file"), "{order}").expect("written");
}

async fn pay_all(base: PathBuf, control: Control) {
    let calls: Vec<_> = (0..ORDERS)
        .map(|order| {
            let (base, call) = (base.clone(), pay(&control, &format!("o{order}"), 5));
            tokio::spawn(call.replay().wait(Duration::from_secs(60)).execute(move |_| async move {
                hit(&base, order);
                Ok::<_, Failure>("paid")
            }))
        })
        .collect();
    for call in calls {
        let receipt = call.await.expect("no panic").expect("paid here or there");
        assert_eq!(receipt.value, Some("paid".into()));
    }
}

#[tokio::test]
#[ignore = "a child of another test"]
async fn child_that_pays() {
    let base = PathBuf::from(std::env::var_os(PLACE).expect("a place"));
    let control = open(&base).await;
    wait_for_go();
    pay_all(base, control).await;
}

#[tokio::test]
async fn p03_two_processes_on_one_file_do_each_effect_once() {
    let home = Home::new();
    let base = home.dir.path();
    let control = open(base).await;
    control.activate(policy(POLICY), false, None).await.expect("active");
    let mut other = Process::start("processes::child_that_pays", base, &[]);
    other.ready();
    other.go();
    pay_all(base.to_owned(), control.clone()).await;
    assert!(other.success());
    let hits = std::fs::read_to_string(base.join("hits")).expect("hits");
    let mut counted = BTreeMap::new();
    hits.lines().for_each(|order| *counted.entry(order).or_insert(0) += 1);
    assert_eq!(counted.len(), ORDERS);
    assert!(counted.values().all(|hits| *hits == 1), "{counted:?}");
    for order in 0..ORDERS {
        let row = control.effect(&format!("pay:o{order}")).expect("readable").expect("there");
        assert_eq!((row.state, row.fence), (EffectState::Committed, 1));
    }
}

#[tokio::test]
#[ignore = "a child of another test"]
async fn child_that_answers() {
    let control = open(&PathBuf::from(std::env::var_os(PLACE).expect("a place"))).await;
    wait_for_go();
    let filter = Filter { state: Some(Status::Pending.number()), ..Filter::default() };
    let listed = control.list(StreamKind::Approval, &filter, 10).expect("readable");
    let (stream, _) = listed.items.first().expect("a request");
    let approval = ApprovalId(stream.name);
    crate::support::answer(&control, approval, "ann", Said::Yes).await.expect("counted");
}

#[tokio::test]
async fn a_waiting_call_is_woken_by_an_answer_in_another_process() {
    let home = Home::new();
    let control = open(home.dir.path()).await;
    control.activate(policy(POLICY), false, None).await.expect("active");
    let mut person = Process::start("processes::child_that_answers", home.dir.path(), &[]);
    person.ready();
    let call = control.action("ask").arg("order", "o").by(bot()).wait(Duration::from_secs(60));
    let mut call = Box::pin(call.execute(|_| async { Ok::<_, Failure>("done") }));
    // Until the request is there.
    while control.attention().expect("readable").pending.count == 0 {
        assert!(crate::support::poll_once(call.as_mut()).is_pending());
        tokio::task::yield_now().await;
    }
    person.go();
    assert_eq!(call.await.expect("committed").value, Some("done".into()));
    assert!(person.success());
}

#[tokio::test]
#[ignore = "a child of another test"]
async fn child_that_changes_the_policy() {
    let control = open(&PathBuf::from(std::env::var_os(PLACE).expect("a place"))).await;
    wait_for_go();
    let deny = policy("schema: onceseal.policy/v1\nactions:\n  pay: { decision: deny }\n");
    control.activate(deny, false, None).await.expect("active");
}

#[tokio::test]
async fn a_policy_made_active_by_another_process_decides_here() {
    let home = Home::new();
    let control = open(home.dir.path()).await;
    control.activate(policy(POLICY), false, None).await.expect("active");
    let mut other = Process::start("processes::child_that_changes_the_policy", home.dir.path(), &[]);
    other.ready();
    other.go();
    assert!(other.success());
    let denied = pay(&control, "o", 5).execute(crate::support::never).await;
    assert_eq!(crate::support::code(denied), "policy_denied");
    let again = control.activate(policy(POLICY), false, None).await;
    assert_eq!(crate::support::code(again), "policy_file_old");
}

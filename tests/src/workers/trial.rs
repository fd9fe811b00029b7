//! A project with a remote, and workers that are hired, killed and dismissed.

use std::fs::{self, File, OpenOptions};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use onceseal::config::{Config, Settings};
use onceseal::core::stream::StreamKind;
use onceseal::store::place::Surroundings;
use onceseal::views::{Filter, state_numbers};
use onceseal::{Control, Opening};
use onceseal_example_refunds::{Faults, Options, Service};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::Size;
use crate::chance::Chance;

/// Two contracts with one remote. Asked about what is not known, it may be one
/// that pays whatever comes; made again with the same key, it must know keys.
/// Whatever it is late with is paid after the lease's end, and before it is asked.
const CONFIG: &str = "schema: onceseal.policy/v1
actions:
  refund.asked: { effect: 'refund:{payment}', decision: allow }
  refund.repeated: { effect: 'refund:{payment}', decision: allow }
tools:
  refund.asked:
    recovery: ask
    settle: 2500ms
    lease: 1500ms
    request_timeout: 1s
    http:
      url: http://ADDRESS/forgetful/refunds
      body: { payment_id: '{payment}', amount: '{amount}' }
      receipt: /id
      status: { url: 'http://ADDRESS/refunds?key={provider:key}' }
      allow: [127.0.0.1]
  refund.repeated:
    recovery: same_key
    key_ttl: 1h
    lease: 1500ms
    request_timeout: 1s
    http:
      url: http://ADDRESS/REPEATED
      body: { payment_id: '{payment}', amount: '{amount}' }
      receipt: /id
      allow: [127.0.0.1]
";
const LATE_BY: Duration = Duration::from_millis(1_800);
/// How often it is looked whether all is done.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A project, a remote and the workers.
pub(super) struct Trial {
    pub(super) seed: u64,
    pub(super) size: Size,
    base: TempDir,
    program: PathBuf,
    chance: Chance,
    pub(super) service: Service,
    pub(super) workers: Vec<Child>,
    pub(super) kills: usize,
    pub(super) broken: Vec<String>,
}

impl Trial {
    pub(super) fn new(program: &Path, seed: u64, size: &Size) -> Trial {
        let base = tempfile::tempdir().expect("a directory");
        for name in ["project", "state"] {
            fs::create_dir(base.path().join(name)).expect("a directory");
        }
        let faults = Faults { seed, drop: 2, lose: 10, late: 5, late_by: LATE_BY };
        let ledger = base.path().join("ledger");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let options = Options { ledger, faults, takes: size.takes, tell: |_| () };
        let service = Service::start(listener, options).expect("a remote");
        let repeated = if size.keeps_keys { "refunds" } else { "forgetful/refunds" };
        let config = CONFIG.replace("ADDRESS", &service.address().to_string()).replace("REPEATED", repeated);
        let trial = Trial {
            seed,
            size: size.clone(),
            base,
            program: program.to_owned(),
            chance: Chance::of(!seed),
            service,
            workers: Vec::new(),
            kills: 0,
            broken: Vec::new(),
        };
        fs::write(trial.project().join("onceseal.yaml"), config).expect("written");
        let made = trial.command(&["init"]).output().expect("a run");
        assert!(made.status.success(), "{made:?}");
        trial
    }

    fn project(&self) -> PathBuf {
        self.base.path().join("project")
    }

    pub(super) fn config(&self) -> Config {
        Config::load(&self.project().join("onceseal.yaml")).expect("a configuration")
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(self.project()).env_clear();
        command.env("HOME", self.base.path()).env("XDG_STATE_HOME", self.base.path().join("state"));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// The store, as a client has it that sweeps nothing.
    pub(super) fn control(&self, runtime: &Runtime) -> Control {
        let surroundings = Surroundings {
            state: None,
            home: Some(self.base.path().into()),
            xdg_state_home: Some(self.base.path().join("state").into()),
            ..Surroundings::of_process(self.project())
        };
        let opening = Opening::new(Settings::default()).expect("a working directory");
        let control = Control::found(&Opening { surroundings, sweep: false, ..opening }).expect("a store");
        let activated = runtime.block_on(control.activate(Arc::clone(&self.config().policy), false, None));
        activated.expect("its policy");
        control
    }

    fn log(&self) -> PathBuf {
        self.base.path().join("workers.log")
    }

    pub(super) fn hire(&self) -> Child {
        let log: File = OpenOptions::new().create(true).append(true).open(self.log()).expect("a file");
        let at_once = self.size.at_once.to_string();
        self.command(&["worker", "--at-once", &at_once]).stderr(log).spawn().expect("a worker")
    }

    /// Kills a worker after each pause, once something has reached the remote
    /// since, until everything is done.
    pub(super) fn torment(&mut self, control: &Control, dispatched: impl Fn() -> bool) {
        let give_up = Instant::now() + self.size.patience;
        let mut seen = 0;
        while Instant::now() < give_up {
            let (least, most) = self.size.pause;
            let more = u64::try_from((most - least).as_millis()).unwrap_or(u64::MAX).max(1);
            let due = Instant::now() + least + Duration::from_millis(self.chance.below(more));
            let mut reached = seen;
            while reached == seen || Instant::now() < due || self.kills == self.size.kills {
                if dispatched() && self.is_quiet(control) {
                    return;
                }
                reached = self.service.wait(reached.max(seen), LOOK_EVERY);
                if Instant::now() > give_up {
                    break;
                }
            }
            seen = reached;
            self.kill();
        }
        self.broken.push(format!("not everything had ended after {:?}", self.size.patience));
    }

    /// Whether nothing waits for a worker, and none has anything.
    fn is_quiet(&self, control: &Control) -> bool {
        let open = |(_, name): &(u8, &str)| ["queued", "running"].contains(name);
        state_numbers(StreamKind::Action).into_iter().filter(open).all(|(state, _)| {
            let filter = Filter { state: Some(state), ..Filter::default() };
            let listed = control.list(StreamKind::Action, &filter, 1).expect("readable");
            listed.items.is_empty() && listed.unreadable.is_empty()
        })
    }

    /// Kills one worker, and has another take its place.
    fn kill(&mut self) {
        let at = usize::try_from(self.chance.below(self.workers.len() as u64)).unwrap_or(0);
        if let Some(status) = self.workers[at].try_wait().expect("looked at") {
            self.broken.push(format!("a worker ended by itself: {status}\n{}", self.said()));
        }
        self.workers[at].kill().expect("killed");
        self.workers[at].wait().expect("gone");
        self.kills += 1;
        self.workers[at] = self.hire();
    }

    /// Tells the workers to stop, and waits until they have.
    pub(super) fn dismiss(&mut self) {
        for worker in &self.workers {
            // One that has ended by itself is noticed below.
            let pid = rustix::process::Pid::from_child(worker);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        for mut worker in std::mem::take(&mut self.workers) {
            let status = worker.wait().expect("gone");
            // One that was told before it had begun had nothing to wait for.
            let unbegun = status.signal() == Some(rustix::process::Signal::TERM.as_raw());
            if !status.success() && !unbegun {
                self.broken.push(format!("a worker did not end well: {status}\n{}", self.said()));
            }
        }
    }

    pub(super) fn said(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_default()
    }
}

/// A trial that panics leaves no worker behind.
impl Drop for Trial {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            drop(worker.kill());
            drop(worker.wait());
        }
    }
}

//! A project in a private directory, and the program run in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use onceseal::Opening;
use onceseal::blocking::Control;
use onceseal::config::{Config, Settings};
use onceseal::store::clock::{Clock, ManualClock, Reading, SystemClock};
use onceseal::store::place::Surroundings;
use serde_json::Value;
use tempfile::TempDir;

/// A home, a state directory and a project, all temporary.
pub(crate) struct Project {
    base: TempDir,
}

/// What a run of the program came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Project {
    /// A directory that is no project yet.
    pub(crate) fn empty() -> Project {
        let base = tempfile::tempdir().expect("a directory");
        for name in ["project", "state", "tmp"] {
            fs::create_dir(base.path().join(name)).expect("a directory");
        }
        Project { base }
    }

    /// A project with the policy that `init` writes.
    pub(crate) fn new() -> Project {
        let project = Project::empty();
        project.ok(&["init"]);
        project
    }

    /// A project with this policy.
    pub(crate) fn with_policy(actions: &str) -> Project {
        let project = Project::new();
        project.set_policy(actions);
        project
    }

    pub(crate) fn set_policy(&self, actions: &str) {
        let text = format!("schema: onceseal.policy/v1\n{actions}");
        fs::write(self.path("onceseal.yaml"), text).expect("a policy");
    }

    pub(crate) fn base(&self) -> &Path {
        self.base.path()
    }

    /// A path in the project.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.base.path().join("project").join(name)
    }

    /// A file of the project, empty if there is none.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The state directory of this project.
    pub(crate) fn state(&self) -> PathBuf {
        let root = self.base.path().join("state/onceseal");
        let is_project = |path: &PathBuf| path.is_dir() && !path.ends_with("marks");
        let entries = fs::read_dir(root).expect("a state root").map(|entry| entry.expect("an entry").path());
        entries.into_iter().find(is_project).expect("the project's state")
    }

    /// The project's store, as a program that embeds the library opens it
    /// under the project's policy; its clock stood still so many minutes ago.
    pub(crate) fn embedded(&self, minutes_ago: i64) -> Control {
        let Reading { wall_us, boot_us } = SystemClock.now();
        let ago = minutes_ago * 60_000_000;
        let clock = ManualClock::new(Reading { wall_us: wall_us - ago, boot_us: boot_us - ago });
        let opening = Opening { clock: Arc::new(clock), ..self.opening(Settings::default()) };
        let control = Control::found(&opening).expect("a store");
        let policy = Config::load(&self.path("onceseal.yaml")).expect("a policy").policy;
        control.activate(policy, false, None).expect("its policy");
        control
    }

    /// How such a program opens a store of the project.
    pub(crate) fn opening(&self, settings: Settings) -> Opening {
        let surroundings = Surroundings {
            state: None,
            home: Some(self.base().into()),
            xdg_state_home: Some(self.base().join("state").into()),
            ..Surroundings::of_process(self.path(""))
        };
        let opening = Opening::new(settings).expect("a working directory");
        Opening { surroundings, sweep: false, ..opening }
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.state().join("onceseal.db")
    }

    /// The program, to be run in the project.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onceseal"));
        command
            .args(args)
            .current_dir(self.path(""))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.base.path())
            .env("TMPDIR", self.base.path().join("tmp"))
            .env("XDG_STATE_HOME", self.base.path().join("state"))
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        ran(self.command(args).output().expect("a run"))
    }

    /// A run that must end well.
    pub(crate) fn ok(&self, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{args:?}\n{ran:?}");
        ran
    }

    /// A run that must be refused.
    pub(crate) fn refused(&self, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, 1, "{args:?}\n{ran:?}");
        ran
    }

    /// The document that a run prints.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        self.ok(&args).document()
    }

    /// The items of a list.
    pub(crate) fn items(&self, args: &[&str]) -> Vec<Value> {
        let document = self.json(args);
        document["items"].as_array().expect("items").clone()
    }

    /// Pays a refund by appending a line to `calls`.
    pub(crate) fn refund(&self, payment: &str, amount: i64, more: &[&str]) -> Ran {
        self.run(&refund(payment, amount, more, "echo x >> calls").each())
    }

    /// Asks for a refund that a person must approve; the request's id.
    pub(crate) fn asked(&self, payment: &str) -> String {
        let ran = self.refund(payment, 500_000, &["--json"]);
        assert_eq!(ran.code, 1, "{ran:?}");
        ran.error()["approval"].as_str().expect("a request").to_owned()
    }

    /// Leaves the outcome of a refund unknown.
    pub(crate) fn unknown(&self, payment: &str) {
        let ran = self.run(&refund(payment, 1, &[], "kill -9 $$").each());
        assert_eq!(ran.code, 1, "{ran:?}");
    }
}

/// A command line of its own texts.
pub(crate) struct Line(Vec<String>);

impl Line {
    pub(crate) fn each(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).collect()
    }
}

/// The command line of a refund that a shell script carries out.
pub(crate) fn refund(payment: &str, amount: i64, more: &[&str], script: &str) -> Line {
    let payment = format!("payment_id={payment}");
    let amount = format!("amount:={amount}");
    let call = ["exec", "stripe.refund", "--arg", &payment, "--arg", &amount];
    let shell = ["--", "sh", "-c", script];
    let line = call.iter().chain(more).chain(&shell);
    Line(line.map(|&word| word.to_owned()).collect())
}

pub(crate) fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code().expect("no signal ended it"),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

impl Ran {
    /// Both streams.
    pub(crate) fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// The document on stdout.
    pub(crate) fn document(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The error object, the last line of stderr.
    pub(crate) fn error(&self) -> Value {
        let line = self.stderr.lines().last().unwrap_or_default();
        let document: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        document["error"].clone()
    }
}

/// Compares a text with its snapshot, ids, hashes and times replaced.
pub(crate) fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for (pattern, replacement) in [
        (r"(act|apr|rcp|run|holder|root)_[0-9a-f]{32}", "${1}_ID"),
        (r"(action|approval|effect|policy|store)/[0-9a-f]{32}", "$1/NAME"),
        (r"sha256:[0-9a-f]{64}", "HASH"),
        (r"[0-9a-f]{32,64}", "HEX"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", "TIME"),
        (r"\b\d+[smhd]\b *", "AGE "),
        (r"(os|cli):[a-z_][a-z0-9_-]*", "$1:LOGIN"),
        (r#"/[^ \n"]*/(project|state)\b[^ \n"]*"#, "PATH"),
    ] {
        settings.add_filter(pattern, replacement);
    }
    settings.bind(|| insta::assert_snapshot!(name, text));
}

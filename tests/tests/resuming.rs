//! The example of a change, killed with SIGKILL at each of its steps and begun again:
//! it ends as it would have, and each task's effect was done once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use onceseal_tests::program::{build, root};

/// Longer than any of it takes on a machine that does other things too.
const LATE: Duration = Duration::from_secs(120);
/// Runs until it is completed: each person's answer and each lost lease is one.
const RUNS: usize = 12;

struct Project {
    home: tempfile::TempDir,
    path: String,
}

impl Project {
    fn new(program: &Path) -> Project {
        let home = tempfile::tempdir().expect("a directory");
        let path = format!(
            "{}:{}",
            program.parent().expect("a directory").display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let project = Project { home, path };
        fs::create_dir(project.at("")).expect("a directory");
        for entry in fs::read_dir(root().join("examples/changes")).expect("the example") {
            let entry = entry.expect("an entry");
            fs::copy(entry.path(), project.at(&entry.file_name().to_string_lossy())).expect("copied");
        }
        project.ok(&["onceseal", "init"]);
        project
    }

    fn at(&self, name: &str) -> PathBuf {
        self.home.path().join("project").join(name)
    }

    fn command(&self, line: &[&str]) -> Command {
        let mut command = Command::new(line[0]);
        command
            .args(&line[1..])
            .current_dir(self.at(""))
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.home.path())
            .stdin(Stdio::null());
        command
    }

    fn ok(&self, line: &[&str]) -> String {
        let output = self.command(line).output().expect("it runs");
        assert!(output.status.success(), "{line:?}: {}", told(&output));
        String::from_utf8(output.stdout).expect("text")
    }

    fn begin(&self, pause_at: &str) -> Child {
        let mut command = self.command(&["./run.sh", "add-login"]);
        command.env("PAUSE_AT", pause_at).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("it starts")
    }

    /// Says yes to everything that is asked.
    fn approve(&self) {
        let pending = self.ok(&["onceseal", "pending", "--json"]);
        let ids: BTreeSet<&str> = pending.split('"').filter(|text| text.starts_with("apr_")).collect();
        ids.iter().for_each(|id| drop(self.ok(&["onceseal", "approve", id])));
    }

    fn lines(&self, name: &str) -> Vec<String> {
        fs::read_to_string(self.at(name)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn go_on(&self, change: &str) -> Output {
        self.command(&["./run.sh", change]).output().expect("it runs")
    }

    /// The newest run of a change, as it is shown and by its id.
    fn shown(&self, change: &str) -> (String, String) {
        let shown = self.ok(&["onceseal", "runs", "show", &format!("delivery/{change}"), "--json"]);
        let id = shown.split('"').rfind(|text| text.starts_with("run_")).expect("an id").to_owned();
        (shown, id)
    }

    /// What the newest run of a change has written in the directories of its tasks.
    fn written(&self, change: &str) -> Vec<String> {
        let id = self.shown(change).1;
        let of = ["site/account", "docs", "site/form", "site/page"];
        of.iter().flat_map(|claimed| self.lines(&format!("{claimed}/{id}"))).collect()
    }
}

fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A process and all that it has started, itself first: whoever is killed last sees
/// nothing of it.
fn family(of: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").expect("processes").filter_map(Result::ok) {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // After the name, which may have anything in it: the state, then the parent.
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
        children.entry(parent.unwrap_or_default()).or_default().push(pid);
    }
    let mut all = vec![of];
    let mut next = 0;
    while let Some(pid) = all.get(next).copied() {
        all.extend(children.get(&pid).into_iter().flatten());
        next += 1;
    }
    all
}

fn kill(child: &mut Child) {
    let family: Vec<String> = family(child.id()).iter().map(u32::to_string).collect();
    // One that has ended by itself meanwhile is none the less gone.
    Command::new("kill").arg("-9").args(family).stderr(Stdio::null()).status().expect("kill");
    child.wait().expect("gone");
}

/// Waits until it has ended, or stays where it is to be killed.
fn wait(project: &Project, child: &mut Child, pause_at: &str) -> Option<i32> {
    let late = Instant::now() + LATE;
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status.code();
        }
        if project.at(&format!("at.{pause_at}")).exists() {
            return None;
        }
        if Instant::now() > late {
            kill(child);
            panic!("{pause_at}: it neither ended nor came there");
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// Follows the change to its end, killed once at this point. `false`: it was never
/// there.
fn follow(project: &Project, point: &str) -> bool {
    let mut pause_at = point;
    for _ in 0..RUNS {
        let mut child = project.begin(pause_at);
        match wait(project, &mut child, pause_at) {
            Some(0) => return pause_at != point || point.is_empty(),
            Some(3) => project.approve(),
            Some(_) => {}
            None => {
                kill(&mut child);
                fs::remove_file(project.at(&format!("at.{point}"))).expect("it was there");
                pause_at = "nowhere";
            }
        }
    }
    panic!("{point}: it was not completed");
}

fn is_complete(project: &Project, point: &str) {
    let (shown, id) = project.shown("add-login");
    assert!(shown.contains("\"state\":\"completed\""), "{point}: {shown}");
    assert!(shown.contains("\"tasks\":{\"verified\":4}"), "{point}: {shown}");
    assert_eq!(project.written("add-login"), ["account", "docs", "form", "page"], "{point}: each once");
    assert_eq!(project.lines(&format!("applied/{id}")), ["all"], "{point}");
    let runs = project.ok(&["onceseal", "runs", "list", "--json"]);
    assert_eq!(runs.matches("\"run\":\"run_").count(), 1, "{point}: it was joined");
    let audit = project.ok(&["onceseal", "audit", "--json"]);
    assert!(audit.contains("\"clean\":true"), "{point}: {audit}");
}

const POINTS: &[&str] = &[
    "created",
    "validating-delivery",
    "approval-needed",
    "bound-gate-a",
    "bound-gate-b",
    "planned",
    "ready",
    "running",
    "begun-form",
    "writing-account",
    "wrote-form",
    "done-account",
    "checking-form",
    "wrote-page",
    "checking-docs",
    "worked",
    "change-verifying",
    "ready-to-apply",
    "applying",
    "writing-all",
    "wrote-all",
    "applied",
];

#[test]
fn p03_a_change_that_is_killed_at_any_step_is_completed_with_every_effect_done_once() {
    let program = build("onceseal-cli");
    let undisturbed = Project::new(&program);
    assert!(follow(&undisturbed, ""));
    is_complete(&undisturbed, "undisturbed");
    for points in POINTS.chunks(4) {
        std::thread::scope(|scope| {
            for point in points {
                let program = &program;
                scope.spawn(move || {
                    let project = Project::new(program);
                    assert!(follow(&project, point), "{point}: nothing was killed");
                    is_complete(&project, point);
                });
            }
        });
    }
}

#[test]
fn a_change_that_a_person_denies_goes_no_further_and_another_beside_it_is_completed() {
    let project = Project::new(&build("onceseal-cli"));
    assert_eq!(project.go_on("add-login").status.code(), Some(3));
    let pending = project.ok(&["onceseal", "pending", "--json"]);
    let first = pending.split('"').find(|text| text.starts_with("apr_")).expect("a request").to_owned();
    project.ok(&["onceseal", "deny", &first]);
    project.approve();
    for _ in 0..2 {
        let denied = project.go_on("add-login");
        assert_eq!(denied.status.code(), Some(3), "{}", told(&denied));
        assert!(told(&denied).contains(" was denied; change it"), "{}", told(&denied));
    }
    let shown = project.shown("add-login").0;
    assert!(shown.contains("\"state\":\"approval-needed\"") && shown.contains("\"plan\":null"), "{shown}");
    for change in ["add-logout", "add-help"] {
        assert_eq!(project.go_on(change).status.code(), Some(3));
        project.approve();
        let done = project.go_on(change);
        assert_eq!(done.status.code(), Some(0), "{}", told(&done));
        assert_eq!(project.written(change), ["account", "docs", "form", "page"], "{change}: each once");
    }
    // Whoever changes what was denied asks about something else.
    let denied = if told(&project.go_on("add-login")).contains("design.md was denied") {
        "design.md"
    } else {
        "plan.json"
    };
    let text = fs::read_to_string(project.at(denied)).expect("a file");
    fs::write(project.at(denied), format!("{text}\n")).expect("written");
    assert_eq!(project.go_on("add-login").status.code(), Some(3));
    project.approve();
    let done = project.go_on("add-login");
    assert_eq!(done.status.code(), Some(0), "{}", told(&done));
}

#[test]
fn a_change_that_was_discarded_begins_with_the_next_run() {
    let project = Project::new(&build("onceseal-cli"));
    assert_eq!(project.go_on("add-login").status.code(), Some(3));
    let first = project.shown("add-login").1;
    project.ok(&["onceseal", "runs", "discard", "delivery/add-login"]);
    assert_eq!(project.go_on("add-login").status.code(), Some(3));
    assert_ne!(project.shown("add-login").1, first);
    project.approve();
    for _ in 0..2 {
        let done = project.go_on("add-login");
        assert_eq!(done.status.code(), Some(0), "{}", told(&done));
    }
    assert_eq!(project.written("add-login"), ["account", "docs", "form", "page"], "each once");
    let runs = project.ok(&["onceseal", "runs", "list", "--json"]);
    assert_eq!(runs.matches("\"state\":\"").count(), 2, "{runs}");
}

#[test]
fn a_plan_that_is_changed_after_it_was_bound_is_approved_anew_before_it_is_planned() {
    let project = Project::new(&build("onceseal-cli"));
    assert_eq!(project.go_on("add-login").status.code(), Some(3));
    project.approve();
    // Bound and not planned yet, and then planned: whichever revision is asked for, the
    // plan is only what was approved as that.
    for (revision, pause_at) in [(2, "bound-gate-b"), (3, "running")] {
        let mut child = project.begin(pause_at);
        assert_eq!(wait(&project, &mut child, pause_at), None);
        kill(&mut child);
        let plan = fs::read_to_string(project.at("plan.json")).expect("a plan");
        let task = format!("\"tasks\": [{{ \"id\": \"r{revision}\", \"writes\": [\"r{revision}\"] }},");
        let changed = plan.replacen("\"tasks\": [", &task, 1);
        assert_ne!(plan, changed);
        fs::write(project.at("plan.json"), changed).expect("written");
        let asked = project.go_on("add-login");
        assert_eq!(asked.status.code(), Some(3), "{}", told(&asked));
        let says = format!("plan.json was changed, so it goes on with revision {revision}");
        assert!(told(&asked).contains(&says), "{}", told(&asked));
        project.approve();
    }
    let done = project.go_on("add-login");
    assert_eq!(done.status.code(), Some(0), "{}", told(&done));
    assert_eq!(project.written("add-login"), ["account", "docs", "form", "page"], "each once");
    let (shown, id) = project.shown("add-login");
    assert!(shown.contains("\"tasks\":{\"verified\":6}"), "{shown}");
    let planned = ["r2", "r3"].map(|task| project.lines(&format!("{task}/{id}")));
    assert_eq!(planned, [["r2"], ["r3"]]);
}

#[test]
fn a_worker_of_a_change_does_not_go_on_alone() {
    let project = Project::new(&build("onceseal-cli"));
    // Whoever takes `form` finds it wrong, and the other worker is at `account`.
    let check = fs::read_to_string(project.at("check.sh")).expect("a check");
    fs::write(project.at("check.sh"), format!("{check}[ \"$ONCESEAL_TASK\" != form ]\n")).expect("written");
    let mut child = project.begin("nowhere");
    assert_eq!(wait(&project, &mut child, "nowhere"), Some(3));
    project.approve();
    let ended = project.command(&["./run.sh", "add-login"]).output().expect("it runs");
    assert_eq!(ended.status.code(), Some(1), "{}", told(&ended));
    assert!(told(&ended).contains("onceseal runs blockers run_"), "{}", told(&ended));
    // Output ends only with the last process that has it: nobody was left.
    let tasks = project.ok(&["onceseal", "tasks", "list", "delivery/add-login", "--json"]);
    assert!(!tasks.contains("\"state\":\"running\"") && !tasks.contains("\"state\":\"queued\""), "{tasks}");
}

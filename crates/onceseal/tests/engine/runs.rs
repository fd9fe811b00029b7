//! Runs as a program meets them: started once, moved on by their definition, and
//! read without being changed.

use std::path::PathBuf;

use onceseal::config::Config;
use onceseal::core::hash::Hash;
use onceseal::core::id::RunId;
use onceseal::runs::{Definition, RunFilter, Runs, Stand, Subject};
use onceseal::{Control, Principal};

use crate::processes::{PLACE, Process, open, wait_for_go};
use crate::support::{Home, POLICY, World, bot, code, policy};

const REVIEW: &str = "
schema: onceseal.policy/v1
runs:
  review:
    initial: open
    states:
      open: { to: [closed, open], interrupted: open, commands: { close: closed, ask: null } }
      closed: { terminal: true }
actions: {}
";

fn runs(control: &Control) -> Runs {
    control.runs().by(bot())
}

async fn started(runs: &Runs, change: &str) -> RunId {
    runs.start("simple").change(change).send().await.expect("started").run.id()
}

#[tokio::test]
async fn a_change_has_one_living_run_and_the_next_one_names_the_last() {
    for world in World::both().await {
        let runs = runs(&world.control);
        let first = runs.start("simple").change("c").request("s1").send().await.expect("started");
        assert!(!first.answer.answered.joined);
        let joined = runs.start("simple").change("c").request("s2").send().await.expect("joined");
        assert_eq!((joined.run.id(), joined.answer.answered.joined), (first.run.id(), true));
        let subject = Subject::Change("c".into());
        let found = runs.find("simple", &subject).await.expect("readable").expect("it lives");
        assert_eq!(found.id(), first.run.id());
        first.run.command("cancel").code("no-longer-wanted").send().await.expect("cancelled");
        let ended = runs.find("simple", &subject).await.expect("readable").expect("it was there");
        assert_eq!(ended.id(), first.run.id());
        let next = runs.start("simple").change("c").send().await.expect("started").run;
        assert_ne!(next.id(), first.run.id());
        let view = next.view().await.expect("there");
        assert_eq!((view.row.previous, view.row.ordinal), (Some(first.run.id()), 1));
        let found = runs.find("simple", &subject).await.expect("readable").expect("it lives");
        assert_eq!(found.id(), next.id());
        assert!(runs.find("delivery", &subject).await.expect("readable").is_none());
    }
}

#[tokio::test]
async fn a_request_made_to_a_run_that_ended_is_not_of_the_one_that_followed() {
    for world in World::both().await {
        let (runs, subject) = (runs(&world.control), Subject::Change("c".into()));
        let first = started(&runs, "c").await;
        let cancel = async || {
            let asked =
                runs.find_asked("simple", &subject, "cancel-1").await.expect("readable").expect("there");
            (asked.id(), asked.command("cancel").request("cancel-1").send().await.expect("answered").replayed)
        };
        assert_eq!(cancel().await, (first, false));
        let next = started(&runs, "c").await;
        assert_eq!(cancel().await, (first, true), "the answer was lost, and the next run lives on");
        let other =
            runs.find_asked("simple", &subject, "never-made").await.expect("readable").expect("there");
        assert_eq!(other.id(), next);
        assert!(runs.find_asked("delivery", &subject, "cancel-1").await.expect("readable").is_none());
    }
}

#[tokio::test]
async fn a_request_is_answered_as_the_first_time_and_belongs_to_whoever_made_it() {
    let world = World::memory(POLICY).await;
    let runs = runs(&world.control);
    let run = runs.start("simple").change("c").request("s").send().await.expect("started").run;
    let moved = run.transition("running").request("m").send().await.expect("moved");
    run.transition("completed").send().await.expect("done");
    let again = run.transition("running").request("m").send().await.expect("answered");
    assert_eq!((again.replayed, &again.answered), (true, &moved.answered));
    assert_eq!((again.now.state.as_str(), again.now.terminal), ("completed", true));
    let other = runs.clone().by(Principal::agent("another")).run(run.id());
    assert_eq!(code(other.transition("running").request("m").send().await), "request_id_conflict");
    assert_eq!(code(run.transition("paused").request("m").send().await), "request_id_conflict");
    assert_eq!(code(run.transition("paused").request("-").send().await), "request_id_invalid");
    assert_eq!(code(run.transition("running").send().await), "run_ended");
    assert_eq!(code(runs.run(RunId([9; 16])).transition("running").send().await), "run_unknown");
    assert_eq!(code(runs.run(RunId([9; 16])).view().await), "run_unknown");
}

#[tokio::test]
async fn what_is_wrong_with_a_start_is_told_before_anything_is_recorded() {
    let world = World::memory(POLICY).await;
    let runs = runs(&world.control);
    assert_eq!(code(runs.start("nonsense").change("c").send().await), "kind_unknown");
    assert_eq!(code(runs.start("simple").send().await), "change_invalid");
    assert_eq!(code(runs.start("simple").change("A b").send().await), "change_invalid");
    assert_eq!(code(runs.start("simple").provisional(Hash([1; 32])).send().await), "provisional_forbidden");
    let nobody = world.control.runs().start("simple").change("c").send().await;
    assert_eq!(code(nobody), "out_of_bounds");
    assert!(world.control.list_runs(&RunFilter::default(), 10).expect("readable").items.is_empty());
}

#[tokio::test]
async fn a_design_begins_without_a_name_and_is_found_by_it_later() {
    let world = World::memory(POLICY).await;
    let runs = runs(&world.control);
    let digest = Hash([7; 32]);
    let run = runs.start("design").provisional(digest).send().await.expect("started").run;
    run.bind_change("add-login").request("b").send().await.expect("named");
    assert!(run.bind_change("add-login").request("b").send().await.expect("answered").replayed);
    let found = runs.find("design", &Subject::Change("add-login".into())).await.expect("readable");
    assert_eq!(found.expect("there").id(), run.id());
    let begun = runs.find("design", &Subject::Provisional(digest)).await.expect("readable");
    assert_eq!(begun.expect("there").id(), run.id(), "by what it was begun with, too");
    let joined = runs.start("design").provisional(digest).send().await.expect("joined");
    assert_eq!((joined.run.id(), joined.answer.answered.joined), (run.id(), true));
    assert_eq!(code(run.bind_change("other").send().await), "change_bound");
}

#[tokio::test]
async fn lists_are_filtered_and_come_in_pages_as_long_as_asked_for() {
    for world in World::both().await {
        let runs = runs(&world.control);
        let mut all = Vec::new();
        for n in 0..600 {
            // Of every fifty one is of another kind.
            let kind = if n % 50 == 0 { "delivery" } else { "simple" };
            let run = runs.start(kind).change(format!("c{n}")).send().await.expect("started").run;
            let ended = n % 3 == 0 && kind == "simple";
            if ended {
                run.command("cancel").send().await.expect("cancelled");
            }
            all.push((run.id(), kind, ended));
            world.clock.advance(1);
        }
        let listed = |filter: &RunFilter, limit| {
            let (mut filter, mut ids) = (filter.clone(), Vec::new());
            loop {
                let page = world.control.list_runs(&filter, limit).expect("readable");
                assert!(page.unreadable.is_empty());
                assert!(page.items.len() == limit || page.next.is_none(), "as long as asked for");
                ids.extend(page.items.into_iter().map(|(id, _)| id));
                filter.after = page.next;
                if filter.after.is_none() {
                    return ids;
                }
            }
        };
        let want = |fits: &dyn Fn(&str, bool) -> bool| -> Vec<RunId> {
            all.iter().filter(|(_, kind, ended)| fits(kind, *ended)).map(|(id, ..)| *id).collect()
        };
        let everything = RunFilter::default();
        assert_eq!(listed(&everything, 7), want(&|_, _| true));
        let newest = RunFilter { newest_first: true, ..everything.clone() };
        assert_eq!(listed(&newest, 100), want(&|_, _| true).into_iter().rev().collect::<Vec<_>>());
        let kind = RunFilter { kind: Some("delivery".into()), ..everything.clone() };
        assert_eq!(listed(&kind, 5), want(&|kind, _| kind == "delivery"));
        let living = RunFilter { stand: Some(Stand::Living), ..everything.clone() };
        assert_eq!(listed(&living, 300), want(&|_, ended| !ended));
        let state = RunFilter { stand: Some(Stand::In("cancelled".into())), ..everything.clone() };
        assert_eq!(listed(&state, 11), want(&|_, ended| ended));
        let other = RunFilter { root: Some(onceseal::core::id::RootId([9; 16])), ..everything };
        assert!(listed(&other, 3).is_empty());
    }
}

#[tokio::test]
async fn a_run_is_shown_with_what_may_follow_and_its_events_with_who_asked() {
    for world in World::both().await {
        let runs = runs(&world.control);
        let run = runs.start("simple").change("c").request("s").send().await.expect("started").run;
        run.transition("running").request("m1").send().await.expect("moved");
        run.command("pause").code("lunch").request("m2").send().await.expect("paused");
        let view = run.view().await.expect("there");
        assert_eq!((view.row.state.as_str(), view.row.code.as_deref()), ("paused", Some("lunch")));
        let commands: Vec<_> = view.commands().collect();
        assert_eq!(commands, [("cancel", Some("cancelled")), ("resume", Some("running"))]);
        assert!(view.next().any(|state| state == "completed") && view.holder.is_none());
        let events = world.control.run_events(run.id(), 1, 100).expect("readable");
        let requests: Vec<_> = events.iter().map(|event| event.request.as_deref()).collect();
        assert_eq!(requests, [Some("s"), Some("m1"), Some("m2")]);
        assert!(events.iter().all(|event| event.by.as_ref() == Some(&bot())));
        let changes =
            world.control.run_changes(run.id(), 2, Some(3)).expect("readable").expect("both are there");
        let names: Vec<_> = changes.iter().map(|change| change.member.as_str()).collect();
        assert_eq!(names, ["code", "state"]);
        assert!(world.control.run_changes(run.id(), 2, Some(4)).expect("readable").is_none());
        let rebuilt = world.control.rebuild_run(run.id()).expect("readable").expect("there");
        assert!(rebuilt.same && rebuilt.sequence == 3 && rebuilt.row == view.row);
        let report = world.control.verify_run(run.id()).expect("readable");
        assert!(report.is_clean() && report.events == 3, "{report:?}");
        let nothing = world.control.verify_run(RunId([9; 16])).expect("readable");
        assert!(!nothing.is_clean(), "what is not there is not intact");
    }
}

#[tokio::test]
async fn definitions_of_the_file_are_runs_like_others_and_kept_with_them() {
    let config = Config::parse(REVIEW.as_bytes()).expect("a definition");
    let world = World::memory(POLICY).await;
    let known = runs(&world.control).with(config.runs);
    let run = known.start("review").change("c").send().await.expect("started").run;
    assert_eq!(code(run.command("ask").send().await), "command_elsewhere");
    assert_eq!(code(run.command("cancel").send().await), "command_forbidden");
    // The program that goes on does not know the definition.
    let later = runs(&world.control).run(run.id());
    later.command("close").send().await.expect("closed");
    let view = later.view().await.expect("there");
    assert_eq!(
        (view.row.terminal, view.definition.map(|it| it.kind().to_owned())),
        (true, Some("review".into()))
    );
}

#[test]
fn each_mistake_in_a_definition_is_told_with_its_place() {
    for (from, to, place, sentence) in [
        ("initial: open", "initial: opn", "line 5, column 5", "did you mean `open`?"),
        ("[closed, open]", "[]", "line 7", "is empty, so a run would end there"),
        ("[closed, open]", "[closed, gone]", "line 7", "`gone` is no state of this definition"),
        ("closed: { terminal: true }", "closed: { terminal: 1 }", "line 8", "must be true or false"),
        ("  review:", "  simple:", "line 4", "is built in"),
        ("  review:", "  Review:", "line 4", "is no name"),
        ("interrupted: open,", "", "line 7", "is missing"),
        ("interrupted:", "interupted:", "line 7", "is not known; did you mean `interrupted`?"),
    ] {
        let text = REVIEW.replace(from, to);
        assert_ne!(text, REVIEW);
        let error = Config::parse(text.as_bytes()).expect_err(to);
        assert_eq!(error.code(), "definition_invalid", "{error}");
        let error = error.to_string();
        assert!(error.contains(place) && error.contains(sentence) && error.contains("runs: "), "{error}");
    }
    // All of them at once, in the order of the file.
    let text = REVIEW.replace("initial: open", "initial: opn").replace("interrupted:", "interupted:");
    let both = Config::parse(text.as_bytes()).expect_err("two").to_string();
    let lines: Vec<_> = both.lines().collect();
    assert!(
        lines.len() == 2 && lines[0].contains("`open`?") && lines[1].contains("`interrupted`?"),
        "{both}"
    );
    let error = Config::parse(b"schema: onceseal.policy/v1\nruns: []\n").expect_err("a list").to_string();
    assert!(error.contains("runs: must be a mapping"), "{error}");
}

#[tokio::test]
async fn runs_are_of_the_project_that_the_store_is_of() {
    let home = Home::new();
    let (clock, place) = (crate::support::clock(), home.opening(crate::support::clock()));
    let fresh = onceseal::store::place::ProjectId::new([5; 16]);
    onceseal::store::place::init(&place.surroundings, &place.concessions(), fresh).expect("a project");
    place.place().expect("a place").prepare().expect("made");
    let control = home.control(clock).await.expect("a store");
    assert_eq!(control.root().0, [5; 16]);
    control.close();
    let memory = World::memory(POLICY).await.control;
    assert_eq!(memory.root().0, memory.store().tenant().id);
    assert_eq!(Definition::built_in().len(), runs(&memory).definitions().count());
}

#[test]
fn whoever_blocks_waits_for_the_same() {
    let clock = crate::support::clock();
    let control = onceseal::blocking::Control::memory(policy(POLICY), clock).expect("a store");
    let runs = control.runs().by(bot());
    let run = control.wait(runs.start("simple").change("c").send()).expect("started").run;
    let lease = control.wait(control.lease(onceseal::runs::Resource::Run(run.id())).take()).expect("taken");
    control.wait(run.transition("running").under(&lease).send()).expect("moved");
    assert_eq!(control.wait(run.view()).expect("there").holder.map(|held| held.fence), Some(1));
}

#[tokio::test]
#[ignore = "a child of another test"]
async fn child_that_starts_runs() {
    let control = open(&PathBuf::from(std::env::var_os(PLACE).expect("a place"))).await;
    wait_for_go();
    for n in 0..20 {
        started(&runs(&control), &format!("c{n}")).await;
    }
}

#[tokio::test]
async fn two_processes_that_start_one_change_get_one_run() {
    let home = Home::new();
    let control = open(home.dir.path()).await;
    control.activate(policy(POLICY), false, None).await.expect("active");
    let mut other = Process::start("runs::child_that_starts_runs", home.dir.path(), &[]);
    other.ready();
    other.go();
    for n in 0..20 {
        started(&runs(&control), &format!("c{n}")).await;
    }
    assert!(other.success());
    let listed = control.list_runs(&RunFilter::default(), 100).expect("readable").items;
    assert_eq!(listed.len(), 20, "one for each change");
}

//! The suite notices what is broken: for every case there is a rule, a backend
//! or a reader that breaks its promise, and the case fails on it.

#[path = "conformance_broken/backends.rs"]
mod backends;
#[path = "conformance_broken/break_it.rs"]
mod break_it;
#[path = "conformance_broken/deliveries.rs"]
mod deliveries;
#[path = "conformance_broken/handoffs.rs"]
mod handoffs;
#[path = "conformance_broken/leases.rs"]
mod leases;
#[path = "conformance_broken/operations.rs"]
mod operations;
#[path = "conformance_broken/own.rs"]
mod own;
#[path = "conformance_broken/people.rs"]
mod people;
#[path = "conformance_broken/places.rs"]
mod places;
#[path = "conformance_broken/readers.rs"]
mod readers;
#[path = "conformance_broken/routes.rs"]
mod routes;
#[path = "conformance_broken/rules.rs"]
mod rules;
#[path = "conformance_broken/runs.rs"]
mod runs;
#[path = "conformance_broken/tasks.rs"]
mod tasks;

use std::collections::BTreeSet;
use std::fs::File;

use onceseal_store::conformance::{InFile, InMemory, Subject, cases};
use onceseal_store::{Options, Parts, StoreError};

/// What is broken, and the cases that must fail on it.
struct Broken {
    name: &'static str,
    caught_by: &'static [&'static str],
    change: fn(Place) -> Place,
}

/// A subject with something changed.
struct Place {
    subject: Box<dyn Subject>,
    options: fn(&Options) -> Options,
    parts: fn(Parts) -> Parts,
    durable: Option<bool>,
}

impl Place {
    fn sound(subject: Box<dyn Subject>) -> Place {
        Place { subject, options: Options::clone, parts: |parts| parts, durable: None }
    }
}

impl Subject for Place {
    fn parts(&self, options: &Options) -> Result<Parts, StoreError> {
        self.subject.parts(&(self.options)(options)).map(self.parts)
    }

    fn is_durable(&self) -> bool {
        self.durable.unwrap_or_else(|| self.subject.is_durable())
    }
}

/// Each named case passes on a sound store and fails on this one.
fn check(broken: &Broken) {
    let all = cases();
    for name in broken.caught_by {
        let case = all.iter().find(|case| case.name == *name).unwrap_or_else(|| panic!("no case {name}"));
        let dir = tempfile::tempdir().expect("a directory");
        let place = |file: &str| {
            if !case.durable && !broken.name.ends_with("_in_a_file") {
                return Place::sound(Box::new(InMemory));
            }
            let path = dir.path().join(file);
            File::create_new(&path).expect("an empty file");
            Place::sound(Box::new(InFile(path)))
        };
        let sound = case.run(&place("sound.db"));
        assert!(sound.is_ok(), "{name} fails on a sound store: {sound:?}");
        match case.run(&(broken.change)(place("broken.db"))) {
            Err(caught) => println!("{name}: {caught}"),
            Ok(()) => panic!("{name} does not notice that {}", broken.name),
        }
    }
}

/// Broken stores, each with the cases that catch it: `name: [cases], change;`
macro_rules! broken {
    ($($name:ident: [$($case:ident),* $(,)?], $change:expr;)*) => {
        pub(crate) const ALL: &[$crate::Broken] = &[$($crate::Broken {
            name: stringify!($name),
            caught_by: &[$(stringify!($case)),*],
            change: $change,
        },)*];

        $(#[test]
        fn $name() {
            let this = ALL.iter().find(|broken| broken.name == stringify!($name));
            $crate::check(this.expect("it is listed"));
        })*
    };
}

use broken;

fn all() -> Vec<&'static Broken> {
    [
        rules::ALL,
        people::ALL,
        operations::ALL,
        routes::ALL,
        runs::ALL,
        leases::ALL,
        own::ALL,
        deliveries::ALL,
        tasks::ALL,
        handoffs::ALL,
        backends::ALL,
        readers::ALL,
        places::ALL,
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn every_case_can_fail() {
    let caught: BTreeSet<_> = all().iter().flat_map(|broken| broken.caught_by).copied().collect();
    let every: BTreeSet<_> = cases().iter().map(|case| case.name).collect();
    let never: Vec<_> = every.difference(&caught).collect();
    assert!(never.is_empty(), "nothing is known that these cases catch: {never:#?}");
}

/// The twelve that a published suite for such stores lets pass.
#[test]
fn the_twelve_are_among_them() {
    let names: BTreeSet<_> = all().iter().map(|broken| broken.name).collect();
    for name in [
        "anyone_may_begin",
        "anyone_may_commit_the_effect_of_another",
        "an_effect_is_committed_straight_from_reserved",
        "an_approval_is_used_whatever_its_hash",
        "an_approval_is_used_whatever_its_expiry",
        "looking_up_what_is_not_there_fails",
        "marking_ambiguous_again_is_refused",
        "a_lapsed_reservation_is_handed_over",
        "results_are_dropped",
        "receipts_lead_nowhere",
        "a_new_attempt_keeps_the_old_error",
        "limits_are_ignored",
    ] {
        assert!(names.contains(name), "{name}");
    }
    assert!(names.len() >= 20);
}

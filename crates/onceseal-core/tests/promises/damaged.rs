//! Rows that do not decode: what is there is never taken for absent.

use std::sync::{Arc, Mutex};

use onceseal_core::action::Principal;
use onceseal_core::code::Code;
use onceseal_core::command::{Command, Stamped};
use onceseal_core::decide::{Verdict, decide};
use onceseal_core::id::RootId;
use onceseal_core::reply::Reply;
use onceseal_core::run::{Definition, StartRun, Subject};
use onceseal_core::stream::{StreamId, StreamKind};
use onceseal_core::time::Timestamp;
use onceseal_core::view::{Halt, Loaded, Pinned, Read, View};

use crate::executor::Rules;
use crate::world::World;
use crate::{PAY, pay, refused, send};

/// Rows of these streams do not decode.
#[derive(Default)]
pub(crate) struct Damaged(Mutex<Vec<StreamId>>);

impl Damaged {
    /// This one from now on.
    pub(crate) fn one(&self, stream: StreamId) {
        self.0.lock().expect("one thread").push(stream);
    }

    /// Every row of this kind from now on.
    fn all(&self, world: &World<'_>, kind: StreamKind) {
        world.rows.keys().filter(|stream| stream.kind == kind).for_each(|stream| self.one(*stream));
    }
}

impl Rules for Damaged {
    fn decide(
        &self,
        pinned: &Pinned,
        view: &View,
        command: &Stamped,
        now: Timestamp,
    ) -> Result<Verdict, Halt> {
        let mut view = view.clone();
        for stream in self.0.lock().expect("one thread").iter() {
            if view.has(&Read::Stream(*stream)) {
                view.load(*stream, Loaded::Unreadable);
            }
        }
        match decide(pinned, &view, command, now) {
            // As a store tells it.
            Err(Halt::Unreadable) => {
                Ok(Verdict { drafts: Vec::new(), renewals: Vec::new(), reply: Code::Corrupt.into() })
            }
            decided => decided,
        }
    }
}

#[test]
fn p03_a_run_that_cannot_be_read_is_not_started_a_second_time() {
    let damaged = Damaged::default();
    let mut world = World::new(&damaged, PAY);
    let start = |request: &str| {
        let definition = Definition::built_in().into_iter().find(|found| found.kind() == "simple");
        let definition = Arc::new(definition.expect("built in"));
        let (subject, principal) = (Subject::Change("c".to_owned()), Principal::agent("bot"));
        let (root, request) = (RootId([1; 16]), request.to_owned());
        Command::StartRun(Box::new(StartRun { root, definition, subject, request, principal }))
    };
    assert!(matches!(world.run(start("s1")), Reply::Run(_)));
    damaged.all(&world, StreamKind::Run);
    assert_eq!(refused(world.run(start("s2"))).code, Code::Corrupt);
}

#[test]
fn p03_an_operation_that_cannot_be_read_is_not_accepted_a_second_time() {
    let damaged = Damaged::default();
    let mut world = World::new(&damaged, PAY);
    let contract = world.declare(r#"{"name":"send"}"#);
    let order = world.order(send(1), contract, "key-1");
    world.accepted(&order);
    damaged.all(&world, StreamKind::Action);
    let again = world.order(send(1), contract, "key-1");
    assert_eq!(refused(world.dispatch(&again)).code, Code::Corrupt);
}

#[test]
fn p01_a_request_that_cannot_be_read_is_not_asked_a_second_time() {
    let damaged = Damaged::default();
    let mut world = World::new(&damaged, PAY);
    assert!(matches!(world.call(pay(1)), Reply::ApprovalNeeded { .. }));
    damaged.all(&world, StreamKind::Approval);
    assert_eq!(refused(world.call(pay(1))).code, Code::Corrupt);
}

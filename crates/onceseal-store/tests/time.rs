//! Time within a stream, where the clock was set back.

use std::sync::Arc;

use onceseal_core::approval::{Identity, Proof};
use onceseal_core::command::{Command, Stamped};
use onceseal_core::decide::decide;
use onceseal_core::store::{Accept, Note};
use onceseal_store::Store;
use onceseal_store::clock::{Clock, ManualClock, Reading};
use onceseal_store::conformance::Gate;
use onceseal_store::{Options, Parts};

const START: Reading = Reading { wall_us: 1_800_000_000_000_000, boot_us: 1_000_000_000 };
const MINUTE: i64 = 60_000_000;

fn accept() -> Command {
    let person = Identity { proof: Proof::Host, name: "ann".to_owned() };
    Command::Accept(Accept { seen: 9, found: 1, person, reason: "restored".to_owned() })
}

#[test]
fn a_stream_that_another_command_of_the_batch_has_read_does_not_go_back_in_time() {
    let clock = Arc::new(ManualClock::new(START));
    let options = Options { clock: clock.clone(), ..Options::default() };
    let mut parts = Parts::memory(&options).expect("a store");
    // A rule that writes a stream which its command does not ask for.
    parts.decide = Arc::new(|pinned, view, command, now| match &command.command {
        Command::Note(_) => decide(pinned, view, &Stamped { command: accept(), ..command.clone() }, now),
        _ => decide(pinned, view, command, now),
    });
    let gate = Gate::default();
    parts.backend = gate.before(parts.backend);
    let store = Store::of(parts).expect("a store");
    clock.advance(10 * MINUTE);
    store.run(accept()).expect("recorded");
    clock.step_wall(-5 * MINUTE);
    store.accept_clock();

    gate.shut();
    let first = store.submit(Command::Create).expect("submitted");
    gate.await_writer();
    let reads = store.submit(Command::Create).expect("submitted");
    let note = Note { body: "{}".to_owned(), source: "test".to_owned() };
    let writes = store.submit(Command::Note(note)).expect("submitted");
    gate.open();
    for ticket in [first, reads, writes] {
        ticket.wait().expect("decided");
    }

    let stream = store.tenant().store();
    let events = store.read(|snapshot| snapshot.events(&stream, 1, 10)).expect("events");
    let times: Vec<i64> =
        events.iter().map(|event| (event.stamp.at.micros() - START.wall_us) / MINUTE).collect();
    assert_eq!(times, [0, 10, 10]);
    assert!(clock.now().wall_us < events[2].stamp.at.micros(), "the clock itself is behind");
}

//! What processes say to a store, and what they find in it.

use std::sync::Arc;

use onceseal_core::action::{Action, Principal, Proposal, Reach, Run};
use onceseal_core::command::Command;
use onceseal_core::decide::evolve;
use onceseal_core::journal::{Body, chain_hash, open_text};
use onceseal_core::json::{self, Limits, Object};
use onceseal_core::policy::{Activate, ActivePolicy};
use onceseal_core::reply::Reply;
use onceseal_core::store::Note;
use onceseal_core::view::Loaded;
use onceseal_store::Store;

pub(crate) fn note(store: &Store, name: &str, number: usize) {
    let note = Note { body: number.to_string(), source: format!("process {name}") };
    let noted = store.run(Command::Note(note));
    assert!(matches!(noted, Ok(Reply::Done { changed: true })), "{noted:?}");
}

/// An attempt at the one key, under the policy that is active.
pub(crate) fn to_pay(store: &Store) -> Command {
    let principal = Principal { agent: "bot".to_owned(), user: None };
    let action = Action {
        name: "pay".to_owned(),
        arguments: Object::default(),
        principal,
        environment: Action::DEFAULT_ENVIRONMENT.to_owned(),
        resource: None,
    };
    let policy = store.active_policy().expect("read").expect("a policy");
    let proposal = Proposal::prepare(store.tenant(), &policy, action).expect("prepared");
    let (reach, lease, deadline) = (Reach::Executing, None, None);
    Command::Run(Box::new(Run { proposal, action: None, approval: None, reach, lease, deadline }))
}

pub(crate) fn activate(store: &Store) {
    let text =
        br#"{"schema":"onceseal.policy/v1","actions":{"pay":{"effect":"the one key","decision":"allow"}}}"#;
    let policy =
        ActivePolicy::compile(&json::read(text, &Limits::DATA).expect("a document")).expect("a policy");
    let activate = Activate { policy: Arc::new(policy), again: false, person: None };
    store.run(Command::Activate(activate)).expect("activated");
}

/// Who wrote each note, in the order of the log, and which.
pub(crate) fn written(store: &Store) -> Vec<(usize, usize)> {
    store
        .read(|snapshot| {
            let mut written = Vec::new();
            for event in snapshot.log(0, usize::MAX)? {
                let Some(Body::NoteAppended(_, sealed)) = event.event.map(|event| event.body) else {
                    continue;
                };
                let source = sealed.source.expect("its source");
                let text = snapshot.payload(&event.stamp.stream, 1)?.expect("its text").text;
                let name = source.strip_prefix("process ").expect("a process");
                written.push((name.parse().expect("a number"), text.parse().expect("a number")));
            }
            Ok(written)
        })
        .expect("read")
}

/// Every stream is one chain and its row the fold of it.
pub(crate) fn assert_sound(store: &Store) {
    store
        .read(|snapshot| {
            assert_eq!(snapshot.integrity()?, Vec::<String>::new());
            let newest = snapshot.newest()?;
            for stream in snapshot.streams(None, usize::MAX)? {
                let (mut prior, mut row) = (store.tenant().genesis(&stream), None);
                for (sequence, event) in (1..).zip(snapshot.events(&stream, 1, usize::MAX)?) {
                    assert_eq!(event.stamp.sequence, sequence, "{stream}");
                    assert!(event.position <= newest, "{stream} has an event that is not in the log");
                    let body = event.event.expect("it decodes");
                    let text = open_text(&event.stamp, &body, prior, event.seal);
                    assert_eq!(chain_hash(&text), event.hash, "event {sequence} of {stream}");
                    row = Some(evolve(&stream, row, sequence, event.stamp.at, &body).expect("it follows"));
                    prior = event.hash;
                }
                let Loaded::Row(stored) = snapshot.stream(&stream)? else { panic!("{stream} has no row") };
                assert_eq!((stored.head.hash, Some(&stored.row)), (prior, row.as_ref()), "{stream}");
            }
            Ok(())
        })
        .expect("read");
}

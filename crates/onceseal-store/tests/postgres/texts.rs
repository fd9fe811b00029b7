//! Odd texts: the same answer in every kind of store, and kept as they came.

use std::fs::File;

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::effect::{Begin, Holding, Outcome, Settle};
use onceseal_core::journal::Body;
use onceseal_core::json::{self, Object};
use onceseal_core::reply::Reply;
use onceseal_core::store::Note;
use onceseal_core::stream::StreamKind;
use onceseal_core::time::Span;
use onceseal_servers::server;
use onceseal_store::{Options, OwnError, Store, StoreError};

use crate::base::*;

/// Does the same with a store in memory, one in a file, and those at these
/// addresses.
pub(crate) fn kinds_of_stores(addresses: &[String], mut each: impl FnMut(&str, &Store)) {
    each("memory", &Store::memory(&Options::default()).expect("opened"));
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("db");
    File::create_new(&file).expect("an empty file");
    each("SQLite", &Store::sqlite(file, &Options::default()).expect("opened"));
    for address in addresses {
        each("PostgreSQL", &open(address, "texts"));
    }
}

/// Records that an action of this name was refused.
pub(crate) fn refuse_named(store: &Store, name: &str) {
    let policy = policy("allow");
    assert_eq!(code(&store.run(activate(&policy, false))), None);
    let answer = store.run(run(proposal(store, &policy, name, Object::new()).expect("prepared")));
    assert!(matches!(answer, Ok(Reply::Refused(_))), "{answer:?}");
}

/// The same in every kind of store, which is what the first says.
fn the_same<T: PartialEq + std::fmt::Debug>(each: impl Fn(&Store) -> T) -> T {
    let mut first = None;
    let database = server().new_database();
    kinds_of_stores(&[database.url()], |kind, store| {
        let found = each(store);
        match &first {
            None => first = Some(found),
            Some(first) => assert_eq!(found, *first, "{kind}"),
        }
        assert_eq!(store.read(|snapshot| snapshot.integrity()).expect("read"), Vec::<String>::new());
    });
    first.expect("one")
}

/// What becomes of a note: its code, or the text that is read again.
fn noted(store: &Store, body: &str, source: &str) -> Result<String, Code> {
    let note = Note { body: body.to_owned(), source: source.to_owned() };
    if let Some(code) = code(&store.run(Command::Note(note))) {
        return Err(code);
    }
    let event = log(store).pop().expect("an event");
    let Some(Body::NoteAppended(_, sealed)) = event.event.map(|event| event.body) else { panic!("no note") };
    assert_eq!(sealed.source.as_deref(), Some(source));
    assert_eq!(event.stamp.stream.kind, StreamKind::Note);
    let text = store.read(|snapshot| snapshot.payload(&event.stamp.stream, 1)).expect("read");
    Ok(text.expect("its text").text)
}

/// What becomes of a row: its code, or the value that is read again.
fn kept(store: &Store, key: &str, value: &[u8]) -> Result<Vec<u8>, Code> {
    let put = store.run_with(note("own"), |_, rows| rows.put(key, value));
    match put {
        Ok(_) => Ok(store.own_row(key).expect("read").expect("a row")),
        Err(OwnError::Undone(error) | OwnError::Store(error)) => Err(StoreError::code(&error)),
    }
}

/// How the error of a report is kept, and the key that it is of.
fn settled(store: &Store, key: &str, error: &str) -> Result<String, Code> {
    if let Some(code) = code(&store.run(reserve(key, 1))) {
        return Err(code);
    }
    let taken = events_of(store, key).len() as u64;
    let holding = Holding { effect: store.tenant().effect(key), action: action(1), fence: taken };
    store.run(Command::Begin(Begin { attempt: holding, lease: Span::minutes(1) })).expect("begun");
    let settle = Settle { error: Some(error.to_owned()), ..Settle::new(holding, Outcome::Failed) };
    if let Some(code) = code(&store.run(Command::Settle(settle))) {
        return Err(code);
    }
    let body = events_of(store, key).pop().expect("an event").event.expect("it decodes").body;
    Ok(format!("{body:?}"))
}

const ODD: &str =
    "\u{1}\u{8}\u{b}\u{1f}\u{7f}\u{85}\u{2028}\u{feff}\u{fffd}\u{ffff}\u{10000}\u{10ffff}😀e\u{301}";

#[test]
fn ua_115_a_nul_gets_the_same_answer_in_every_store() {
    let answers = the_same(|store| {
        let arguments = |text: &str| {
            let mut arguments = Object::new();
            arguments.insert("id", text);
            proposal(store, &policy("allow"), "pay", arguments).map(|proposal| proposal.name().to_owned())
        };
        (
            [r#""\u0000""#, r#"{"\u0000":1}"#, "\"\0\"", "\0", "[\"a\",\"b\0\"]"]
                .map(|body| noted(store, body, "s")),
            [noted(store, "1", "a\0b"), noted(store, "1", "\0")],
            ["k\0", "\0"].map(|key| settled(store, key, "e")),
            settled(store, "key", "be\0fore and \0after"),
            [arguments("a\0b"), arguments("fine")],
            [kept(store, "\0", b"v"), kept(store, "a\0b", b"v"), kept(store, "a", b"\0v\0")],
        )
    });
    let (bodies, sources, keys, error, arguments, rows) = answers;
    assert!(
        bodies.iter().chain(&sources).all(|answer| *answer == Err(Code::OutOfBounds)),
        "{bodies:?} {sources:?}"
    );
    assert!(keys.iter().all(Result::is_err), "{keys:?}");
    assert!(error.expect("kept").contains("before and after"), "without what no store can keep");
    assert!(arguments[0].is_err() && arguments[1].is_ok(), "{arguments:?}");
    assert_eq!(rows, [Err(Code::OutOfBounds), Err(Code::OutOfBounds), Ok(b"\0v\0".to_vec())]);
}

#[test]
fn ua_116_half_of_a_pair_gets_the_same_answer_in_every_store() {
    let answers = the_same(|store| {
        [r#""\ud83d""#, r#""\ude00\ud83d""#, r#"{"\udfff":1}"#, r#"["\ud83dx"]"#, r#""\ud83d\ude00""#]
            .map(|body| noted(store, body, "s"))
    });
    // The last is a whole pair, which canonical text does not write so.
    assert_eq!(answers, [const { Err(Code::OutOfBounds) }; 5]);
}

#[test]
fn texts_and_bytes_of_every_kind_are_kept_as_they_came_in_every_store() {
    let text = json::Value::from(ODD).to_string();
    let all: Vec<u8> = (0..=255).collect();
    let (body, source, error, rows) = the_same(|store| {
        (
            noted(store, &text, "s"),
            noted(store, "1", "\u{10000}😀e\u{301}é\u{fffd}\u{ffff}"),
            settled(store, "\u{10ffff} 😀 é e\u{301}", ODD),
            ["\u{10000}", "é", "e\u{301}", "É"].map(|key| kept(store, key, &all)),
        )
    });
    assert_eq!(body.as_ref(), Ok(&text));
    assert_eq!(source, Ok("1".to_owned()));
    assert!(error.is_ok(), "{error:?}");
    assert_eq!(rows, [(); 4].map(|()| Ok(all.clone())));
}

//! The caller's own rows: with their command, or not at all.

use std::panic::{AssertUnwindSafe, catch_unwind};

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::reply::Reply;
use onceseal_core::store::Note;

use super::contention::at_once;
use super::runs::{run, start, step};
use super::world::World;
use super::{Failure, Subject, Verdict, ensure, ensure_eq, suite};
use crate::error::StoreError;
use crate::own::{OWN_BYTES, OWN_TIME, OwnError, OwnRows};

suite! { "own rows":
    a_row_is_written_with_its_command_and_read_by_the_next
    what_a_caller_undoes_leaves_neither_command_nor_row
    nothing_is_written_beside_a_refusal_or_an_answer_given_again
    a_caller_that_panics_or_takes_too_long_leaves_nothing_and_hurts_nobody
    a_row_has_a_key_and_a_size
    of_many_that_count_at_once_each_counts
    a_tenant_does_not_see_the_rows_of_another
    ; durable:
    rows_are_there_when_the_store_is_opened_again
}

type Done = Result<Reply, OwnError<StoreError>>;

/// Appends a note, and does this with the caller's rows.
fn beside(world: &World<'_>, write: impl FnMut(&mut OwnRows<'_>) -> Result<(), StoreError>) -> Done {
    let mut write = write;
    let note = Note { body: "{}".to_owned(), source: "own".to_owned() };
    world.store.run_with(Command::Note(note), |_, rows| write(rows))
}

fn put(world: &World<'_>, key: &str, value: &str) -> Verdict {
    beside(world, |rows| rows.put(key, value.as_bytes())).map_err(Failure::new)?;
    Ok(())
}

fn value(world: &World<'_>, key: &str) -> Result<Option<String>, Failure> {
    let value = world.store.own_row(key)?;
    Ok(value.map(|value| String::from_utf8_lossy(&value).into_owned()))
}

fn a_row_is_written_with_its_command_and_read_by_the_next(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let log = world.log()?.len();
    put(&world, "a", "one")?;
    ensure_eq!(world.log()?.len(), log + 1, "the command is recorded");
    ensure_eq!(value(&world, "a")?.as_deref(), Some("one"), "so is the row");
    let mut seen = Vec::new();
    let changed = beside(&world, |rows| {
        seen.push(rows.get("a")?);
        rows.put("a", b"two")?;
        seen.push(rows.get("a")?);
        rows.put("b", b"")?;
        rows.remove("a")?;
        seen.push(rows.get("a")?);
        Ok(())
    });
    changed.map_err(Failure::new)?;
    let expected = vec![Some(b"one".to_vec()), Some(b"two".to_vec()), None];
    ensure_eq!(seen, expected, "a caller sees its own changes");
    ensure_eq!(value(&world, "a")?, None, "what was taken out is gone");
    ensure_eq!(value(&world, "b")?.as_deref(), Some(""), "an empty row is one");
    Ok(())
}

fn what_a_caller_undoes_leaves_neither_command_nor_row(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    put(&world, "a", "one")?;
    let log = world.log()?.len();
    let undone = beside(&world, |rows| {
        rows.put("a", b"two")?;
        Err(StoreError::with(Code::OutOfBounds, "mine"))
    });
    let is_mine = matches!(&undone, Err(OwnError::Undone(error)) if error.code() == Code::OutOfBounds);
    ensure!(is_mine, "the caller gets its own error: {undone:?}");
    ensure_eq!(world.log()?.len(), log, "the command is not recorded");
    ensure_eq!(value(&world, "a")?.as_deref(), Some("one"), "nor is the row");
    put(&world, "a", "three")?;
    ensure_eq!(value(&world, "a")?.as_deref(), Some("three"), "and the next goes on");
    Ok(())
}

fn nothing_is_written_beside_a_refusal_or_an_answer_given_again(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let id = run(world.command(start("c", "s1")?)?)?.answered.run;
    let mut written = 0;
    let mut with = |command: Command| {
        world.store.run_with(command, |_, rows| {
            written += 1;
            rows.put("count", written.to_string().as_bytes())
        })
    };
    let first = with(step(id, "running", "t1")).map_err(Failure::new)?;
    let again = with(step(id, "running", "t1")).map_err(Failure::new)?;
    let refused = with(step(id, "created", "t2")).map_err(Failure::new)?;
    ensure!(!run(first)?.replayed && run(again)?.replayed, "the same request is answered again");
    ensure!(matches!(refused, Reply::Refused(_)), "and a move that is not legal is refused");
    ensure_eq!(written, 1, "what belongs to the command is written with it");
    ensure_eq!(value(&world, "count")?.as_deref(), Some("1"), "once");
    Ok(())
}

fn a_caller_that_panics_or_takes_too_long_leaves_nothing_and_hurts_nobody(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let log = world.log()?.len();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        beside(&world, |rows| {
            rows.put("a", b"one")?;
            std::panic::resume_unwind(Box::new("mine"));
        })
    }));
    let is_mine = panicked.is_err_and(|panic| panic.downcast_ref::<&str>() == Some(&"mine"));
    ensure!(is_mine, "the panic reaches its caller");
    let limit = i64::try_from(OWN_TIME.as_micros()).unwrap_or(i64::MAX);
    let late = beside(&world, |rows| {
        rows.put("a", b"two")?;
        world.clock.advance(limit + 1);
        Ok(())
    });
    let is_late = matches!(&late, Err(OwnError::Store(error)) if error.code() == Code::OwnRowsLate);
    ensure!(is_late, "who takes too long is told so: {late:?}");
    ensure_eq!((world.log()?.len(), value(&world, "a")?), (log, None), "neither left anything");
    let just = beside(&world, |rows| {
        rows.put("a", b"three")?;
        world.clock.advance(limit);
        Ok(())
    });
    just.map_err(Failure::new)?;
    ensure_eq!(value(&world, "a")?.as_deref(), Some("three"), "others go on");
    Ok(())
}

fn a_row_has_a_key_and_a_size(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    let log = world.log()?.len();
    let long = "k".repeat(1_025);
    for key in ["", "a\nb", "a\0b", &long] {
        let refused = beside(&world, |rows| rows.put(key, b"x"));
        let is_told = matches!(&refused, Err(OwnError::Undone(error)) if error.code() == Code::OutOfBounds);
        ensure!(is_told, "{key:?} is no key: {refused:?}");
    }
    let half = vec![7; OWN_BYTES / 2];
    let both = beside(&world, |rows| rows.put("a", &half).and_then(|()| rows.put("b", &half)));
    ensure!(matches!(&both, Err(OwnError::Undone(error)) if error.code() == Code::OutOfBounds), "too much");
    ensure_eq!(world.log()?.len(), log, "nothing is recorded");
    beside(&world, |rows| rows.put("a", &half)).map_err(Failure::new)?;
    ensure_eq!(world.store.own_row("a")?, Some(half), "every byte is kept");
    Ok(())
}

fn of_many_that_count_at_once_each_counts(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    at_once(|_| {
        let counted = beside(&world, |rows| {
            let before = rows.get("count")?.map_or(0, |count| count.len());
            rows.put("count", &vec![b'i'; before + 1])
        });
        counted.map_err(Failure::new)
    })?;
    let count = world.store.own_row("count")?.map_or(0, |count| count.len());
    let notes = world.log()?.iter().filter(|event| event.stamp.stream.kind.as_str() == "note").count();
    ensure_eq!(count, notes, "one for each command");
    Ok(())
}

fn a_tenant_does_not_see_the_rows_of_another(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    put(&world, "a", "ours")?;
    let other = World::with(subject, "other", |parts| parts)?;
    ensure_eq!(value(&other, "a")?, None, "it is not theirs");
    put(&other, "a", "theirs")?;
    ensure_eq!(value(&world, "a")?.as_deref(), Some("ours"), "and stays as it is");
    Ok(())
}

fn rows_are_there_when_the_store_is_opened_again(subject: &dyn Subject) -> Verdict {
    let world = World::open(subject)?;
    put(&world, "a", "one")?;
    let world = world.reopened()?;
    ensure_eq!(value(&world, "a")?.as_deref(), Some("one"), "it is kept");
    Ok(())
}

//! Writing rows of the caller's own in the transaction of a request.

use std::fmt;
use std::panic::resume_unwind;

use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::reply::{Reply, RunNow};
use onceseal_store::{OwnError, OwnRows, StoreError};

use super::asking::REPEATS;
use crate::control::{Control, accepted};
use crate::error::Error;

/// Why a request was not recorded, nor the rows beside it.
#[derive(Debug)]
pub enum WriteError<E> {
    /// The caller undid both.
    Undone(E),
    /// The request was refused, or the store failed.
    Refused(Error),
}

impl<E: fmt::Display> fmt::Display for WriteError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Undone(error) => write!(f, "undone: {error}"),
            WriteError::Refused(error) => write!(f, "{error}"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for WriteError<E> {}

impl<E> From<Error> for WriteError<E> {
    fn from(error: Error) -> WriteError<E> {
        WriteError::Refused(error)
    }
}

impl Control {
    /// A row of the caller's own, as it was written beside a request.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn own_row(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.inner.store.own_row(key)?)
    }
}

/// As [`asked`](super::asking::asked), with what the caller writes beside it. One
/// whose answer was lost is made again: if it was recorded, its rows were too.
pub(super) async fn asked_with<E, W>(
    control: &Control,
    command: Command,
    mut write: W,
) -> Result<RunNow, WriteError<E>>
where
    E: From<StoreError> + Send + 'static,
    W: FnMut(&RunNow, &mut OwnRows<'_>) -> Result<(), E> + Send + 'static,
{
    let mut repeats = 0..REPEATS;
    loop {
        let (store, command) = (control.inner.store.clone(), command.clone());
        let done = tokio::task::spawn_blocking(move || {
            let done = store.run_with(command, |reply, rows| match reply {
                Reply::Run(now) => write(now, rows),
                _ => Ok(()),
            });
            (done, write)
        });
        let (done, back) = done.await.unwrap_or_else(|ended| resume_unwind(ended.into_panic()));
        write = back;
        control.inner.keeper.recorded();
        match done {
            Err(OwnError::Store(error))
                if error.code() == Code::CommitUnknown && repeats.next().is_some() => {}
            Err(OwnError::Store(error)) => return Err(Error::from(error).into()),
            Err(OwnError::Undone(error)) => return Err(WriteError::Undone(error)),
            Ok(reply) => match accepted(reply)? {
                Reply::Run(now) => return Ok(*now),
                _ => return Err(Error::Unexpected.into()),
            },
        }
    }
}

//! What this account has seen of a store, held against what is there: a store
//! restored from a backup does not know what was done after it.

use onceseal_core::approval::Identity;
use onceseal_core::code::Code;
use onceseal_core::command::Command;
use onceseal_core::store::Accept;
use onceseal_store::mark::{Mark, MarkError, MarkFile};
use onceseal_store::{Store, StoreError};

use crate::control::{Control, accepted};
use crate::error::Error;
use crate::open::Opening;
use crate::site::Site;

/// What the mark says of a store when it is opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Seen {
    /// There is no mark, so nothing is known.
    Nothing,
    /// The log has what was seen, up to this position at least.
    All(u64),
    /// The log is not what was seen.
    WentBack {
        /// The newest position that was seen.
        seen: u64,
        /// The newest position there is; 0 where nothing of what was seen can be.
        found: u64,
    },
    /// The mark cannot be read, so nothing is known and somebody should know why.
    Unreadable(MarkError),
}

impl Seen {
    /// The tenant must be the one that was here, and its log hold the mark's hash
    /// at the mark's position.
    pub(crate) fn of(store: &Store, file: &MarkFile) -> Result<Seen, StoreError> {
        match file.known().id() {
            Ok(Some(id)) if id != store.tenant().id => {
                let mark = file.known().mark(id).read().ok().flatten();
                // Nothing of what was seen is in it, however much it has.
                return Ok(Seen::WentBack { seen: mark.map_or(0, |mark| mark.position), found: 0 });
            }
            Ok(_) => {}
            Err(error) => return Ok(Seen::Unreadable(error)),
        }
        let mark = match file.read() {
            Ok(Some(mark)) => mark,
            Ok(None) => return Ok(Seen::Nothing),
            Err(error) => return Ok(Seen::Unreadable(error)),
        };
        store.read(|snapshot| {
            let there = match snapshot.log(mark.position.saturating_sub(1), 1) {
                // What does not decode is not what was seen.
                Err(error) if error.code() == Code::Corrupt => None,
                log => log?.pop(),
            };
            Ok(match there {
                Some(event) if event.position == mark.position && event.hash.0 == mark.hash => {
                    Seen::All(mark.position)
                }
                _ => Seen::WentBack { seen: mark.position, found: snapshot.newest()? },
            })
        })
    }

    /// Nobody acts on a store that went back, or that may have.
    pub(crate) fn or_refuse(self) -> Result<Seen, Error> {
        match self {
            Seen::Nothing | Seen::All(_) => Ok(self),
            Seen::WentBack { .. } => Err(StoreError::new(Code::StoreWentBack).into()),
            Seen::Unreadable(error) => Err(error.into()),
        }
    }
}

impl Control {
    /// What the mark said of the store when it was opened.
    #[must_use]
    pub fn seen(&self) -> &Seen {
        &self.inner.seen
    }

    /// Records that a person accepts a store that went back in time, and sets
    /// the mark to its newest entry. Returns what was accepted; there is
    /// nothing to accept in a store that has all that was seen.
    ///
    /// # Errors
    /// No reason, a person who is not acceptable, or a store or mark that
    /// cannot be used.
    pub fn accept_went_back(
        opening: &Opening,
        person: Identity,
        reason: String,
    ) -> Result<Option<Seen>, Error> {
        let site = Site::find(opening)?;
        let known = site.known(opening)?;
        match site.exists(opening) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            // A new one takes its place.
            Err(error) if is_gone(&error) => site.prepare_anew()?,
            Err(error) => return Err(error),
        }
        let store = site.open(&opening.options())?;
        let mark = known.mark(store.tenant().id);
        let seen = Seen::of(&store, &mark)?;
        let (past, found) = match &seen {
            Seen::Nothing | Seen::All(_) => return Ok(None),
            Seen::WentBack { seen, found } => (*seen, *found),
            Seen::Unreadable(_) => (0, store.read(|snapshot| snapshot.newest())?),
        };
        if matches!(seen, Seen::WentBack { .. }) {
            // Nothing is recorded that the mark would go on to deny.
            mark.rewrite()?;
        }
        accepted(store.run(Command::Accept(Accept { seen: past, found, person, reason }))?)?;
        if let Some(newest) = newest(&store)? {
            mark.replace(&newest)?;
        }
        Ok(Some(seen))
    }
}

/// Whether there was a store, or may have been, and is none.
fn is_gone(error: &Error) -> bool {
    error.code() == Code::StoreWentBack.as_str() || matches!(error, Error::Mark(_))
}

/// The mark of the log's newest entry.
pub(crate) fn newest(store: &Store) -> Result<Option<Mark>, StoreError> {
    store.read(|snapshot| {
        let newest = snapshot.newest()?;
        let event = snapshot.log(newest.saturating_sub(1), 1)?.pop();
        Ok(event.map(|event| Mark { position: event.position, hash: event.hash.0 }))
    })
}

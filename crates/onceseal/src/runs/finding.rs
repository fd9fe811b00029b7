//! Finding a run by what it is about.

use onceseal_core::id::RunId;
use onceseal_core::run::{Subject, former_range, living_key, lookup};
use onceseal_core::stream::StreamKind;
use onceseal_core::view::Range;
use onceseal_store::read::Page;

use super::{Run, Runs};
use crate::error::Error;

/// So many runs back it is looked for the one to which a request was made.
const FORMER: usize = 64;

impl Runs {
    /// The run that lives under a kind and subject of this project, or else the
    /// newest that ended under it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn find(&self, kind: &str, subject: &Subject) -> Result<Option<Run>, Error> {
        let lookup = lookup(self.control.store().tenant(), self.root, kind, &subject.key());
        let living = Page::of(Range::equal(living_key(lookup)), 1);
        let former = Page::of(former_range(lookup), 1);
        let found = self.control.aside(move |control| {
            Ok(control.store().read_rows(|snapshot| match snapshot.keys(&living)?.pop() {
                Some(hit) => Ok(Some(hit)),
                // The keys are written so that the newest comes first.
                None => Ok(snapshot.keys(&former)?.pop()),
            })?)
        });
        let hit = found.await?.filter(|hit| hit.stream.kind == StreamKind::Run);
        Ok(hit.map(|hit| self.run(RunId(hit.stream.name))))
    }

    /// As [`Runs::find`]; but where a request with this id was made to one that has
    /// ended since, that one. Asked again, it answers as the first time, and nothing
    /// happens to the run that followed on it. Looks 64 runs back.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn find_asked(
        &self,
        kind: &str,
        subject: &Subject,
        request: &str,
    ) -> Result<Option<Run>, Error> {
        let newest = self.find(kind, subject).await?;
        let mut former = newest.clone();
        for _ in 0..FORMER {
            let Some(asked) = former else { break };
            if asked.answered(request).await?.is_some() {
                return Ok(Some(asked));
            }
            let id = asked.id();
            let view = self.control.aside(move |control| control.run(id)).await?;
            former = view.and_then(|view| view.row.previous).map(|id| self.run(id));
        }
        Ok(newest)
    }
}

//! One store in memory, one in a file and one on a server: the same tenant, the
//! same clock, the same commands.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onceseal_core::command::Stamped;
use onceseal_core::hash::BlindingKey;
use onceseal_core::reply::Reply;
use onceseal_core::stream::Tenant;
use onceseal_core::time::Timestamp;
use onceseal_store::clock::{Clock, ManualClock, Reading};
use onceseal_store::conformance::{InFile, InMemory, OnServer, Subject};
use onceseal_store::{Options, Parts, PostgresUrl, Store};

use crate::kept::Kept;
use crate::recorded::Said;

/// Long enough for a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is changed about the store that is named.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    pub(crate) of: &'static str,
    pub(crate) parts: fn(Parts) -> Parts,
}

pub(crate) const NOTHING: Change = Change { of: "", parts: |parts| parts };

struct Place {
    name: &'static str,
    subject: Box<dyn Subject>,
    store: Option<Store>,
}

pub(crate) struct Stores {
    clock: Arc<ManualClock>,
    create: Stamped,
    change: Change,
    places: [Place; 3],
}

impl Stores {
    /// New ones: a file of its own and a schema of its own.
    pub(crate) fn new(
        directory: &Path,
        url: &PostgresUrl,
        name: &str,
        create: &Said,
        change: Change,
    ) -> Stores {
        let file = directory.join(name);
        File::create_new(&file).expect("an empty file");
        let url = url.clone().with_schema(name).expect("a schema's name");
        let place = |name, subject| Place { name, subject, store: None };
        let places = [
            place("memory", Box::new(InMemory)),
            place("sqlite", Box::new(InFile(file))),
            place("postgres", Box::new(OnServer(url))),
        ];
        let reading = Reading { wall_us: create.1.micros(), boot_us: 1_000_000_000 };
        let clock = Arc::new(ManualClock::new(reading));
        let mut stores = Stores { clock, create: create.0.clone(), change, places };
        stores.open(true);
        stores
    }

    fn open(&mut self, anew: bool) {
        let options = Options {
            owner: Some("os:owner".to_owned()),
            clock: self.clock.clone(),
            // The tenant of the worlds that the players play on.
            made: Some(Tenant { name: "default".to_owned(), id: [7; 16], key: BlindingKey([9; 32]) }),
            ..Options::default()
        };
        let Change { of, parts } = self.change;
        for place in &mut self.places {
            if anew || place.subject.is_durable() {
                place.store = None;
                let mut opened = place.subject.parts(&options).expect("it opens");
                if place.name == of {
                    opened = parts(opened);
                }
                place.store = Some(Store::same(opened, self.create.clone()).expect("it opens"));
            }
        }
    }

    /// Closes what lasts, and opens it again.
    pub(crate) fn reopen(&mut self) {
        self.open(false);
    }

    pub(crate) fn set_clock(&self, now: Timestamp) {
        self.clock.advance(now.micros() - self.clock.now().wall_us);
    }

    fn all(&self) -> impl Iterator<Item = (&'static str, &Store)> {
        self.places.iter().map(|place| (place.name, place.store.as_ref().expect("it is open")))
    }

    /// Has every store run these at once: what all answer, or the first that is not
    /// answered alike.
    pub(crate) fn run(&self, commands: &[Stamped]) -> Result<Vec<Result<Reply, String>>, String> {
        // Each works while the others do.
        let tickets: Vec<_> =
            self.all().map(|(name, store)| (name, store.submit_all(commands.to_vec()))).collect();
        let mut first: Option<Vec<_>> = None;
        for (name, tickets) in tickets {
            let wait = |ticket: onceseal_store::Ticket| ticket.wait_until(Instant::now() + PATIENCE);
            let answers: Vec<Result<Reply, String>> =
                tickets.into_iter().map(|ticket| wait(ticket).map_err(|error| error.to_string())).collect();
            let told = first.get_or_insert_with(|| answers.clone());
            for ((command, told), answer) in commands.iter().zip(told.iter()).zip(&answers) {
                if told != answer {
                    let command = &command.command;
                    return Err(format!("{name} answers {command:?} with {answer:?}, not {told:?}"));
                }
            }
        }
        Ok(first.unwrap_or_default())
    }

    /// What is not kept alike, if anything.
    pub(crate) fn compare(&self) -> Result<(), String> {
        let mut first: Option<Kept> = None;
        for (name, store) in self.all() {
            let kept = Kept::read(store, first.as_ref()).map_err(|error| format!("{name}: {error}"))?;
            match &first {
                None => first = Some(kept),
                Some(first) => {
                    if let Some(what) = first.differs(&kept) {
                        return Err(format!("{name} keeps {what}"));
                    }
                }
            }
        }
        Ok(())
    }
}

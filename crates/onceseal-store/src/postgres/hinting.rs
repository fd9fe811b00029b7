//! Hints of a store on PostgreSQL: what is told to others, and what is heard.

use std::sync::Arc;

use tokio::sync::watch;

use super::announcing::Announcer;
use super::connect::Connector;
use super::listening::Listener;
use super::pool::Pool;
use crate::hints::{Hints, Wire};

struct Telling {
    pool: Arc<Pool>,
    /// Absent where nothing is committed.
    announcer: Option<Announcer>,
    listener: Listener,
}

impl Hints {
    /// Those of one tenant; `announces` what its lanes commit.
    pub(crate) fn postgres(connector: &Connector, pool: &Arc<Pool>, tenant: i32, announces: bool) -> Hints {
        let heard = watch::Sender::new(0);
        let announcer = announces.then(|| Announcer::start(connector, pool.clone(), tenant));
        let listener = Listener::new(connector.clone(), tenant, heard.clone());
        Hints::new(heard, Box::new(Telling { pool: pool.clone(), announcer, listener }))
    }
}

impl Wire for Telling {
    fn listen(&self) {
        self.listener.start();
    }

    fn close(&self) {
        self.listener.close();
        if let Some(announcer) = &self.announcer {
            announcer.close();
        }
        drop(self.pool.lend());
    }
}

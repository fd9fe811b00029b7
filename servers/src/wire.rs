//! The wire between clients and a server: a proxy on loopback that loses
//! connections at a given byte, holds bytes back, or takes no connection.

mod link;

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use link::Link;

use crate::chance;

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From clients to the server.
    ToServer,
    /// From the server to clients.
    ToClient,
}

/// Where a connection is to be lost.
#[derive(Debug, Clone, Copy)]
struct Cut {
    direction: Direction,
    bytes: u64,
    again: bool,
}

/// What is asked of the wire now.
#[derive(Debug, Default)]
struct State {
    /// Tells one cut from the one before, whose count does not go on.
    cuts: u64,
    cut: Option<Cut>,
    passed: [u64; 2],
    stalled: bool,
    delay: Duration,
    refusing: bool,
    listening: bool,
    ended: bool,
    links: Vec<Arc<Link>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    /// Waits while the state is so.
    fn wait(&self, while_so: impl FnMut(&mut State) -> bool) -> MutexGuard<'_, State> {
        self.changed.wait_while(self.state(), while_so).unwrap_or_else(PoisonError::into_inner)
    }
}

/// The wire. Its connections are lost with the value.
#[derive(Debug)]
pub struct Wire {
    port: u16,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

impl Wire {
    /// A wire to a server on this port of loopback.
    ///
    /// # Panics
    /// If no port can be listened on.
    #[must_use]
    pub fn to(server: u16) -> Wire {
        let bound = (0..100).find_map(|_| {
            let port = chance::port();
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok().map(|listener| (port, listener))
        });
        let (port, listener) = bound.expect("a port to listen on");
        let shared = Arc::new(Shared::default());
        shared.state().listening = true;
        let theirs = Arc::clone(&shared);
        let listener = Some(thread::spawn(move || listen(listener, port, server, &theirs)));
        Wire { port, shared, listener }
    }

    /// The port that clients connect to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Loses one connection: the first in which so many more bytes have passed
    /// in this direction. Not one byte more passes. After none, it is lost
    /// instead of the next byte. Takes the place of an earlier cut.
    pub fn cut_after(&self, direction: Direction, bytes: u64) {
        self.cut(Some(Cut { direction, bytes, again: false }));
    }

    /// The same for every connection, until [`mend`](Self::mend).
    pub fn cut_each_after(&self, direction: Direction, bytes: u64) {
        self.cut(Some(Cut { direction, bytes, again: true }));
    }

    /// Takes back a cut that has not happened.
    pub fn mend(&self) {
        self.cut(None);
    }

    fn cut(&self, cut: Option<Cut>) {
        self.shared.change(|state| {
            state.cut = cut;
            state.cuts += 1;
        });
    }

    /// Whether a cut still waits for its byte.
    #[must_use]
    pub fn will_cut(&self) -> bool {
        self.shared.state().cut.is_some()
    }

    /// How many bytes passed in this direction, in all connections.
    #[must_use]
    pub fn count(&self, direction: Direction) -> u64 {
        self.shared.state().passed[direction as usize]
    }

    /// Holds back every byte; connections stay open.
    pub fn stall(&self) {
        self.shared.change(|state| state.stalled = true);
    }

    /// Lets the bytes go that were held back, and all later ones.
    pub fn resume(&self) {
        self.shared.change(|state| state.stalled = false);
    }

    /// Lets every piece of what is sent take so much longer.
    pub fn delay(&self, by: Duration) {
        self.shared.change(|state| state.delay = by);
    }

    /// Takes no new connection, as a host without the server: they are
    /// refused.
    pub fn refuse(&self) {
        self.shared.change(|state| state.refusing = true);
        self.knock();
        drop(self.shared.wait(|state| state.listening));
    }

    /// Takes new connections again.
    pub fn accept(&self) {
        self.shared.change(|state| state.refusing = false);
        drop(self.shared.wait(|state| !state.listening));
    }

    /// Loses every connection there is.
    pub fn close_all(&self) {
        for link in &self.shared.state().links {
            link.close();
        }
    }

    /// Makes the listener look at what is asked of it.
    fn knock(&self) {
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.shared.change(|state| state.ended = true);
        self.knock();
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        self.close_all();
    }
}

fn listen(mut listener: TcpListener, port: u16, server: u16, shared: &Arc<Shared>) {
    loop {
        let client = listener.accept();
        let state = shared.state();
        if state.ended {
            return;
        }
        if state.refusing {
            drop((state, client, listener));
            shared.change(|state| state.listening = false);
            if shared.wait(|state| state.refusing && !state.ended).ended {
                return;
            }
            listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("our port again");
            shared.change(|state| state.listening = true);
            continue;
        }
        drop(state);
        let Ok((client, _)) = client else { continue };
        // A server that is not there closes the client's connection.
        if let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) {
            Link::open(client, server, shared);
        }
    }
}

//! One connection through the wire: two threads, one for each direction.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use super::{Direction, Shared};

/// Both ends of a connection.
#[derive(Debug)]
pub(super) struct Link {
    client: TcpStream,
    server: TcpStream,
    /// How many directions have come to their end.
    ended: AtomicU8,
}

impl Link {
    /// Lets bytes pass both ways from here on.
    pub(super) fn open(client: TcpStream, server: TcpStream, shared: &Arc<Shared>) {
        for end in [&client, &server] {
            // A piece goes on as it comes.
            let _ = end.set_nodelay(true);
        }
        let link = Arc::new(Link { client, server, ended: AtomicU8::new(0) });
        shared.state().links.push(Arc::clone(&link));
        for direction in [Direction::ToServer, Direction::ToClient] {
            let (link, shared) = (Arc::clone(&link), Arc::clone(shared));
            thread::spawn(move || {
                link.pass(direction, &shared);
                if link.ended.fetch_add(1, Ordering::SeqCst) == 1 {
                    shared.change(|state| state.links.retain(|other| !Arc::ptr_eq(other, &link)));
                }
            });
        }
    }

    /// Loses the connection.
    pub(super) fn close(&self) {
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }

    /// Lets bytes pass one way, until there are no more or the wire is cut.
    fn pass(&self, direction: Direction, shared: &Shared) {
        let (mut from, mut to) = match direction {
            Direction::ToServer => (&self.client, &self.server),
            Direction::ToClient => (&self.server, &self.client),
        };
        let mut piece = vec![0; 64 * 1024];
        // What passed since which cut was asked for.
        let (mut cuts, mut since) = (0, 0);
        loop {
            let read = match from.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => read,
                Err(_) => return self.close(),
            };
            let delay = shared.state().delay;
            thread::sleep(delay);
            let mut state = shared.wait(|state| state.stalled && !state.ended);
            if cuts != state.cuts {
                (cuts, since) = (state.cuts, 0);
            }
            let whole = since + read as u64;
            let cut = state.cut.filter(|cut| cut.direction == direction && cut.bytes <= whole);
            let passing = match cut {
                Some(cut) => usize::try_from(cut.bytes - since).unwrap_or(read),
                None => read,
            };
            since += passing as u64;
            state.passed[direction as usize] += passing as u64;
            if cut.is_some_and(|cut| !cut.again) {
                state.cut = None;
            }
            drop(state);
            if to.write_all(&piece[..passing]).is_err() || cut.is_some() {
                return self.close();
            }
        }
        drop(shared.wait(|state| state.stalled && !state.ended));
        // Half of it may go on: who has said all may still listen.
        let _ = to.shutdown(Shutdown::Write);
    }
}

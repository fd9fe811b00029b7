//! What has to differ from server to server: passwords, names, ports.

use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};

fn bytes() -> [u8; 12] {
    let mut bytes = [0; 12];
    File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes)).expect("/dev/urandom");
    bytes
}

/// A text that nobody guesses, of digits and the letters a to f.
pub(crate) fn text() -> String {
    bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A number below this one.
pub(crate) fn below(end: u16) -> u16 {
    let [low, high, ..] = bytes();
    u16::from_le_bytes([low, high]) % end
}

/// A free port on loopback, below those that outgoing connections take, so
/// that a server finds it free again after a restart.
pub(crate) fn port() -> u16 {
    (0..1000)
        .map(|_| 20_000 + below(12_000))
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .expect("a free port between 20000 and 32000")
}

//! The wire, between a client and a server that echoes.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use onceseal_servers::Direction::{ToClient, ToServer};
use onceseal_servers::{Wire, until};

/// A server that sends back what it gets, and the wire to it.
fn echo() -> Wire {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || std::io::copy(&mut &client, &mut &client));
        }
    });
    Wire::to(port)
}

fn connect(wire: &Wire) -> TcpStream {
    let client = TcpStream::connect((Ipv4Addr::LOCALHOST, wire.port())).expect("a connection");
    client.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    client
}

/// What comes until the connection is lost or ends.
fn rest(mut client: &TcpStream) -> usize {
    let mut bytes = [0; 1000];
    let mut got = 0;
    loop {
        match client.read(&mut bytes) {
            Ok(0) => return got,
            Ok(read) => got += read,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return got,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn everything_passes_and_is_counted() {
    let wire = echo();
    let client = connect(&wire);
    let text = vec![7; 300_000];
    let got = thread::scope(|scope| {
        scope.spawn(|| {
            (&client).write_all(&text).expect("sent");
            client.shutdown(std::net::Shutdown::Write).expect("shut");
        });
        rest(&client)
    });
    assert_eq!(got, text.len());
    assert_eq!((wire.count(ToServer), wire.count(ToClient)), (300_000, 300_000));
}

#[test]
fn a_cut_lets_no_byte_more_pass() {
    for bytes in [0, 1, 2, 99, 100] {
        for direction in [ToServer, ToClient] {
            let wire = echo();
            let client = connect(&wire);
            (&client).write_all(b"before").expect("sent");
            (&client).read_exact(&mut [0; 6]).expect("echoed");
            wire.cut_after(direction, bytes);
            (&client).write_all(&[7; 100]).expect("sent");
            let got = rest(&client) as u64;
            assert_eq!(wire.count(direction), 6 + bytes);
            if direction == ToClient {
                assert_eq!(got, bytes);
            }
            assert!(!wire.will_cut());
            // Once is once.
            let client = connect(&wire);
            (&client).write_all(&[7; 200]).expect("sent");
            (&client).read_exact(&mut [0; 200]).expect("echoed");
        }
    }
}

#[test]
fn every_connection_is_cut_until_it_is_mended() {
    let wire = echo();
    wire.cut_each_after(ToClient, 3);
    for _ in 0..3 {
        let client = connect(&wire);
        (&client).write_all(b"four").expect("sent");
        assert_eq!(rest(&client), 3);
    }
    wire.mend();
    let client = connect(&wire);
    (&client).write_all(b"four").expect("sent");
    (&client).read_exact(&mut [0; 4]).expect("echoed");
}

#[test]
fn stalled_bytes_come_later() {
    let wire = echo();
    let client = connect(&wire);
    wire.stall();
    (&client).write_all(b"held").expect("sent");
    client.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
    let held = (&client).read(&mut [0; 4]).expect_err("nothing comes");
    assert!(matches!(held.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{held}");
    assert_eq!(wire.count(ToServer), 0);
    client.set_read_timeout(None).expect("no timeout");
    wire.resume();
    (&client).read_exact(&mut [0; 4]).expect("echoed");
}

#[test]
fn what_is_refused_is_accepted_later_and_others_go_on() {
    let wire = echo();
    let client = connect(&wire);
    (&client).write_all(b"a").expect("sent");
    (&client).read_exact(&mut [0]).expect("echoed");
    for _ in 0..3 {
        wire.refuse();
        wire.refuse();
        let refused = TcpStream::connect((Ipv4Addr::LOCALHOST, wire.port())).expect_err("refused");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        (&client).write_all(b"b").expect("sent");
        (&client).read_exact(&mut [0]).expect("echoed");
        wire.accept();
        wire.accept();
        (&connect(&wire)).write_all(b"c").expect("sent");
    }
}

#[test]
fn all_are_closed_and_pieces_are_late() {
    let wire = echo();
    let clients = [connect(&wire), connect(&wire)];
    for mut client in &clients {
        client.write_all(b"a").expect("sent");
        client.read_exact(&mut [0]).expect("echoed");
    }
    wire.close_all();
    assert_eq!(clients.iter().map(rest).sum::<usize>(), 0);
    wire.delay(Duration::from_millis(20));
    let (client, began) = (connect(&wire), Instant::now());
    (&client).write_all(b"a").expect("sent");
    (&client).read_exact(&mut [0]).expect("echoed");
    assert!(began.elapsed() >= Duration::from_millis(40), "once each way");
    let port = wire.port();
    wire.stall();
    drop(wire);
    assert_eq!(rest(&client), 0, "it goes with the wire");
    until("nobody listens", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).err());
}

//! Destinations on this machine: connected to only where they are listed.

use std::io::ErrorKind;
use std::net::TcpListener;

use onceseal::http::{Client, SendErrorKind, Sent};

use super::server::{PATIENCE, answering};
use super::{not_executed, post};

fn except(hosts: &[&str]) -> Client {
    Client::builder().timeout(PATIENCE).refuse_local_except(hosts).build().unwrap()
}

#[tokio::test]
async fn nothing_is_written_to_this_machine_however_its_address_is_written() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    // The last four are names to a URL: only looking them up tells what they are.
    let hosts = [
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "localhost",
        "0.0.0.0",
        "127.1",
        "0x7f.1",
        "2130706433",
        "0",
    ];
    for host in hosts {
        let error =
            except(&["localhost.example"]).send(post(format!("http://{host}:{port}/"))).await.unwrap_err();
        assert!(matches!(error.kind, SendErrorKind::LocalDestination), "{host}: {error:?}");
        assert_eq!(
            (error.sent, error.outcome()),
            (Sent::Nothing, not_executed("local_destination")),
            "{host}"
        );
        let connected = listener.accept().map(|_| "a connection").map_err(|error| error.kind());
        assert_eq!(connected, Err(ErrorKind::WouldBlock), "{host}");
    }
}

#[tokio::test]
async fn a_listed_host_is_connected_to_by_the_name_that_is_listed() {
    for host in ["127.0.0.1", "localhost", "127.1"] {
        let server = answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        let url = |host: &str| format!("http://{host}:{}/", server.address.port());
        let other = if host == "localhost" { "127.0.0.1" } else { "localhost" };
        let error = except(&[host]).send(post(url(other))).await.unwrap_err();
        assert!(matches!(error.kind, SendErrorKind::LocalDestination), "{host}: {error:?}");
        assert_eq!(except(&[host]).send(post(url(host))).await.unwrap().status, 200);
        server.finish();
    }
}

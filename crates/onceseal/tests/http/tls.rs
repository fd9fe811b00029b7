//! TLS: bytes are counted below it.

use std::collections::BTreeSet;
use std::io::{Read, Write};

use onceseal::Outcome;
use onceseal::http::{Client, SendErrorKind, Sent};

use super::server::{Identity, PATIENCE, Server, answering, read_request};
use super::{client, post, unknown};

fn trusting(identity: &Identity) -> Client {
    Client::builder().timeout(PATIENCE).root_certificate(identity.certificate.clone()).build().unwrap()
}

fn url<T: Send + 'static>(server: &Server<T>) -> String {
    format!("https://localhost:{}/pay", server.address.port())
}

#[tokio::test]
async fn a_request_over_tls_is_committed_and_counted_as_it_is_on_the_wire() {
    let identity = Identity::new();
    let client = trusting(&identity);
    let server = Server::start(move |stream| {
        let mut tls = identity.on(stream);
        let request = read_request(&mut tls);
        tls.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        request.len() as u64
    });
    let response = client.send(post(url(&server))).await.unwrap();
    assert_eq!(response.outcome(&BTreeSet::new()), Outcome::Committed);
    // A handshake alone is some hundred bytes.
    assert!(response.sent > server.finish() + 200, "{response:?}");
}

#[tokio::test]
async fn p06_a_handshake_that_fails_is_unknown_because_bytes_left() {
    let identity = Identity::new();
    let server = Server::start(move |stream| {
        // It ends with the client's alert that it does not know the issuer.
        identity.on(stream).read(&mut [0]).unwrap_err();
    });
    let error = client().send(post(url(&server))).await.unwrap_err();
    assert!(matches!(error.kind, SendErrorKind::Tls(_)), "{error:?}");
    assert!(matches!(error.sent, Sent::Bytes(bytes) if bytes > 0), "{error:?}");
    assert_eq!(error.outcome(), unknown("tls"));
    server.finish();
}

#[tokio::test]
async fn p06_a_certificate_for_another_name_is_unknown_because_bytes_left() {
    let identity = Identity::new();
    let client = trusting(&identity);
    let server = Server::start(move |stream| {
        identity.on(stream).read(&mut [0]).unwrap_err();
    });
    let error = client.send(post(format!("https://{}/", server.address))).await.unwrap_err();
    assert!(matches!(error.kind, SendErrorKind::Tls(_)), "{error:?}");
    assert_eq!(error.outcome(), unknown("tls"));
    server.finish();
}

#[tokio::test]
async fn p06_a_server_without_tls_is_unknown_because_bytes_left() {
    let server = Server::start(|mut stream| {
        let mut hello = [0; 16];
        stream.read_exact(&mut hello).unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    let error = client().send(post(url(&server))).await.unwrap_err();
    assert!(matches!(error.sent, Sent::Bytes(_)), "{error:?}");
    assert_eq!(error.outcome(), unknown("tls"));
    server.finish();
}

#[tokio::test]
async fn p06_wherever_a_handshake_is_cut_it_is_unknown() {
    let client = client();
    for cut in (1..=200).step_by(20) {
        let server = Server::start(move |mut stream| stream.read_exact(&mut vec![0; cut]).unwrap());
        let error = client.send(post(url(&server))).await.unwrap_err();
        assert!(matches!(error.sent, Sent::Bytes(bytes) if bytes >= cut as u64), "{cut}: {error:?}");
        assert_eq!(error.outcome(), unknown("tls"), "{cut}");
        server.finish();
    }
}

#[tokio::test]
async fn p06_a_body_without_a_length_must_end_with_the_end_of_tls() {
    for polite in [true, false] {
        let identity = Identity::new();
        let client = trusting(&identity);
        let server = Server::start(move |stream| {
            let mut tls = identity.on(stream);
            read_request(&mut tls);
            tls.write_all(b"HTTP/1.1 200 OK\r\n\r\nall of it?").unwrap();
            if polite {
                tls.conn.send_close_notify();
                tls.flush().unwrap();
            }
        });
        let answer = client.send(post(url(&server))).await;
        let outcome =
            answer.map_or_else(|error| error.outcome(), |response| response.outcome(&BTreeSet::new()));
        assert_eq!(outcome, if polite { Outcome::Committed } else { unknown("broken_exchange") });
        server.finish();
    }
}

#[tokio::test]
async fn without_tls_the_end_of_the_connection_ends_such_a_body() {
    let server = answering("HTTP/1.1 200 OK\r\n\r\nall of it?");
    let response = client().send(post(server.url("/"))).await.unwrap();
    assert_eq!(response.body, b"all of it?");
    server.finish();
}

#[test]
fn a_root_that_is_no_certificate_is_refused() {
    assert!(Client::builder().root_certificate(*b"-----BEGIN CERTIFICATE-----").build().is_err());
}

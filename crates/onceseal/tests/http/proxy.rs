//! Proxies: another program between, that may have sent the request on.

use std::collections::BTreeSet;
use std::io::{Read, Write, copy};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;

use onceseal::Outcome;
use onceseal::http::{Client, Proxy, Request, SendErrorKind, Sent};

use super::server::{Identity, PATIENCE, Server, answering, read_request};
use super::{post, unknown};

fn through(address: SocketAddr) -> Proxy {
    Proxy::new(&format!("http://{address}")).unwrap().authorization("Basic hunter2").unwrap()
}

fn client(address: SocketAddr) -> Client {
    Client::builder().timeout(PATIENCE).proxy(through(address)).build().unwrap()
}

/// Opens one tunnel to `target`; the head of the request for it.
fn tunnel_to(target: SocketAddr) -> Server<String> {
    Server::start(move |mut client| {
        let head = read_request(&mut client);
        let mut remote = TcpStream::connect(target).unwrap();
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
        let (mut from, mut to) = (remote.try_clone().unwrap(), client.try_clone().unwrap());
        let back = thread::spawn(move || {
            copy(&mut from, &mut to).ok();
            to.shutdown(Shutdown::Write).ok();
        });
        copy(&mut client, &mut remote).ok();
        remote.shutdown(Shutdown::Write).ok();
        back.join().unwrap();
        String::from_utf8(head).unwrap()
    })
}

#[tokio::test]
async fn p06_even_a_refused_connection_to_a_proxy_is_unknown() {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let client = client(socket.local_addr().unwrap());
    for url in ["http://remote.invalid/", "https://remote.invalid/"] {
        let error = client.send(post(url.into())).await.unwrap_err();
        assert!(matches!(error.kind, SendErrorKind::Connect(_)), "{error:?}");
        assert_eq!((error.sent, error.outcome()), (Sent::ToProxy(0), unknown("connect")));
    }
}

#[tokio::test]
async fn what_cannot_be_sent_is_not_executed_through_a_proxy_too() {
    let client = client("127.0.0.1:9".parse().unwrap());
    let error = client.send(Request::new("GET", "http://remote.invalid/ ")).await.unwrap_err();
    assert_eq!(error.sent, Sent::Nothing);
    assert!(matches!(error.outcome(), Outcome::NotExecuted { .. }));
}

#[tokio::test]
async fn p06_through_a_plain_proxy_no_status_is_not_executed() {
    let named = BTreeSet::from([407, 503]);
    for (status, outcome) in
        [(200, Outcome::Committed), (407, unknown("status_407")), (503, unknown("status_503"))]
    {
        let proxy = answering(format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n"));
        let response = client(proxy.address).send(post("http://remote.invalid:81/a?b".into())).await.unwrap();
        assert!(response.relayed);
        assert_eq!(response.outcome(&named), outcome);
        let request = proxy.finish();
        assert_eq!(response.sent, request.len() as u64);
        let request = String::from_utf8(request).unwrap();
        assert!(request.starts_with("POST http://remote.invalid:81/a?b HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("\r\nhost: remote.invalid:81\r\n"), "{request}");
        assert!(request.contains("\r\nproxy-authorization: Basic hunter2\r\n"), "{request}");
    }
}

#[tokio::test]
async fn p06_an_exchange_that_breaks_off_at_a_proxy_is_unknown() {
    let proxy = Server::start(|mut stream| read_request(&mut stream));
    let error = client(proxy.address).send(post("http://remote.invalid/".into())).await.unwrap_err();
    assert_eq!(error.outcome(), unknown("broken_exchange"));
    assert_eq!(error.sent, Sent::ToProxy(proxy.finish().len() as u64));
}

#[tokio::test]
async fn p06_a_tunnel_that_is_refused_is_unknown() {
    let proxy = answering("HTTP/1.1 407 X\r\nContent-Length: 0\r\n\r\n");
    let error = client(proxy.address).send(post("https://remote.invalid/a?b".into())).await.unwrap_err();
    assert!(matches!(error.kind, SendErrorKind::ProxyRefused(407)), "{error:?}");
    assert_eq!(error.outcome(), unknown("proxy_refused"));
    let request = proxy.finish();
    assert_eq!(error.sent, Sent::ToProxy(request.len() as u64));
    let request = String::from_utf8(request).unwrap();
    assert!(request.starts_with("CONNECT remote.invalid:443 HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nhost: remote.invalid:443\r\n"), "{request}");
    assert!(!request.contains("a?b") && !request.contains("osl_1"), "{request}");
}

#[tokio::test]
async fn through_a_tunnel_the_remote_itself_is_heard() {
    let identity = Identity::new();
    let certificate = identity.certificate.clone();
    let remote = Server::start(move |stream| {
        let mut tls = identity.on(stream);
        let request = read_request(&mut tls);
        tls.write_all(b"HTTP/1.1 409 X\r\nContent-Length: 0\r\n\r\n").unwrap();
        String::from_utf8(request).unwrap()
    });
    let proxy = tunnel_to(remote.address);
    let client = Client::builder()
        .timeout(PATIENCE)
        .proxy(through(proxy.address))
        .root_certificate(certificate)
        .build()
        .unwrap();
    let url = format!("https://localhost:{}/pay", remote.address.port());
    let response = client.send(post(url)).await.unwrap();
    assert!(!response.relayed);
    let outcome = response.outcome(&BTreeSet::from([409]));
    assert_eq!(outcome, Outcome::NotExecuted { code: "status_409".into() });
    let request = remote.finish();
    assert!(request.starts_with("POST /pay HTTP/1.1\r\n"), "{request}");
    assert!(!request.contains("hunter2"), "{request}");
    assert!(proxy.finish().contains("\r\nproxy-authorization: Basic hunter2\r\n"));
}

#[tokio::test]
async fn p06_a_handshake_that_fails_inside_a_tunnel_is_unknown() {
    let identity = Identity::new();
    let remote = Server::start(move |stream| {
        identity.on(stream).read(&mut [0]).unwrap_err();
    });
    let proxy = tunnel_to(remote.address);
    let url = format!("https://localhost:{}/pay", remote.address.port());
    let error = client(proxy.address).send(post(url)).await.unwrap_err();
    assert!(matches!(error.kind, SendErrorKind::Tls(_)), "{error:?}");
    assert!(matches!(error.sent, Sent::ToProxy(bytes) if bytes > 0), "{error:?}");
    assert_eq!(error.outcome(), unknown("tls"));
    remote.finish();
    proxy.finish();
}

#[test]
fn a_proxy_is_a_plain_url_and_shows_no_credentials() {
    for url in
        ["https://p:1", "http://u:p@p:1", "http://p:1/path", "http://p:1/?q", "p:1", "", "socks5://p:1"]
    {
        assert!(Proxy::new(url).is_err(), "{url}");
    }
    let proxy = Proxy::new("http://p").unwrap();
    assert!(proxy.clone().authorization("a\r\nb").is_err());
    let shown = format!("{:?}", proxy.authorization("Basic hunter2").unwrap());
    assert!(shown.contains("80") && !shown.contains("hunter2"), "{shown}");
}

//! The shipped HTTP client against servers that misbehave.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use onceseal::config::Config;
use onceseal::core::json::Object;
use onceseal::http::{
    Client, InvalidRequest, REQUEST_BODY_MAX, REQUEST_HEADERS_MAX, Request, Response, SendError,
    SendErrorKind, Sent,
};
use onceseal::store::clock::SystemClock;
use onceseal::{Control, Error, Outcome, Principal};

use self::server::{PATIENCE, Server, answering, read_request};

#[path = "http/local.rs"]
mod local;
#[path = "http/proxy.rs"]
mod proxy;
#[path = "http/server.rs"]
mod server;
#[path = "http/tls.rs"]
mod tls;

/// Short enough to wait for, where the server never answers.
const SHORT: Duration = Duration::from_millis(200);

fn client() -> Client {
    Client::builder().timeout(PATIENCE).build().unwrap()
}

fn impatient() -> Client {
    Client::builder().timeout(SHORT).build().unwrap()
}

fn post(url: String) -> Request {
    Request::new("POST", url).header("Idempotency-Key", "osl_1").body("{\"amount\":5}")
}

async fn send(url: String) -> Result<Response, SendError> {
    client().send(post(url)).await
}

fn unknown(code: &str) -> Outcome {
    Outcome::Unknown { code: code.into() }
}

fn not_executed(code: &str) -> Outcome {
    Outcome::NotExecuted { code: code.into() }
}

#[tokio::test]
async fn a_request_arrives_as_it_was_made_and_every_byte_is_counted() {
    let server = answering("HTTP/1.1 201 Created\r\nX-Id: 7\r\nContent-Length: 2\r\n\r\nok");
    let address = server.address;
    let response = send(server.url("/pay?x=%20y")).await.unwrap();
    assert_eq!(response.status, 201);
    assert_eq!(response.header("x-id"), Some(&b"7"[..]));
    assert_eq!((&response.body[..], response.truncated), (&b"ok"[..], false));
    assert_eq!(response.outcome(&BTreeSet::new()), Outcome::Committed);
    let request = server.finish();
    assert_eq!(response.sent, request.len() as u64);
    let text = String::from_utf8(request).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    assert_eq!(lines.next(), Some("POST /pay?x=%20y HTTP/1.1"));
    let mut headers: Vec<_> = lines.collect();
    headers.sort_unstable();
    let agent = concat!("user-agent: onceseal/", env!("CARGO_PKG_VERSION"));
    let host = format!("host: {address}");
    assert_eq!(headers, ["connection: close", "content-length: 12", &host, "idempotency-key: osl_1", agent]);
    assert_eq!(body, "{\"amount\":5}");
}

#[tokio::test]
async fn p06_a_status_is_not_executed_only_if_it_was_named() {
    let named = BTreeSet::from([200, 302, 409]);
    let table = [
        (200, Outcome::Committed),
        (204, Outcome::Committed),
        (302, not_executed("status_302")),
        (307, unknown("status_307")),
        (400, unknown("status_400")),
        (404, unknown("status_404")),
        (409, not_executed("status_409")),
        (500, unknown("status_500")),
        (503, unknown("status_503")),
    ];
    for (status, outcome) in table {
        let server = answering(format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n"));
        let response = send(server.url("/")).await.unwrap();
        assert_eq!(response.outcome(&named), outcome, "{status}");
        server.finish();
    }
}

#[tokio::test]
async fn p06_a_request_that_is_an_executor_ends_as_its_response_says() {
    let file = b"schema: onceseal.policy/v1\nactions:\n  pay: { effect: 'pay:{order}', decision: allow }\n";
    let policy = Config::parse(file).unwrap().policy;
    let control = Control::memory(policy, Arc::new(SystemClock)).await.unwrap();
    let (client, named) = (client(), BTreeSet::from([409]));
    let pay = async |order: &str, url: String| {
        let call = control.action("pay").arg("order", order).by(Principal::agent("bot"));
        call.execute(|_| client.run(post(url), &named)).await
    };
    let answered = async |status: u16| {
        let server = answering(format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n"));
        let result = pay(&status.to_string(), server.url("/")).await;
        server.finish();
        result
    };
    let mut ok = Object::new();
    ok.insert("status", 201);
    assert_eq!(answered(201).await.unwrap().value, Some(ok.into()));
    match answered(409).await {
        Err(Error::NotExecuted { code, message, .. }) => {
            assert_eq!(code.as_deref(), Some("status_409"));
            assert_eq!(message, "the remote answered with status 409");
        }
        other => panic!("{other:?}"),
    }
    let lost = answered(500).await.unwrap_err();
    assert!(matches!(lost, Error::Unknown { code: Some(code), .. } if code == "status_500"));
    // Nobody listens there any more.
    let gone = Server::start(drop);
    let url = gone.url("/");
    send(url.clone()).await.unwrap_err();
    gone.finish();
    let refused = pay("gone", url).await.unwrap_err();
    assert!(matches!(refused, Error::NotExecuted { code: Some(code), .. } if code == "connect"));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let server = Server::start(|mut stream| {
        read_request(&mut stream);
        let here = stream.local_addr().unwrap();
        write!(stream, "HTTP/1.1 307 X\r\nLocation: http://{here}/again\r\nContent-Length: 0\r\n\r\n")
            .unwrap();
    });
    let response = send(server.url("/")).await.unwrap();
    assert_eq!(response.status, 307);
    assert_eq!(response.outcome(&BTreeSet::new()), unknown("status_307"));
    server.finish();
}

#[tokio::test]
async fn p06_a_request_that_was_read_and_never_answered_is_unknown() {
    let server = Server::start(|mut stream| read_request(&mut stream));
    let error = send(server.url("/")).await.unwrap_err();
    assert!(matches!(error.kind, SendErrorKind::Exchange(_)), "{error:?}");
    assert_eq!(error.outcome(), unknown("broken_exchange"));
    assert_eq!(error.sent, Sent::Bytes(server.finish().len() as u64));
}

#[tokio::test]
async fn p06_a_response_that_breaks_off_is_unknown_though_its_status_is_known() {
    let cases: [(&str, Option<u16>); 5] = [
        ("HTTP/1.1 20", None),
        ("HTTP/1.1 200 OK\r\nContent-Len", None),
        ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", Some(200)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n", Some(200)),
        ("HTTP/1.1 409 X\r\nContent-Length: 10\r\n\r\n", Some(409)),
    ];
    for (response, status) in cases {
        let server = answering(response);
        let error = send(server.url("/")).await.unwrap_err();
        assert_eq!(error.outcome(), unknown("broken_exchange"), "{response:?}");
        assert_eq!(error.status, status, "{response:?}");
        assert_eq!(error.sent, Sent::Bytes(server.finish().len() as u64));
    }
}

#[tokio::test]
async fn p06_an_answer_that_is_not_http_is_unknown() {
    for garbage in ["SSH-2.0-x\r\n", "\0\0\0\0\0\0\0\0\r\n\r\n", "HTTP/1.1 999999 X\r\n\r\n"] {
        let server = answering(garbage);
        let error = send(server.url("/")).await.unwrap_err();
        assert_eq!(error.outcome(), unknown("broken_exchange"), "{garbage:?}");
        assert_eq!(error.sent, Sent::Bytes(server.finish().len() as u64));
    }
}

#[tokio::test]
async fn p06_an_answer_that_does_not_come_in_time_is_unknown() {
    let (over, is_over) = mpsc::channel::<()>();
    let server = Server::start(move |mut stream| {
        let request = read_request(&mut stream);
        // Holds the connection until the client has given up.
        is_over.recv().unwrap_err();
        request
    });
    let error = impatient().send(post(server.url("/"))).await.unwrap_err();
    drop(over);
    assert!(matches!(error.kind, SendErrorKind::Timeout));
    assert_eq!(error.outcome(), unknown("timeout"));
    assert_eq!(error.sent, Sent::Bytes(server.finish().len() as u64));
}

#[tokio::test]
async fn p06_a_request_that_was_written_in_part_is_unknown() {
    let (over, is_over) = mpsc::channel::<()>();
    // Never reads, so that the connection's buffers fill up.
    let server = Server::start(move |stream| {
        is_over.recv().unwrap_err();
        drop(stream);
    });
    let request = Request::new("POST", server.url("/")).body(vec![0; REQUEST_BODY_MAX]);
    let error = impatient().send(request).await.unwrap_err();
    drop(over);
    assert_eq!(error.outcome(), unknown("timeout"));
    assert!(matches!(error.sent, Sent::Bytes(bytes) if bytes < REQUEST_BODY_MAX as u64), "{error:?}");
    server.finish();
}

#[tokio::test]
async fn p06_wherever_a_request_is_cut_it_is_not_executed_only_if_nothing_was_written() {
    let whole = {
        let server = answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        send(server.url("/")).await.unwrap();
        server.finish().len()
    };
    let client = client();
    // The port's digits may differ in number from one server to the next.
    for cut in 0..=whole + 5 {
        let server = Server::start(move |mut stream| {
            let mut read = vec![0; cut];
            let mut length = 0;
            while length < cut {
                match stream.read(&mut read[length..]) {
                    Ok(0) | Err(_) => break,
                    Ok(some) => length += some,
                }
                // The rest never comes: the client has sent all it has.
                if read[..length].ends_with(b"{\"amount\":5}") {
                    break;
                }
            }
            length as u64
        });
        let error = client.send(post(server.url("/"))).await.unwrap_err();
        let arrived = server.finish();
        let said = matches!(error.outcome(), Outcome::NotExecuted { .. });
        assert_eq!(said, error.sent == Sent::Nothing, "cut after {cut}: {error:?}");
        match error.sent {
            Sent::Nothing => assert_eq!(arrived, 0, "cut after {cut}"),
            Sent::Bytes(bytes) => assert!(bytes >= arrived, "cut after {cut}: {arrived} of {bytes} arrived"),
            Sent::ToProxy(_) => panic!("there is no proxy"),
        }
    }
}

#[tokio::test]
async fn a_refused_connection_is_not_executed() {
    // Bound and not listening: nobody else can have the port meanwhile.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let error = send(format!("http://{}/", socket.local_addr().unwrap())).await.unwrap_err();
    assert!(matches!(error.kind, SendErrorKind::Connect(_)));
    assert_eq!((error.sent, error.outcome()), (Sent::Nothing, not_executed("connect")));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_connection_that_is_not_accepted_in_time_is_not_executed() {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    // The queue has room for one; a second connection gets no answer.
    let _first = tokio::net::TcpStream::connect(address).await.unwrap();
    let client = Client::builder().connect_timeout(SHORT).build().unwrap();
    let error = client.send(post(format!("http://{address}/"))).await.unwrap_err();
    assert!(matches!(error.kind, SendErrorKind::ConnectTimeout));
    assert_eq!((error.sent, error.outcome()), (Sent::Nothing, not_executed("connect_timeout")));
}

#[tokio::test]
async fn a_name_that_cannot_be_looked_up_is_not_executed() {
    // No label may be so long, so no name server is asked.
    let error = send(format!("http://{}.invalid/", "a".repeat(64))).await.unwrap_err();
    assert!(matches!(error.kind, SendErrorKind::NameLookup(_)), "{error:?}");
    assert_eq!((error.sent, error.outcome()), (Sent::Nothing, not_executed("name_lookup")));
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_before_anything_leaves() {
    let get = |url: &str| Request::new("GET", url);
    let with = |name: &str, value: &str| get("http://localhost/").header("a", "b").header(name, value);
    let cases = [
        (get("http://localhost/a b"), InvalidRequest::Url),
        (get("http://localhost/a\r\nX: y"), InvalidRequest::Url),
        (get("http://localhost/ü"), InvalidRequest::Url),
        (get("/path"), InvalidRequest::Url),
        (get("ftp://localhost/"), InvalidRequest::Url),
        (get("http://localhost:99999/"), InvalidRequest::Url),
        (get("http://localhost:/"), InvalidRequest::Url),
        (get("http://user:secret@localhost/"), InvalidRequest::Credentials),
        (get("https://-._/"), InvalidRequest::Host),
        (Request::new("GET /x HTTP/1.1\r\n", "http://localhost/"), InvalidRequest::Method),
        (Request::new("", "http://localhost/"), InvalidRequest::Method),
        (Request::new("CONNECT", "http://localhost/"), InvalidRequest::Method),
        (with("b\r\nc", "d"), InvalidRequest::HeaderName { position: 2 }),
        (with("", "d"), InvalidRequest::HeaderName { position: 2 }),
        (with("b", "c\r\nd: e"), InvalidRequest::HeaderValue { position: 2 }),
        (with("b", "c\nd: e"), InvalidRequest::HeaderValue { position: 2 }),
        (with("b", "c\0"), InvalidRequest::HeaderValue { position: 2 }),
        (with("Content-Length", "0"), InvalidRequest::ReservedHeader { position: 2 }),
        (with("transfer-encoding", "chunked"), InvalidRequest::ReservedHeader { position: 2 }),
        (with("Host", "elsewhere"), InvalidRequest::ReservedHeader { position: 2 }),
        (with("Connection", "keep-alive"), InvalidRequest::ReservedHeader { position: 2 }),
        (with("b", &"c".repeat(REQUEST_HEADERS_MAX)), InvalidRequest::HeadersTooLarge),
        (get("http://localhost/").body(vec![0; REQUEST_BODY_MAX + 1]), InvalidRequest::BodyTooLarge),
    ];
    for (request, invalid) in cases {
        let shown = format!("{request:?}");
        let error = client().send(request).await.unwrap_err();
        assert!(
            matches!(&error.kind, SendErrorKind::Invalid(found) if *found == invalid),
            "{shown}: {error:?}"
        );
        assert_eq!((error.sent, error.outcome()), (Sent::Nothing, not_executed("invalid_request")));
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_cut_and_the_status_stands() {
    for (body, kept, truncated) in [("12345", "12345", false), ("123456", "12345", true)] {
        let server = answering(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        let client = Client::builder().response_body(5).build().unwrap();
        let response = client.send(post(server.url("/"))).await.unwrap();
        assert_eq!((response.body.as_slice(), response.truncated), (kept.as_bytes(), truncated));
        assert_eq!(response.outcome(&BTreeSet::new()), Outcome::Committed);
        server.finish();
    }
}

#[tokio::test]
async fn an_endless_body_ends_at_the_limit() {
    let server = Server::start(|mut stream| {
        read_request(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
        // Until the client closes the connection.
        while stream.write_all(b"4\r\nmore\r\n").is_ok() {}
    });
    let client = Client::builder().timeout(PATIENCE).response_body(1000).build().unwrap();
    let response = client.send(post(server.url("/"))).await.unwrap();
    assert_eq!((response.body.len(), response.truncated), (1000, true));
    server.finish();
}

#[tokio::test]
async fn an_answer_before_the_whole_request_was_read_counts() {
    let server = Server::start(|mut stream| {
        let mut first = [0; 100];
        stream.read_exact(&mut first).unwrap();
        stream.write_all(b"HTTP/1.1 413 X\r\nContent-Length: 0\r\n\r\n").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        // Reading on keeps the answer from being lost with the connection.
        std::io::copy(&mut stream, &mut std::io::sink()).ok();
    });
    let request = Request::new("POST", server.url("/")).body(vec![0; REQUEST_BODY_MAX]);
    let response = client().send(request).await.unwrap();
    assert_eq!(response.outcome(&BTreeSet::from([413])), not_executed("status_413"));
    server.finish();
}

#[tokio::test]
async fn a_dropped_request_leaves_no_connection_behind() {
    let (read, was_read) = tokio::sync::oneshot::channel();
    let server = Server::start(move |mut stream| {
        read_request(&mut stream);
        read.send(()).unwrap();
        // The end of the connection, or an error after the read timeout.
        stream.read(&mut [0]).unwrap()
    });
    tokio::select! {
        answer = send(server.url("/")) => panic!("it was answered: {answer:?}"),
        read = was_read => read.unwrap(),
    }
    assert_eq!(server.finish(), 0);
}

#[tokio::test]
async fn p13_no_secret_is_in_an_error_or_a_debug_form() {
    let secret = "hunter2";
    let server = answering(format!("HTTP/1.1 20{secret}\r\n\r\n"));
    let request = Request::new("POST", server.url("/hunter2?token=hunter2"))
        .header("Authorization", secret)
        .body(secret);
    let mut shown = format!("{request:?}");
    let error = client().send(request).await.unwrap_err();
    shown += &format!("{error} {error:?}");
    server.finish();
    let request = Request::new("POST", "http://localhost/hunter2 ").header("Authorization", "hunter2\n");
    let error = client().send(request).await.unwrap_err();
    shown += &format!("{error} {error:?}");
    let request = Request::new("POST", "http://localhost/").header("Authorization", "hunter2\n");
    let error = client().send(request).await.unwrap_err();
    shown += &format!("{error} {error:?}");
    let server = answering("HTTP/1.1 200 OK\r\nX-Token: hunter2\r\nContent-Length: 7\r\n\r\nhunter2");
    shown += &format!("{:?}", send(server.url("/")).await.unwrap());
    server.finish();
    assert!(shown.contains("authorization") || shown.contains("Authorization"));
    assert!(!shown.contains(secret), "{shown}");
}

#[test]
fn an_attempt_can_move_between_threads() {
    fn check<T: Send>(_: T) {}
    check(client().send(post("http://localhost/".into())));
}

//! Servers on loopback that do what a test tells them, once.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Longer than anything here takes; only a failing test waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Takes one connection.
pub(crate) struct Server<T> {
    pub(crate) address: SocketAddr,
    listener: TcpListener,
    thread: JoinHandle<T>,
}

impl<T: Send + 'static> Server<T> {
    pub(crate) fn start(serve: impl FnOnce(TcpStream) -> T + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = listener.try_clone().unwrap();
        let thread = thread::spawn(move || {
            let (stream, _) = accepting.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            serve(stream)
        });
        Self { address, listener, thread }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What the server returned, once it is sure that nobody connected a
    /// second time.
    pub(crate) fn finish(self) -> T {
        let returned = self.thread.join().unwrap();
        self.listener.set_nonblocking(true).unwrap();
        let second = self.listener.accept().map(|_| "a second connection");
        assert_eq!(second.map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
        returned
    }
}

/// Reads a request: its head, and a body of the length that the head says.
pub(crate) fn read_request(stream: &mut impl Read) -> Vec<u8> {
    let mut request = Vec::new();
    let end = loop {
        if let Some(at) = request.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        read_some(stream, &mut request);
    };
    let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let whole = end + length.map_or(0, |length| length.parse::<usize>().unwrap());
    while request.len() < whole {
        read_some(stream, &mut request);
    }
    request
}

fn read_some(stream: &mut impl Read, into: &mut Vec<u8>) {
    let mut buffer = [0; 4096];
    let read = stream.read(&mut buffer).unwrap();
    assert!(read > 0, "the request ends early: {:?}", String::from_utf8_lossy(into));
    into.extend_from_slice(&buffer[..read]);
}

/// Answers one request with `response`, and closes.
pub(crate) fn answering(response: impl Into<Vec<u8>>) -> Server<Vec<u8>> {
    let response = response.into();
    Server::start(move |mut stream| {
        let request = read_request(&mut stream);
        stream.write_all(&response).unwrap();
        request
    })
}

/// A certificate for `localhost` that nobody vouches for, and its server side.
pub(crate) struct Identity {
    pub(crate) certificate: Vec<u8>,
    config: Arc<ServerConfig>,
}

impl Identity {
    pub(crate) fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        Self { certificate: made.cert.der().to_vec(), config: Arc::new(config) }
    }

    /// Speaks TLS on a connection; the handshake is made by the first read.
    pub(crate) fn on(&self, stream: TcpStream) -> StreamOwned<ServerConnection, TcpStream> {
        StreamOwned::new(ServerConnection::new(Arc::clone(&self.config)).unwrap(), stream)
    }
}

//! As much of HTTP/1.1 as one request on one connection needs.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Nobody who means well takes longer over a request, or sends more.
const PATIENCE: Duration = Duration::from_secs(10);
const MOST: u64 = 64 * 1024;

/// What somebody asks.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// What stands after the `?`.
    pub(crate) query: String,
    /// The `Idempotency-Key`.
    pub(crate) key: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn read(stream: &TcpStream) -> io::Result<Request> {
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut reader = BufReader::new(stream.take(MOST));
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let mut words = line.split_whitespace();
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (method, path, query) = (method.to_owned(), path.to_owned(), query.to_owned());
        let mut request = Request { method, path, query, ..Request::default() };
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let Some((name, value)) = header.trim_end().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "idempotency-key" => request.key = Some(value.trim().to_owned()),
                "content-length" => length = value.trim().parse().map_err(|_| io::ErrorKind::InvalidData)?,
                _ => {}
            }
        }
        reader.take(length).read_to_end(&mut request.body)?;
        Ok(request)
    }
}

pub(crate) fn answer(mut stream: &TcpStream, status: u16, body: &Value) -> io::Result<()> {
    let body = format!("{body}\n");
    let head = format!("HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nConnection: close\r\n");
    stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())
}

//! One request and its response on an open connection.
//!
//! Invariant: the connection lives inside the future, so nothing is written
//! once that is gone.

use std::future::Future;
use std::pin::pin;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::HeaderMap;
use hyper_util::rt::TokioIo;

use super::SendErrorKind;
use super::connect::Stream;
use super::wire::Wire;

/// A whole response, as far as its body is kept.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
    pub(super) truncated: bool,
}

pub(super) async fn exchange(
    stream: Stream,
    request: hyper::Request<Full<Bytes>>,
    limit: usize,
    wire: &Wire,
) -> Result<Answer, SendErrorKind> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let talk = async {
        let (head, body) = sender.send_request(request).await.map_err(broken)?.into_parts();
        wire.answered(head.status.as_u16());
        let (body, truncated) = read(body, limit).await?;
        Ok(Answer { status: head.status.as_u16(), headers: head.headers, body, truncated })
    };
    drive(connection, talk).await
}

/// Does both at once: a connection moves only while it is polled. What breaks
/// it reaches the talk, so its own end is of no interest.
pub(super) async fn drive<T>(connection: impl Future, talk: impl Future<Output = T>) -> T {
    let (mut connection, mut talk) = (pin!(connection), pin!(talk));
    tokio::select! {
        answer = &mut talk => return answer,
        _ = &mut connection => {}
    }
    talk.await
}

async fn read(mut body: Incoming, limit: usize) -> Result<(Vec<u8>, bool), SendErrorKind> {
    let mut kept = Vec::new();
    while let Some(frame) = body.frame().await {
        // Trailers are not data.
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        let room = limit - kept.len();
        kept.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            return Ok((kept, true));
        }
    }
    Ok((kept, false))
}

pub(super) fn broken(error: hyper::Error) -> SendErrorKind {
    SendErrorKind::Exchange(error.into())
}

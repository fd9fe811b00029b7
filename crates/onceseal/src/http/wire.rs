//! What was written to the socket of one attempt.
//!
//! Invariant: every byte that the system accepted is counted before anybody is
//! told that it did.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What is known of an attempt while it is under way.
#[derive(Debug, Default)]
pub(super) struct Wire {
    written: AtomicU64,
    /// 0 until the response's head has come.
    status: AtomicU16,
}

impl Wire {
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    pub(super) fn status(&self) -> Option<u16> {
        Some(self.status.load(Ordering::Acquire)).filter(|&status| status != 0)
    }

    pub(super) fn answered(&self, status: u16) {
        self.status.store(status, Ordering::Release);
    }
}

/// A connection whose written bytes are counted.
pub(super) struct Counted {
    stream: TcpStream,
    wire: Arc<Wire>,
}

impl Counted {
    pub(super) fn new(stream: TcpStream, wire: Arc<Wire>) -> Self {
        Self { stream, wire }
    }

    fn count(&self, written: io::Result<usize>) -> io::Result<usize> {
        if let Ok(bytes) = written {
            self.wire.written.fetch_add(bytes as u64, Ordering::AcqRel);
        }
        written
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, buf));
        Poll::Ready(self.count(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, bufs));
        Poll::Ready(self.count(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

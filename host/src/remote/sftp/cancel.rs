//! A stream that ends when a token fires.
//!
//! The SFTP library's writer waits for channel window without watching whether the channel still lives, and would
//! wait for ever once it is gone. Firing the token makes that wait fail, so that its task and its buffers are freed.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Reads end with end-of-file and writes fail once the token has fired.
pub(super) struct Cancellable<S> {
    inner: S,
    // One wait for each half: they are polled by different tasks, and a future wakes only the last that polled it.
    reading: Pin<Box<WaitForCancellationFutureOwned>>,
    writing: Pin<Box<WaitForCancellationFutureOwned>>,
    token: CancellationToken,
}

impl<S> Cancellable<S> {
    pub(super) fn new(inner: S, token: &CancellationToken) -> Self {
        let wait = || Box::pin(token.clone().cancelled_owned());
        Self { inner, reading: wait(), writing: wait(), token: token.clone() }
    }

    fn writing_ended(&mut self, cx: &mut Context<'_>) -> bool {
        self.token.is_cancelled() || self.writing.as_mut().poll(cx).is_ready()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Cancellable<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.token.is_cancelled() || self.reading.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Cancellable<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.writing_ended(cx) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.writing_ended(cx) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.writing_ended(cx) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_blocked_write_and_a_blocked_read_end_when_the_token_fires() {
        let (near, _far) = tokio::io::duplex(8);
        let token = CancellationToken::new();
        let (mut read, mut write) = tokio::io::split(Cancellable::new(near, &token));
        let writing = tokio::spawn(async move { write.write_all(&[0; 64]).await });
        let reading = tokio::spawn(async move { read.read(&mut [0; 8]).await });
        tokio::task::yield_now().await;
        assert!(!writing.is_finished() && !reading.is_finished());
        token.cancel();
        assert_eq!(writing.await.unwrap().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(reading.await.unwrap().unwrap(), 0);
    }
}

//! Reads the body of a request into one buffer, for which it takes memory step by step.

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, header},
};
use http_body_util::BodyExt;
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{self, Instant},
};

use super::{
    body_memory::{BodyMemory, Held, Share},
    deadline::Deadline,
    refusal::Refusal,
};

/// What a body of a declared length takes at once at most. It is enough for the reviews of ordinary pods; a client that
/// declares more and sends little takes no more than this.
const FIRST_STEP: usize = 64 * 1024;

/// What a body of unknown length begins with. The API server always declares the length.
const UNDECLARED: usize = 4 * 1024;

/// Reads a body until the deadline.
pub async fn read(
    headers: &HeaderMap,
    body: Body,
    memory: &BodyMemory,
    share: Share,
    deadline: Deadline,
) -> Result<Held, Refusal> {
    let declared = declared_length(headers);
    // A content length above the limit is rejected before the body is read.
    if declared.is_some_and(|length| length > share.largest) {
        return Err(Refusal::TooLarge(share.largest, share.flag));
    }
    let first = declared.unwrap_or(UNDECLARED).min(FIRST_STEP);
    let permit = time::timeout_at(deadline.at, memory.take(share.factor * first)).await;
    let permit = permit.map_err(|_| Refusal::NoMemory(deadline.patience))?;
    let mut arriving = Arriving {
        buffer: Vec::with_capacity(first),
        permit,
        most: declared.unwrap_or(share.largest),
        share,
        waits: false,
    };
    let began = Instant::now();
    let ended = tokio::select! {
        // In this order, so that a body that is already there starts no timer.
        biased;
        read = arriving.read(body, memory) => read,
        () = memory.is_wanted(began) => Err(Refusal::GaveWay),
        () = time::sleep_until(deadline.at) => Err(Refusal::TimedOut(deadline.patience)),
    };
    match ended {
        Ok(()) => Ok(Held::new(arriving.buffer, arriving.permit)),
        Err(Refusal::TimedOut(patience)) if arriving.waits => Err(Refusal::NoMemory(patience)),
        Err(refusal) => Err(refusal),
    }
}

/// A body on its way.
struct Arriving {
    buffer: Vec<u8>,
    permit: OwnedSemaphorePermit,
    /// The declared length, or the limit.
    most: usize,
    share: Share,
    /// Whether it waits for memory, not for data.
    waits: bool,
}

impl Arriving {
    /// Copies what arrives. A list of the parts would keep a whole buffer of the connection for each of them, however
    /// small they are.
    async fn read(&mut self, mut body: Body, memory: &BodyMemory) -> Result<(), Refusal> {
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Refusal::Broken(error.into_inner()))?;
            // The other kind, trailers, means nothing here.
            if let Ok(data) = frame.into_data() {
                self.add(&data, memory).await?;
            }
        }
        Ok(())
    }

    async fn add(&mut self, data: &Bytes, memory: &BodyMemory) -> Result<(), Refusal> {
        let length = self.buffer.len() + data.len();
        let Share { largest, flag, factor } = self.share;
        if length > largest {
            return Err(Refusal::TooLarge(largest, flag));
        }
        let held = self.permit.num_permits() / factor;
        if length > held {
            let wanted = (2 * held).min(self.most).max(length);
            self.waits = true;
            self.permit.merge(memory.take(factor * (wanted - held)).await);
            self.waits = false;
            self.buffer.reserve_exact(wanted - self.buffer.len());
        }
        self.buffer.extend_from_slice(data);
        Ok(())
    }
}

fn declared_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::http::{HeaderValue, StatusCode};
    use futures::{FutureExt, stream};

    use super::*;
    use otel_webhook_telemetry::ReviewOutcome;

    const BODY_LIMIT: usize = 8 * 1024 * 1024;

    async fn read_with(
        headers: &HeaderMap,
        body: Body,
        memory: usize,
        patience: Duration,
    ) -> Result<Held, Refusal> {
        let deadline = Deadline { at: Instant::now() + patience, patience };
        let memory = BodyMemory::of_bytes(BODY_LIMIT, memory);
        read(headers, body, &memory, memory.of_review(), deadline).await
    }

    async fn read_all(body: Body) -> Result<Held, Refusal> {
        read_with(&HeaderMap::new(), body, BODY_LIMIT, Duration::from_secs(10)).await
    }

    fn declaring(length: usize) -> HeaderMap {
        HeaderMap::from_iter([(header::CONTENT_LENGTH, HeaderValue::from(length))])
    }

    #[tokio::test]
    async fn a_conversion_takes_the_memory_of_its_response_too() {
        let memory = BodyMemory::of_bytes(10, 100);
        let deadline =
            Deadline { at: Instant::now() + Duration::from_secs(10), patience: Duration::from_secs(10) };
        let share = memory.of_conversion();
        let held = read(&declaring(40), Body::from(vec![b' '; 40]), &memory, share, deadline).await;
        let held = held.expect("it is larger than another review may be");
        assert!(memory.take(21).now_or_never().is_none() && memory.take(20).now_or_never().is_some());
        drop(held);
        let refusal = read(&declaring(51), never(), &memory, share, deadline).await.expect_err("too large");
        assert_eq!(refusal.to_string(), "the body is larger than 50 bytes; raise --max-review-memory");
    }

    fn never() -> Body {
        Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>())
    }

    #[tokio::test]
    async fn a_body_in_single_bytes_is_kept_in_one_buffer() {
        let parts =
            (0..100_000_u32).map(|at| Ok::<_, std::io::Error>(Bytes::from(vec![at.to_le_bytes()[0]])));
        let read = read_all(Body::from_stream(stream::iter(parts))).await.expect("a body");
        assert_eq!(read.bytes.len(), 100_000);
        assert!(read.bytes.iter().zip(0_u32..).all(|(byte, at)| *byte == at.to_le_bytes()[0]));
        assert!(read.bytes.capacity() <= 200_000, "{}", read.bytes.capacity());
    }

    #[tokio::test]
    async fn a_content_length_above_the_limit_is_rejected_without_reading() {
        let refusal =
            read_with(&declaring(BODY_LIMIT + 1), never(), BODY_LIMIT, Duration::from_secs(10)).await;
        assert!(matches!(refusal, Err(Refusal::TooLarge(BODY_LIMIT, "--max-review-size"))), "{refusal:?}");
    }

    #[tokio::test]
    async fn a_body_that_ends_early_is_incomplete() {
        let broken = stream::iter([Ok(Bytes::from_static(b"{")), Err(std::io::Error::other("gone"))]);
        let refusal = read_all(Body::from_stream(broken)).await.expect_err("no end");
        assert_eq!(refusal.status(), StatusCode::BAD_REQUEST);
        assert_eq!(refusal.outcome(), ReviewOutcome::Incomplete);
        assert!(refusal.to_string().contains("gone"), "{refusal}");
    }

    #[tokio::test]
    async fn a_body_that_does_not_arrive_times_out() {
        let refusal = read_with(&declaring(100), never(), BODY_LIMIT, Duration::from_millis(9)).await;
        let refusal = refusal.expect_err("no body");
        assert_eq!(refusal.status(), StatusCode::REQUEST_TIMEOUT);
        assert_eq!(refusal.to_string(), "the body did not arrive within 9ms");
    }

    #[tokio::test]
    async fn a_body_without_memory_is_told_so() {
        for (declared, memory) in [(100, 50), (FIRST_STEP + 1, FIRST_STEP)] {
            let body = Body::from(vec![b' '; declared]);
            let patience = Duration::from_millis(9);
            let refusal = read_with(&declaring(declared), body, memory, patience).await.expect_err("no room");
            assert_eq!(refusal.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(refusal.outcome(), ReviewOutcome::MemoryLimit);
            let expected = "the memory for request bodies was in use for 9ms; raise --max-review-memory";
            assert_eq!(refusal.to_string(), expected);
        }
    }
}

//! The memory for the bodies of requests, which all connections share.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::body::Bytes;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{self, Instant},
};

/// The bounds of bodies, in MiB.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    /// The largest body.
    pub each: u32,
    /// The memory for the bodies of all requests.
    pub together: u32,
}

impl Default for BodyLimits {
    /// Objects in etcd have at most 1.5 MiB; a review contains at most two, and JSON escapes.
    fn default() -> Self {
        Self { each: 8, together: 32 }
    }
}

/// How long a body may take to arrive while others wait for memory.
pub const GRACE: Duration = Duration::from_secs(1);

/// How often one that waits asks for the memory of another unfinished body.
const PAUSE: Duration = Duration::from_millis(20);

/// What a body may take.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The size of the largest body, in bytes.
    pub largest: usize,
    /// The flag that sets it.
    pub flag: &'static str,
    /// The bytes that are taken for each byte of the body.
    pub factor: usize,
}

/// A number of bytes. A body takes its share while it arrives, and returns it when its response is written.
pub struct BodyMemory {
    largest: usize,
    all: usize,
    bytes: Arc<Semaphore>,
    waiting: AtomicUsize,
    wanted: Notify,
}

impl BodyMemory {
    /// Returns the budget for bodies within these bounds.
    pub fn new(limits: BodyLimits) -> Self {
        let bytes = |mebibytes| usize::try_from(mebibytes).unwrap_or(usize::MAX).saturating_mul(1024 * 1024);
        Self::of_bytes(bytes(limits.each), bytes(limits.together))
    }

    /// Returns a budget of so many bytes for all bodies.
    pub fn of_bytes(largest: usize, bytes: usize) -> Self {
        Self {
            largest,
            all: bytes,
            bytes: Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS))),
            waiting: AtomicUsize::new(0),
            wanted: Notify::new(),
        }
    }

    /// Returns the share of a review that gets a response of a few bytes, or a patch.
    pub fn of_review(&self) -> Share {
        Share { largest: self.largest, flag: "--max-review-size", factor: 1 }
    }

    /// Returns the share of a review whose response has all of its objects again: it takes twice the memory, so the
    /// largest is half of it. That is more than of other reviews, since the API server sends lists of objects.
    pub fn of_conversion(&self) -> Share {
        Share { largest: self.all / 2, flag: "--max-review-memory", factor: 2 }
    }

    /// Waits for so many bytes.
    pub async fn take(&self, bytes: usize) -> OwnedSemaphorePermit {
        let bytes = permits(bytes);
        if let Ok(permit) = Arc::clone(&self.bytes).try_acquire_many_owned(bytes) {
            return permit;
        }
        let _waiting = Waiting::new(&self.waiting);
        let acquired = Arc::clone(&self.bytes).acquire_many_owned(bytes);
        tokio::pin!(acquired);
        loop {
            self.wanted.notify_one();
            tokio::select! {
                permit = &mut acquired => return permit.expect("the semaphore is never closed"),
                () = time::sleep(PAUSE) => {}
            }
        }
    }

    /// Waits until a body that began to arrive at `began` has to return its memory: it has had its time, and others
    /// wait. The one that has arrived for longest is the first. Without this, a few clients that send the beginning of
    /// a large body could keep all others out.
    pub async fn is_wanted(&self, began: Instant) {
        time::sleep_until(began + GRACE).await;
        loop {
            self.wanted.notified().await;
            // Else it is the rest of a wait that is over.
            if self.waiting.load(Ordering::Acquire) > 0 {
                return;
            }
        }
    }
}

/// One who waits for memory.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A body with its share of the memory.
#[derive(Debug)]
pub struct Held {
    /// The body.
    pub bytes: Vec<u8>,
    permit: OwnedSemaphorePermit,
}

impl Held {
    /// Returns a body with its share.
    pub fn new(bytes: Vec<u8>, permit: OwnedSemaphorePermit) -> Self {
        Self { bytes, permit }
    }

    /// Drops the body and returns the response, which keeps the share until it is written, but for what is more than
    /// the response.
    pub fn exchange(self, response: Vec<u8>) -> Bytes {
        let mut permit = self.permit;
        let excess = permit.num_permits().saturating_sub(response.len());
        drop(permit.split(excess));
        Bytes::from_owner(Self { bytes: response, permit })
    }
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A body is smaller than 4 GiB.
fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_response_keeps_a_part_of_the_memory_until_it_is_dropped() {
        let memory = BodyMemory::of_bytes(100, 100);
        let held = Held::new(vec![0; 90], memory.take(90).await);
        assert!(memory.take(20).now_or_never().is_none(), "10 of 100 are left");
        let response = held.exchange(vec![1; 30]);
        assert!(memory.take(71).now_or_never().is_none(), "70 of 100 are left");
        assert!(memory.take(70).now_or_never().is_some());
        assert_eq!(&response[..], [1; 30]);
        drop(response);
        assert!(memory.take(100).now_or_never().is_some());
    }

    #[tokio::test]
    async fn the_oldest_unfinished_body_gives_up_its_memory_when_others_wait() {
        let memory = BodyMemory::of_bytes(100, 100);
        let ago = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds)).expect("no reboot");
        let unfinished = async |bytes, began| {
            let _held = memory.take(bytes).await;
            memory.is_wanted(began).await;
        };
        let (old, younger) = (unfinished(60, ago(20)), unfinished(40, ago(10)));
        tokio::pin!(old, younger);
        tokio::select! {
            biased;
            () = &mut old => panic!("nobody waits"),
            () = &mut younger => panic!("nobody waits"),
            () = time::sleep(2 * PAUSE) => {}
        }
        let waits = memory.take(50);
        tokio::pin!(waits);
        tokio::select! {
            biased;
            () = &mut younger => panic!("the other one is older"),
            _ = &mut waits => panic!("there is no room"),
            () = &mut old => {}
        }
        let permit = waits.await;
        assert_eq!(permit.num_permits(), 50);
        assert!(younger.now_or_never().is_none(), "nobody waits any more");
    }
}

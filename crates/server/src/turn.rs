//! Who decides when, so that reviews that take long do not hold up the others.
//!
//! Most reviews have some kilobytes and are decided in microseconds: on the worker thread that read them, which is as
//! many at a time as there are worker threads. The time and the memory of a decision grow with its body. So the large
//! ones leave the worker threads, and take turns: whatever is sent, one thread at most is busy with them, and the other
//! cores, or half of the only one, are left for the small ones.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures::FutureExt;
use tokio::{runtime::Handle, sync::Semaphore, task, time};

use super::{body_memory::Held, deadline::Deadline, endpoint::Endpoint, refusal::Refusal};
use crate::admission::{Admission, Undecided};

/// The size in bytes above which a review is large.
pub const LARGE: usize = 128 * 1024;

const WAITED: &str = "other large reviews took the time";
const LOOKUPS: &str = "lookups at the API server took the time";
const DECISION: &str = "its decision took the time";

/// Decides reviews.
pub struct Turns {
    admission: Arc<Admission>,
    large: Arc<Semaphore>,
}

impl Turns {
    /// Decides with `admission`.
    pub fn new(admission: Arc<Admission>) -> Self {
        Self { admission, large: Arc::new(Semaphore::new(1)) }
    }

    /// Takes the turn of large reviews.
    #[cfg(test)]
    pub fn occupy(&self) -> tokio::sync::OwnedSemaphorePermit {
        Arc::clone(&self.large).try_acquire_owned().expect("it is free")
    }

    /// Decides a review until the deadline.
    pub async fn decide(
        &self,
        endpoint: Endpoint,
        body: &Arc<Held>,
        deadline: Deadline,
    ) -> Result<Vec<u8>, Refusal> {
        if body.bytes.len() > LARGE {
            return self.decide_large(endpoint, Arc::clone(body), deadline).await;
        }
        decide(endpoint, &self.admission, body, deadline).await
    }

    async fn decide_large(
        &self,
        endpoint: Endpoint,
        body: Arc<Held>,
        deadline: Deadline,
    ) -> Result<Vec<u8>, Refusal> {
        let late = |reason| Refusal::NotDecided { patience: deadline.patience, reason };
        let turn = time::timeout_at(deadline.at, Arc::clone(&self.large).acquire_owned());
        let turn = turn.await.map_err(|_| late(WAITED))?;
        let (admission, runtime) = (Arc::clone(&self.admission), Handle::current());
        let decision = task::spawn_blocking(move || {
            let result = runtime.block_on(decide(endpoint, &admission, &body, deadline));
            // Here, and not by the one who waits: that one may be gone before the thread is free.
            drop(turn);
            result
        });
        let result = time::timeout_at(deadline.at, decision).await.map_err(|_| late(DECISION))?;
        // Panics of the decision are caught in it.
        result.unwrap_or_else(|error| Err(Refusal::Panicked(error.to_string())))
    }
}

async fn decide(
    endpoint: Endpoint,
    admission: &Admission,
    body: &Held,
    deadline: Deadline,
) -> Result<Vec<u8>, Refusal> {
    // On the heap, since the future is large and is moved several times.
    let review = Box::pin(endpoint.review(admission, &body.bytes, deadline.at));
    caught(review).await?.map_err(|error| match error {
        Undecided::Malformed(error) => Refusal::Malformed(error),
        Undecided::Late => Refusal::NotDecided { patience: deadline.patience, reason: LOOKUPS },
    })
}

/// Awaits `handling` and turns a panic into a response. Otherwise the connection would be closed, and the API
/// server could not log the reason.
async fn caught<F: Future>(handling: F) -> Result<F::Output, Refusal> {
    // A panic cannot leave inconsistent state: shared state is replaced as a whole, never edited.
    AssertUnwindSafe(handling).catch_unwind().await.map_err(|payload| {
        let message = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned());
        Refusal::Panicked(message.unwrap_or_else(|| "panicked".to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;
    use otel_webhook_telemetry::ReviewOutcome;

    #[tokio::test]
    async fn the_response_after_a_panic_has_its_message() {
        let refusal = caught(async { panic!("on purpose") }).await.expect_err("a panic");
        assert_eq!(refusal.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(refusal.outcome(), ReviewOutcome::Panicked);
        assert!(refusal.to_string().ends_with("on purpose"), "{refusal}");
    }
}

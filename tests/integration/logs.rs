//! Log events of this process.

use std::sync::Once;

/// Keeps log events enabled, so that the subscriber of a thread gets them.
///
/// Without a subscriber for the process, an event that another thread reaches first is disabled
/// for all threads, until the next subscriber is registered.
pub fn keep_enabled() {
    static SUBSCRIBER: Once = Once::new();
    SUBSCRIBER.call_once(|| {
        tracing::subscriber::set_global_default(tracing_subscriber::registry()).expect("there is no other");
    });
}

//! Log events of this process.

use std::sync::{Arc, Mutex, Once};

use serde_json::Value;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// Keeps log events enabled, so that the subscriber of a thread gets them.
///
/// Without a subscriber for the process, an event that another thread reaches first is disabled
/// for all threads, until the next subscriber is registered.
fn keep_enabled() {
    static SUBSCRIBER: Once = Once::new();
    SUBSCRIBER.call_once(|| {
        tracing::subscriber::set_global_default(tracing_subscriber::registry()).expect("there is no other");
    });
}

/// What was logged.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

impl Log {
    /// Keeps what this thread logs from now on, until the guard is dropped.
    pub fn keep(&self) -> DefaultGuard {
        keep_enabled();
        let subscriber = tracing_subscriber::fmt().json().with_writer(self.clone()).finish();
        tracing::subscriber::set_default(subscriber)
    }

    /// All of it.
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no panic").clone()).expect("text")
    }

    /// The lines.
    pub fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

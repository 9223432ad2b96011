//! Log lines on their way out, several in one write where many come at once.
//!
//! A write for each review costs microseconds of it, and where whoever reads the
//! lines is slow, reviews wait. What warns is written before the call returns, with
//! all that came before it.

use std::{
    io::{self, Write},
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// How long lines are gathered after a write. The first line after a silence waits for nothing.
const PAUSE: Duration = Duration::from_millis(10);

/// Bytes that may wait; whoever brings more does the writing, and so waits for a reader that is slow.
const MOST: usize = 64 * 1024;

/// Where log lines are put; clones are the same place.
#[derive(Clone)]
pub struct Lines(Arc<Shared>);

struct Shared {
    waiting: Mutex<Vec<u8>>,
    arrived: Condvar,
    out: Mutex<Out>,
}

/// Held while lines are written, so that they keep their order.
struct Out {
    to: Box<dyn Write + Send>,
    /// Takes the place of the lines that wait, and keeps its room.
    spare: Vec<u8>,
}

/// Writes what still waits when it is dropped.
#[must_use = "lines that wait would be lost"]
#[derive(Debug)]
pub struct Flushing(Lines);

impl Lines {
    /// Lines that go to `to`, written by a thread of its own for as long as the process runs.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(to: Box<dyn Write + Send>) -> io::Result<Self> {
        let lines = Self::to(to);
        let own = lines.clone();
        thread::Builder::new().name("log".to_owned()).spawn(move || own.write_as_they_come())?;
        Ok(lines)
    }

    fn to(to: Box<dyn Write + Send>) -> Self {
        let out = Mutex::new(Out { to, spare: Vec::new() });
        Self(Arc::new(Shared { waiting: Mutex::default(), arrived: Condvar::new(), out }))
    }

    /// Sees to it that nothing still waits when the process ends.
    pub fn flushing(&self) -> Flushing {
        Flushing(self.clone())
    }

    fn write_as_they_come(&self) {
        loop {
            let waiting = lock(&self.0.waiting);
            let arrived = self.0.arrived.wait_while(waiting, |lines| lines.is_empty());
            drop(arrived.unwrap_or_else(PoisonError::into_inner));
            // With standard error gone there is nobody to tell.
            let _ = self.flush();
            thread::sleep(PAUSE);
        }
    }

    fn take(&self, line: &[u8], is_urgent: bool) -> io::Result<()> {
        let mut waiting = lock(&self.0.waiting);
        if waiting.is_empty() {
            self.0.arrived.notify_one();
        }
        waiting.extend_from_slice(line);
        let is_full = waiting.len() >= MOST;
        drop(waiting);
        if is_urgent || is_full { self.flush() } else { Ok(()) }
    }

    fn flush(&self) -> io::Result<()> {
        let mut out = lock(&self.0.out);
        let Out { to, spare } = &mut *out;
        mem::swap(&mut *lock(&self.0.waiting), spare);
        let written = to.write_all(spare);
        spare.clear();
        written
    }
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines").finish_non_exhaustive()
    }
}

impl Drop for Flushing {
    fn drop(&mut self) {
        let _ = self.0.flush();
    }
}

/// One event's line.
pub struct Line<'l> {
    lines: &'l Lines,
    is_urgent: bool,
}

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.lines.take(line, self.is_urgent)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lines.flush()
    }
}

impl<'l> MakeWriter<'l> for Lines {
    type Writer = Line<'l>;

    fn make_writer(&'l self) -> Line<'l> {
        Line { lines: self, is_urgent: true }
    }

    fn make_writer_for(&'l self, event: &Metadata<'_>) -> Line<'l> {
        Line { lines: self, is_urgent: *event.level() <= Level::WARN }
    }
}

/// A panic while it was held leaves whole lines behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Tells of each write.
    struct Told(Sender<String>);

    impl Write for Told {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0.send(String::from_utf8_lossy(text).into_owned()).map_err(io::Error::other)?;
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn told() -> (Box<Told>, Receiver<String>) {
        let (sender, writes) = channel();
        (Box::new(Told(sender)), writes)
    }

    fn all(writes: &Receiver<String>) -> Vec<String> {
        writes.try_iter().collect()
    }

    #[test]
    fn lines_are_gathered_until_one_is_urgent() {
        let (to, writes) = told();
        let lines = Lines::to(to);
        lines.take(b"one\n", false).expect("taken");
        lines.take(b"two\n", false).expect("taken");
        assert_eq!(all(&writes), [""; 0]);
        lines.take(b"three\n", true).expect("written");
        assert_eq!(all(&writes), ["one\ntwo\nthree\n"]);
    }

    #[test]
    fn no_more_waits_than_may() {
        let (to, writes) = told();
        let lines = Lines::to(to);
        lines.take(&vec![b'a'; MOST - 1], false).expect("taken");
        assert_eq!(all(&writes), [""; 0]);
        lines.take(b"\n", false).expect("written");
        assert_eq!(all(&writes).concat().len(), MOST);
    }

    #[test]
    fn what_waits_at_the_end_is_written() {
        let (to, writes) = told();
        let lines = Lines::to(to);
        let flushing = lines.flushing();
        lines.take(b"last\n", false).expect("taken");
        drop(flushing);
        assert_eq!(all(&writes), ["last\n"]);
    }

    #[test]
    fn the_thread_writes_what_is_not_urgent() {
        let (to, writes) = told();
        let lines = Lines::start(to).expect("a thread");
        for line in ["one\n", "two\n"] {
            lines.take(line.as_bytes(), false).expect("taken");
            assert_eq!(writes.recv().expect("a write"), line);
        }
    }
}

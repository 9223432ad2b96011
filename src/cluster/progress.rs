//! On a terminal, a line with the request that a command waits for, once it takes more than a second.

use std::{
    fmt,
    future::Future,
    io::{self, IsTerminal as _, Write as _},
    pin::pin,
    time::Duration,
};

use tokio::time::{Instant, timeout_at};

/// How long a command runs before it shows what it waits for.
const AFTER: Duration = Duration::from_secs(1);

/// Writes to a terminal.
type Show = Box<dyn Fn(&str) + Send + Sync>;

/// Shows what a command waits for.
pub struct Progress {
    since: Instant,
    /// Writes to the terminal; `None` if there is none.
    show: Option<Show>,
}

impl Progress {
    /// Begins now.
    pub fn begin() -> Self {
        let show = |text: &str| {
            let mut terminal = io::stderr();
            // Nothing depends on it.
            let _ = write!(terminal, "{text}").and_then(|()| terminal.flush());
        };
        Self { since: Instant::now(), show: io::stderr().is_terminal().then(|| Box::new(show) as Show) }
    }

    /// Waits for a request, and shows it meanwhile.
    pub async fn follow<T>(&self, request: &str, answer: impl Future<Output = T>) -> T {
        let Some(show) = &self.show else { return answer.await };
        let mut answer = pin!(answer);
        if let Ok(answer) = timeout_at(self.since + AFTER, answer.as_mut()).await {
            return answer;
        }
        let line = format!("{request} …");
        show(&line);
        let answer = answer.await;
        // Spaces clear it on any terminal.
        show(&format!("\r{:1$}\r", "", line.chars().count()));
        answer
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").field("since", &self.since).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_is_shown_after_a_second_until_it_is_answered() {
        let shown = Arc::<Mutex<Vec<String>>>::default();
        let lines = Arc::clone(&shown);
        let show = move |text: &str| lines.lock().expect("not poisoned").push(text.to_owned());
        let progress = Progress { since: Instant::now(), show: Some(Box::new(show)) };
        let take = || std::mem::take(&mut *shown.lock().expect("not poisoned"));
        let second = sleep(Duration::from_millis(900));
        progress.follow("list namespaces", second).await;
        assert_eq!(take(), [""; 0]);
        progress.follow("list pods", sleep(Duration::from_millis(200))).await;
        assert_eq!(take(), ["list pods …", "\r           \r"]);
        progress.follow("get pods a", std::future::ready(())).await;
        assert_eq!(take(), [""; 0], "it was answered at once");
        let none = Progress { since: Instant::now(), show: None };
        none.follow("list pods", sleep(Duration::from_secs(9))).await;
    }
}

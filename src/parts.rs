//! The tasks of a running server. If one of them ends unexpectedly, the server exits.

use std::{
    collections::HashMap,
    io,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    thread,
};

use tokio::{
    runtime,
    sync::oneshot,
    task::{Id, JoinError, JoinSet},
};

use otel_webhook_server::TerminationSignals;

/// Tasks with their names. Dropping this aborts those that still run.
#[derive(Default)]
pub struct Parts {
    tasks: JoinSet<()>,
    names: HashMap<Id, &'static str>,
}

impl Parts {
    /// Starts a task.
    pub fn spawn(&mut self, name: &'static str, part: impl Future<Output = ()> + Send + 'static) {
        let handle = self.tasks.spawn(part);
        self.names.insert(handle.id(), name);
    }

    /// Starts a task on its own runtime and thread, so that it goes on while all threads of the other tasks
    /// are busy.
    ///
    /// # Errors
    /// If the runtime or the thread cannot be created.
    pub fn spawn_thread(
        &mut self,
        name: &'static str,
        part: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let (mut ended, end) = oneshot::channel();
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            let until_dropped = async {
                tokio::select! {
                    () = part => {}
                    // The task below was aborted.
                    () = ended.closed() => {}
                }
            };
            let result = catch_unwind(AssertUnwindSafe(|| runtime.block_on(until_dropped)));
            // Nobody waits for it if the task was aborted.
            drop(ended.send(result));
        })?;
        self.spawn(name, async {
            if let Ok(Err(panic)) = end.await {
                resume_unwind(panic);
            }
        });
        Ok(())
    }

    /// Waits for the next task to end. Returns its name, and its panic if it panicked. Waits forever if there are
    /// no tasks.
    pub async fn ended(&mut self) -> Ended {
        match self.tasks.join_next_with_id().await {
            Some(Ok((id, ()))) => Ended { name: self.name(id), panic: None },
            Some(Err(error)) => Ended { name: self.name(error.id()), panic: Some(error) },
            None => std::future::pending().await,
        }
    }

    /// Waits for all tasks to end. Returns those that panicked.
    pub async fn all_ended(mut self) -> Vec<Ended> {
        let mut panicked = Vec::new();
        while !self.tasks.is_empty() {
            panicked.push(self.ended().await);
        }
        panicked.retain(|ended| ended.panic.is_some());
        panicked
    }

    fn name(&self, id: Id) -> &'static str {
        self.names.get(&id).copied().unwrap_or("a task")
    }
}

/// Waits for a signal, or for a part that ends although it should not. Returns that part: the remaining ones would answer
/// with outdated information forever.
pub async fn end(
    signals: &mut TerminationSignals,
    background: &mut Parts,
    ports: &mut Parts,
) -> Option<Ended> {
    let ended = tokio::select! {
        name = signals.recv() => {
            tracing::info!(signal = name, "received a signal");
            return None;
        }
        ended = background.ended() => ended,
        ended = ports.ended() => ended,
    };
    tracing::error!("{ended}; exiting, so that the container is restarted");
    Some(ended)
}

/// A task that has ended.
#[derive(Debug)]
pub struct Ended {
    name: &'static str,
    panic: Option<JoinError>,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.panic {
            Some(panic) => write!(f, "{} panicked: {panic}", self.name),
            None => write!(f, "{} ended unexpectedly", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{Ipv4Addr, TcpStream},
        sync::{Arc, mpsc},
        time::Duration,
    };

    use super::*;
    use otel_webhook_server::{Health, Listening, Shutdown, Transport, admin_router};
    use otel_webhook_telemetry::Metrics;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn the_admin_port_answers_while_all_worker_threads_are_busy() {
        let (entered, is_entered) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let busy = tokio::spawn(async move {
            entered.send(()).expect("the test waits");
            // An error, as soon as the other end is dropped.
            let _ = released.recv();
        });
        is_entered.recv().expect("the only worker thread is busy");
        let listening = Listening::bind("admin", (Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
        let (address, shutdown, mut parts) = (listening.address, Shutdown::new(), Parts::default());
        let router = admin_router(Arc::new(Health::new()), Arc::new(Metrics::new()), None);
        let served = listening.serve(router, Transport::Plain, shutdown.phases(), Duration::ZERO);
        parts.spawn_thread("the admin port", served).expect("a thread");

        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");

        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("alive\n"), "{answer}");
        assert!(!busy.is_finished());
        drop(release);
        shutdown.stop();
        assert!(parts.all_ended().await.is_empty(), "no panic");
    }

    #[tokio::test]
    async fn a_task_that_ends_is_named_with_its_panic() {
        let mut parts = Parts::default();
        parts.spawn("the one that stays", std::future::pending());
        parts.spawn("the store", async { panic!("on purpose") });
        let text = parts.ended().await.to_string();
        assert!(text.starts_with("the store panicked: "), "{text}");
        assert!(text.contains("on purpose"), "{text}");

        parts.spawn("the port", async {});
        assert_eq!(parts.ended().await.to_string(), "the port ended unexpectedly");
    }

    #[tokio::test]
    async fn a_task_with_its_own_thread_ends_as_others_do() {
        let mut parts = Parts::default();
        let (dropped, is_dropped) = oneshot::channel::<()>();
        let stays = async {
            let _dropped = dropped;
            std::future::pending::<()>().await;
        };
        parts.spawn_thread("the one that stays", stays).expect("a thread");
        parts.spawn_thread("the port", async { panic!("on purpose") }).expect("a thread");
        let text = parts.ended().await.to_string();
        assert!(text.starts_with("the port panicked: ") && text.contains("on purpose"), "{text}");
        drop(parts);
        is_dropped.await.expect_err("the aborted task is dropped in its thread");
    }

    #[tokio::test]
    async fn an_expected_end_is_not_reported() {
        let mut parts = Parts::default();
        parts.spawn("the port", async {});
        parts.spawn("the other port", async { panic!("on purpose") });
        let panicked = parts.all_ended().await;
        assert_eq!(panicked.len(), 1);
        assert!(panicked[0].to_string().starts_with("the other port panicked"), "{panicked:?}");
    }
}

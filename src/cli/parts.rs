//! The tasks of a running server. If one of them ends unexpectedly, the server exits.

use std::collections::HashMap;

use tokio::task::{Id, JoinError, JoinSet};

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
    use super::*;

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
    async fn an_expected_end_is_not_reported() {
        let mut parts = Parts::default();
        parts.spawn("the port", async {});
        parts.spawn("the other port", async { panic!("on purpose") });
        let panicked = parts.all_ended().await;
        assert_eq!(panicked.len(), 1);
        assert!(panicked[0].to_string().starts_with("the other port panicked"), "{panicked:?}");
    }
}

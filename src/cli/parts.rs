//! The parts of a running server, each a task: when one ends that should not, the whole has to.

use std::collections::HashMap;

use tokio::task::{Id, JoinError, JoinSet};

/// Tasks by their names. Those that still run end when this is dropped.
#[derive(Default)]
pub struct Parts {
    tasks: JoinSet<()>,
    names: HashMap<Id, &'static str>,
}

impl Parts {
    /// Starts one.
    pub fn spawn(&mut self, name: &'static str, part: impl Future<Output = ()> + Send + 'static) {
        let handle = self.tasks.spawn(part);
        self.names.insert(handle.id(), name);
    }

    /// Waits for the next one to end. Gives its name, and the panic that ended it if there was one.
    /// Never ends when there is none.
    pub async fn ended(&mut self) -> Ended {
        match self.tasks.join_next_with_id().await {
            Some(Ok((id, ()))) => Ended { name: self.name(id), panic: None },
            Some(Err(error)) => Ended { name: self.name(error.id()), panic: Some(error) },
            None => std::future::pending().await,
        }
    }

    /// Waits for all to end. Gives those that panicked.
    pub async fn all_ended(mut self) -> Vec<Ended> {
        let mut panicked = Vec::new();
        while !self.tasks.is_empty() {
            panicked.push(self.ended().await);
        }
        panicked.retain(|ended| ended.panic.is_some());
        panicked
    }

    fn name(&self, id: Id) -> &'static str {
        self.names.get(&id).copied().unwrap_or("a part")
    }
}

/// A part that has ended.
#[derive(Debug)]
pub struct Ended {
    name: &'static str,
    panic: Option<JoinError>,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.panic {
            Some(panic) => write!(f, "{} ended by a panic: {panic}", self.name),
            None => write!(f, "{} ended, which it never should", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_part_that_ends_is_named_with_its_panic() {
        let mut parts = Parts::default();
        parts.spawn("the one that stays", std::future::pending());
        parts.spawn("the store", async { panic!("on purpose") });
        let text = parts.ended().await.to_string();
        assert!(text.starts_with("the store ended by a panic: "), "{text}");
        assert!(text.contains("on purpose"), "{text}");

        parts.spawn("the port", async {});
        assert_eq!(parts.ended().await.to_string(), "the port ended, which it never should");
    }

    #[tokio::test]
    async fn an_end_that_was_asked_for_is_none_to_speak_of() {
        let mut parts = Parts::default();
        parts.spawn("the port", async {});
        parts.spawn("the other port", async { panic!("on purpose") });
        let panicked = parts.all_ended().await;
        assert_eq!(panicked.len(), 1);
        assert!(panicked[0].to_string().starts_with("the other port ended by a panic"), "{panicked:?}");
    }
}

//! Whether the agent is why a container of the application cannot start or stay, by comparison with other pods.

/// Pods of a workload whose container has the same image, by what they have of a language.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Those with the agent and the configuration that is judged.
    pub same: Pods,
    /// Those with another configuration.
    pub other: Pods,
    /// Those without the agent.
    pub without: Pods,
}

/// A number of pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pods {
    /// Those in which the container cannot start or stay.
    pub failing: usize,
    /// Those that are ready.
    pub ready: usize,
}

/// What the evidence says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The agent is probably the cause.
    Agent,
    /// The application is the cause.
    Application,
    /// Nothing to compare with, or too few pods fail.
    Unknown,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Agent, Self::Application, Self::Unknown];

    /// Returns the code in tables, Events and JSON.
    pub fn code(self) -> &'static str {
        match self {
            Self::Agent => "AgentSuspected",
            Self::Application => "ApplicationFails",
            Self::Unknown => "CauseUnknown",
        }
    }

    /// Returns what to do; `None` if that depends on how the container ends.
    pub fn remedy(self) -> Option<&'static str> {
        match self {
            Self::Agent => None,
            Self::Application => Some("read its log; injection does not change it"),
            Self::Unknown => Some("read its log; to compare, start a pod of the workload without the agent"),
        }
    }
}

impl Pods {
    fn all(self) -> usize {
        self.failing + self.ready
    }
}

impl Evidence {
    /// Returns what it says.
    pub fn verdict(&self) -> Verdict {
        let Self { same, other, without } = self;
        let is_clean = |pods: &Pods| pods.ready > 0 && pods.failing == 0;
        if without.failing > 0 {
            Verdict::Application
        } else if same.failing >= same.ready && (is_clean(without) || is_clean(other)) {
            Verdict::Agent
        } else {
            Verdict::Unknown
        }
    }

    /// Returns what speaks for it, as a sentence.
    pub fn sentence(&self) -> String {
        let Self { same, other, without } = self;
        let own = format!("{} of {} pods with the agent and the same image fail", same.failing, same.all());
        match self.verdict() {
            Verdict::Application => {
                format!("{own}, as do {} of {} without the agent", without.failing, without.all())
            }
            Verdict::Agent if without.ready > 0 => {
                format!("{own}, and none of {} without the agent", without.ready)
            }
            Verdict::Agent => format!("{own}, and none of {} with another configuration of it", other.ready),
            Verdict::Unknown if same.failing < same.ready => own,
            Verdict::Unknown => {
                format!(
                    "{own}; there is no ready pod without the agent, or with another configuration of it, to compare with"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_suspected_only_where_pods_without_it_or_with_another_configuration_are_ready() {
        let pods = |(failing, ready)| Pods { failing, ready };
        for (same, other, without, expected, said) in [
            (
                (2, 1),
                (0, 0),
                (0, 3),
                Verdict::Agent,
                "2 of 3 pods with the agent and the same image fail, and none of 3 without the agent",
            ),
            ((1, 0), (0, 2), (0, 0), Verdict::Agent, "and none of 2 with another configuration of it"),
            ((1, 0), (1, 2), (0, 0), Verdict::Unknown, "to compare with"),
            ((1, 0), (1, 0), (0, 1), Verdict::Agent, "and none of 1 without the agent"),
            ((1, 0), (0, 2), (1, 1), Verdict::Application, "as do 1 of 2 without the agent"),
            ((3, 0), (0, 0), (0, 0), Verdict::Unknown, "there is no ready pod without the agent"),
            ((1, 9), (0, 0), (0, 3), Verdict::Unknown, "1 of 10 pods"),
        ] {
            let evidence = Evidence { same: pods(same), other: pods(other), without: pods(without) };
            assert_eq!(evidence.verdict(), expected, "{evidence:?}");
            assert!(evidence.sentence().contains(said), "{}", evidence.sentence());
        }
    }
}

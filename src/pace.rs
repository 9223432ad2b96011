//! How fast workloads are restarted, by flags.

use clap::Args;
use jiff::SignedDuration;

use super::names::duration;
use otel_webhook_fleet::restart::Pace;

/// Flags of the pace of restarts, the same for the controller and for its plan.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Pace of restarts")]
pub struct PaceFlags {
    /// How long an Instrumentation has to be unchanged before workloads are restarted for it
    #[arg(long = "restart-settle", env = "OTEL_WEBHOOK_RESTART_SETTLE", value_name = "DURATION", default_value = "60s",
        value_parser = signed)]
    settle: SignedDuration,

    /// How long a restarted workload has to stay healthy. The first one of each change delays the others so long
    #[arg(long = "restart-observe", env = "OTEL_WEBHOOK_RESTART_OBSERVE", value_name = "DURATION", default_value = "2m",
        value_parser = signed)]
    observe: SignedDuration,

    /// How long a restarted workload may make no progress, in addition to its minReadySeconds, before restarts are
    /// stopped
    #[arg(long = "restart-progress", env = "OTEL_WEBHOOK_RESTART_PROGRESS", value_name = "DURATION", default_value = "10m",
        value_parser = signed)]
    progress: SignedDuration,

    /// How many workloads are restarted at the same time
    #[arg(long = "restart-at-once", env = "OTEL_WEBHOOK_RESTART_AT_ONCE", value_name = "NUMBER", default_value_t = 3,
        value_parser = count)]
    at_once: usize,

    /// How many workloads of one namespace are restarted at the same time
    #[arg(long = "restart-per-namespace", env = "OTEL_WEBHOOK_RESTART_PER_NAMESPACE", value_name = "NUMBER", default_value_t = 1,
        value_parser = count)]
    per_namespace: usize,

    /// How many restarts and evictions begin within a minute
    #[arg(long = "restart-per-minute", env = "OTEL_WEBHOOK_RESTART_PER_MINUTE", value_name = "NUMBER", default_value_t = 10,
        value_parser = count)]
    per_minute: usize,
}

impl PaceFlags {
    /// Returns the pace.
    pub fn pace(&self) -> Pace {
        Pace {
            settle: self.settle,
            observe: self.observe,
            progress: self.progress,
            at_once: self.at_once,
            per_namespace: self.per_namespace,
            per_minute: self.per_minute,
        }
    }
}

/// Parses a duration greater than zero, which may be compared with others.
///
/// # Errors
/// The message says which format is expected.
pub fn signed(text: &str) -> Result<SignedDuration, String> {
    SignedDuration::try_from(duration(text)?).map_err(|error| error.to_string())
}

fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected a whole number greater than zero".to_owned()),
        Ok(number) => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        pace: PaceFlags,
    }

    #[test]
    fn the_defaults_are_those_of_the_plan() {
        let pace = Program::parse_from(["otel-webhook"]).pace.pace();
        assert_eq!(format!("{pace:?}"), format!("{:?}", Pace::default()));
    }

    #[test]
    fn numbers_are_greater_than_zero() {
        for text in ["0", "-1", "many"] {
            assert_eq!(count(text), Err("expected a whole number greater than zero".to_owned()), "{text}");
        }
        assert_eq!(count("12"), Ok(12));
    }
}

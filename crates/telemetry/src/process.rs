//! Metrics of the operating system and of the log, read at each scrape.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use tracing_appender::non_blocking::ErrorCounter;

/// Memory of the process, read at each scrape. Omitted without procfs.
#[derive(Debug)]
pub struct ProcessCollector;

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        // procfs answers from memory: a blocking read is as fast as an asynchronous one.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let Some(bytes) = resident_bytes(&status) else {
            return Ok(());
        };
        let gauge = ConstGauge::new(bytes);
        let metric = encoder.encode_descriptor(
            "process_resident_memory_bytes",
            "Resident memory of the process",
            None,
            gauge.metric_type(),
        )?;
        gauge.encode(metric)
    }
}

/// Dropped log lines.
#[derive(Debug)]
pub struct DroppedLines(pub ErrorCounter);

impl Collector for DroppedLines {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let counter = ConstCounter::new(u64::try_from(self.0.dropped_lines()).unwrap_or(u64::MAX));
        let metric = encoder.encode_descriptor(
            "otel_webhook_log_lines_dropped",
            "Log lines dropped because standard error was not read in time",
            None,
            counter.metric_type(),
        )?;
        counter.encode(metric)
    }
}

/// Returns `VmRSS` of a `/proc/PID/status`. `statm` has pages, and their size cannot be read without unsafe code.
fn resident_bytes(status: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_from_proc_status() {
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t    1234 kB\n"), Some(1234 * 1024));
        assert_eq!(resident_bytes("Name:\tx\n"), None);
    }
}

//! The prefixes of annotations.

/// The prefix of every annotation that opts in to injection or configures it.
pub const ANNOTATION_PREFIX: &str = "instrumentation.opentelemetry.io/";

/// The prefix of annotations that set one resource attribute each.
pub const RESOURCE_PREFIX: &str = "resource.opentelemetry.io/";

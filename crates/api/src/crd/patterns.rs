//! What texts look like: patterns that the schema and validation share.

/// What a quantity looks like: Kubernetes' own pattern, without the minus
/// sign. No quantity in an Instrumentation can be negative.
pub const QUANTITY: &str = r"^\+?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// A decimal number. No hexadecimal, no underscores, no names; and none so
/// large that no number can hold it.
pub const RATIO: &str = r"^[+-]?([0-9]{1,100}(\.[0-9]*)?|\.[0-9]+)([eE](-[0-9]+|\+?[0-9]{1,2}))?$";

/// Milliseconds between two questions to a Jaeger sampler.
pub const INTERVAL: &str = r"^[+-]?[0-9]{1,18}$";

/// A label's key, with or without a prefix.
pub const QUALIFIED_NAME: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";

/// A label's value.
pub const LABEL_VALUE: &str = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$";

/// A configuration folder or file. It reaches a shell, if only as an argument.
pub const CONFIG_PATH: &str = r"^[A-Za-z0-9._/-]*$";

/// The name of a variable: what the API server takes in a pod.
pub const VARIABLE: &str = r"^[ -<>-~]+$";

/// An image. No reference has a blank or anything but ASCII in it.
pub const IMAGE: &str = r"^[!-~]*$";

/// The name of an object, or none.
pub const OBJECT_NAME: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$";

/// The name of a namespace, or of a request in a resource claim, or none.
pub const SHORT_NAME: &str = r"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$";

/// A key of a Secret or a ConfigMap, which is a file's name as well.
pub const KEY: &str = r"^\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*$";

/// A pattern of the schema, in words.
#[derive(Debug)]
pub struct Pattern {
    /// The pattern itself.
    pub regex: &'static str,
    /// What a text is that it fits.
    pub noun: &'static str,
    /// What such a text looks like.
    pub valid: &'static str,
}

/// Every pattern of the schema; quantities come first.
pub static PATTERNS: [Pattern; 9] = [
    Pattern { regex: QUANTITY, noun: "a quantity", valid: "such as 100m, 0.5, 64Mi or 1Gi" },
    Pattern { regex: CONFIG_PATH, noun: "a path that can be used", valid: "letters, digits, and . _ / -" },
    Pattern {
        regex: VARIABLE,
        noun: "a variable's name",
        valid: "letters, digits and signs but \"=\", all of ASCII",
    },
    Pattern { regex: QUALIFIED_NAME, noun: "a label's name", valid: "such as \"app.kubernetes.io/name\"" },
    Pattern {
        regex: LABEL_VALUE,
        noun: "a label's value",
        valid: "63 letters, digits, - _ and . at most, a letter or digit first and last",
    },
    Pattern {
        regex: IMAGE,
        noun: "an image",
        valid: "such as \"registry.example.com/agents/java:2.30.0\", without blanks",
    },
    Pattern {
        regex: OBJECT_NAME,
        noun: "the name of an object",
        valid: "lower-case letters, digits, - and ., a letter or digit first and last",
    },
    Pattern {
        regex: SHORT_NAME,
        noun: "a name that can be used",
        valid: "63 lower-case letters, digits and - at most, a letter or digit first and last",
    },
    Pattern { regex: KEY, noun: "a key of a Secret or ConfigMap", valid: "letters, digits, - _ and ." },
];

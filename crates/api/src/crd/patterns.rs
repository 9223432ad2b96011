//! Patterns of strings that the schema and validation share.

/// A quantity: the pattern of Kubernetes without the minus
/// sign, since no quantity in an Instrumentation can be negative.
pub const QUANTITY: &str = r"^\+?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// A decimal number: not hexadecimal, no underscores, no names such as `inf`, and not
/// too large for a floating-point number.
pub const RATIO: &str = r"^[+-]?([0-9]{1,100}(\.[0-9]*)?|\.[0-9]+)([eE](-[0-9]+|\+?[0-9]{1,2}))?$";

/// Milliseconds between two requests to a Jaeger sampler.
pub const INTERVAL: &str = r"^[+-]?[0-9]{1,18}$";

/// A label's key, with or without a prefix.
pub const QUALIFIED_NAME: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";

/// A label's value.
pub const LABEL_VALUE: &str = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$";

/// A configuration folder or file. It is passed to a shell, as an argument only.
pub const CONFIG_PATH: &str = r"^[A-Za-z0-9._/-]*$";

/// The longest list of environment variables.
#[cfg(feature = "schema")]
pub const MOST_VARIABLES: usize = 1024;

/// The name of an environment variable, as the API server accepts it in a pod.
pub const VARIABLE: &str = r"^[ -<>-~]+$";

/// An image reference: ASCII without spaces.
pub const IMAGE: &str = r"^[!-~]*$";

/// The name of an object, or empty.
pub const OBJECT_NAME: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$";

/// The name of a namespace, or of a request in a resource claim, or empty.
pub const SHORT_NAME: &str = r"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$";

/// A key of a Secret or a ConfigMap, which is also a file name.
pub const KEY: &str = r"^\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*$";

/// The name of an agent.
pub const AGENT_NAME: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// An absolute path below the root, without `.` and `..`. It is an argument of `cp`, and a mount path.
pub const FOLDER: &str = r"^(/\.?[A-Za-z0-9_-][A-Za-z0-9._-]*)+$";

/// A pattern of the schema, with the words for messages.
#[derive(Debug)]
pub struct Pattern {
    /// The pattern itself.
    pub regex: &'static str,
    /// What a matching string is.
    pub noun: &'static str,
    /// How a matching string looks.
    pub valid: &'static str,
}

/// Every pattern of the schema; quantities come first.
pub static PATTERNS: [Pattern; 11] = [
    Pattern { regex: QUANTITY, noun: "a quantity", valid: "such as 100m, 0.5, 64Mi or 1Gi" },
    Pattern { regex: CONFIG_PATH, noun: "a valid path", valid: "letters, digits, and . _ / -" },
    Pattern {
        regex: VARIABLE,
        noun: "a variable name",
        valid: "ASCII letters, digits and signs except \"=\"",
    },
    Pattern { regex: QUALIFIED_NAME, noun: "a label key", valid: "such as \"app.kubernetes.io/name\"" },
    Pattern {
        regex: LABEL_VALUE,
        noun: "a label value",
        valid: "at most 63 letters, digits, -, _ and ., with a letter or digit first and last",
    },
    Pattern {
        regex: IMAGE,
        noun: "an image",
        valid: "such as \"registry.example.com/agents/java:2.30.0\", without blanks",
    },
    Pattern {
        regex: OBJECT_NAME,
        noun: "an object name",
        valid: "lower-case letters, digits, - and ., with a letter or digit first and last",
    },
    Pattern {
        regex: SHORT_NAME,
        noun: "a valid name",
        valid: "at most 63 lower-case letters, digits and -, with a letter or digit first and last",
    },
    Pattern {
        regex: AGENT_NAME,
        noun: "the name of an agent",
        valid: "lower-case letters, digits and -, with a letter or digit first and last",
    },
    Pattern {
        regex: FOLDER,
        noun: "an absolute path of a folder",
        valid: "such as \"/opt/agent\"; letters, digits, and . _ -, without \"..\" and a final /",
    },
    Pattern { regex: KEY, noun: "a key of a Secret or ConfigMap", valid: "letters, digits, -, _ and ." },
];

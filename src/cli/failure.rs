//! Failures of subcommands.

/// The failure of a subcommand: a message, and the exit status.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What went wrong, where, and what is expected.
    pub message: String,
    /// 1 if the operation failed, 2 if the input cannot be read.
    pub code: u8,
}

impl Failure {
    /// The operation failed.
    pub fn failed(error: impl std::fmt::Display) -> Self {
        Self { message: error.to_string(), code: 1 }
    }

    /// The input cannot be read.
    pub fn unreadable(error: impl std::fmt::Display) -> Self {
        Self { message: error.to_string(), code: 2 }
    }
}

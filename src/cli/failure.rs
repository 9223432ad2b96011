//! Why a subcommand failed.

/// What a subcommand fails with: the sentence for people, and the exit code.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What went wrong, where, and what would be right.
    pub message: String,
    /// 1 for a failure of the work, 2 for input that cannot be read.
    pub code: u8,
}

impl Failure {
    /// The work failed.
    pub fn failed(error: impl std::fmt::Display) -> Self {
        Self { message: error.to_string(), code: 1 }
    }

    /// The input cannot be read.
    pub fn unreadable(error: impl std::fmt::Display) -> Self {
        Self { message: error.to_string(), code: 2 }
    }
}

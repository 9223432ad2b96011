//! Results for what the user who runs the check may not read.

use super::result::{CheckResult, Code};
use crate::cli::cluster::reader::NotTold;

impl NotTold {
    /// Returns the warning that the report is incomplete.
    pub fn result(&self) -> CheckResult {
        let Self { question, problem } = self;
        CheckResult::new(Code::NotAllowed, format!("cannot {question}: {problem}"))
            .advise("checks that depend on it are skipped; run the command as a user with this permission")
    }
}

//! Which injection flags the results are based on.

use super::result::{CheckResult, Code};
use crate::cli::cluster::running::Running;

impl Running {
    /// Returns the result for the flags that are used.
    pub fn result(&self) -> CheckResult {
        let result = match &self.flags {
            Ok(flags) => {
                let languages = flags.injection.languages.names();
                let message = format!("the results are based on its flags; languages: {languages}");
                CheckResult::new(Code::SettingsFound, message)
            }
            Err(problem) => assumed(&format!("its flags cannot be read: {problem}")),
        };
        result.about(self.pod.clone())
    }
}

/// Returns the warning that the flags of this command are used.
pub fn assumed(reason: &str) -> CheckResult {
    let message = format!("{reason}; the results are based on the flags of this command");
    CheckResult::new(Code::SettingsAssumed, message)
        .advise("set the flags of the webhook, such as --languages")
}

//! The limit of open files.

use rustix::process::{Resource, getrlimit, setrlimit};
use tracing::debug;

/// Raises the limit of open files to what the system permits. Many systems begin with 1,024, which is fewer than the
/// connections that both ports may have: accepting would fail before a port reaches its own limit.
pub fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        debug!(%error, "cannot raise the limit of open files");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_what_is_permitted() {
        raise_file_limit();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}

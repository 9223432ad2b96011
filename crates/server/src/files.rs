//! The limit of open files.

/// Raises the limit of open files to what the system permits. Many systems begin with 1,024, which is fewer than the
/// connections that both ports may have: accepting would fail before a port reaches its own limit.
#[cfg(unix)]
pub fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    use tracing::debug;

    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        debug!(%error, "cannot raise the limit of open files");
    }
}

/// Windows has no such limit.
#[cfg(not(unix))]
pub fn raise_file_limit() {}

#[cfg(test)]
mod tests {
    use rustix::process::{Resource, getrlimit};

    use super::*;

    #[test]
    fn the_limit_is_raised_to_what_is_permitted() {
        raise_file_limit();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}

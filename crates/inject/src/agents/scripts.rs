//! The shell scripts that web servers' init containers run.
//!
//! What users say reaches them as arguments and variables only, and is never
//! part of their text.

/// Puts the module into a copy of Apache HTTPD's configuration.
pub const APACHE_HTTPD_AGENT: &str =
    concat!(include_str!("scripts/common.sh"), "\n", include_str!("scripts/apache-httpd-agent.sh"));

/// Copies the configuration of nginx and notes its version.
pub const NGINX_CLONE: &str = include_str!("scripts/nginx-clone.sh");

/// Puts the module into a copy of nginx' configuration.
pub const NGINX_AGENT: &str =
    concat!(include_str!("scripts/common.sh"), "\n", include_str!("scripts/nginx-agent.sh"));

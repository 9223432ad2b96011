//! The shell scripts of the init containers of web servers.
//!
//! Values of users are passed as arguments and variables only, and are never
//! part of a script.

/// Adds the module to a copy of Apache HTTPD's configuration.
pub const APACHE_HTTPD_AGENT: &str =
    concat!(include_str!("scripts/common.sh"), "\n", include_str!("scripts/apache-httpd-agent.sh"));

/// Copies the configuration of nginx and writes its version.
pub const NGINX_CLONE: &str = include_str!("scripts/nginx-clone.sh");

/// Adds the module to a copy of nginx' configuration.
pub const NGINX_AGENT: &str =
    concat!(include_str!("scripts/common.sh"), "\n", include_str!("scripts/nginx-agent.sh"));

//! nginx: a module, loaded by `nginx.conf` and configured in `conf.d`.

use std::borrow::Cow;

use serde_json::json;

use super::{directive::Syntax, module::Module, scripts};
use crate::{
    agents::web_server::{self, Location, WebServer},
    compiled::Prepared,
    language::NGINX_ATTACH,
    path,
    reason::Reason,
    target::{SearchPath, join_path},
};

const DEFAULT_FILE: &str = "/etc/nginx/nginx.conf";

/// The server.
pub const SERVER: WebServer = WebServer {
    attach: NGINX_ATTACH,
    conf_volume: "otel-nginx-conf-dir",
    agent_volume: "otel-nginx-agent",
    // The volumes have no size limit, and cannot be claims.
    sources: |_| [(); 2].map(|()| Cow::Owned(json!({"emptyDir": {}}))),
    location,
    copy: |location| web_server::run_script(scripts::NGINX_CLONE, &location.folder),
    replaces_links: true,
    script: scripts::NGINX_AGENT,
    script_argument: |location| &location.file,
    conf_variable: "OTEL_NGINX_AGENT_CONF",
    instance_variable: "OTEL_NGINX_SERVICE_INSTANCE_ID",
    module: Module { prefix: "NginxModule", head: |_| String::new(), syntax: Syntax::NGINX, yes: "ON" },
    search_path: Some(SearchPath {
        name: "LD_LIBRARY_PATH",
        join: |present| join_path(present, "/opt/opentelemetry-webserver/agent/sdk_lib/lib"),
    }),
    secured_as_last: false,
};

fn location(prepared: &Prepared) -> Result<Location, Reason> {
    let said = prepared.config.as_deref().unwrap_or(DEFAULT_FILE);
    let (folder, file) = path::split(said);
    if path::is_below_something(&folder) && path::is_below_something(file) {
        return Ok(Location { folder, file: file.to_owned() });
    }
    Err(Reason::ConfigPath { field: "spec.nginx.configFile", value: said.to_owned() })
}

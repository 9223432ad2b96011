//! nginx: a module, loaded by `nginx.conf` and configured in `conf.d`.

use super::{Language, Mark, scripts};
use crate::{
    compiled::Prepared,
    path,
    reason::Reason,
    target::{SearchPath, join_path},
    web_server::{self, CLONE, Location, WebServer},
};
use otel_webhook_api::{Settings, defaults::NGINX};

/// The row of nginx in the language table.
pub const ROW: Language = Language {
    name: "nginx",
    inject: "inject-nginx",
    // The operator's own spelling, unlike that of the other languages.
    containers: "inject-nginx-container-names",
    defaults: Some(&NGINX),
    enabled_by_default: false,
    exports_from_target: false,
    in_init_containers: false,
    marks: &[Mark::Init(CLONE), Mark::Init(SERVER.attach)],
    settings: |spec| spec.nginx.as_ref().map(Settings::from).unwrap_or_default(),
    inject_into: |job| web_server::inject(job, &SERVER),
};

const DEFAULT_FILE: &str = "/etc/nginx/nginx.conf";

/// Neither volume has a limit, nor can it be a claim.
const EMPTY_DIR: &str = "\"emptyDir\":{}";

const SERVER: WebServer = WebServer {
    attach: "otel-agent-attach-nginx",
    conf_volume: "otel-nginx-conf-dir",
    agent_volume: "otel-nginx-agent",
    sources: |_| [EMPTY_DIR; 2],
    location,
    copy: |location, draft| web_server::run_script(draft, scripts::NGINX_CLONE, &location.folder),
    script: scripts::NGINX_AGENT,
    script_argument: |location| &location.file,
    conf_variable: "OTEL_NGINX_AGENT_CONF",
    instance_variable: "OTEL_NGINX_SERVICE_INSTANCE_ID",
    directive_prefix: "NginxModule",
    conf_head: |_| String::new(),
    directive_end: ";\n",
    yes: "ON",
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

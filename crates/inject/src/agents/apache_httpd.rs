//! Apache HTTPD: a module, loaded by a file that `httpd.conf` includes.

use std::borrow::Cow;

use super::{directive::Syntax, module::Module, scripts};
use crate::{
    agents::web_server::{AGENT_FOLDER, CONF_FOLDER, Location, Run, WebServer},
    compiled::Prepared,
    language::APACHE_ATTACH,
    path,
    reason::Reason,
};

const DEFAULT_FOLDER: &str = "/usr/local/apache2/conf";

/// The server.
pub const SERVER: WebServer = WebServer {
    attach: APACHE_ATTACH,
    conf_volume: "otel-apache-conf-dir",
    agent_volume: "otel-apache-agent",
    sources: |prepared| [&prepared.empty_dir, &prepared.volume].map(Cow::Borrowed),
    location,
    copy: |location| Run {
        command: vec!["cp".into(), "-r".into(), format!("{}/.", location.folder).into(), CONF_FOLDER.into()],
        args: Vec::new(),
    },
    replaces_links: false,
    script: scripts::APACHE_HTTPD_AGENT,
    script_argument: |location| &location.folder,
    conf_variable: "OTEL_APACHE_AGENT_CONF",
    instance_variable: "APACHE_SERVICE_INSTANCE_ID",
    module: Module { prefix: "ApacheModule", head: conf_head, syntax: Syntax::HTTPD, yes: " ON" },
    search_path: None,
    secured_as_last: true,
};

fn location(prepared: &Prepared) -> Result<Location, Reason> {
    let said = prepared.config.as_deref().unwrap_or(DEFAULT_FOLDER);
    let folder = said.strip_suffix('/').unwrap_or(said);
    // `cp` would treat a name that begins with `-` as an option.
    if path::is_below_something(&path::clean(folder)) && !folder.starts_with('-') {
        return Ok(Location { folder: folder.to_owned(), file: "httpd.conf".to_owned() });
    }
    Err(Reason::ConfigPath { field: "spec.apacheHttpd.configPath", value: said.to_owned() })
}

/// Libraries of the SDK, each before those that depend on it.
const LIBRARIES: [&str; 7] = [
    "opentelemetry_common",
    "opentelemetry_resources",
    "opentelemetry_trace",
    "opentelemetry_otlp_recordable",
    "opentelemetry_exporter_ostream_span",
    "opentelemetry_exporter_otlp_grpc",
    "opentelemetry_webserver_sdk",
];

fn conf_head(prepared: &Prepared) -> String {
    let loads = LIBRARIES.map(|name| format!("LoadFile {AGENT_FOLDER}/sdk_lib/lib/lib{name}.so\n"));
    let suffix = if prepared.version.as_deref() == Some("2.2") { "22" } else { "" };
    let module = format!(
        "LoadModule otel_apache_module {AGENT_FOLDER}/WebServerModule/Apache/libmod_apache_otel{suffix}.so\n"
    );
    loads.concat() + &module
}

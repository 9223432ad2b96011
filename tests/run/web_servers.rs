//! The configuration that Apache HTTPD and nginx get, read by the servers
//! themselves: Debian's, with Debian's configuration.
//!
//! The OpenTelemetry modules are in no package registry, so a server cannot
//! start with them here. What can be shown is how far it reads: up to the
//! module and no less, up to the module's first directive once the module is
//! taken out, and all of it once the directives are taken out as well.

use serde_json::{Value, json};

use crate::{deployment, image, inject, unique};
use otel_webhook_testkit::containers::played::Played;
use otel_webhook_testkit::containers::podman::Network;

/// A pod with a web server that is not started, but for its look at the configuration.
fn server(name: &str, program: &str, language: &str, env: Value) -> Played {
    let container =
        json!({"name": "app", "image": image(program), "command": ["/bin/sleep", "100000"], "env": env});
    let spec = json!({
        "apacheHttpd": {"image": image("web-server-agent")}, "nginx": {"image": image("web-server-agent")},
    });
    Played::start(inject(&[deployment(name, language, container)], &spec), Network::None)
}

#[test]
fn apache_httpd_reads_its_configuration_up_to_the_missing_module() {
    let name = unique("httpd");
    let variables = [
        ("APACHE_RUN_USER", "www-data"),
        ("APACHE_RUN_GROUP", "www-data"),
        ("APACHE_RUN_DIR", "/tmp"),
        ("APACHE_PID_FILE", "/tmp/apache2.pid"),
        ("APACHE_LOG_DIR", "/var/log/apache2"),
    ];
    let env: Vec<_> = variables.map(|(name, value)| json!({"name": name, "value": value})).into();
    let pod = server(&name, "httpd", "apache-httpd", json!(env));
    let test = || pod.shell("/usr/sbin/apache2 -t -d /usr/local/apache2/conf -f httpd.conf");
    let included = "/usr/local/apache2/conf/opentemetry_agent.conf";

    let (_, conf) = pod.shell(&format!("cat {included}"));
    assert!(conf.contains(&format!("ApacheModuleServiceInstanceId {name}-pod-0\n")), "{conf}");
    assert!(conf.contains(&format!("ApacheModuleServiceName {name}\n")), "{conf}");

    let library = "/opt/opentelemetry-webserver/agent/sdk_lib/lib/libopentelemetry_common.so";
    fails(
        test(),
        &[&format!(
            "line 1 of {included}: Cannot load {library} into server: {library}: \
             cannot open shared object file: No such file or directory"
        )],
    );
    comment_out(&pod, included, "Load");
    fails(
        test(),
        &[
            &format!("Syntax error on line 9 of {included}:"),
            "Invalid command 'ApacheModuleEnabled', perhaps misspelled or defined by a module not included \
             in the server configuration",
        ],
    );
    comment_out(&pod, included, "ApacheModule");
    let (ok, said) = test();
    assert!(ok && said.contains("Syntax OK"), "{said}");
}

#[test]
fn nginx_reads_its_configuration_up_to_the_missing_module() {
    let name = unique("nginx");
    let pod = server(&name, "nginx", "nginx", json!([]));
    let test = || pod.shell("/usr/sbin/nginx -t");
    let (main, included) = ("/etc/nginx/nginx.conf", "/etc/nginx/conf.d/opentelemetry_agent.conf");

    let (_, conf) = pod.shell(&format!("cat {included}"));
    assert!(conf.contains(&format!("NginxModuleServiceInstanceId {name}-pod-0;\n")), "{conf}");
    assert!(conf.contains(&format!("NginxModuleServiceName {name};\n")), "{conf}");

    // An empty file stands in for the module, since the script looks for one.
    let end = "nginx: configuration file /etc/nginx/nginx.conf test failed";
    fails(test(), &[&format!("ngx_http_opentelemetry_module.so: file too short) in {main}:2"), end]);
    comment_out(&pod, main, "load_module");
    fails(test(), &[&format!("unknown directive \"NginxModuleEnabled\" in {included}:1"), end]);
    comment_out(&pod, included, "NginxModule");
    let (ok, said) = test();
    assert!(ok && said.contains("test is successful"), "{said}");
}

/// The server says nothing but lines with these ends.
fn fails((ok, said): (bool, String), ends: &[&str]) {
    let lines: Vec<_> = said.lines().filter(|line| !line.is_empty()).collect();
    let expected = lines.len() == ends.len() && lines.iter().zip(ends).all(|(line, end)| line.ends_with(end));
    assert!(!ok && expected, "{said}");
}

/// Turns lines that begin with this into comments, and finds some.
fn comment_out(pod: &Played, file: &str, start: &str) {
    let (ok, said) = pod.shell(&format!("grep -q '^{start}' {file} && sed -i 's/^{start}/#&/' {file}"));
    assert!(ok, "{file} has no {start}: {said}");
}

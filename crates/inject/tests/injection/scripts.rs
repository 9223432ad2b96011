//! The scripts of the web servers' init containers, run by a real shell on a tree of files.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use otel_webhook_inject::agents::scripts::{APACHE_HTTPD_AGENT, NGINX_AGENT, NGINX_CLONE};
use tempfile::TempDir;

/// What a shell, `sed` or `printf` would make something of.
const HOSTILE: &str = "a/b&c\\1 $(touch x) `touch x` 'q' \"d\" %s ; touch x | $HOME * \\n <<EOF";

/// A container's file system, as far as the scripts know it.
pub struct Tree {
    root: TempDir,
}

impl Tree {
    pub fn new() -> Self {
        let tree = Self { root: tempfile::tempdir().expect("a folder") };
        for folder in ["agent", "source-conf"] {
            fs::create_dir_all(tree.path("opt/opentelemetry-webserver").join(folder)).expect("a folder");
        }
        tree.write("opt/opentelemetry/sdk_lib/lib/lib.so", "library");
        tree.write(
            "opt/opentelemetry/conf/opentelemetry_sdk_log4cxx.xml.template",
            "<a b=\"__agent_log_dir__/x\"/>",
        );
        tree
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn agent(&self, path: &str) -> PathBuf {
        self.path("opt/opentelemetry-webserver/agent").join(path)
    }

    pub fn conf(&self, path: &str) -> PathBuf {
        self.path("opt/opentelemetry-webserver/source-conf").join(path)
    }

    pub fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path
    }

    /// Puts an `nginx` in the path that says its version.
    pub fn install_nginx(&self, banner: &str) {
        self.install("nginx", &format!("echo '{banner}' >&2"));
    }

    /// Puts a program in the path.
    pub fn install(&self, name: &str, script: &str) {
        let path = self.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("its own file");
    }

    /// A script as the kubelet would run it, with the tree for its root.
    pub fn command(&self, script: &str, argument: &str, variables: &[(&str, &str)]) -> Command {
        let text = script.replace("/opt/", &format!("{}/opt/", self.root.path().display()));
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &text, "--", argument]).env_clear().env("PATH", path);
        command.envs(variables.iter().copied()).current_dir(self.root.path());
        command
    }

    /// Runs a script.
    fn run(&self, script: &str, argument: &str, variables: &[(&str, &str)]) -> Output {
        let output = self.command(script, argument, variables).output().expect("a shell");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(!self.path("x").exists(), "a value was run as a command");
        output
    }
}

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn apache(tree: &Tree, folder: &str, conf: &str, id: &str) -> Output {
    let variables = [("OTEL_APACHE_AGENT_CONF", conf), ("APACHE_SERVICE_INSTANCE_ID", id)];
    tree.run(APACHE_HTTPD_AGENT, folder, &variables)
}

fn nginx(tree: &Tree, file: &str, conf: &str, id: &str) -> Output {
    let variables = [("OTEL_NGINX_AGENT_CONF", conf), ("OTEL_NGINX_SERVICE_INSTANCE_ID", id)];
    tree.run(NGINX_AGENT, file, &variables)
}

/// A tree after the clone of nginx has run, with a module for its version.
fn nginx_tree(main: &str, text: &str) -> Tree {
    let tree = Tree::new();
    fs::write(tree.conf(main), text).expect("a file");
    fs::write(tree.conf("version.txt"), "1.27.1\n").expect("a file");
    tree.write("opt/opentelemetry/WebServerModule/Nginx/1.27.1/ngx_http_opentelemetry_module.so", "");
    tree
}

#[test]
fn apache_gets_the_agent_and_includes_its_configuration() {
    let tree = Tree::new();
    fs::write(tree.conf("httpd.conf"), "Listen 80").expect("a file");
    apache(&tree, "/etc/httpd", "Id <<SID-PLACEHOLDER>>\nTwice <<SID-PLACEHOLDER>>.\n", "web-1");
    assert_eq!(read(tree.agent("sdk_lib/lib/lib.so")), "library");
    let log = format!("<a b=\"{}/x\"/>", tree.agent("logs").display());
    assert_eq!(read(tree.agent("conf/opentelemetry_sdk_log4cxx.xml")).trim_end(), log);
    assert_eq!(read(tree.conf("opentemetry_agent.conf")).trim_end(), "Id web-1\nTwice web-1.");
    assert_eq!(read(tree.conf("httpd.conf")), "Listen 80\nInclude /etc/httpd/opentemetry_agent.conf\n");
}

#[test]
fn apache_that_is_run_again_changes_nothing() {
    let tree = Tree::new();
    fs::write(tree.conf("httpd.conf"), "Listen 80\n").expect("a file");
    let states = [(); 2].map(|()| {
        apache(&tree, "/etc/httpd", "Id <<SID-PLACEHOLDER>>\n", "web-1");
        (read(tree.conf("httpd.conf")), read(tree.conf("opentemetry_agent.conf")))
    });
    assert_eq!(states[0], states[1]);
}

#[test]
fn apache_without_its_main_file_is_left_alone() {
    let tree = Tree::new();
    let output = apache(&tree, "/etc/httpd", "A b\n", "web-1");
    assert!(!tree.conf("httpd.conf").exists());
    assert!(String::from_utf8_lossy(&output.stderr).contains("/etc/httpd has no httpd.conf"));
}

#[test]
fn values_stay_text_in_apache() {
    let tree = Tree::new();
    fs::write(tree.conf("httpd.conf"), "").expect("a file");
    let folder = format!("/etc/{HOSTILE}\nnext");
    let conf = format!("A {HOSTILE}\nB <<SID-PLACEHOLDER>>{HOSTILE}");
    apache(&tree, &folder, &conf, HOSTILE);
    let expected = format!("A {HOSTILE}\nB {HOSTILE}{HOSTILE}\n");
    assert_eq!(read(tree.conf("opentemetry_agent.conf")), expected);
    assert_eq!(read(tree.conf("httpd.conf")), format!("\nInclude {folder}/opentemetry_agent.conf\n"));
}

#[test]
fn the_clone_copies_the_folder_and_notes_the_version() {
    let tree = Tree::new();
    tree.install_nginx("nginx version: nginx/1.27.1 (Ubuntu)");
    let main = tree.write("etc/nginx/..data/nginx.conf", "events {}");
    tree.write("etc/nginx/conf.d/a.conf", "a");
    let folder = tree.path("etc/nginx");
    // A mounted ConfigMap is made of links.
    symlink("..data/nginx.conf", folder.join("nginx.conf")).expect("a link");
    for _ in 0..2 {
        tree.run(NGINX_CLONE, folder.to_str().expect("UTF-8"), &[]);
        assert_eq!(read(tree.conf("nginx.conf")), read(&main));
        assert_eq!(read(tree.conf("conf.d/a.conf")), "a");
        assert_eq!(read(tree.conf("version.txt")), "1.27.1\n");
    }
}

#[test]
fn the_clone_takes_any_name_for_a_folder() {
    for folder in ["-rf", "with space", HOSTILE, "$(touch x)\n"] {
        let tree = Tree::new();
        tree.install_nginx("nginx version: nginx/1.27.1");
        let path = folder.trim_matches('/').to_owned();
        tree.write(&format!("{path}/n.conf"), "n");
        tree.run(NGINX_CLONE, &path, &[]);
        assert_eq!(read(tree.conf("n.conf")), "n", "{folder:?}");
    }
}

#[test]
fn the_clone_does_without_nginx_and_without_the_folder() {
    let tree = Tree::new();
    let output = tree.run(NGINX_CLONE, "/nowhere", &[]);
    assert_eq!(read(tree.conf("version.txt")), "\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nowhere is no folder"));
}

#[test]
fn nginx_loads_the_module_before_all_else() {
    let tree = nginx_tree("nginx.conf", "events {}\n");
    let states = [(); 2].map(|()| {
        nginx(&tree, "nginx.conf", "Id <<SID-PLACEHOLDER>>;\n", "web-1");
        (read(tree.conf("nginx.conf")), read(tree.conf("conf.d/opentelemetry_agent.conf")))
    });
    let module = tree.agent("WebServerModule/Nginx/1.27.1/ngx_http_opentelemetry_module.so");
    let main = format!("env OTEL_RESOURCE_ATTRIBUTES;\nload_module {};\nevents {{}}\n", module.display());
    assert_eq!(states[0], (main, "Id web-1;\n\n".to_owned()));
    assert_eq!(states[0], states[1], "a second run changes something");
}

#[test]
fn nginx_replaces_a_link_and_a_file_that_cannot_be_written() {
    let tree = nginx_tree("real.conf", "events {}\n");
    fs::set_permissions(tree.conf("real.conf"), fs::Permissions::from_mode(0o440)).expect("its own file");
    symlink("real.conf", tree.conf("nginx.conf")).expect("a link");
    nginx(&tree, "nginx.conf", "A b;\n", "web-1");
    assert!(read(tree.conf("nginx.conf")).starts_with("env OTEL_RESOURCE_ATTRIBUTES;\n"));
    assert_eq!(read(tree.conf("real.conf")), "events {}\n");
    let mode = fs::metadata(tree.conf("nginx.conf")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o640, "nobody else may read it now");
}

#[test]
fn nginx_is_left_alone_where_the_agent_has_no_module_for_it() {
    for version in ["9.9.9\n", "\n"] {
        let tree = nginx_tree("nginx.conf", "events {}\n");
        fs::write(tree.conf("version.txt"), version).expect("a file");
        let output = nginx(&tree, "nginx.conf", "A b;\n", "web-1");
        assert_eq!(read(tree.conf("nginx.conf")), "events {}\n");
        assert!(!tree.conf("conf.d").exists());
        assert!(String::from_utf8_lossy(&output.stderr).contains("has no module for nginx"));
    }
}

#[test]
fn nginx_is_left_alone_without_its_main_file() {
    let tree = nginx_tree("other.conf", "events {}\n");
    let output = nginx(&tree, "nginx.conf", "A b;\n", "web-1");
    assert!(!tree.conf("nginx.conf").exists());
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no nginx.conf"));
}

#[test]
fn values_stay_text_in_nginx() {
    let name = HOSTILE.replace('/', "-") + "\nnext.conf";
    let tree = nginx_tree(&name, "events {}\n");
    let conf = format!("A {HOSTILE};\nB <<SID-PLACEHOLDER>>{HOSTILE};");
    nginx(&tree, &name, &conf, HOSTILE);
    let expected = format!("A {HOSTILE};\nB {HOSTILE}{HOSTILE};\n");
    assert_eq!(read(tree.conf("conf.d/opentelemetry_agent.conf")), expected);
    assert!(read(tree.conf(&name)).ends_with(";\nevents {}\n"));
}

#[test]
fn the_kubelet_finds_nothing_to_replace_in_a_script() {
    for script in [APACHE_HTTPD_AGENT, NGINX_CLONE, NGINX_AGENT] {
        assert!(!script.contains("$$"), "the kubelet makes one $ of two");
        for part in script.split("$(").skip(1) {
            let name = part.split(')').next().unwrap_or_default();
            assert!(name.contains(' '), "$({name}) reads like a variable");
        }
    }
}

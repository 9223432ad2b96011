//! The init containers of web servers.

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::{CommandExt, ExitStatusExt},
    },
    process::Command,
};

use otel_webhook_inject::agents::scripts::{APACHE_HTTPD_AGENT, NGINX_AGENT, NGINX_CLONE};

use super::{Listing, READ_ONLY, USER, is_root, listing};
use crate::scripts::Tree;

/// The signal that ends a process at once.
const SIGKILL: i32 = 9;

/// A web server, with the scripts of its init containers.
struct Server {
    /// The configuration in the image: paths and texts.
    files: &'static [(&'static str, &'static str)],
    clone: fn(&Tree) -> Command,
    attach: fn(&Tree) -> Command,
    /// Whether the clone replaces files that cannot be written. Else the attaching container makes them writable.
    replaces: bool,
}

const CONFIGURATION: &str = "etc/server";

const APACHE_HTTPD: Server = Server {
    files: &[("httpd.conf", "Listen 80\n"), ("extra/a.conf", "a\n")],
    // The operator's command.
    clone: |tree| tree.command("cp -r etc/server/. /opt/opentelemetry-webserver/source-conf", "", &[]),
    attach: |tree| {
        let variables =
            [("OTEL_APACHE_AGENT_CONF", "Id <<SID-PLACEHOLDER>>\n"), ("APACHE_SERVICE_INSTANCE_ID", "web-1")];
        tree.command(APACHE_HTTPD_AGENT, "/etc/server", &variables)
    },
    replaces: false,
};

const NGINX: Server = Server {
    files: &[("nginx.conf", "events {}\n"), ("conf.d/a.conf", "a\n")],
    clone: |tree| tree.command(NGINX_CLONE, CONFIGURATION, &[]),
    attach: |tree| {
        let variables = [
            ("OTEL_NGINX_AGENT_CONF", "Id <<SID-PLACEHOLDER>>;\n"),
            ("OTEL_NGINX_SERVICE_INSTANCE_ID", "web-1"),
        ];
        tree.command(NGINX_AGENT, "nginx.conf", &variables)
    },
    replaces: true,
};

impl Server {
    /// The containers' files; those of the configuration have these permissions.
    fn tree(&self, mode: u32) -> Tree {
        let tree = Tree::new();
        tree.install_nginx("nginx version: nginx/1.27.1");
        tree.write("opt/opentelemetry/WebServerModule/Nginx/1.27.1/ngx_http_opentelemetry_module.so", "");
        for (path, text) in self.files {
            let path = tree.write(&format!("{CONFIGURATION}/{path}"), text);
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its own file");
        }
        if is_root() {
            for path in ["", "opt/opentelemetry-webserver/agent", "opt/opentelemetry-webserver/source-conf"] {
                chown(tree.path(path), Some(USER), Some(USER)).expect("its own folder");
            }
        }
        tree
    }

    /// Runs both init containers.
    fn run(&self, tree: &Tree) {
        for command in [(self.clone)(tree), (self.attach)(tree)] {
            run(command);
        }
    }

    /// The configuration and the agent, with another root.
    fn listing(tree: &Tree, root: &Tree) -> Listing {
        let [from, to] = [tree, root].map(|one| one.path("").display().to_string());
        let listing = listing(&tree.path("opt/opentelemetry-webserver"));
        let moved = |text: Vec<u8>| String::from_utf8_lossy(&text).replace(&from, &to).into_bytes();
        listing.into_iter().map(|(path, (mode, text))| (path, (mode, moved(text)))).collect()
    }
}

fn run(mut command: Command) {
    if is_root() {
        command.uid(USER).gid(USER);
    }
    let output = command.output().expect("a shell");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn configurations_are_the_same_after_three_runs() {
    for server in [APACHE_HTTPD, NGINX] {
        let tree = server.tree(READ_ONLY);
        server.run(&tree);
        let once = Server::listing(&tree, &tree);
        for _ in 0..2 {
            server.run(&tree);
            assert_eq!(Server::listing(&tree, &tree), once);
            // The kubelet may start the second one alone.
            run((server.attach)(&tree));
            assert_eq!(Server::listing(&tree, &tree), once);
        }
    }
}

/// Kills the whole script before its program of a number, counted from 1.
fn kill_before(tree: &Tree, number: u32) {
    let count = tree.path("count").display().to_string();
    for name in ["cat", "chmod", "cp", "grep", "mkdir", "mv", "rm", "sed"] {
        let script = format!(
            "count=0; [ ! -f {count} ] || read -r count <{count}; count=$((count + 1)); echo $count >{count}\n\
             [ $count != {number} ] || kill -9 0\nexec /bin/{name} \"$@\""
        );
        tree.install(name, &script);
    }
}

#[test]
fn configurations_are_the_same_after_a_run_that_was_killed_anywhere() {
    for server in [APACHE_HTTPD, NGINX] {
        for whole in [false, true] {
            let mode = if whole && !server.replaces { 0o644 } else { READ_ONLY };
            let clean = server.tree(mode);
            server.run(&clean);
            let once = Server::listing(&clean, &clean);
            let mut killed = 0;
            loop {
                let tree = server.tree(mode);
                run((server.clone)(&tree));
                kill_before(&tree, killed + 1);
                let mut attach = (server.attach)(&tree);
                if is_root() {
                    attach.uid(USER).gid(USER);
                }
                let status = attach.process_group(0).status().expect("a shell");
                if status.signal() != Some(SIGKILL) {
                    assert!(status.success(), "{status}");
                    break;
                }
                killed += 1;
                fs::remove_dir_all(tree.path("bin")).expect("the programs");
                tree.install_nginx("nginx version: nginx/1.27.1");
                if whole {
                    server.run(&tree);
                } else {
                    run((server.attach)(&tree));
                }
                assert_eq!(Server::listing(&tree, &clean), once, "killed before program {killed}");
            }
            assert!(killed >= 6, "killed at {killed} places only");
        }
    }
}

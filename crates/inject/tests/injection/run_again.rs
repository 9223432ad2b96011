//! Init containers run again in the volume that they have filled before, as after a restart of the node, and after
//! they were killed half way: what they leave is the same as after one run.

mod web_servers;

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, symlink},
        process::{CommandExt, ExitStatusExt},
    },
    path::Path,
    process::Command,
};

use otel_webhook_testkit::{
    objects::{asking, items},
    surroundings::with,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The user of the init containers, if the test may choose one: root may write to any file.
const USER: u32 = 65532;

/// The permissions of a file that its owner may only read.
const READ_ONLY: u32 = 0o444;

/// The signal that ends a process that writes more than it may.
const SIGXFSZ: i32 = 25;

/// The paths of a tree, with type, permissions, and content or target.
type Listing = BTreeMap<String, (u32, Vec<u8>)>;

fn listing(root: &Path) -> Listing {
    fn add(listing: &mut Listing, root: &Path, folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let metadata = fs::symlink_metadata(&path)?;
            let content = if metadata.is_symlink() {
                fs::read_link(&path)?.display().to_string().into_bytes()
            } else if metadata.is_dir() {
                add(listing, root, &path)?;
                Vec::new()
            } else {
                fs::read(&path)?
            };
            let name = path.strip_prefix(root).expect("below it").display().to_string();
            listing.insert(name, (metadata.mode(), content));
        }
        Ok(())
    }
    let mut listing = Listing::new();
    add(&mut listing, root, root).expect("a readable tree");
    listing
}

/// Whether the test may run a process as another user.
fn is_root() -> bool {
    fs::metadata("/proc/self").expect("a process").uid() == 0
}

/// The programs `cp`: of this system, and of busybox, which the operator's images have.
fn programs() -> Vec<Vec<&'static str>> {
    let has_busybox = Command::new("busybox").arg("true").status().is_ok_and(|status| status.success());
    let busybox = has_busybox.then(|| vec!["busybox", "cp"]);
    [Some(vec!["cp"]), busybox].into_iter().flatten().collect()
}

/// The root of a file system that has a folder with what agents have: links, also to folders, read-only files, and a
/// file that is not copied at once.
fn image(folder: &str) -> TempDir {
    let root = tempfile::tempdir().expect("a folder");
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).expect("its own folder");
    let at = |path: &str| root.path().join(folder.trim_matches('/')).join(path);
    for folder in ["node_modules/.bin", "node_modules/x", "linux"] {
        fs::create_dir_all(at(folder)).expect("a folder");
    }
    let read_only = fs::Permissions::from_mode(READ_ONLY);
    for (file, size) in
        [("node_modules/x/cli.js", 10), ("linux/agent.so", 100_000), ("javaagent.jar", 100_000)]
    {
        fs::write(at(file), vec![b'a'; size]).expect("a file");
        fs::set_permissions(at(file), read_only.clone()).expect("its own file");
    }
    symlink("../x/cli.js", at("node_modules/.bin/x")).expect("a link");
    symlink("linux", at("linux-x64")).expect("a link");
    root
}

/// A volume, which the kubelet makes writable for all users.
fn volume(root: &TempDir, path: &str) {
    let path = root.path().join(path.trim_start_matches('/'));
    fs::create_dir(&path).expect("a volume");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).expect("its own folder");
}

/// The command of an init container in a file system. What it writes to a file is limited, and more kills it.
fn command(program: &[&str], arguments: &[String], root: &TempDir, most: Option<u32>) -> Command {
    let arguments = arguments.iter().map(|word| match word.strip_prefix('/') {
        Some(path) => root.path().join(path).display().to_string(),
        None => word.clone(),
    });
    let limit = most.map_or(String::new(), |blocks| format!("ulimit -c 0; ulimit -f {blocks}; "));
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &(limit + "exec \"$@\""), "--"]).args(program).args(arguments);
    if is_root() {
        command.uid(USER).gid(USER);
    }
    command
}

/// Each init container with a copy: the folder of its image, its volume, and its command.
fn copies() -> Vec<(&'static str, String, Vec<String>)> {
    let extensions = json!([{"image": "own/autoinstrumentation-java:1", "dir": "/extensions"}]);
    let agent = json!([{"name": "php", "image": "own:1", "directory": "/opt/agent"}]);
    let spec = json!({"java": {"extensions": extensions}, "agents": agent});
    let prefix = "opentelemetry-auto-instrumentation";
    let of = |folder: &'static str, ask: &str, value: &str, container: &str| {
        let mut pod = asking(&[ask], json!({}));
        pod["metadata"]["annotations"][format!("instrumentation.opentelemetry.io/inject-{ask}")] =
            json!(value);
        let injected = with(spec.clone()).inject(&pod);
        let container = injected.container(&format!("{prefix}-{container}")).expect("an init container");
        let volume = container["volumeMounts"][0]["mountPath"].as_str().expect("a mount").to_owned();
        let words = items(&container["command"]).filter_map(Value::as_str).map(str::to_owned).collect();
        (folder, volume, words)
    };
    vec![
        of("/", "java", "true", "java"),
        of("/extensions", "java", "true", "extension-0"),
        of("/autoinstrumentation", "nodejs", "true", "nodejs"),
        of("/autoinstrumentation", "python", "true", "python"),
        of("/autoinstrumentation", "dotnet", "true", "dotnet"),
        of("/opt/agent", "agent", "php", "agent-php"),
    ]
}

#[test]
fn copies_are_the_same_after_three_runs_and_after_one_that_was_killed() {
    for (folder, mount, words) in copies() {
        let [first, arguments @ ..] = &words[..] else { panic!("no command") };
        assert_eq!(first, "cp");
        for program in programs() {
            let root = image(folder);
            volume(&root, &mount);
            let copy = root.path().join(&mount[1..]);
            let run = || {
                let output = command(&program, arguments, &root, None).output().expect("it can be started");
                assert!(
                    output.status.success(),
                    "{program:?} {words:?}: {}",
                    String::from_utf8_lossy(&output.stderr)
                );
                listing(&copy)
            };
            let once = run();
            assert!(
                once.len() == 1 || once.keys().any(|path| path.ends_with("node_modules/.bin/x")),
                "{words:?}"
            );
            assert_eq!(run(), once, "{program:?} {words:?}: the second run");
            assert_eq!(run(), once, "{program:?} {words:?}: the third run");

            let root = image(folder);
            volume(&root, &mount);
            let killed = command(&program, arguments, &root, Some(16)).status().expect("it can be started");
            assert_eq!(killed.signal(), Some(SIGXFSZ), "{program:?} {words:?}: {killed}");
            let copy = root.path().join(&mount[1..]);
            assert_ne!(listing(&copy), once, "{program:?} {words:?}: it was killed too late");
            let output = command(&program, arguments, &root, None).output().expect("it can be started");
            assert!(
                output.status.success(),
                "{program:?} {words:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            assert_eq!(listing(&copy), once, "{program:?} {words:?}: after a run that was killed");
        }
    }
}

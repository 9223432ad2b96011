//! The pictures of docs/images: recordings that need no cluster, and what all of them keep to.

use std::{env, fs, path::Path, process::Command};

use otel_webhook_testkit::terminal::{Step, recording};

use super::markdown::{Page, root};
use crate::reference::source::files;

/// What is recorded: the command, and a change of the Deployment of `examples/` before it.
const COMMANDS: [(&str, Option<(&str, &str)>); 2] = [
    (
        "otel-webhook validate -f deployment.yaml -f instrumentation.yaml",
        Some(("inject-java: \"true\"", "inject-java: \"ordr\"")),
    ),
    ("otel-webhook explain -f deployment.yaml -f instrumentation.yaml", None),
];

/// With `OTEL_WEBHOOK_PICTURES`, as `make docs-pictures` sets it, the recording is replaced; else it is compared.
#[test]
fn the_recording_of_explain_shows_what_the_program_prints() {
    let folder = tempfile::tempdir().expect("a folder");
    let steps = COMMANDS.map(|(command, change)| {
        for file in ["deployment.yaml", "instrumentation.yaml"] {
            let text = fs::read_to_string(root().join("examples").join(file)).expect("an example");
            let (from, to) = change.filter(|_| file == "deployment.yaml").unwrap_or_default();
            assert!(text.contains(from), "the example has no {from}");
            let text = if from.is_empty() { text } else { text.replace(from, to) };
            fs::write(folder.path().join(file), text).expect("a file");
        }
        Step::new(command, &printed(command, folder.path()))
    });
    assert!(steps[0].output.contains("not found"), "{}", steps[0].output);
    assert!(steps[1].output.contains("Injected"), "{}", steps[1].output);
    let title =
        "A misspelt Instrumentation is found by validate; corrected, explain says that the pod is injected";
    let (file, svg) = (root().join("docs/images/explain.svg"), recording(title, &steps));
    if env::var_os("OTEL_WEBHOOK_PICTURES").is_some() {
        fs::write(&file, &svg).expect("a picture");
    }
    let stored = fs::read_to_string(&file).unwrap_or_default();
    assert!(stored == svg, "docs/images/explain.svg is out of date: run `make docs-pictures`");
}

/// What a command of the program prints in a folder.
fn printed(command: &str, folder: &Path) -> String {
    let mut running = Command::new(env!("CARGO_BIN_EXE_otel-webhook"));
    for (name, _) in env::vars().filter(|(name, _)| name.starts_with("OTEL_WEBHOOK_")) {
        running.env_remove(name);
    }
    let output =
        running.args(command.split(' ').skip(1)).current_dir(folder).output().expect("the program runs");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn every_drawing_has_a_title_and_needs_no_other_file() {
    let drawings = files(&root().join("docs/images"), "svg");
    assert!(drawings.len() >= 2, "{drawings:?}");
    for drawing in drawings {
        let text = fs::read_to_string(&drawing).expect("a drawing").replace("http://www.w3.org/2000/svg", "");
        assert!(text.contains("<title"), "{} has no title", drawing.display());
        for outside in ["http:", "https:", "@import", "@font-face", "<script", "<image"] {
            assert!(!text.contains(outside), "{} has {outside}", drawing.display());
        }
    }
}

#[test]
fn the_readme_is_short_and_has_a_picture_and_a_recording() {
    let readme = Page::read(&root().join("README.md"));
    let lines = readme.text.lines().count();
    assert!(lines <= 200, "the README has {lines} lines, more than 200");
    for image in ["docs/images/review.svg", "docs/images/explain.svg"] {
        assert!(readme.links.iter().any(|link| link == image), "the README does not show {image}");
    }
}

//! `release/agents`, which compares the default images with those of an operator's release.

use std::{fs, process::Command};

use otel_webhook_api::images;
use tempfile::tempdir;

const IMAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/api/src/images.rs");

/// As the file of the operator, with our own versions.
fn versions() -> String {
    let own = [
        images::JAVA,
        images::NODEJS,
        images::PYTHON,
        images::DOTNET,
        images::GO,
        images::APACHE_HTTPD,
        images::NGINX,
    ];
    let line = |image: &str| {
        let (agent, version) = image.rsplit_once('/').and_then(|(_, tagged)| tagged.split_once(':'))?;
        Some(format!("{agent}={version}\n"))
    };
    own.map(|image| line(image).expect("a default image has a tag")).concat()
}

/// Returns whether it succeeded, and what it printed.
fn compare(args: &[&str], versions: &str, images: &str) -> (bool, String) {
    let folder = tempdir().expect("a folder");
    let file = folder.path().join("versions.txt");
    fs::write(&file, versions).expect("its own file");
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/release/agents"))
        .args(args)
        .arg(file)
        .arg(images)
        .output()
        .expect("bash is there");
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(printed).expect("text"))
}

#[test]
fn equal_versions_differ_in_nothing() {
    assert_eq!(compare(&[], &versions(), IMAGES), (true, String::new()));
}

#[test]
fn newer_versions_are_printed_and_written_without_the_old_digest() {
    let digest = format!("{}@sha256:{}", images::GO, "0".repeat(64));
    let own = fs::read_to_string(IMAGES).expect("the source").replace(images::GO, &digest);
    let folder = tempdir().expect("a folder");
    let file = folder.path().join("images.rs");
    fs::write(&file, &own).expect("its own file");
    let tagged = |image: &str| image.rsplit_once(':').map(|(_, tag)| tag.to_owned()).expect("a tag");
    let (java, go) = (tagged(images::JAVA), tagged(images::GO));
    let newer = versions().replace(&format!("-java={java}"), "-java=99.0.0");
    let newer = newer.replace(&format!("-go={go}"), "-go=v99.0.0-alpha");
    let lines = format!("java: {java} -> 99.0.0\ngo: {go}@sha256:{} -> v99.0.0-alpha\n", "0".repeat(64));
    let path = file.to_str().expect("text");
    assert_eq!(compare(&[], &newer, path), (true, lines.clone()));
    assert_eq!(fs::read_to_string(&file).expect("the copy"), own);
    assert_eq!(compare(&["--write"], &newer, path), (true, lines));
    let expected = own.replace(&digest, &images::GO.replace(&go, "v99.0.0-alpha"));
    let expected = expected.replace(&format!("-java:{java}"), "-java:99.0.0");
    assert_eq!(fs::read_to_string(&file).expect("the copy"), expected);
}

#[test]
fn a_version_that_is_missing_is_an_error_that_names_it() {
    let some: String =
        versions().lines().filter(|line| !line.contains("-python=")).collect::<Vec<_>>().join("\n");
    let (is_compared, printed) = compare(&[], &some, IMAGES);
    assert!(!is_compared);
    assert!(
        printed.contains("autoinstrumentation-python=\"\" is not a tag; expected a line such as"),
        "{printed}"
    );
}

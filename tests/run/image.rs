//! The image that the Dockerfile makes: no shell, and not root.

use crate::unique;
use otel_webhook_testkit::containers::podman::{both, build_product, podman};
use otel_webhook_testkit::until::poll;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// In bytes. What a node has to pull before the first pod can be injected. Some 2 MB are the validator of
/// `spec.declarativeConfig` with its regular expressions.
const LARGEST: u64 = 17_000_000;

#[test]
fn the_image_serves_reviews_without_root_and_without_anything_else() {
    let tag = format!("localhost/{}:1", unique("otel-webhook-image"));
    build_product(&tag);
    let _image = Removed(["rmi", "--force"], tag.clone());
    let inspected = both(&podman(&["inspect", "--format", "{{.Config.User}} {{.Size}}", &tag]));
    let (user, size) = inspected.trim().split_once(' ').expect("a user and a size");
    assert_eq!(user, "65532:65532");
    let size: u64 = size.parse().expect("a number of bytes");
    assert!(size <= LARGEST, "the image has {size} bytes, more than {LARGEST}");

    let name = unique("otel-webhook-container");
    let _container = Removed(["rm", "--force"], name.clone());
    let instrumentations = format!("{ROOT}/examples:/instrumentations:ro");
    let how =
        ["--detach", "--network", "none", "--read-only", "--read-only-tmpfs=false", "--cap-drop", "all"];
    let what = ["serve", "--tls-self-signed", "--source", "/instrumentations", "--listen", "127.0.0.1:9443"];
    let started = podman(
        &[&["run", "--name", &name][..], &how, &["--volume", &instrumentations, &tag], &what].concat(),
    );
    assert!(started.status.success(), "{}", both(&started));
    let ask = ["exec", &name, "/otel-webhook", "check", "--review", "https://localhost:9443/mutate-v1-pod"];
    let mut said = String::new();
    let answered = poll(|| {
        let asked = podman(&ask);
        said = both(&asked);
        asked.status.success().then_some(())
    });
    assert!(answered.is_some() && said.contains("/mutate-v1-pod: responded correctly"), "{said}");

    let shell = podman(&["exec", &name, "/bin/sh", "-c", "true"]);
    assert!(both(&shell).contains("no such file or directory"), "{}", both(&shell));
}

/// What podman removes when this is dropped.
struct Removed([&'static str; 2], String);

impl Drop for Removed {
    /// Never panics: it also runs while a test that failed is unwinding.
    fn drop(&mut self) {
        let [command, flag] = self.0;
        podman(&[command, flag, &self.1]);
    }
}

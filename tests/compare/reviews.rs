//! Captured reviews, sent to both programs over HTTPS.

use std::{path::Path, process::Command};

use base64::{Engine, prelude::BASE64_STANDARD};
use otel_webhook_testkit::load::{material, sender::Sender, server::Server};
use serde_json::{Value, json};

use crate::{Programs, status::comparable};

/// Reviews of pods, as an API server sent them.
const CAPTURED: [&str; 5] =
    ["bare-pod-create", "deployment-pod-create", "job-pod-create", "pod-update", "statefulset-pod-create"];

/// What came of it.
pub struct Reviews {
    /// How many reviews both programs answered.
    pub compared: usize,
    /// Those that were answered in another way.
    pub differences: Vec<String>,
}

/// Sends each review to both programs.
pub fn compare(programs: &Programs) -> Reviews {
    let folder = tempfile::tempdir().expect("a folder");
    let [old, new] = [&programs.old, &programs.new].map(|program| answers(program, folder.path()));
    let pairs = CAPTURED.iter().zip(old.iter().zip(&new));
    let differing = pairs.filter(|(_, (old, new))| old != new);
    let differences =
        differing.map(|(name, (old, new))| format!("{name}\n  old {old}\n  new {new}")).collect();
    Reviews { compared: old.len().min(new.len()), differences }
}

/// The answers of a program, each with the pod as it is then.
fn answers(program: &str, folder: &Path) -> Vec<Value> {
    let server = Server::of_objects(Command::new(program), folder, &[material::instrumentation()]);
    let reviews = CAPTURED.map(material::captured);
    let bodies = reviews.clone().map(|review| review.to_string().into_bytes());
    let mut sender = Sender::new(server.address, 1, &bodies).expect("a connection");
    let answers = reviews.iter().map(|review| {
        let body = sender.ask().expect("an answer");
        let mut answer: Value = serde_json::from_slice(&body).expect("an AdmissionReview");
        let mut pod = review["request"]["object"].clone();
        if let Some(patch) = answer["response"]["patch"].take().as_str() {
            let patch = BASE64_STANDARD.decode(patch).expect("base64");
            let patch: json_patch::Patch = serde_json::from_slice(&patch).expect("operations");
            json_patch::patch(&mut pod, &patch).expect("the patch applies");
        }
        json!({"answer": answer, "pod": comparable(pod)})
    });
    answers.collect()
}

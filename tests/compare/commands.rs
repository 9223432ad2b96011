//! Cases for the command line: the corpus, and generated pods.

use std::{
    io::Write,
    process::{Command, Stdio},
    thread,
};

use otel_webhook_testkit::{
    conformance::{injection_cases, languages},
    generated::pods::{NAMESPACE, generate},
};
use serde_json::Value;

use crate::{Programs, status::comparable};

/// As many generated pods as the corpus is to be complemented by.
const GENERATED: u64 = 10_000;

/// A stream of documents, the pod last.
pub struct Case {
    name: String,
    namespace: String,
    languages: String,
    documents: Vec<Value>,
}

/// Every case.
pub fn cases() -> Vec<Case> {
    let corpus = injection_cases();
    let corpus = corpus.iter().map(of_corpus);
    corpus.chain((0..GENERATED).map(generated)).collect()
}

fn of_corpus(case: &Value) -> Case {
    let lists = ["instrumentations", "objects"].into_iter();
    let lists = lists.flat_map(|list| case[list].as_array().cloned().unwrap_or_default());
    let documents = [case["namespace"].clone()].into_iter().chain(lists).chain([case["pod"].clone()]);
    Case {
        name: case["id"].to_string(),
        namespace: case["requestNamespace"].as_str().expect("a namespace").to_owned(),
        languages: languages(case).names(),
        documents: documents.filter(|document| !document.is_null()).collect(),
    }
}

fn generated(seed: u64) -> Case {
    let generated = generate(seed);
    Case {
        name: format!("generated pod {seed}"),
        namespace: NAMESPACE.to_owned(),
        languages: "all".to_owned(),
        documents: vec![generated.instrumentation, generated.pod],
    }
}

/// What a command came to.
#[derive(Debug, PartialEq)]
struct Outcome {
    code: Option<i32>,
    documents: Vec<Value>,
}

impl Case {
    /// What the two programs do not agree about.
    pub fn difference(&self, programs: &Programs) -> Option<String> {
        let inject =
            ["inject", "-f", "-", "-n", &self.namespace, "-o", "json", "--languages", &self.languages];
        let validate = ["validate", "-f", "-", "-o", "json"];
        let input: Vec<_> = self.documents.iter().map(Value::to_string).collect();
        let input = input.join("\n---\n");
        let all = [
            (&inject[..], Documents::Compared),
            // The verdicts are texts for people.
            (&validate[..], Documents::Ignored),
        ];
        all.into_iter().find_map(|(arguments, documents)| {
            let [old, new] =
                [&programs.old, &programs.new].map(|program| run(program, arguments, &input, documents));
            (old != new).then(|| format!("{}: {arguments:?}\n  old {old:?}\n  new {new:?}", self.name))
        })
    }
}

/// Whether the documents of a command are compared.
#[derive(Clone, Copy, PartialEq)]
enum Documents {
    Compared,
    Ignored,
}

fn run(program: &str, arguments: &[&str], input: &str, documents: Documents) -> Outcome {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{program}: {error}"));
    let mut stdin = child.stdin.take().expect("a pipe");
    let output = thread::scope(|scope| {
        // A program that has seen enough closes its end.
        scope.spawn(move || stdin.write_all(input.as_bytes()).unwrap_or_default());
        child.wait_with_output().expect("the program runs")
    });
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let parsed = lines.map(|line| comparable(serde_json::from_slice(line).unwrap_or_default()));
    let documents = if documents == Documents::Compared { parsed.collect() } else { Vec::new() };
    Outcome { code: output.status.code(), documents }
}

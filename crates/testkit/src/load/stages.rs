//! What is done with a review, step by step and as a whole.

use otel_webhook_api::{ANNOTATION_PREFIX, defaults::DefaultImages};
use otel_webhook_inject as inject;
use otel_webhook_inject::{Decision, Input, Outcome, Settings, language::LanguageSet, pod::Pod};
use otel_webhook_review::{AdmissionRequest, AdmissionResponse, Panicked};
use serde_json::Value;

use super::material;
use crate::known::Known;

/// The languages in the order in which pods of several ask for them.
const LANGUAGES: [&str; 8] = ["java", "nodejs", "python", "dotnet", "sdk", "go", "apache-httpd", "nginx"];

/// Answers reviews as the program does, without a server around it.
pub type Answer = Box<dyn Fn(&[u8]) -> Vec<u8>>;

/// Makes the program's handling of reviews with these objects stored. A bench passes it.
pub type Program = fn(&[Value], Settings) -> Answer;

/// A review, and what is known when it comes.
pub struct Case {
    /// The review.
    pub body: Vec<u8>,
    known: Known,
    settings: Settings,
    program: Answer,
}

impl Case {
    /// A review with these objects stored.
    pub fn new(program: Program, review: &Value, objects: &[Value]) -> Self {
        let known = Known::of(objects, &DefaultImages::default());
        let body = serde_json::to_vec(review).expect("JSON");
        Self { body, known, settings: settings(), program: program(objects, settings()) }
    }

    /// A review with the one Instrumentation that belongs to it.
    pub fn usual(program: Program, review: &Value) -> Self {
        Self::new(program, review, &[material::instrumentation()])
    }

    /// First step: from bytes to the view of the pod.
    pub fn parse(body: &[u8]) -> AdmissionRequest<'_> {
        AdmissionRequest::parse(body).expect("a review")
    }

    /// Second step: which agent goes into which container.
    pub fn decide<'p>(&'p self, request: &'p AdmissionRequest<'p>) -> Decision<'p> {
        let catalogue = &self.known.catalogue;
        let pod = pod(request);
        inject::decide(Input { pod, namespace: &request.namespace, catalogue, settings: &self.settings })
    }

    /// Third step: the edits, as a patch.
    pub fn build(&self, decision: Decision<'_>) -> Outcome {
        inject::build(decision, &self.known.owners)
    }

    /// Last step: the answer as bytes.
    pub fn serialise(request: &AdmissionRequest<'_>, outcome: &Result<Outcome, Panicked>) -> Vec<u8> {
        AdmissionResponse::of(&request.uid, outcome).write()
    }

    /// All of it, with its metrics, as the server does.
    pub fn answer(&self) -> Vec<u8> {
        (self.program)(&self.body)
    }

    /// What came of it, a line each.
    fn findings(&self) -> Vec<String> {
        let request = Self::parse(&self.body);
        let outcome = self.build(self.decide(&request));
        outcome.findings.iter().map(ToString::to_string).collect()
    }
}

fn pod<'p>(request: &'p AdmissionRequest<'p>) -> &'p Pod<'p> {
    request.pod.as_ref().expect("a pod")
}

/// A case that is measured as a whole.
pub struct Whole {
    /// What varies in its group.
    pub group: &'static str,
    /// Its name in the group.
    pub name: String,
    make: Box<dyn Fn(Program) -> Case>,
    injections: usize,
}

impl Whole {
    /// The case, once it was seen that what is measured is no refusal.
    pub fn case(&self, program: Program) -> Case {
        let case = (self.make)(program);
        let findings = case.findings();
        let injected = findings.iter().filter(|finding| finding.ends_with(": injected")).count();
        assert_eq!(injected, self.injections, "{} {}: {findings:?}", self.group, self.name);
        case
    }
}

/// The cases that are measured as a whole.
pub fn wholes() -> Vec<Whole> {
    let mut all = Vec::new();
    let mut add = |group, name: &str, injections, make: Box<dyn Fn(Program) -> Case>| {
        all.push(Whole { group, name: name.to_owned(), make, injections });
    };
    add("pod", "small", 1, Box::new(|program| Case::usual(program, &small())));
    add("pod", "captured", 1, Box::new(|program| Case::usual(program, &material::usual())));
    for (containers, targets) in [(50, 1), (100, 1), (50, 50), (100, 100)] {
        let make = move |program| Case::usual(program, &material::of_containers(containers, targets));
        add("pod", &format!("{containers} containers, {targets} injected"), targets, Box::new(make));
    }
    for count in [0, 1, 2, 8] {
        let make = move |program| Case::usual(program, &of_languages(count));
        add("languages", &count.to_string(), count.min(MOST_LANGUAGES), Box::new(make));
    }
    for (how, make) in STORED {
        for count in [1, 100, 10_000] {
            add(how, &count.to_string(), 1, Box::new(move |program| make(program, count)));
        }
    }
    all
}

/// Makes a case of so many Instrumentations.
type Make = fn(Program, usize) -> Case;

/// As many languages as fit into the captured pod: it must not run as root, as Go's sidecar would, and both web servers'
/// agents would have a container of the same name.
const MOST_LANGUAGES: usize = 6;

/// How the one of many Instrumentations is found.
const STORED: [(&str, Make); 4] = [
    ("Instrumentations, by name", by_name),
    ("Instrumentations, by selector", by_selector),
    ("Instrumentations, one a namespace", by_namespace),
    ("Instrumentations, opting in", opting_in),
];

/// All in the pod's namespace, none with a selector; the pod names the one in the middle.
fn by_name(program: Program, count: usize) -> Case {
    let name = |index: usize| format!("inst-{index:05}");
    let objects =
        (0..count).map(|index| material::instrumentation_of(material::NAMESPACE, &name(index), None));
    Case::new(program, &naming(&name(count / 2)), &objects.collect::<Vec<_>>())
}

/// All in the pod's namespace, each for another app.
fn by_selector(program: Program, count: usize) -> Case {
    let objects = (0..count).map(|index| {
        let app = if index == count / 2 { "order".to_owned() } else { format!("app-{index:05}") };
        material::instrumentation_of(material::NAMESPACE, &format!("inst-{index:05}"), Some(("app", &app)))
    });
    Case::new(program, &material::usual(), &objects.collect::<Vec<_>>())
}

/// All in the pod's namespace, and all opt in by their selectors.
fn opting_in(program: Program, count: usize) -> Case {
    Case::new(program, &material::silent(), &material::opting_in(count))
}

/// One in each namespace.
fn by_namespace(program: Program, count: usize) -> Case {
    let objects = (0..count).map(|index| {
        let other = format!("namespace-{index:05}");
        let namespace = if index == count / 2 { material::NAMESPACE } else { &other };
        material::instrumentation_of(namespace, "inst", None)
    });
    Case::new(program, &material::usual(), &objects.collect::<Vec<_>>())
}

/// A review of 2.9 KB as an API server sent it: one container, nothing set.
pub fn small() -> Value {
    material::captured("bare-pod-create")
}

/// The usual review of a pod that asks for the first so many languages.
fn of_languages(count: usize) -> Value {
    let mut review = material::usual();
    let object = &mut review["request"]["object"];
    object["metadata"]["annotations"]
        .as_object_mut()
        .expect("annotations")
        .retain(|key, _| !key.starts_with(ANNOTATION_PREFIX));
    for language in &LANGUAGES[..count] {
        material::annotate(object, &format!("inject-{language}"), "true");
        // The variables alone find nothing left to add where another language went in.
        let target = if *language == "sdk" { "envoy" } else { material::TARGET };
        let list = if *language == "nginx" { "inject-nginx".to_owned() } else { language.to_string() };
        material::annotate(object, &format!("{list}-container-names"), target);
    }
    material::annotate(object, "otel-go-auto-target-exe", "/app/order");
    review
}

/// The usual review of a pod that names its Instrumentation.
fn naming(name: &str) -> Value {
    let mut review = material::usual();
    material::annotate(&mut review["request"]["object"], "inject-java", name);
    review
}

/// The webhook's settings with every language on.
fn settings() -> Settings {
    Settings { languages: LanguageSet::all(), ..Settings::default() }
}

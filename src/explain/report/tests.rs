//! Tests of the report's text and JSON.

use super::*;
use otel_webhook_inject::{Finding, reason::Reason};
use otel_webhook_store::unread::Unsure;
use otel_webhook_testkit::reports::failure;

const IMAGE: &str = "registry.example.com/java:2";

fn agent(state: State, image: &str) -> (Agent, State) {
    let agent = Agent {
        language: "java",
        by: By::Webhook,
        instrumentation: Some("shop/default".into()),
        hash: None,
        image: Some(image.into()),
    };
    (agent, state)
}

fn pod(name: &str, agents: Vec<(Agent, State)>) -> PodRow {
    PodRow { name: name.to_owned(), agents, skipped: Vec::new(), message: None }
}

fn injected() -> Explained {
    let finding = Finding {
        language: "java",
        agent: None,
        container: Some("app".to_owned()),
        instrumentation: None,
        reason: Reason::Injected,
        notes: Vec::new(),
    };
    let added = Added { kind: Kind::Init, name: "agent".to_owned(), image: IMAGE.to_owned() };
    Explained {
        lines: vec![Line::of(&finding, &std::collections::BTreeMap::new())],
        is_reviewed: Some(true),
        injected: vec!["java"],
        added: vec![added],
        pods: Some(Vec::new()),
        ..Explained::new(Subject::new("Deployment", "shop", "order"))
    }
}

fn text(explained: Explained, caveats: &[&str]) -> String {
    let caveats = caveats.iter().map(|caveat| (*caveat).to_owned()).collect();
    Answer { workloads: vec![explained], caveats, languages: "java,go".to_owned() }.text()
}

#[test]
fn what_fails_has_the_kubelets_message_the_remedy_and_the_end_of_the_log() {
    let failing =
        |code, is_counted, log| Failing { row: failure("java", "app", code, is_counted), run: None, log };
    let failing = [
        failing("AgentSuspected", true, Some(Ok("one\u{1b}[31m\ntwo\n".to_owned()))),
        failing("CauseUnknown", false, Some(Err("not readable by you".to_owned()))),
        failing("ImagePullBackOff", true, None),
    ];
    let object = failing[1].object();
    assert_eq!((&object["log"], &object["logProblem"]), (&json!(null), &json!("not readable by you")));
    assert_eq!((&object["code"], &object["isCounted"]), (&json!("CauseUnknown"), &json!(false)));
    let explained = Explained { failing: failing.into(), ..injected() };
    let text = text(explained, &[]);
    let expected = [
        "  failing: 2 (order-1): AgentSuspected of container app: what it means (<said>\\nby a kubelet)",
        "    what to do",
        "    the end of its log:",
        "      one\\u{1b}[31m",
        "      two",
        "  failing, not known to be because of the agent: 2 (order-1): CauseUnknown of container app: what it means (<said>\\nby a kubelet)",
        "    what to do",
        "    its log: not readable by you",
        "  failing: 2 (order-1): ImagePullBackOff of container app: what it means (<said>\\nby a kubelet)",
        "    what to do",
    ];
    let lines: Vec<_> = text.lines().collect();
    let start = lines.iter().position(|line| line.starts_with("  failing")).expect("what fails");
    assert_eq!(lines[start..start + expected.len()], expected, "{text}");
}

#[test]
fn a_new_pod_is_above_the_running_ones_in_groups_of_the_same_state() {
    let current = || vec![agent(State::Injected, IMAGE)];
    let message = Some("java: there is no Instrumentation".to_owned());
    let skipped = vec![("java".to_owned(), "NoInstrumentation".to_owned())];
    let operator = Agent { by: By::Operator, instrumentation: None, image: None, ..current().remove(0).0 };
    let pods = vec![
        pod("a", current()),
        PodRow { skipped, message, ..pod("b", Vec::new()) },
        pod("c", current()),
        pod("d", vec![agent(State::Stale, "registry.example.com/java:1")]),
        pod("e", vec![(operator, State::Foreign)]),
        pod("f", current()),
        pod("g", current()),
    ];
    let explained = Explained { pods: Some(pods), remedy: Some("kubectl …".to_owned()), ..injected() };
    let expected = "\
warning: Service a/b not found
warning: a second one

Deployment/order in namespace shop
  CONTAINER  LANGUAGE  OUTCOME   INSTRUMENTATION  REASON
  app        java      Injected  -                injected
  adds init container agent, image registry.example.com/java:2
  running pods: 7
    4 (a, c, f, …): java injected by shop/default
    1 (b): not injected; java was skipped (NoInstrumentation); when it was created: java: there is no Instrumentation
    1 (d): java injected by shop/default, with an earlier configuration, image registry.example.com/java:1
    1 (e): java injected by the operator, or by the webhook without its status annotation
  to inject as into new pods: kubectl …
";
    assert_eq!(text(explained, &["Service a/b not found", "a second one"]), expected);
}

#[test]
fn without_a_result_the_reason_is_said() {
    let empty = || Explained { lines: Vec::new(), added: Vec::new(), ..injected() };
    let silent = text(empty(), &[]);
    assert!(silent.contains("does not opt in; to opt in, set the annotation"), "{silent}");
    assert!(silent.contains("(enabled languages: java,go)") && silent.ends_with("running pods: none\n"));
    let unread = Explained { unread: Some(Missing::Namespace("shop".to_owned())), pods: None, ..empty() };
    let said = "  whether a new pod opts in is unknown, since the annotations of namespace \"shop\" are not readable \
                by you (get namespaces shop)\n  running pods: not readable by you\n";
    assert!(text(unread, &[]).ends_with(said));
    let creator = Some("SparkApplication/pi".to_owned());
    let hidden =
        text(Explained { creator, problem: Some("it has no pod template".to_owned()), ..empty() }, &[]);
    assert!(hidden.contains("  created by SparkApplication/pi; its template is not read"), "{hidden}");
    assert!(hidden.contains("\n  it has no pod template\n"), "{hidden}");
}

#[test]
fn a_language_without_review_or_with_an_unknown_result_is_not_called_injected() {
    let missing = Missing::Instrumentations("ta".to_owned());
    let unknown =
        Line::unknown(&Unsure { language: "go", missing }).without_review("no configuration selects it");
    let finding = Finding {
        language: "nodejs",
        agent: None,
        container: None,
        instrumentation: None,
        reason: Reason::NoInstrumentation { namespace: "shop".to_owned(), advice: "create one" },
        notes: Vec::new(),
    };
    let nodejs = Line::of(&finding, &std::collections::BTreeMap::new());
    let mut explained = injected();
    let java = explained.lines.remove(0).without_review("no configuration selects it");
    explained.lines = vec![java, unknown, nodejs.without_review("no configuration selects it")];
    let object = explained.object(&[]);
    let findings = object["findings"].as_array().expect("a list");
    let of = |index: usize| (findings[index]["outcome"].clone(), findings[index]["reason"].clone());
    assert_eq!(of(0), (json!("NotReviewed"), json!("no configuration selects it")));
    let reason =
        "the Instrumentations of namespace \"ta\" are not readable by you (list instrumentations in ta)";
    assert_eq!(of(1), (json!("NotReadable"), json!(reason)));
    let (outcome, reason) = of(2);
    let reason = reason.as_str().expect("a text");
    assert_eq!(outcome, "NotReviewed");
    assert!(reason.starts_with("no configuration selects it; after that, NoInstrumentation: "), "{reason}");
}

//! Large objects: which are not used, and what is kept of the others.

use otel_webhook_inject::{
    self as inject, Input, Outcome, Settings, catalogue::NamespaceLabels, pod::Pod, reason::ObjectName,
    size::SizeLimits,
};
use otel_webhook_testkit::objects::{NAMESPACE, asking};
use serde_json::{Value, json};

use super::{Following, Listing, Server, Sources, account, until, until_later};
use crate::logs::Log;

const KIB: usize = 1024;

/// A page of a list.
pub fn page(items: &[Value], query: &str) -> Value {
    let number = |name: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(key, _)| *key == name).and_then(|(_, value)| value.parse::<usize>().ok())
    };
    let (first, most) = (number("continue").unwrap_or(0), number("limit").unwrap_or(items.len()));
    let next = (first + most).min(items.len());
    let more = (next < items.len()).then(|| next.to_string());
    json!({
        "apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1", "continue": more},
        "items": items[first..next],
    })
}

/// An Instrumentation with a specification of this size.
fn sized(name: &str, size: usize) -> Value {
    let of = |value: String| json!({"env": [{"name": "A", "value": value}]});
    let spec = of("a".repeat(size - of(String::new()).to_string().len()));
    assert_eq!(spec.to_string().len(), size);
    let metadata = json!({
        "namespace": NAMESPACE, "name": name, "resourceVersion": "2",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": spec.to_string()},
        "managedFields": [{"fieldsV1": {"f:spec": {}}}],
    });
    json!({"metadata": metadata, "spec": spec})
}

/// What comes of a pod that names the Instrumentation.
fn named(following: &Following, name: &str) -> String {
    let snapshot = following.store.snapshot();
    let mut pod = asking(&["java"], json!({}));
    pod["metadata"]["annotations"]["instrumentation.opentelemetry.io/inject-java"] = name.into();
    let (text, settings) = (pod.to_string(), Settings::default());
    let pod = Pod::parse(&text).expect("a pod");
    let input =
        Input { pod: &pod, namespace: NAMESPACE, catalogue: &snapshot.catalogue, settings: &settings };
    let outcome: Outcome = inject::build(inject::decide(input), &snapshot.owners);
    outcome.findings[0].reason.to_string()
}

#[tokio::test]
async fn an_instrumentation_that_is_too_large_is_not_used_and_logged_once() {
    let log = Log::default();
    let _logging = log.keep();
    let server = Server::empty();
    let items = vec![sized("large", 1_300 * KIB), sized("most", 128 * KIB), sized("more", 128 * KIB + 1)];
    server.list("instrumentations", Listing::Items(items));
    let following = server.follow();
    following.ready().await;
    let problem = |size: &str| {
        format!("spec: its JSON has {size}, and the maximum is 128Ki (--max-instrumentation-size)")
    };
    let reason =
        |name: &str, size: &str| format!("Instrumentation \"shop/{name}\" cannot be used: {}", problem(size));
    assert_eq!(named(&following, "large"), reason("large", "1.3Mi"));
    assert_eq!(named(&following, "more"), reason("more", "128.1Ki"));
    assert_eq!(named(&following, "most"), "injected");

    server.tell("instrumentations", "MODIFIED", &sized("large", 1_300 * KIB)).await;
    server.tell("instrumentations", "MODIFIED", &sized("more", KIB)).await;
    until(|| (named(&following, "more") == "injected").then_some(())).await;
    let text = log.text();
    let lines: Vec<_> = text.lines().filter(|line| line.contains("unusable Instrumentation")).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    let large = lines.iter().find(|line| line.contains("shop/large")).expect("one of them");
    assert!(large.contains("WARN") && large.contains(&problem("1.3Mi")), "{large}");
}

/// The same, of a namespace and created in a year.
fn aged(namespace: &str, name: &str, year: u16) -> Value {
    let mut object = sized(name, 6 * KIB);
    object["metadata"]["namespace"] = namespace.into();
    object["metadata"]["creationTimestamp"] = format!("{year}-01-01T00:00:00Z").into();
    object
}

/// Two of them fit into the memory of all.
#[tokio::test(start_paused = true)]
async fn namespaces_share_the_memory_and_the_oldest_are_used() {
    let log = Log::default();
    let _logging = log.keep();
    let server = Server::empty();
    let of_shop = [aged(NAMESPACE, "a", 2026), aged(NAMESPACE, "b", 2024), aged(NAMESPACE, "c", 2025)];
    server.list("instrumentations", Listing::Items(of_shop.to_vec()));
    let limits = SizeLimits { all: 20 * KIB as u64, ..SizeLimits::default() };
    let following = server.follow_with(limits, Sources::default());
    following.ready().await;
    let reason = |name: &str| {
        format!(
            "Instrumentation \"shop/{name}\" cannot be used: spec: the Instrumentations of its namespace need more memory \
             than their share of 20Ki (--max-instrumentations-total), and the oldest are used first; remove or shorten \
             some of them"
        )
    };
    let injected = || "injected".to_owned();
    let outcomes = || ["a", "b", "c"].map(|name| named(&following, name));
    assert_eq!(outcomes(), [reason("a"), injected(), injected()]);

    server.tell("instrumentations", "ADDED", &aged("other", "d", 2026)).await;
    until(|| (outcomes() == [reason("a"), injected(), reason("c")]).then_some(())).await;
    assert_eq!(server.listed("instrumentations"), 1);

    server.tell("instrumentations", "DELETED", &aged("other", "d", 2026)).await;
    until_later(|| (outcomes() == [reason("a"), injected(), injected()]).then_some(())).await;
    assert_eq!(server.listed("instrumentations"), 2, "only the list has those that are not used");
    let text = log.text();
    let lines: Vec<_> = text.lines().filter(|line| line.contains("unusable Instrumentation")).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
}

#[tokio::test]
async fn only_large_objects_are_listed_in_small_pages() {
    let server = Server::empty();
    let names: Vec<_> = (0..45).map(|number| format!("i-{number:02}")).collect();
    let large = names.iter().map(|name| sized(name, 100 * KIB)).collect();
    server.list("instrumentations", Listing::Items(large));
    let accounts = (0..1_201).map(|number| account(&format!("a-{number}"), true));
    server.list("serviceaccounts", Listing::Items(accounts.collect()));
    let following = server.follow();
    following.ready().await;
    let pages = |plural: &str| server.state().pages[plural].clone();
    // The first page has 9 MB, and is not read to its end. Nor is the one of 31.
    assert_eq!(pages("instrumentations"), [45, 45, 31, 7, 14, 14, 10]);
    assert_eq!(pages("serviceaccounts"), [500, 500, 201]);
    let snapshot = following.store.snapshot();
    let known = snapshot.catalogue.namespace(NAMESPACE).expect("known");
    let known: Vec<_> = known.instrumentations.iter().map(|stored| stored.name().clone()).collect();
    let all = names.iter().map(|name| ObjectName { namespace: NAMESPACE.into(), name: name.as_str().into() });
    assert!(known.into_iter().eq(all));
}

#[tokio::test]
async fn of_a_namespace_only_what_is_used_is_kept() {
    let server = Server::empty();
    let mut namespace = json!({"metadata": {"name": NAMESPACE, "resourceVersion": "2"}});
    for number in 0..1_000 {
        namespace["metadata"]["annotations"][format!("instrumentation.opentelemetry.io/a-{number}")] =
            "true".into();
        namespace["metadata"]["labels"][format!("team-{number}")] = "a".into();
    }
    namespace["metadata"]["annotations"]["instrumentation.opentelemetry.io/inject-java"] = "true".into();
    namespace["metadata"]["annotations"]["openshift.io/sa.scc.uid-range"] = "1000650000/10000".into();
    namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "baseline".into();
    namespace["metadata"]["labels"]["instrumentation.opentelemetry.io/inject-go"] = "inst".into();
    server.list("namespaces", Listing::Items(vec![namespace]));
    let following = server.follow();
    following.ready().await;
    let snapshot = following.store.snapshot();
    let known = snapshot.catalogue.namespace(NAMESPACE).expect("known");
    let annotations: Vec<_> = known.annotations.iter().map(|(key, value)| (&**key, &**value)).collect();
    assert_eq!(annotations, [("inject-java", "true")]);
    assert_eq!(known.enforced_level.as_deref(), Some("baseline"));
    assert_eq!(known.first_user, Some(1_000_650_000));
    let opt_in: Vec<_> = known.opt_in_labels.iter().map(|(key, value)| (&**key, &**value)).collect();
    assert_eq!(opt_in, [("inject-go", "inst")]);
    assert_eq!(
        known.labels,
        NamespaceLabels::default(),
        "without a default Instrumentation none is selected"
    );
}

#[tokio::test]
async fn one_that_cannot_be_parsed_does_not_hide_the_others() {
    let server = Server::empty();
    let mut deep = sized("deep", KIB);
    for _ in 0..200 {
        deep["spec"] = json!([deep["spec"].take()]);
    }
    server.list("instrumentations", Listing::Items(vec![deep, sized("other", KIB)]));
    let following = server.follow();
    following.ready().await;
    let reason = named(&following, "deep");
    assert!(reason.contains("cannot be used") && reason.contains("recursion limit exceeded"), "{reason}");
    assert_eq!(named(&following, "other"), "injected");
}

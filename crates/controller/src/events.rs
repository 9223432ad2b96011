//! Events on workloads with pods that lack an agent, have an old one, or fail because of it.
//!
//! An Event has a name that follows from the workload, the reason and the hour, so that two leaders make one.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
};

use jiff::Timestamp;
use k8s_openapi::{
    api::{coordination::v1::Lease, core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, PostParams},
};

use super::{mistakes::Mistaken, restarts::News, status::MANAGER, workloads::resource};
use otel_webhook_fleet::{
    mistakes::Finding,
    report::{FailureRow, LanguageRow, Report, WorkloadRow},
    silent::Likely,
    state::State,
    workload::Workload,
};
use otel_webhook_inject::{catalogue::Stored, reason::ObjectName};
use otel_webhook_store::{Snapshot, api_client::RequestBackoff};

/// How many Events are made each second at most.
const EACH_SECOND: usize = 2;

/// The same for those about failing pods, which come first.
const FAILING_EACH_SECOND: usize = 10;

/// The reason of an Event about pods that fail because of what injection added.
const FAILING: &str = "Failing";

/// The reason of an Event about an Instrumentation that cannot be used.
const NOT_USED: &str = "NotUsed";

/// How many wait, apart from those about failing pods. The rest wait for a later count.
const MOST: usize = 500;

/// Events to make.
pub struct Events {
    client: Client,
    known: HashSet<(Workload, &'static str)>,
    /// The Instrumentations of which is known that they are not used.
    unused: HashSet<ObjectName>,
    /// The mistakes of which Events are made, by their objects.
    mistaken: HashMap<Workload, String>,
    waiting: VecDeque<Pending>,
    backoff: RequestBackoff,
}

struct Pending {
    workload: Workload,
    reason: &'static str,
    note: String,
    /// Its API version and its UID, if they are known; else they are read.
    identity: Option<(String, String)>,
}

/// The reason of an Event about mistakes in the metadata of an object.
const MISTAKE: &str = "Mistake";

impl Events {
    /// Returns Events that are made with this client.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            known: HashSet::new(),
            unused: HashSet::new(),
            mistaken: HashMap::new(),
            waiting: VecDeque::new(),
            backoff: RequestBackoff::default(),
        }
    }

    /// Notes the workloads of which something is to be told that was not before.
    pub fn take(&mut self, report: &Report) {
        let mut known = HashSet::new();
        // Pods and Jobs get no Event.
        for row in report.workloads.iter().filter(|row| resource(&row.workload.kind).is_some()) {
            for (reason, note) in notes_of(row) {
                let key = (row.workload.clone(), reason);
                let told = Pending { workload: row.workload.clone(), reason, note, identity: None };
                let is_known = self.known.contains(&key);
                let has_room = self.waiting.len() < MOST;
                if !is_known && reason == FAILING {
                    self.waiting.push_front(told);
                } else if !is_known && has_room {
                    self.waiting.push_back(told);
                }
                // What has no room is told after a later count.
                if is_known || reason == FAILING || has_room {
                    known.insert(key);
                }
            }
        }
        self.known = known;
    }

    /// Notes the Instrumentations that cannot be used, and could before.
    pub fn take_unused(&mut self, snapshot: &Snapshot) {
        let mut unused = HashSet::new();
        for (name, head) in &snapshot.heads.instrumentations {
            let known = snapshot.catalogue.namespace(&name.namespace);
            let stored = known.and_then(|known| known.instrumentations.get(&name.name));
            let Some(Stored::Invalid { problem, .. }) = stored else { continue };
            let is_known = self.unused.contains(name);
            if !is_known && self.waiting.len() < MOST {
                let workload = Workload::new("Instrumentation", &name.namespace, &name.name);
                let note = format!("cannot be used: {problem}");
                self.waiting.push_back(Pending {
                    workload,
                    reason: NOT_USED,
                    note,
                    identity: Some((snapshot.version.api_version().to_owned(), head.uid.clone())),
                });
            } else if !is_known {
                continue;
            }
            unused.insert(name.clone());
        }
        self.unused = unused;
    }

    /// Notes the objects with mistakes of which no Event was made.
    pub fn take_mistakes(&mut self, all: &[Mistaken]) {
        let mut known = HashMap::new();
        for one in all {
            let Some(identity) = &one.identity else { continue };
            let note = note(&one.findings);
            let is_known = self.mistaken.get(&one.object) == Some(&note);
            if !is_known && self.waiting.len() >= MOST {
                continue;
            }
            if !is_known {
                let (workload, identity) = (one.object.clone(), Some(identity.clone()));
                self.waiting.push_back(Pending { workload, reason: MISTAKE, note: note.clone(), identity });
            }
            known.insert(one.object.clone(), note);
        }
        self.mistaken = known;
    }

    /// Notes that the source of what arrives is unavailable. The Lease stands for the controller.
    pub fn tell_of_source(&mut self, lease: &ObjectName, problem: &str) {
        let note = format!("whether data of injected pods arrives is not known: {problem}");
        let workload = Workload::new("Lease", &lease.namespace, &lease.name);
        self.waiting.push_back(Pending { workload, reason: "SourceUnavailable", note, identity: None });
    }

    /// Notes that the API server cannot convert Instrumentations. The Lease stands for the controller.
    pub fn tell_of_conversion(&mut self, lease: &ObjectName, problem: &str) {
        let note = format!(
            "Instrumentations cannot be read or written in every version; otel-webhook check prints what to do: {problem}"
        );
        let workload = Workload::new("Lease", &lease.namespace, &lease.name);
        self.waiting.push_back(Pending { workload, reason: "ConversionFailed", note, identity: None });
    }

    /// Notes what restarts tell.
    pub fn tell(&mut self, news: Vec<News>) {
        let told = news.into_iter().map(|News { workload, reason, note }| Pending {
            workload,
            reason,
            note,
            identity: None,
        });
        self.waiting.extend(told);
    }

    /// Makes some.
    pub async fn send(&mut self) {
        for number in 0..FAILING_EACH_SECOND {
            let is_due = |told: &mut Pending| number < EACH_SECOND || told.reason == FAILING;
            if !self.backoff.is_over() {
                return;
            }
            let Some(told) = self.waiting.pop_front_if(is_due) else { return };
            match self.make(&told).await {
                Ok(()) => self.backoff.succeed(),
                Err(error) => {
                    tracing::warn!(workload = told.workload.to_string(), %error, "an Event cannot be made");
                    self.backoff.fail(&error);
                    // A refused one would be refused again.
                    let is_refused =
                        matches!(&error, kube::Error::Api(status) if (400..429).contains(&status.code));
                    if !is_refused {
                        self.waiting.push_front(told);
                    }
                }
            }
        }
    }

    async fn make(&self, told: &Pending) -> Result<(), kube::Error> {
        let workload = &told.workload;
        let lease = || (workload.kind == "Lease").then(|| ApiResource::erase::<Lease>(&()));
        let (api_version, uid) = match (&told.identity, resource(&workload.kind).or_else(lease)) {
            (Some(identity), _) => identity.clone(),
            (None, None) => return Ok(()),
            (None, Some(kind)) => {
                let api: Api<DynamicObject> =
                    Api::namespaced_with(self.client.clone(), &workload.namespace, &kind);
                match api.get_opt(&workload.name).await?.and_then(|object| object.metadata.uid) {
                    Some(uid) => (kind.api_version, uid),
                    None => return Ok(()),
                }
            }
        };
        let events: Api<Event> = Api::namespaced(self.client.clone(), &workload.namespace);
        let event = event(told, api_version, uid, Timestamp::now());
        match events.create(&PostParams::default(), &event).await {
            // Made by another leader within the hour.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            made => made.map(drop),
        }
    }
}

/// Returns the mistakes of an object as one sentence.
fn note(findings: &[Finding]) -> String {
    let sentence = |one: &Finding| format!("{}: {}. To do: {}", one.code, one.message, one.remedy);
    findings.iter().map(sentence).collect::<Vec<_>>().join("; ")
}

/// Returns what is to be told of a workload: a reason, and a sentence.
fn notes_of(row: &WorkloadRow) -> Vec<(&'static str, String)> {
    let failure = row.failures.iter().find(|failure| failure.is_counted);
    let mut told: Vec<(&'static str, String)> =
        failure.map(|failure| (FAILING, failing(failure))).into_iter().collect();
    for language in &row.languages {
        let Some(reason) = reason(language) else { continue };
        let message = language.message.as_deref().unwrap_or_default();
        let count = language.pods.of(language.state);
        let note = format!(
            "{}: {count} of {} pods {}: {message}",
            language.language,
            language.pods.matched,
            verb(language.state)
        );
        match told.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, known)) => *known = format!("{known}; {note}"),
            None => told.push((reason, note)),
        }
    }
    let silent = row.languages.iter().filter_map(silent).collect::<Vec<_>>();
    if !silent.is_empty() {
        told.push(("Silent", silent.join("; ")));
    }
    told
}

fn silent(row: &LanguageRow) -> Option<String> {
    let data = row.data.as_ref().filter(|data| data.silent > 0)?;
    let since = data.since.map(|since| format!(" since {since:.0}")).unwrap_or_default();
    let cause = data.cause.as_ref().map(|Likely { cause, .. }| {
        let remedy = cause.remedy().map(|remedy| format!(". To do: {remedy}")).unwrap_or_default();
        format!(". Likely cause: {}: {cause}{remedy}", cause.code())
    });
    let cause = cause.unwrap_or_default();
    let (language, silent, all) = (row.language, data.silent, row.pods.matched);
    Some(format!("{language}: no data of {silent} of {all} pods arrives{since}{cause}"))
}

fn failing(failure: &FailureRow) -> String {
    let FailureRow { language, container, code, message, remedy, kubelet, pods, pod, .. } = failure;
    format!(
        "{language}: {pods} pods fail, such as {pod}: container {container}: {code}: {message}. To do: {remedy}. The kubelet \
         says: {kubelet}"
    )
}

fn reason(language: &LanguageRow) -> Option<&'static str> {
    match language.state {
        State::Missed => Some("Missed"),
        State::Stale => Some("Outdated"),
        State::Skipped => Some("NotInjected"),
        State::Injected | State::Foreign | State::Unconfirmed => None,
    }
}

fn verb(state: State) -> &'static str {
    match state {
        State::Missed => "run without the agent that a new pod would get",
        State::Stale => "have another agent than a new pod would get",
        _ => "are not injected",
    }
}

fn event(told: &Pending, api_version: String, uid: String, now: Timestamp) -> Event {
    /// In bytes. The API server rejects a note with more than 1024.
    const LONGEST: usize = 1000;
    let workload = &told.workload;
    let mut hasher = DefaultHasher::new();
    (&uid, told.reason, now.as_second() / 3600).hash(&mut hasher);
    if told.reason == MISTAKE {
        // Another mistake may be made while one is mended.
        told.note.hash(&mut hasher);
    }
    let mut name: String = workload.name.chars().take(200).collect();
    name.truncate(name.trim_end_matches(['.', '-']).len());
    let note = told.note[..told.note.floor_char_boundary(LONGEST)].to_owned();
    let is_restart = ["Restarted", "RestartStopped", "RestartRefused"].contains(&told.reason);
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{name}.{:016x}", hasher.finish())),
            namespace: Some(workload.namespace.clone()),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(now)),
        type_: Some(if told.reason == "Restarted" { "Normal" } else { "Warning" }.to_owned()),
        reason: Some(told.reason.to_owned()),
        action: Some(if is_restart { "Restart" } else { "Compare" }.to_owned()),
        note: Some(note),
        reporting_controller: Some(MANAGER.to_owned()),
        reporting_instance: Some(MANAGER.to_owned()),
        regarding: Some(ObjectReference {
            api_version: Some(api_version),
            kind: Some(workload.kind.clone()),
            namespace: Some(workload.namespace.clone()),
            name: Some(workload.name.clone()),
            uid: Some(uid),
            ..ObjectReference::default()
        }),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use hyper::{Request, Response};
    use kube::client::Body;
    use otel_webhook_api::{Version, defaults::DefaultImages};
    use otel_webhook_inject::size::SizeLimits;
    use otel_webhook_testkit::reports::{language, workload};
    use serde_json::json;

    use super::*;
    use otel_webhook_store::Writer;

    fn events() -> Events {
        let silent = |_: Request<Body>| std::future::pending::<Result<Response<Body>, std::io::Error>>();
        Events::new(Client::new(tower::service_fn(silent), "default"))
    }

    fn report(kind: &str, count: usize) -> Report {
        let row = |number: usize| {
            let reason = Some(("WebhookNotReached", "the webhook was not reached"));
            let name = format!("order-{number}");
            workload(kind, "shop", &name, vec![language("java", &[(State::Missed, 1)], reason)])
        };
        Report { workloads: (0..count).map(row).collect(), ..Report::default() }
    }

    #[tokio::test]
    async fn what_has_no_room_is_told_after_a_later_count() {
        let (mut events, report) = (events(), report("Deployment", MOST + 7));
        events.take(&report);
        assert_eq!(events.waiting.len(), MOST);
        events.waiting.clear();
        events.take(&report);
        assert_eq!(events.waiting.len(), 7, "the others are known");
        events.waiting.clear();
        events.take(&report);
        assert!(events.waiting.is_empty());
    }

    #[tokio::test]
    async fn an_instrumentation_that_is_not_used_is_told_of_once() {
        let (mut events, limits) = (events(), SizeLimits { all: 1, ..SizeLimits::default() });
        let mut writer = Writer::new(DefaultImages::default()).with_size_limits(limits, [""; 0]).with_heads();
        let metadata = json!({"namespace": "shop", "name": "order", "uid": "u-1"});
        writer.put_instrumentation(&json!({"metadata": metadata, "spec": {}}), 2);
        writer.set_version(Version::V1beta1);
        writer.publish();
        let snapshot = writer.store().snapshot();
        events.take_unused(&snapshot);
        events.take_unused(&snapshot);
        assert_eq!(events.waiting.len(), 1);
        let told = &events.waiting[0];
        let identity = ("opentelemetry.io/v1beta1".to_owned(), "u-1".to_owned());
        assert_eq!(told.workload.to_string(), "Instrumentation shop/order");
        assert_eq!(told.identity, Some(identity));
        assert!(told.note.contains("--max-instrumentations-total"), "{}", told.note);
    }

    #[tokio::test]
    async fn pods_and_jobs_take_no_room() {
        let mut events = events();
        for kind in ["Pod", "Job", "CronJob"] {
            events.take(&report(kind, 1));
            assert!(events.waiting.is_empty(), "{kind}");
        }
    }
}

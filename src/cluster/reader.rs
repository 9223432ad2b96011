//! Reads from the cluster with the permissions of the user who runs the command.
//!
//! A missing permission is a result too, so that the command continues.

use std::{net::IpAddr, sync::Arc};

use futures::AsyncReadExt as _;
use hyper_util::client::proxy::matcher::Matcher;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, Config,
    api::{GetParams, ListParams, LogParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersion, Request, Resource, Status},
    discovery::{Scope, pinned_kind},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{flags::ClusterFlags, progress::Progress};
use crate::output::Failure;
use otel_webhook_store::served;

/// How many objects are read at a time.
const PAGE: u32 = 250;

/// How many of the last lines of a log are asked for, and how many bytes of them are read and kept. The API server
/// counts its limit from the first of the lines, and the last ones have the error.
const LOG_LINES: i64 = 10;
const LOG_READ: i64 = 65_536;
const LOG_KEPT: usize = 4096;

/// Of how many of the last lines of a log those of an agent are taken, and what such a line has, in lower case.
const AGENT_LINES: i64 = 400;
const OF_AGENT: [&str; 3] = ["opentelemetry", "otel", "otlp"];

/// Reads objects of a cluster.
#[derive(Clone)]
pub struct ClusterReader {
    client: Client,
    progress: Arc<Progress>,
    /// The context, or the address of the cluster if there is none.
    pub name: String,
    /// The namespace of the context, or of the service account.
    pub namespace: String,
    /// The version of the API server, if the user may read it.
    pub version: Option<String>,
    /// Instrumentations, in the version that is stored.
    pub instrumentations: ApiResource,
}

/// The result of a request: an answer, or why there is none.
pub type Asked<T> = Result<T, FailedRequest>;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedRequest {
    /// The request, such as `list pods`.
    pub question: String,
    /// The error of the API server.
    pub problem: String,
}

/// A page of a list.
#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    /// Null if there are no items and only metadata was requested.
    items: Option<Vec<Value>>,
}

#[derive(Default, Deserialize)]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    next: String,
}

impl ClusterReader {
    /// Connects to the cluster of the flags.
    ///
    /// # Errors
    /// If it cannot connect: nothing can be checked then.
    pub async fn connect(flags: &ClusterFlags) -> Result<Self, Failure> {
        let unreachable = |problem: &dyn std::fmt::Display| {
            Failure::unreadable(format!("cannot connect to a cluster: {problem}"))
        };
        let mut config = flags.config().await.map_err(|problem| unreachable(&problem))?;
        if is_by_environment(&config) && goes_directly(&config.cluster_url, &Matcher::from_env()) {
            config.proxy_url = None;
        }
        let (url, namespace) = (config.cluster_url.clone(), config.default_namespace.clone());
        let client = Client::try_from(config).map_err(|problem| unreachable(&problem))?;
        let progress = Progress::begin();
        let version = match progress.follow(&format!("connect to {url}"), client.apiserver_version()).await {
            Ok(info) => Some(info.git_version),
            // The user may not read the version, but may have the other permissions.
            Err(kube::Error::Api(status)) if status.code == 403 => None,
            Err(problem) => return Err(unreachable(&format!("{url}: {}", ApiMessage(&problem)))),
        };
        // If it cannot be read, the list of Instrumentations says why.
        let stored = served::version(&client).await.ok().flatten().unwrap_or_default();
        let name = flags.name().unwrap_or_else(|| url.to_string());
        let instrumentations = served::resource(stored);
        Ok(Self { client, progress: Arc::new(progress), name, namespace, version, instrumentations })
    }

    /// Returns the client, for what is not only read.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns an object, if it exists.
    pub async fn get<K>(&self, namespace: Option<&str>, name: &str) -> Asked<Option<K>>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        let kind = ApiResource::erase::<K>(&());
        self.ask(
            format!("get {} {name}{}", kind.plural, within(namespace)),
            request(&kind, namespace).get(name, &GetParams::default()),
        )
        .await
        .or_else(|(question, error)| absent(question, &error))
    }

    /// Returns whether an object exists. Only its metadata is read.
    pub async fn exists(&self, kind: &ApiResource, namespace: Option<&str>, name: &str) -> Asked<bool> {
        let found: Asked<Option<Value>> = self
            .ask(
                format!("get {} {name}{}", kind.plural, within(namespace)),
                request(kind, namespace).get_metadata(name, &GetParams::default()),
            )
            .await
            .or_else(|(question, error)| absent(question, &error));
        found.map(|found| found.is_some())
    }

    /// Returns an object as JSON, if it exists.
    pub async fn get_value(
        &self,
        kind: &ApiResource,
        namespace: Option<&str>,
        name: &str,
    ) -> Asked<Option<Value>> {
        self.ask(
            format!("get {} {name}{}", kind.plural, within(namespace)),
            request(kind, namespace).get(name, &GetParams::default()),
        )
        .await
        .or_else(|(question, error)| absent(question, &error))
    }

    /// Returns all objects of a kind. For kinds with few objects.
    pub async fn list<K>(&self, namespace: Option<&str>, labels: Option<&str>) -> Asked<Vec<K>>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        let kind = ApiResource::erase::<K>(&());
        let parameters = ListParams { label_selector: labels.map(str::to_owned), ..ListParams::default() };
        let question = format!("list {}{}", kind.plural, within(namespace));
        let found = self.ask(question, request(&kind, namespace).list(&parameters)).await;
        let found: kube::core::ObjectList<K> = found.map_err(|(question, error)| failed(question, &error))?;
        Ok(found.items)
    }

    /// Creates an object that is only answered and not stored, such as a `SubjectAccessReview`.
    pub async fn create<K>(&self, object: &K) -> Asked<K>
    where
        K: Resource<DynamicType = (), Scope = kube::core::ClusterResourceScope>,
        K: Clone + DeserializeOwned + serde::Serialize + std::fmt::Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let question = format!("create {}", K::plural(&()));
        api.create(&PostParams::default(), object).await.map_err(|error| failed(question, &error))
    }

    /// Returns the last lines that a container logged; `previous` is whether those before its last restart.
    ///
    /// # Errors
    /// A sentence that says which permission is missing, or why the log cannot be read.
    pub async fn log(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        previous: bool,
    ) -> Result<String, String> {
        let bytes = self.tail(namespace, pod, container, previous, LOG_LINES).await?;
        // An application writes what it likes.
        Ok(String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(LOG_KEPT)..]).into_owned())
    }

    /// Returns the last lines that a container logged and that are about OpenTelemetry.
    ///
    /// # Errors
    /// As [`Self::log`].
    pub async fn log_of_agent(&self, namespace: &str, pod: &str, container: &str) -> Result<String, String> {
        let bytes = self.tail(namespace, pod, container, false, AGENT_LINES).await?;
        let text = String::from_utf8_lossy(&bytes);
        let is_of_agent = |line: &&str| {
            let line = line.to_lowercase();
            OF_AGENT.iter().any(|word| line.contains(word))
        };
        let last =
            text.lines().rev().filter(is_of_agent).take(usize::try_from(LOG_LINES).unwrap_or_default());
        let mut room = LOG_KEPT;
        let lines = last.map_while(|line| {
            room = room.checked_sub(line.len() + 1)?;
            Some(line)
        });
        let lines: Vec<&str> = lines.collect();
        Ok(lines.into_iter().rev().collect::<Vec<_>>().join("\n"))
    }

    async fn tail(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        previous: bool,
        lines: i64,
    ) -> Result<Vec<u8>, String> {
        let parameters = LogParams {
            container: Some(container.to_owned()),
            previous,
            tail_lines: Some(lines),
            limit_bytes: Some(LOG_READ),
            ..LogParams::default()
        };
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let mut log = api.log_stream(pod, &parameters).await.map_err(|error| match &error {
            kube::Error::Api(status) if status.code == 403 => {
                format!("not readable by you (get pods/log in {namespace})")
            }
            error => format!("cannot be read: {}", ApiMessage(error)),
        })?;
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes).await.map_err(|error| format!("cannot be read: {error}"))?;
        Ok(bytes)
    }

    /// Visits every object of a kind, page by page; `what` selects the whole objects or metadata only.
    pub async fn each(
        &self,
        kind: &ApiResource,
        namespace: Option<&str>,
        what: Part,
        visit: impl FnMut(Value),
    ) -> Asked<()> {
        self.each_with(kind, namespace, None, what, visit).await
    }

    /// Visits every object of a kind that a label selector selects; see [`Self::each`].
    pub async fn each_with(
        &self,
        kind: &ApiResource,
        namespace: Option<&str>,
        labels: Option<&str>,
        what: Part,
        mut visit: impl FnMut(Value),
    ) -> Asked<()> {
        let label_selector = labels.map(str::to_owned);
        let mut parameters = ListParams { limit: Some(PAGE), label_selector, ..ListParams::default() };
        loop {
            let request = request(kind, namespace);
            let request = match what {
                Part::Whole => request.list(&parameters),
                Part::Metadata => request.list_metadata(&parameters),
            };
            let question = format!("list {}{}", kind.plural, within(namespace));
            let page: Page = match self.ask(question, request).await {
                Ok(page) => page,
                // The kind is not installed.
                Err((_, kube::Error::Api(status))) if status.code == 404 => return Ok(()),
                // An expired list continues with the current objects.
                Err((_, kube::Error::Api(status))) if resumes(&status).is_some() => {
                    parameters.continue_token = resumes(&status);
                    continue;
                }
                Err((question, error)) => return Err(failed(question, &error)),
            };
            page.items.into_iter().flatten().for_each(&mut visit);
            if page.metadata.next.is_empty() {
                return Ok(());
            }
            parameters.continue_token = Some(page.metadata.next);
        }
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        question: String,
        request: Result<hyper::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<T, (String, kube::Error)> {
        let asked = match request {
            Ok(request) => self.progress.follow(&question, self.client.request(request)).await,
            Err(error) => Err(kube::Error::BuildRequest(error)),
        };
        asked.map_err(|error| (question, error))
    }
}

/// Returns the end of a request's description.
fn within(namespace: Option<&str>) -> String {
    namespace.map(|namespace| format!(" in {namespace}")).unwrap_or_default()
}

fn request(kind: &ApiResource, namespace: Option<&str>) -> Request {
    Request::new(DynamicObject::url_path(kind, namespace))
}

/// The part of objects that is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The whole object.
    Whole,
    /// Only its metadata.
    Metadata,
}

/// Returns whether the proxy comes from the environment and not from the kubeconfig.
fn is_by_environment(config: &Config) -> bool {
    let of = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    config.proxy_url.is_some()
        && ["HTTPS_PROXY", "https_proxy"].iter().any(|name| of(name) == config.proxy_url)
}

/// Returns whether to connect to a cluster without the proxy of the environment. kube ignores `NO_PROXY`; kubectl
/// respects it, and never uses a proxy for localhost.
fn goes_directly(cluster: &hyper::Uri, environment: &Matcher) -> bool {
    let host = cluster.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_own = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    is_own || environment.intercept(cluster).is_none()
}

fn absent<T>(question: String, error: &kube::Error) -> Asked<Option<T>> {
    match error {
        kube::Error::Api(status) if status.code == 404 => Ok(None),
        error => Err(failed(question, error)),
    }
}

fn failed(question: String, error: &kube::Error) -> FailedRequest {
    FailedRequest { question, problem: ApiMessage(error).to_string() }
}

/// Returns the token that continues an expired list.
fn resumes(status: &Status) -> Option<String> {
    let token = status.metadata.as_ref()?.continue_.clone()?;
    (status.code == 410 && !token.is_empty()).then_some(token)
}

/// An error with the message of the API server, if there is one.
struct ApiMessage<'e>(&'e kube::Error);

impl std::fmt::Display for ApiMessage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            kube::Error::Api(status) if !status.message.is_empty() => f.write_str(&status.message),
            error => write!(f, "{error}"),
        }
    }
}

impl ClusterReader {
    /// Returns the resource of a namespaced kind. `None` if it is not installed, or the user may not discover it.
    pub async fn resource(&self, api_version: &str, kind: &str) -> Option<ApiResource> {
        let version: GroupVersion = api_version.parse().ok()?;
        let wanted = version.with_kind(kind);
        let (resource, capabilities) = pinned_kind(&self.client, &wanted).await.ok()?;
        (capabilities.scope == Scope::Namespaced).then_some(resource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(client: Client) -> ClusterReader {
        let (name, namespace) = ("test".to_owned(), "default".to_owned());
        let instrumentations = served::resource(otel_webhook_api::Version::V1alpha1);
        let progress = Arc::new(Progress::begin());
        ClusterReader { client, progress, name, namespace, version: None, instrumentations }
    }

    /// What is read of a log where the API server answers with this status and these bytes.
    async fn log(status: u16, body: &'static [u8]) -> Result<String, String> {
        let answer = move |request: hyper::Request<kube::client::Body>| async move {
            let query = request.uri().query().unwrap_or_default();
            assert!(query.contains("previous=true") && query.contains("container=app"), "{query}");
            let response = hyper::Response::builder().status(status);
            response.body(kube::client::Body::from(body.to_vec()))
        };
        let reader = reader(Client::new(tower::service_fn(answer), "default"));
        reader.log("shop", "order-1", "app", true).await
    }

    #[tokio::test]
    async fn a_log_is_read_whatever_its_bytes_are_and_a_problem_is_a_sentence() {
        assert_eq!(log(200, b"caf\xe9 \xff\n").await.as_deref(), Ok("caf\u{fffd} \u{fffd}\n"));
        let long = log(200, &[b'x'; LOG_KEPT + 1]).await.expect("a log");
        assert_eq!(long.len(), LOG_KEPT);
        let refused = br#"{"kind": "Status", "code": 403, "status": "Failure", "message": "no", "reason": "Forbidden"}"#;
        assert_eq!(log(403, refused).await, Err("not readable by you (get pods/log in shop)".to_owned()));
        let gone = br#"{"kind": "Status", "code": 400, "status": "Failure", "message": "previous terminated container not found", "reason": "BadRequest"}"#;
        let expected = "cannot be read: previous terminated container not found";
        assert_eq!(log(400, gone).await, Err(expected.to_owned()));
    }

    #[tokio::test]
    async fn the_log_of_an_agent_is_the_last_lines_about_opentelemetry() {
        let lines =
            (0..30).map(|number| format!("request {number}\n[otel.javaagent] WARN {number} \u{e9}\n"));
        let text: Vec<u8> = lines.collect::<String>().into_bytes();
        let answer = move |request: hyper::Request<kube::client::Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            assert!(query.contains("tailLines=400") && query.contains("limitBytes=65536"), "{query}");
            let response = hyper::Response::new(kube::client::Body::from(text.clone()));
            async { Ok::<_, std::convert::Infallible>(response) }
        };
        let reader = reader(Client::new(tower::service_fn(answer), "default"));
        let log = reader.log_of_agent("shop", "order-1", "app").await.expect("a log");
        let expected: Vec<_> =
            (20..30).map(|number| format!("[otel.javaagent] WARN {number} \u{e9}")).collect();
        assert_eq!(log, expected.join("\n"));
    }

    #[test]
    fn no_proxy_and_localhost_are_reached_without_a_proxy() {
        let matcher = Matcher::builder().https("http://proxy:3128").no("example.com,10.0.0.0/8").build();
        for (cluster, expected) in [
            ("https://cluster.example.org:6443", false),
            ("https://cluster.example.com:6443", true),
            ("https://10.1.2.3:6443", true),
            ("https://192.0.2.1", false),
            ("https://127.0.0.1:6443", true),
            ("https://[::1]:6443", true),
            ("https://localhost:6443", true),
        ] {
            let cluster = cluster.parse().expect("a URL");
            assert_eq!(goes_directly(&cluster, &matcher), expected, "{cluster}");
        }
    }
}

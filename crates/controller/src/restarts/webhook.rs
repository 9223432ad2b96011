//! Asks the replicas of the webhook what they would inject, before workloads are restarted for it.

use std::{
    collections::{BTreeMap, HashSet},
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use futures::future::join_all;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::{Request, StatusCode, body::Bytes, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{Api, Client, api::ListParams};
use tokio::{
    net::TcpStream,
    task::JoinSet,
    time::{Instant, timeout},
};

use otel_webhook_fleet::{
    count::WorkloadPods,
    restart::{HASHES, Plan, Webhook},
};

/// How long a doubt lasts until replicas are asked again, and how often they are while workloads are being restarted.
const PERIOD: Duration = Duration::from_secs(5);

/// How long one replica has to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The largest response. A hash has eleven bytes, and an Instrumentation a few dozen of them.
const LONGEST: usize = 64 * 1024;

/// How often a plan is made anew because replicas have other configurations, until nothing begins for now.
const MOST_PLANS: usize = 3;

/// A namespace, and the configuration that a new pod of it is expected to get.
type Expected = (String, String);

/// The replicas of the webhook.
pub struct Replicas {
    /// The Service of their operations ports; none if it is not known.
    service: Option<(Api<EndpointSlice>, String)>,
    known: Webhook,
    /// When they are asked again.
    due: Instant,
    plans: usize,
}

impl Replicas {
    /// Those behind a Service.
    pub fn of(client: &Client, namespace: &str, service: Option<&str>) -> Self {
        let service = service.map(|name| (Api::namespaced(client.clone(), namespace), name.to_owned()));
        Self { service, known: Webhook::default(), due: Instant::now(), plans: 0 }
    }

    /// Returns what is known, for a plan.
    pub fn known(&mut self) -> &Webhook {
        if Instant::now() >= self.due {
            self.known = Webhook::default();
            self.plans = 0;
        }
        &self.known
    }

    /// Asks all replicas what a plan expects of them: always before a step. Returns whether they agree; else another plan
    /// is needed.
    pub async fn agree(&mut self, planned: &Plan, pods: &[WorkloadPods]) -> bool {
        let Some((slices, service)) = &self.service else { return true };
        let is_resting = planned.steps.is_empty() && Instant::now() < self.due;
        if is_resting || self.known.unavailable.is_some() {
            return true;
        }
        let expected = expected(planned, pods, &self.known);
        if expected.is_empty() {
            return true;
        }
        let before = self.known.clone();
        match replicas(slices, service).await {
            Err(why) => self.known.unavailable = Some(why),
            Ok(replicas) => {
                let ask = |replica: &Replica| ask(replica.address, &expected);
                let answers = join_all(replicas.iter().map(ask)).await;
                for (replica, answer) in replicas.iter().zip(answers) {
                    note(&mut self.known, *replica, answer);
                }
            }
        }
        self.due = Instant::now() + PERIOD;
        self.plans += 1;
        if self.known != before && self.plans >= MOST_PLANS {
            let why = self.known.differs.values().next().cloned();
            self.known.unavailable = self.known.unavailable.take().or(why);
        }
        self.known == before
    }
}

/// Notes what a replica answers: the configurations that it would not inject, or why it does not say.
fn note(known: &mut Webhook, Replica { address, is_ending }: Replica, answer: Result<Vec<Expected>, String>) {
    match answer {
        // Its ports may be closed, or its node gone.
        Err(_) if is_ending => {}
        Err(why) => {
            known.unavailable = Some(format!("the replica {address} of the webhook does not answer: {why}"));
        }
        Ok(others) => known.differs.extend(others.into_iter().map(|expected| {
            let why = format!("the replica {address} of the webhook has another one");
            (expected, why)
        })),
    }
}

/// What a plan expects of the webhook and is not in doubt already, with the Instrumentations of it.
fn expected<'p>(
    planned: &Plan,
    pods: &'p [WorkloadPods],
    known: &Webhook,
) -> BTreeMap<Expected, &'p [String]> {
    let mut expected = BTreeMap::new();
    for (workload, config) in planned.expected() {
        let Some(pods) = pods.iter().find(|pods| pods.workload == *workload) else { continue };
        if known.doubt(&workload.namespace, config).is_none() {
            let key = (workload.namespace.clone(), config.to_owned());
            expected.insert(key, &*pods.instrumentations);
        }
    }
    expected
}

/// A replica to which the API server may send reviews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Replica {
    address: SocketAddr,
    /// It is being deleted. API servers send it reviews on open connections until it closes them.
    is_ending: bool,
}

/// Returns each replica behind a Service.
async fn replicas(slices: &Api<EndpointSlice>, service: &str) -> Result<Vec<Replica>, String> {
    let of_service = ListParams::default().labels(&format!("kubernetes.io/service-name={service}"));
    let listed = timeout(PATIENCE, slices.list(&of_service)).await;
    let failed = |why: &str| format!("the EndpointSlices of Service {service} cannot be listed: {why}");
    let listed = listed.map_err(|_| failed("no response"))?.map_err(|error| failed(&error.to_string()))?;
    let replicas = of_slices(&listed.items);
    if replicas.iter().all(|replica| replica.is_ending) {
        return Err(format!("Service {service} has no endpoint that is ready"));
    }
    Ok(replicas)
}

fn of_slices(slices: &[EndpointSlice]) -> Vec<Replica> {
    // A pod with addresses of both families is in two slices.
    let mut known = HashSet::new();
    let mut replicas = Vec::new();
    for slice in slices {
        let port = slice.ports.iter().flatten().find_map(|port| u16::try_from(port.port?).ok());
        for endpoint in slice.endpoints.iter().flatten() {
            let conditions = endpoint.conditions.as_ref();
            let is_ready = conditions.is_none_or(|conditions| conditions.ready != Some(false));
            let is_ending = conditions.is_some_and(|conditions| conditions.terminating == Some(true));
            let address = endpoint.addresses.first().and_then(|address| address.parse::<IpAddr>().ok());
            let pod = endpoint.target_ref.as_ref().and_then(|pod| pod.uid.clone());
            let is_new = pod.is_none_or(|pod| known.insert(pod));
            let address = address.zip(port).filter(|_| (is_ready || is_ending) && is_new);
            replicas.extend(address.map(|address| Replica { address: address.into(), is_ending }));
        }
    }
    replicas
}

/// Asks a replica. Returns the configurations that it would not inject.
async fn ask(address: SocketAddr, expected: &BTreeMap<Expected, &[String]>) -> Result<Vec<Expected>, String> {
    let all = async {
        let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        // It ends with the requests, also if the replica goes on sending nothing.
        let mut connections = JoinSet::new();
        connections.spawn(connection);
        let mut others = Vec::new();
        for (key, instrumentations) in expected {
            let request = request(address, &key.0, instrumentations);
            sender.ready().await.map_err(|error| error.to_string())?;
            let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
            let status = response.status();
            if status != StatusCode::OK {
                return Err(format!("status {status}"));
            }
            let body = Limited::new(response.into_body(), LONGEST).collect().await;
            let body = body.map_err(|error| error.to_string())?.to_bytes();
            if !has_all(&String::from_utf8_lossy(&body), &key.1) {
                others.push(key.clone());
            }
        }
        Ok(others)
    };
    timeout(PATIENCE, all).await.unwrap_or_else(|_| Err(format!("no response within {PATIENCE:?}")))
}

fn request(address: SocketAddr, namespace: &str, instrumentations: &[String]) -> Request<Empty<Bytes>> {
    let names = instrumentations.iter().flat_map(|name| ["&instrumentation=", name]).collect::<String>();
    Request::get(format!("{HASHES}?namespace={namespace}{names}"))
        .header(header::HOST, address.to_string())
        .body(Empty::new())
        .expect("names of objects make a path")
}

/// Whether a response has each hash of a configuration, such as `java=v1:0123abcd,agent=v1:4567cdef+v1:89ab0123`.
fn has_all(response: &str, config: &str) -> bool {
    let hashes = config.split(',').filter_map(|language| language.split_once('='));
    let mut hashes = hashes.flat_map(|(_, hashes)| hashes.split('+'));
    hashes.all(|hash| response.lines().any(|line| line == hash))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn replicas_that_may_get_reviews_are_asked_once_each() {
        let endpoint = |address: &str, uid: &str, ready: bool, ending: bool| {
            json!({
                "addresses": [address], "conditions": {"ready": ready, "serving": ready, "terminating": ending},
                "targetRef": {"kind": "Pod", "uid": uid},
            })
        };
        let slice = |kind: &str, endpoints: &[serde_json::Value]| {
            json!({
                "addressType": kind, "ports": [{"name": "metrics", "port": 8080}], "endpoints": endpoints,
            })
        };
        let four = [
            endpoint("10.0.0.1", "a", true, false),
            endpoint("10.0.0.2", "b", true, false),
            endpoint("10.0.0.3", "starts", false, false),
            endpoint("10.0.0.4", "ends", false, true),
        ];
        let six = [endpoint("fd00::1", "a", true, false)];
        let slices = [slice("IPv4", &four), slice("IPv6", &six)]
            .map(|slice| serde_json::from_value(slice).expect("valid"));
        let replicas = of_slices(&slices);
        let found: Vec<_> =
            replicas.iter().map(|replica| (replica.address.to_string(), replica.is_ending)).collect();
        let expected = [("10.0.0.1:8080", false), ("10.0.0.2:8080", false), ("10.0.0.4:8080", true)];
        assert_eq!(found, expected.map(|(address, is_ending)| (address.to_owned(), is_ending)));
    }

    #[test]
    fn a_replica_that_ends_delays_restarts_while_it_answers_with_another_configuration() {
        let expected = ("shop".to_owned(), "java=v1:0123abcd".to_owned());
        let noted = |is_ending, answer| {
            let mut known = Webhook::default();
            let address = SocketAddr::from(([10, 0, 0, 1], 8080));
            note(&mut known, Replica { address, is_ending }, answer);
            (known.unavailable.is_some(), known.doubt(&expected.0, &expected.1).is_some())
        };
        let refused = || Err("connection refused".to_owned());
        for is_ending in [false, true] {
            assert!(noted(is_ending, Ok(vec![expected.clone()])).1, "an earlier configuration");
            assert_eq!(noted(is_ending, Ok(Vec::new())), (false, false), "the expected one");
        }
        assert!(noted(false, refused()).0, "one that is ready has to answer");
        assert_eq!(noted(true, refused()), (false, false), "one that ends need not");
    }

    #[test]
    fn each_hash_of_a_configuration_has_to_be_answered() {
        let response = "v1:00000001\nv1:00000002\n";
        assert!(has_all(response, "java=v1:00000001,agent=v1:00000002+v1:00000001"));
        for config in
            ["java=v1:00000003", "java=v1:00000001,agent=v1:00000002+v1:00000004", "java=v1:0000000"]
        {
            assert!(!has_all(response, config), "{config}");
        }
    }
}

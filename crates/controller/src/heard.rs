//! What arrives of the telemetry of pods: asks a store of metrics or a Collector, once an interval, which instances it has.
//!
//! The response is read as it arrives and reduced to a hash for each instance. Whatever it is, nothing waits for it: the
//! source is a task with a deadline, and what it fails with makes all states unknown (crate `fleet`, `heard`).

use std::{
    collections::HashSet,
    fmt, fs,
    io::{self, BufRead, BufReader, Read},
    path::PathBuf,
    time::Duration,
};

use http_body_util::BodyExt;
use hyper::{
    Request, Uri,
    body::Bytes,
    header,
    http::uri::{PathAndQuery, Scheme},
};
use jiff::{SignedDuration, Timestamp};
use kube::{
    Client, Config,
    client::Body,
    runtime::{utils::Backoff, watcher::DefaultBackoff},
};
use serde::{
    Deserialize, Deserializer,
    de::{Error, SeqAccess, Visitor},
};
use tokio::{
    sync::mpsc,
    task::{JoinSet, spawn_blocking},
    time::{sleep, timeout},
};

use otel_webhook_fleet::{
    census::Census,
    heard::{Heard, Signals, instance},
};
use otel_webhook_inject::reason::ObjectName;

/// The largest response, in bytes. 50,000 series of `target_info`, grouped, have 8 MB.
const LONGEST: usize = 32 << 20;

/// The longest line of a text endpoint, in bytes.
const LONGEST_LINE: u64 = 64 << 10;

/// The maximum number of series.
const MOST: usize = 200_000;

/// How long a source has to answer.
const DEADLINE: Duration = Duration::from_secs(20);

/// The characters of an error that are kept.
const LONGEST_ERROR: usize = 300;

/// The query for Prometheus and what speaks its API: the instances of the metric that OTLP receivers write for each
/// resource, by the labels that receivers and exporters give them.
pub const QUERY: &str = "group by (instance, exported_instance, service_instance_id) (target_info)";

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The query API of Prometheus, with this query.
    Prometheus(String),
    /// A text endpoint with metrics of a Collector's connector `count`.
    Collector,
}

impl Asked {
    /// Returns the name in metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Prometheus(_) => "prometheus",
            Self::Collector => "collector",
        }
    }
}

/// Where it is asked what arrives, and how long agents may send nothing.
#[derive(Clone, Debug)]
pub struct HeardSettings {
    /// What is asked.
    pub asked: Asked,
    /// The address, with a prefix of the path if it has one; for a Collector, the whole path.
    pub url: Uri,
    /// How long it is not asked again.
    pub interval: Duration,
    /// How long an agent may send nothing before its pod is silent.
    pub patience: SignedDuration,
    /// The telemetry that the source shows.
    pub signals: Signals,
    /// A file with the CA bundle that verifies the source; none for that of the system, which the image does not have.
    pub ca: Option<PathBuf>,
    /// A file with a bearer token.
    pub token: Option<PathBuf>,
    /// The Lease, about which Events tell that the source is unavailable.
    pub lease: ObjectName,
}

type Answer = (Timestamp, Result<HashSet<u64>, String>);

/// What a source reports, followed.
pub struct Listening {
    answers: mpsc::Receiver<Answer>,
    /// What every pod is looked up in.
    pub heard: Heard,
    /// Why the last request failed; `None` if it did not.
    pub problem: Option<String>,
    /// Ends the task with this.
    _task: JoinSet<()>,
}

impl Listening {
    /// Begins to ask.
    pub fn begin(settings: &HeardSettings) -> Self {
        let (sender, answers) = mpsc::channel(1);
        let mut task = JoinSet::new();
        task.spawn(ask_again(settings.clone(), sender));
        Self { answers, heard: Heard::new(settings.patience, settings.signals), problem: None, _task: task }
    }

    /// Takes what was reported since the last call, if anything was. Returns whether what is known of pods or of the source
    /// has changed, and, once for each time that the source becomes unavailable, why.
    pub fn take(&mut self, census: &mut Census) -> Option<(bool, Option<String>)> {
        let (at, answer) = self.answers.try_recv().ok()?;
        let is_changed = self.heard.take(answer.as_ref().ok(), at, census);
        let before = std::mem::replace(&mut self.problem, answer.err());
        let is_changed = is_changed || before != self.problem;
        match (&before, &self.problem) {
            (None, Some(problem)) => {
                tracing::warn!(problem, "the source of what arrives is unavailable");
                return Some((is_changed, Some(problem.clone())));
            }
            (Some(_), None) => tracing::info!("the source of what arrives answers again"),
            _ => {}
        }
        Some((is_changed, None))
    }
}

async fn ask_again(settings: HeardSettings, answers: mpsc::Sender<Answer>) {
    let mut backoff = DefaultBackoff::default();
    loop {
        let at = Timestamp::now();
        let asked = timeout(DEADLINE, async { ask(&client(&settings)?, &settings).await });
        let answer = asked.await.unwrap_or_else(|_| Err(format!("no response within {DEADLINE:?}")));
        let rest = match &answer {
            Ok(_) => {
                backoff.reset();
                Duration::ZERO
            }
            Err(_) => backoff.next().unwrap_or_default(),
        };
        let answer = answer.map_err(|why| why.chars().take(LONGEST_ERROR).collect());
        // Nobody leads any longer.
        if answers.send((at, answer)).await.is_err() {
            return;
        }
        sleep(settings.interval + rest).await;
    }
}

/// Returns a client of the source. It is made anew for each request: CA bundle and token may have been replaced.
fn client(settings: &HeardSettings) -> Result<Client, String> {
    let mut url = settings.url.clone().into_parts();
    if settings.asked == Asked::Collector {
        url.path_and_query = Some(PathAndQuery::from_static("/"));
    }
    let mut config = Config::new(Uri::from_parts(url).map_err(|error| error.to_string())?);
    config.root_cert_file.clone_from(&settings.ca);
    let is_plain = settings.url.scheme() == Some(&Scheme::HTTP);
    if is_plain {
        // Else the CAs of the system are loaded, and the image has none.
        config.root_cert = Some(Vec::new());
    }
    if let Some(path) = &settings.token {
        let token = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        // Secrets often end with a line break, which no header may have.
        config.auth_info.token = Some(token.trim().to_owned().into());
    }
    // One request an interval.
    config.default_retry = false;
    let hint = if is_plain || settings.ca.is_some() { "" } else { "; set --heard-ca-file" };
    Client::try_from(config).map_err(|error| format!("{}{hint}", in_full(&error)))
}

async fn ask(client: &Client, settings: &HeardSettings) -> Result<HashSet<u64>, String> {
    let request = match &settings.asked {
        Asked::Prometheus(query) => {
            let form = form_urlencoded::Serializer::new(String::new()).append_pair("query", query).finish();
            Request::post("/api/v1/query")
                .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(Body::from(form.into_bytes()))
        }
        Asked::Collector => Request::get(settings.url.path()).body(Body::empty()),
    };
    let response = client.send(request.expect("a request")).await.map_err(|error| in_full(&error))?;
    let (head, mut body) = response.into_parts();
    let (sender, frames) = mpsc::channel(1);
    let is_of_prometheus = matches!(settings.asked, Asked::Prometheus(_));
    let reading = spawn_blocking(move || {
        let received = Received { frames, current: Bytes::new(), left: LONGEST };
        if !head.status.is_success() {
            let mut text = String::new();
            // What it says helps where it is text.
            let _ = received.take(LONGEST_ERROR as u64).read_to_string(&mut text);
            return Err(format!("status {}: {}", head.status, text.escape_debug()));
        }
        let read = if is_of_prometheus { read_query(received) } else { read_text(received) };
        read.map_err(|error| error.to_string())
    });
    while let Some(frame) = body.frame().await {
        let frame = frame.map(|frame| frame.into_data().unwrap_or_default());
        // It has read enough.
        if sender.send(frame.map_err(io::Error::other)).await.is_err() {
            break;
        }
    }
    drop(sender);
    reading.await.unwrap_or_else(|error| Err(error.to_string()))
}

/// An error with its causes.
fn in_full(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.dedup();
    texts.join(": ")
}

/// A body as it arrives.
struct Received {
    frames: mpsc::Receiver<io::Result<Bytes>>,
    current: Bytes,
    left: usize,
}

impl Read for Received {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.frames.blocking_recv() {
                None => return Ok(0),
                Some(frame) => self.current = frame?,
            }
            let left = self.left.checked_sub(self.current.len());
            self.left = left.ok_or_else(|| io::Error::other(format!("longer than {LONGEST} bytes")))?;
        }
        let length = buffer.len().min(self.current.len());
        buffer[..length].copy_from_slice(&self.current.split_to(length));
        Ok(length)
    }
}

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    error: String,
    data: Option<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    result: Instances,
}

#[derive(Deserialize)]
struct Series {
    metric: Labels,
}

/// Labels with `service.instance.id`, by what wrote the series.
#[derive(Deserialize)]
struct Labels {
    instance: Option<String>,
    exported_instance: Option<String>,
    service_instance_id: Option<String>,
}

/// The instances of series. Each is dropped when it is read.
struct Instances(HashSet<u64>);

impl<'de> Deserialize<'de> for Instances {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;

        impl<'de> Visitor<'de> for All {
            type Value = Instances;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of series")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut series: A) -> Result<Instances, A::Error> {
                let (mut ids, mut count) = (HashSet::new(), 0);
                while let Some(Series { metric }) = series.next_element()? {
                    count += 1;
                    if count > MOST {
                        return Err(Error::custom(format!(
                            "more than {MOST} series; group them by the query"
                        )));
                    }
                    let labels = [metric.instance, metric.exported_instance, metric.service_instance_id];
                    ids.extend(labels.into_iter().flatten().map(|id| instance(&id)));
                }
                Ok(Instances(ids))
            }
        }

        deserializer.deserialize_seq(All)
    }
}

fn read_query(body: Received) -> io::Result<HashSet<u64>> {
    let response: Response = serde_json::from_reader(BufReader::new(body))?;
    match response.data {
        Some(data) => Ok(data.result.0),
        None => Err(io::Error::other(format!("no result: {}", response.error))),
    }
}

/// How labels with `service.instance.id` begin in a text.
const LABELS: [&str; 2] = ["instance=\"", "service_instance_id=\""];

/// Reads these labels of each line. An instance of ours has nothing that is escaped.
fn read_text(body: Received) -> io::Result<HashSet<u64>> {
    let (mut body, mut line, mut ids) = (BufReader::new(body), Vec::new(), HashSet::new());
    loop {
        line.clear();
        if (&mut body).take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(ids);
        }
        if line.len() as u64 == LONGEST_LINE {
            return Err(io::Error::other(format!("a line is longer than {LONGEST_LINE} bytes")));
        }
        let line = std::str::from_utf8(&line).map_err(io::Error::other)?;
        if line.starts_with('#') {
            continue;
        }
        let Some((_, labels)) = line.split_once('{') else {
            // Another page, such as one for browsers, has no lines with a value.
            let value = line.split_whitespace().nth(1).map(str::parse::<f64>);
            if line.trim().is_empty() || value.is_some_and(|value| value.is_ok()) {
                continue;
            }
            return Err(io::Error::other("not a text endpoint of Prometheus"));
        };
        let own = |label: &'_ str| {
            LABELS.into_iter().find_map(|name| Some(label.strip_prefix(name)?.split_once('"')?.0.to_owned()))
        };
        for id in labels.split(',').filter_map(own) {
            if ids.len() == MOST {
                return Err(io::Error::other(format!("more than {MOST} instances")));
            }
            ids.insert(instance(&id));
        }
    }
}

#[cfg(test)]
mod tests;

//! What is measured, in the order of a controller's life.

use std::{
    fs,
    net::SocketAddr,
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use otel_webhook_testkit::{
    admin,
    cluster::{control_plane::ControlPlane, ports::free_ports, program::Program},
    load::{
        figures::Figures,
        process::{self, Memory},
    },
    source::{self, Source, series},
    until::until,
};

use crate::{
    PROGRAM,
    objects::{Fleet, MISSED_EVERY},
};

/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(60);

/// How long writes are counted after a change.
const AFTER: Duration = Duration::from_secs(20);

/// Longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(600);

/// How often is looked whether something has come about.
const PAUSE: Duration = Duration::from_millis(20);

/// A controller that runs until it is dropped.
struct Controller {
    program: Program,
    admin: SocketAddr,
}

/// Everything.
pub async fn all(figures: &mut Figures, plane: &ControlPlane, fleet: &Fleet) {
    let server = plane.process("kube-apiserver");
    let before = process::cpu(server);
    let started = Instant::now();
    let controller = Controller::start(plane, &[]);
    let missed = u64::try_from(fleet.scale.pods / MISSED_EVERY).expect("thousands");
    until("all pods are counted", || {
        (controller.pods("missed") == missed && controller.pods("unconfirmed") == 0).then_some(())
    });
    figures.add("start until all pods are counted", "s", "≤ 30", &[started.elapsed().as_secs_f64()]);
    figures.add("resident when they are counted", "MB", "", &[controller.memory().resident]);
    while fleet.told().await < fleet.scale.instrumentations {
        thread::sleep(PAUSE);
    }
    figures.add("start until every status is written", "s", "", &[started.elapsed().as_secs_f64()]);
    let cpu = process::cpu(server).saturating_sub(before);
    figures.add("CPU of the API server until then", "s", "", &[cpu.as_secs_f64()]);
    figures.add(
        "CPU of the controller until then",
        "s",
        "",
        &[process::cpu(controller.program.id()).as_secs_f64()],
    );
    settle(fleet);
    idle(figures, plane, &controller);
    change(figures, plane, fleet).await;
    let memory = controller.memory();
    figures.add("resident", "MB", "≤ 60", &[memory.resident]);
    figures.add("resident at most", "MB", "", &[memory.peak]);
    drop(controller);
    heard(figures, plane, fleet);
}

/// Another controller, which also asks whether data arrives, of a store that has an instance of each injected pod and
/// as many again that are none.
fn heard(figures: &mut Figures, plane: &ControlPlane, fleet: &Fleet) {
    let instances = fleet.instances();
    let count = u64::try_from(instances.len()).expect("thousands");
    let answers = AtomicUsize::new(0);
    let respond: Source = Box::new(move |stream| {
        let number = answers.fetch_add(1, Ordering::Relaxed);
        let with_another = |instance: &String| [instance.clone(), format!("{instance}-{number}")];
        series(stream, instances.iter().flat_map(with_another))
    });
    let url = format!("--heard-url=http://{}", source::start(respond));
    let controller = Controller::start(plane, &["--heard-source=prometheus", &url]);
    until("all injected pods are heard", || {
        let metric = "otel_webhook_pods_data{data=\"heard\",language=\"java\"}";
        (admin::metric(controller.admin, metric) == Some(count)).then_some(())
    });
    settle(fleet);
    figures.add("resident with data of all pods", "MB", "≤ 80", &[controller.memory().resident]);
    let (rate, cpu) = while_idle(plane, &controller);
    figures.add("requests to the API server then", "/s", "≤ 5", &[rate]);
    figures.add("CPU then", "% of a core", "", &[cpu]);
    figures.add("resident at most then", "MB", "", &[controller.memory().peak]);
}

/// Waits until Events are made and workloads are read for mistakes, which both happen at a pace.
fn settle(fleet: &Fleet) {
    let of_events = fleet.scale.workloads.min(500) / 2;
    let of_mistakes = fleet.scale.workloads / 20;
    thread::sleep(Duration::from_secs(of_events.max(of_mistakes) as u64 + 30));
}

fn idle(figures: &mut Figures, plane: &ControlPlane, controller: &Controller) {
    let writes = status_writes(plane);
    let (rate, cpu) = while_idle(plane, controller);
    figures.add("requests while idle", "/s", "≤ 5", &[rate]);
    figures.add("status writes in a minute while idle", "", "0", &[count_of(status_writes(plane) - writes)]);
    figures.add("CPU while idle", "% of a core", "", &[cpu]);
}

/// Returns the requests a second and the CPU of the controller, in percent of a core, while nothing happens.
fn while_idle(plane: &ControlPlane, controller: &Controller) -> (f64, f64) {
    let cpu = || process::cpu(controller.program.id());
    let (requests_before, cpu_before) = (requests(plane, ""), cpu());
    thread::sleep(IDLE);
    let requests = count_of(requests(plane, "") - requests_before);
    let cpu = cpu().saturating_sub(cpu_before);
    (requests / IDLE.as_secs_f64(), cpu.as_secs_f64() / IDLE.as_secs_f64() * 100.0)
}

async fn change(figures: &mut Figures, plane: &ControlPlane, fleet: &Fleet) {
    let writes = status_writes(plane);
    let started = Instant::now();
    fleet.change("changed").await;
    while fleet.stale().await == 0 {
        assert!(started.elapsed() < LIMIT, "the change was not reported");
        thread::sleep(PAUSE);
    }
    figures.add(
        "Instrumentation changed until its status says so",
        "s",
        "≤ 10",
        &[started.elapsed().as_secs_f64()],
    );
    thread::sleep(AFTER);
    figures.add("status writes after the change", "", "1", &[count_of(status_writes(plane) - writes)]);
}

fn count_of(number: usize) -> f64 {
    f64::from(u32::try_from(number).expect("few"))
}

/// How many finished requests with this text the audit log has, but those of this program and of the API server itself.
fn requests(plane: &ControlPlane, part: &str) -> usize {
    let log = fs::read_to_string(plane.audit_log()).unwrap_or_default();
    let is_one = |line: &&str| {
        line.contains(part)
            && line.contains("\"stage\":\"ResponseComplete\"")
            && !line.contains("system:apiserver")
    };
    log.lines().filter(is_one).count()
}

fn status_writes(plane: &ControlPlane) -> usize {
    requests(plane, "\"subresource\":\"status\"")
}

impl Controller {
    fn start(plane: &ControlPlane, flags: &[&str]) -> Self {
        let [port] = free_ports();
        let admin = SocketAddr::from(([127, 0, 0, 1], port));
        let mut command = Command::new(PROGRAM);
        command.args(["controller", "--lease-namespace", "default", "--admin-listen", &admin.to_string()]);
        command.args(["--page-listen", "off"]).args(flags).env("KUBECONFIG", plane.kubeconfig());
        Self { program: Program::run(command, plane.dir().join("controller.log")), admin }
    }

    fn memory(&self) -> Memory {
        process::memory(self.program.id())
    }

    /// The number of pods in a state, by its metrics.
    fn pods(&self, state: &str) -> u64 {
        let metric = format!("otel_webhook_pods{{state=\"{state}\",language=\"java\"}}");
        admin::metric(self.admin, &metric).unwrap_or(u64::MAX)
    }
}

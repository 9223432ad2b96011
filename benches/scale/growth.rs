//! What a review costs beside a full API server, against one with the same Instrumentation alone.

use std::{fs, process::Command, time::Duration};

use otel_webhook_testkit::load::{figures::Figures, material, sender::Sender, server::Server};
use serde_json::json;

use crate::{
    PROGRAM,
    measure::Failed,
    objects::{Population, first_instrumentation, first_namespace},
};

const ROUNDS: usize = 5;
/// Turns of each in a round; both are slowed down by the same neighbours.
const TURNS: usize = 20;
const TURN: Duration = Duration::from_millis(75);
const CONNECTIONS: usize = 16;

/// Both in turns, with a review that needs no look-up.
pub fn of_cpu(figures: &mut Figures, large: &Server, population: &Population) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [first_instrumentation()]});
    fs::write(folder.path().join("objects.json"), list.to_string())?;
    let mut command = Command::new(PROGRAM);
    command.arg("serve").arg("--source").arg(folder.path()).arg("--tls-self-signed");
    command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
    let small = Server::start(command);
    let mut review = material::usual();
    review["request"]["namespace"] = first_namespace().into();
    review["request"]["object"]["metadata"]["namespace"] = first_namespace().into();
    let body = [serde_json::to_vec(&review)?];
    let mut senders = [&small, large].map(|server| Sender::new(server.address, CONNECTIONS, &body));
    let mut ratios = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let mut cpu = [(0.0, 0.0); 2];
        for turn in 0..2 * TURNS {
            // Neither is always the one that follows the other.
            let one = (turn + turn / 2) % 2;
            let server = [&small, large][one];
            let sender = senders[one].as_mut().map_err(|error| error.to_string())?;
            let before = server.cpu();
            let done = sender.closed(TURN)?;
            cpu[one].0 += server.cpu_since(before).as_secs_f64();
            cpu[one].1 += f64::from(done.answers);
        }
        let [small, large] = cpu.map(|(time, answers)| time / answers);
        ratios.push(large / small);
    }
    let name = format!("{} against one Instrumentation: CPU of a review", population.scale);
    figures.add(name, "times", "≤ 1.2", &ratios);
    Ok(())
}

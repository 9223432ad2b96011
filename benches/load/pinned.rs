//! The servers on one core, what sends on another.

use std::{env, io, path::Path, process::Command};

use otel_webhook_testkit::load::server::Server;
use serde_json::Value;

use crate::PROGRAM;
use crate::empty;

const SERVER_CORE: &str = "0";
const CLIENT_CORE: &str = "1";

/// Keeps what sends on its own core. Says so where it cannot.
pub fn pin_this_process() {
    let pid = std::process::id().to_string();
    let pinned = Command::new("taskset").args(["-acp", CLIENT_CORE, &pid]).output();
    if !pinned.is_ok_and(|output| output.status.success()) {
        println!("not pinned (no second core, or no taskset): client and server disturb each other");
    }
}

/// The product with these objects in its directory, all else as it is by default.
pub fn product(folder: &Path, objects: &[Value]) -> Server {
    of_program(Path::new(PROGRAM), folder, objects)
}

/// The same of another program.
pub fn of_program(program: &Path, folder: &Path, objects: &[Value]) -> Server {
    Server::of_objects(pinned(program), folder, objects)
}

/// The empty handler: this program with another argument.
pub fn empty_handler() -> io::Result<Server> {
    let mut command = pinned(&env::current_exe()?);
    command.arg(empty::ARGUMENT);
    Ok(Server::start(command))
}

fn pinned(program: &Path) -> Command {
    if Command::new("taskset").arg("--version").output().is_err() {
        return Command::new(program);
    }
    let mut command = Command::new("taskset");
    command.args(["-c", SERVER_CORE]).arg(program);
    command
}

//! Two servers under the same load, in turns.

use std::{io, time::Duration};

use otel_webhook_testkit::load::{
    sender::{Done, Sender},
    server::Server,
};

/// Two servers are compared in turns of this length: a neighbour that slows the machine down for a
/// second slows both down.
const TURN: Duration = Duration::from_millis(75);
/// Turns of each server in one round.
const TURNS: usize = 20;

/// A load with what it cost the server.
pub struct Loaded {
    pub done: Done,
    cpu: Duration,
}

impl Loaded {
    pub fn by(server: &Server, load: impl FnOnce() -> io::Result<Done>) -> io::Result<Self> {
        let before = server.cpu();
        let done = load()?;
        Ok(Self { done, cpu: server.cpu_since(before) })
    }

    /// The server's CPU time for one answer, in microseconds.
    pub fn cpu_each(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / f64::from(self.done.answers)
    }
}

/// A server in closed loops, all turns of a round together.
#[derive(Default)]
pub struct Turns {
    answers: u32,
    elapsed: Duration,
    cpu: Duration,
}

impl Turns {
    pub fn rate(&self) -> f64 {
        f64::from(self.answers) / self.elapsed.as_secs_f64()
    }

    /// As of [`Loaded`].
    pub fn cpu_each(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / f64::from(self.answers)
    }
}

/// One of two servers that are compared.
pub struct Side<'s> {
    server: &'s Server,
    sender: Sender,
}

impl<'s> Side<'s> {
    pub fn new(server: &'s Server, connections: usize, body: &[Vec<u8>]) -> io::Result<Self> {
        Ok(Self { server, sender: Sender::new(server.address, connections, body)? })
    }

    fn turn(&mut self, turns: &mut Turns) -> io::Result<()> {
        let Loaded { done, cpu } = Loaded::by(self.server, || self.sender.closed(TURN))?;
        turns.answers += done.answers;
        turns.elapsed += done.elapsed;
        turns.cpu += cpu;
        Ok(())
    }
}

/// One round of two servers.
pub fn in_turns(first: &mut Side<'_>, second: &mut Side<'_>) -> io::Result<(Turns, Turns)> {
    let (mut one, mut other) = (Turns::default(), Turns::default());
    for turn in 0..TURNS {
        // Neither is always the one that follows the other.
        if turn % 2 == 0 {
            first.turn(&mut one)?;
            second.turn(&mut other)?;
        } else {
            second.turn(&mut other)?;
            first.turn(&mut one)?;
        }
    }
    Ok((one, other))
}

//! What executions over the socket take of the computing, and how long they wait for their turn.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::ModelMeter;
use crate::scheduler::Run;

/// Times of all executions of one model over the socket, which several threads add to.
#[derive(Debug, Default)]
pub(super) struct SocketTurns {
    waited_ns: AtomicU64,
    computed_ns: AtomicU64,
}

// Relaxed: figures for people.
impl SocketTurns {
    pub(super) fn waited_ns(&self) -> u64 {
        self.waited_ns.load(Ordering::Relaxed)
    }

    pub(super) fn computed_ns(&self) -> u64 {
        self.computed_ns.load(Ordering::Relaxed)
    }
}

/// An execution over the socket that its device works on: counted from when it is made, its times when it
/// is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Computing<'a> {
    meter: &'a ModelMeter,
    run: &'a Run,
    since: Instant,
    /// What the run had waited by then.
    waited: u64,
}

impl ModelMeter {
    /// A request of this run, which executes nothing else, goes to the device.
    pub(crate) fn computing<'a>(&'a self, run: &'a Run) -> Computing<'a> {
        self.socket().executing();
        Computing { meter: self, run, since: Instant::now(), waited: run.waited_ns() }
    }
}

impl Drop for Computing<'_> {
    fn drop(&mut self) {
        let waited = self.run.waited_ns();
        // It may have given way to others in between.
        let waited_since = Duration::from_nanos(waited.saturating_sub(self.waited));
        let computed = self.since.elapsed().saturating_sub(waited_since);
        let turns = &self.meter.tally.turns;
        turns.waited_ns.fetch_add(waited, Ordering::Relaxed);
        let computed = u64::try_from(computed.as_nanos()).unwrap_or(u64::MAX);
        turns.computed_ns.fetch_add(computed, Ordering::Relaxed);
    }
}

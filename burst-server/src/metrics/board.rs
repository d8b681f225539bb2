//! Who is connected, and how bursts can be looked at while they serve.
//!
//! Entries are written when a client or a burst comes and goes. What is read at a look are counters that are
//! there for other reasons, so that nothing on the way of a request knows of this.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use fmq::{Gauge, Wait};

use super::Metrics;
use crate::admission::Peer;
use crate::panics::lock;
use crate::scheduler::Run;

/// The clients of a service, by their number.
#[derive(Debug, Default)]
pub(super) struct Board(Mutex<BTreeMap<u64, SessionEntry>>);

/// A client that was let in.
#[derive(Debug, Clone)]
pub(super) struct SessionEntry {
    pub(super) peer: Peer,
    /// What it calls itself.
    pub(super) program: String,
    pub(super) since: Instant,
}

impl Board {
    pub(super) fn sessions(&self) -> Vec<(u64, SessionEntry)> {
        lock(&self.0).iter().map(|(client, entry)| (*client, entry.clone())).collect()
    }
}

/// A client's entry, which goes with it.
#[derive(Debug)]
pub(crate) struct SessionMeter {
    metrics: Arc<Metrics>,
    client: u64,
}

impl Metrics {
    /// A client was let in; it is shown until what is given back is dropped.
    pub(crate) fn session(
        self: &Arc<Self>,
        client: u64,
        peer: Peer,
        program: &str,
    ) -> SessionMeter {
        let entry = SessionEntry { peer, program: program.to_owned(), since: Instant::now() };
        lock(&self.board.0).insert(client, entry);
        SessionMeter { metrics: Arc::clone(self), client }
    }
}

impl Drop for SessionMeter {
    fn drop(&mut self) {
        lock(&self.metrics.board.0).remove(&self.client);
    }
}

/// How a burst is looked at.
#[derive(Debug)]
pub(crate) struct Probe {
    /// Its number, within its client's.
    pub(crate) burst: u32,
    /// Requests that may be under way at once.
    pub(crate) depth: u16,
    pub(crate) run: Arc<Run>,
    pub(crate) requests: Gauge,
    pub(crate) results: Gauge,
    /// How it waits for requests, as was asked for and allowed.
    pub(crate) wait: Wait,
    /// Where it may poll: whether it has one of the places for that just now, and requests.
    pub(crate) polls: Option<Arc<AtomicBool>>,
    /// Its server waits for room for a result.
    pub(crate) waits_for_room: AtomicBool,
    pub(crate) since: Instant,
}

impl Probe {
    /// How it waits, by the word that the command line has for it.
    pub(super) fn wait_name(&self) -> &'static str {
        match self.wait {
            Wait::Spin => "spin",
            Wait::Sleep => "sleep",
            _ => "adaptive",
        }
    }

    /// Whether a core is polled on for it.
    pub(super) fn polls(&self) -> bool {
        // Relaxed, as all of these: hints for people.
        self.polls.as_ref().is_some_and(|polls| polls.load(Ordering::Relaxed))
    }

    /// What its server does just now, in a word.
    pub(super) fn state(&self) -> &'static str {
        if self.waits_for_room.load(Ordering::Relaxed) {
            return "results-full";
        }
        match (self.run.waits(), self.run.computes()) {
            (true, _) => "waits-for-turn",
            (false, true) => "computes",
            (false, false) => "idle",
        }
    }
}

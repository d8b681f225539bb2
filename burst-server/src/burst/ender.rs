//! Ending a burst from its server's side.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::memories::BurstMemories;
use super::queues::Closers;
use crate::admission::User;
use crate::client::Presence;
use crate::metrics::{GivenUp, Metrics};

/// Ends a burst with a reason, which its client is told (`BurstEnded`). Copies end the same burst, from
/// any thread.
#[derive(Debug, Clone)]
pub struct BurstEnder(Arc<Ender>);

#[derive(Debug)]
struct Ender {
    closers: Closers,
    memories: BurstMemories,
    metrics: Arc<Metrics>,
    /// The client's number, for the log, and whose it is.
    client: u64,
    user: Arc<User>,
    has_ended: AtomicBool,
}

impl BurstEnder {
    pub(super) fn new(
        closers: Closers,
        memories: BurstMemories,
        metrics: Arc<Metrics>,
        presence: &Presence,
    ) -> Self {
        // Not the presence itself: a driver may keep this for longer than the client is there.
        let (client, user) = (presence.client(), Arc::clone(presence.user()));
        let has_ended = AtomicBool::new(false);
        BurstEnder(Arc::new(Ender { closers, memories, metrics, client, user, has_ended }))
    }

    /// Closes both queues, counts the end in the metrics and tells the client. The first reason counts;
    /// ending a burst again, or one that its client has closed, does nothing.
    ///
    /// It may take as long as the client leaves its socket unread, 10 s at most; then the client is disconnected.
    pub fn end(&self, why: GivenUp, reason: &str) {
        let Ender { closers, memories, metrics, client, user, has_ended } = &*self.0;
        // Relaxed: one of several callers goes on, and nothing else hangs on it.
        if closers.is_closed() || has_ended.swap(true, Ordering::Relaxed) {
            return;
        }
        metrics.burst_given_up(why);
        let burst = memories.number();
        if let Some(left_out) = user.lines().next() {
            tracing::warn!(client, burst, reason, left_out, "burst given up");
        }
        // Closing wakes a client that waits on the result queue; the message says why.
        closers.close();
        memories.link().tell_burst_ended(burst, reason);
    }
}

//! How long a client counts as present.

use std::sync::Arc;

use burst_hal::Priority;

use crate::admission::{Admitted, Peer, User};
use crate::running::Running;
use crate::scheduler::Claimant;

/// Held by a client's session and by the server of each of its bursts. The client is gone when the
/// last of them has let go: only then does it no longer count against the connection quotas, and
/// only then does a service that stops no longer wait for it.
#[derive(Debug)]
pub(crate) struct Presence {
    number: u64,
    admitted: Admitted,
    /// What the service waits for when it stops; the last field, and so dropped last.
    _running: Running,
}

impl Presence {
    pub(crate) fn new(number: u64, admitted: Admitted, running: Running) -> Self {
        Presence { number, admitted, _running: running }
    }

    /// The client's number, which names its threads and log lines.
    pub(crate) fn client(&self) -> u64 {
        self.number
    }

    /// For whom its bursts and calls compute, and how urgent one of them is.
    pub(crate) fn claimant(&self, priority: Priority) -> Claimant {
        Claimant { user: self.peer().uid, connection: self.number, priority }
    }

    /// Whose connection it is.
    pub(crate) fn user(&self) -> &Arc<User> {
        self.admitted.user()
    }

    /// The process that connected.
    pub(crate) fn peer(&self) -> Peer {
        self.admitted.peer()
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        tracing::debug!(client = self.number, "client gone, everything it had is given back");
    }
}

//! What all objects of one connection share: its start, the bursts on it, and its end.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use burst_hal::trace::Tracer;
use burst_shm::ForkMark;
use burst_wire::WireError;
use burst_wire::control::StatedLimit;

use crate::ClientError;
use crate::connect::{Greeted, Peer};

mod buffers;
mod burst_watch;
mod calls;
mod executions;
mod memories;
mod memory_registry;
mod outbox;
mod pending_calls;
mod permits;
mod slots;
mod tracing_to;
mod watcher;

use buffers::BufferRegistry;
use executions::Executions;
use memory_registry::MemoryRegistry;
use pending_calls::PendingCalls;
use permits::Permits;
use tracing_to::TracingTo;

pub(crate) use buffers::RemoteToken;
pub(crate) use burst_watch::BurstWatch;
pub(crate) use executions::{Ended, NotBegun};
pub(crate) use pending_calls::LateReply;

/// How long to wait for the reason after a queue or the socket was found closed: the message or the
/// hang-up that says so is already on its way.
const REASON_PATIENCE: Duration = Duration::from_secs(1);

/// One connection, as the watcher sees it.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
    pub(crate) peer: Peer,
    /// The service's process, where it is known and another one.
    process: Option<OwnedFd>,
    calls: PendingCalls,
    pub(crate) executions: Executions,
    memories: MemoryRegistry,
    buffers: BufferRegistry,
    /// One, which serializes `give_back_dropped`: a second caller returns only after the first one's memories
    /// were given back, or when its own time is over.
    giving_back: Arc<Permits>,
    mark: ForkMark,
    slow_calls: Arc<Permits>,
    dead: AtomicBool,
    /// The service said that it stops.
    is_stopping: AtomicBool,
    bursts: Mutex<HashMap<u32, Arc<BurstWatch>>>,
    tracing: TracingTo,
}

/// Keeps a connection: everything a user holds shares one of these. The last one ends the
/// connection and waits for its watcher.
#[derive(Debug)]
pub(crate) struct Link {
    connection: Arc<Connection>,
    watcher: Option<JoinHandle<()>>,
}

impl std::ops::Deref for Link {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Link {
    /// Starts the watcher of a connection on which greetings were exchanged.
    pub(crate) fn start(socket: OwnedFd, greeted: Greeted) -> Result<Arc<Link>, ClientError> {
        let Greeted { peer, process } = greeted;
        let slow_calls = Permits::of_slow_calls(peer.limits.get(StatedLimit::SlowCalls));
        let connection = Arc::new(Connection {
            socket,
            peer,
            process,
            calls: PendingCalls::default(),
            executions: Executions::default(),
            memories: MemoryRegistry::default(),
            buffers: BufferRegistry::default(),
            giving_back: Permits::new(1),
            mark: ForkMark::take()?,
            slow_calls,
            dead: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
            bursts: Mutex::default(),
            tracing: TracingTo::default(),
        });
        let watched = Arc::clone(&connection);
        let watcher = std::thread::Builder::new()
            .name("burst-watcher".to_owned())
            .spawn(move || watcher::watch(&watched))
            .map_err(|error| ClientError::System {
                call: "clone",
                errno: rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::AGAIN),
            })?;
        Ok(Arc::new(Link { connection, watcher: Some(watcher) }))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if self.connection.is_forked() {
            // In a forked child: the connection and its watcher are the parent's. There is no
            // such thread here to wait for, and nothing about it may be touched.
            std::mem::forget(self.watcher.take());
            self.connection.executions.forget_thread();
            return;
        }
        // An error means that it is not connected any more, which is what is wanted.
        let _ = rustix::net::shutdown(&self.connection.socket, rustix::net::Shutdown::Both);
        if let Some(watcher) = self.watcher.take()
            && watcher.join().is_err()
        {
            tracing::error!("the watcher panicked");
        }
        self.connection.executions.join();
    }
}

impl Connection {
    /// The error of every call and wait after the service is gone.
    pub(crate) fn peer_died(&self) -> ClientError {
        let pid = self.peer.pid;
        // Relaxed: the mark that the service is gone was set after this one, and whoever asks has read that.
        match self.is_stopping.load(Ordering::Relaxed) {
            true => ClientError::PeerStopped { pid },
            false => ClientError::PeerDied { pid },
        }
    }

    /// The service said that it stops; the hang-up follows.
    fn note_stopping(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// Whether this process is a forked child of the one that connected.
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        !self.mark.is_here()
    }

    /// Refuses a forked child, before it touches a lock, a socket or a queue of its parent's.
    #[inline]
    pub(crate) fn check_not_forked(&self) -> Result<(), ClientError> {
        if self.is_forked() { Err(ClientError::Forked) } else { Ok(()) }
    }

    /// Whether this process connected and the service is still there, as far as is known.
    pub(crate) fn is_usable(&self) -> bool {
        !self.is_forked() && !self.is_dead()
    }

    pub(crate) fn is_dead(&self) -> bool {
        // Acquire: pairs with Release in `mark_dead`.
        self.dead.load(Ordering::Acquire)
    }

    /// Marks the connection dead, then wakes every caller: the watcher found the service gone.
    fn mark_dead(&self) {
        // Release: pairs with Acquire in `is_dead`. The mark comes before the wake-ups, so that a
        // caller that was woken reads it.
        self.dead.store(true, Ordering::Release);
        self.calls.close();
        self.executions.close();
        for burst in self.lock_bursts().values() {
            burst.close();
        }
    }

    /// Ends the connection from this end: nobody waits for the service any longer. Does nothing in a forked child,
    /// whose parent's it is.
    pub(crate) fn hang_up(&self) {
        if self.is_forked() {
            return;
        }
        // An error means that it is not connected any more, which is what is wanted.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        self.mark_dead();
    }

    /// Spans of this end go there from now on.
    pub(crate) fn trace_to(&self, tracer: Option<Tracer>) {
        self.tracing.set(tracer);
    }

    /// Where spans of this end go, while somebody wants them.
    #[inline]
    pub(crate) fn tracer(&self) -> Option<Tracer> {
        self.tracing.get()
    }

    /// From now on the watcher looks after this burst.
    ///
    /// # Errors
    /// [`WireError::Malformed`] where another one has its number, which ends the connection: nobody would know
    /// of which of them the service speaks.
    pub(crate) fn add_burst(
        &self,
        number: u32,
        watch: &Arc<BurstWatch>,
    ) -> Result<(), ClientError> {
        let is_new = match self.lock_bursts().entry(number) {
            Entry::Vacant(place) => {
                place.insert(Arc::clone(watch));
                true
            }
            Entry::Occupied(_) => false,
        };
        if !is_new {
            return Err(self.given_twice("a burst has the number of another one"));
        }
        if self.is_dead() {
            watch.close(); // the service died before the watcher knew of this burst
        }
        Ok(())
    }

    pub(crate) fn remove_burst(&self, number: u32) {
        self.lock_bursts().remove(&number);
    }

    /// The service gave out a number that is in use. What it says cannot be told apart any more.
    fn given_twice(&self, reason: &'static str) -> ClientError {
        let error = WireError::Malformed { reason };
        tracing::warn!(service = self.peer.pid, %error, "connection given up");
        self.hang_up();
        error.into()
    }

    pub(crate) fn find_burst(&self, number: u32) -> Option<Arc<BurstWatch>> {
        self.lock_bursts().get(&number).cloned()
    }

    fn lock_bursts(&self) -> MutexGuard<'_, HashMap<u32, Arc<BurstWatch>>> {
        self.bursts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why a burst's queue was found closed.
    pub(crate) fn why_closed(&self, watch: &BurstWatch) -> ClientError {
        let detail = watch.wait_for_reason(REASON_PATIENCE, || self.is_dead());
        if self.is_dead() {
            return self.peer_died();
        }
        ClientError::BurstEnded { detail: detail.unwrap_or_else(|| "it closed the queue".into()) }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

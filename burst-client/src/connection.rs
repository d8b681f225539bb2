//! What all objects of one connection share, and its end.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use burst_shm::ForkMark;
use burst_wire::control::{self, Answer, Call, ClientMessage};
use burst_wire::{WireError, socket};
use fmq::{Closer, Deadline};

use crate::ClientError;
use crate::connect::Peer;

mod memories;
mod memory_registry;
mod pending_calls;
mod permits;
mod slots;
mod watcher;

use memory_registry::MemoryRegistry;
use pending_calls::{NoReply, PendingCalls, Undo};
use permits::SlowCallPermits;
use slots::SlotTable;

/// How long a call may take that does nothing but keep books.
const QUICK_CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long dropping an object waits for the service to acknowledge that it released its part. The
/// service releases it all the same when the acknowledgement comes later.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long to wait for the reason after a queue or the socket was found closed: the message or the
/// hang-up that says so is already on its way.
const REASON_PATIENCE: Duration = Duration::from_secs(1);

/// One connection, as the watcher sees it.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
    pub(crate) peer: Peer,
    calls: PendingCalls,
    memories: MemoryRegistry,
    /// Serializes `give_back_dropped`: a second caller returns only after the first one's memories
    /// were given back.
    giving_back: Mutex<()>,
    mark: ForkMark,
    slow_calls: Arc<SlowCallPermits>,
    dead: AtomicBool,
    bursts: Mutex<HashMap<u32, Arc<BurstWatch>>>,
}

/// What the watcher knows of a burst.
#[derive(Debug)]
pub(crate) struct BurstWatch {
    pub(crate) slots: SlotTable,
    closers: [Closer; 2],
    /// The service's reason for ending it.
    ended: OnceLock<Box<str>>,
    lock: Mutex<()>,
    changed: Condvar,
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
    pub(crate) fn start(socket: OwnedFd, peer: Peer) -> Result<Arc<Link>, ClientError> {
        let connection = Arc::new(Connection {
            socket,
            peer,
            calls: PendingCalls::default(),
            memories: MemoryRegistry::default(),
            giving_back: Mutex::default(),
            mark: ForkMark::take()?,
            slow_calls: Arc::default(),
            dead: AtomicBool::new(false),
            bursts: Mutex::default(),
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
            return;
        }
        // An error means that it is not connected any more, which is what is wanted.
        let _ = rustix::net::shutdown(&self.connection.socket, rustix::net::Shutdown::Both);
        if let Some(watcher) = self.watcher.take()
            && watcher.join().is_err()
        {
            tracing::error!("the watcher panicked");
        }
    }
}

impl Connection {
    /// The error of every call and wait after the service is gone.
    pub(crate) fn peer_died(&self) -> ClientError {
        ClientError::PeerDied { pid: self.peer.pid }
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
        for burst in self.lock_bursts().values() {
            burst.close();
        }
    }

    /// Makes a call that the service answers without running or preparing anything.
    pub(crate) fn quick_call(
        &self,
        call: Call,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(Answer, Vec<OwnedFd>), ClientError> {
        self.call(call, descriptors, Deadline::after(QUICK_CALL_TIMEOUT))
    }

    /// Makes a call and waits for its reply.
    pub(crate) fn call(
        &self,
        call: Call,
        descriptors: &[BorrowedFd<'_>],
        deadline: Deadline,
    ) -> Result<(Answer, Vec<OwnedFd>), ClientError> {
        self.check_not_forked()?;
        let permit = match call.is_slow() {
            true => Some(self.slow_calls.acquire(deadline)?),
            false => None,
        };
        let (id, waiting) = self.calls.open().map_err(|reason| self.no_reply(reason))?;
        let undo = Undo::of(&call);
        if let Err(error) = self.send(id, call, descriptors) {
            if matches!(error, ClientError::PeerDied { .. }) {
                // The watcher marks the connection dead before it wakes the callers: wait for that,
                // so that a caller that learns of the death also finds the connection dead.
                let _ = waiting.wait(Deadline::after(REASON_PATIENCE));
            }
            self.calls.forget(id);
            return Err(error);
        }
        let outcome = match waiting.wait(deadline) {
            // The call is abandoned here, unless its reply came at this very moment.
            Err(NoReply::Timeout) if self.calls.abandon(id, undo, permit) => {
                return Err(ClientError::Timeout);
            }
            Err(NoReply::Timeout) => waiting.wait(Deadline::never()),
            other => other,
        };
        match outcome {
            Ok((Ok(answer), descriptors)) => Ok((answer, descriptors)),
            Ok((Err(refusal), _)) => Err(ClientError::Refused {
                status: refusal.status(),
                detail: refusal.detail.as_str().into(),
            }),
            Err(reason) => Err(self.no_reply(reason)),
        }
    }

    /// Sends a call and returns at once; the watcher drops its reply.
    pub(crate) fn send_oneway(&self, call: Call) -> Result<(), ClientError> {
        self.send(self.calls.next_oneway_id(), call, &[])
    }

    fn send(&self, id: u64, call: Call, descriptors: &[BorrowedFd<'_>]) -> Result<(), ClientError> {
        let sent = control::encode(&ClientMessage::Call { id, call })
            .and_then(|message| socket::send(&self.socket, &message, descriptors));
        sent.map_err(|error| match error {
            WireError::Closed => self.peer_died(),
            // The service reads nothing, and the socket is full.
            error if socket::timed_out(&error) => ClientError::Timeout,
            error => error.into(),
        })
    }

    fn no_reply(&self, reason: NoReply) -> ClientError {
        match reason {
            NoReply::Lost => self.peer_died(),
            NoReply::Timeout => ClientError::Timeout,
        }
    }

    /// Tells the service to release its part of an object that is dropped here. Does nothing in a
    /// forked child, or when the service is gone. A failure is logged and not returned: a caller
    /// that drops an object cannot do anything about it.
    pub(crate) fn release_remote(&self, call: Call, what: &'static str, number: u32) {
        if !self.is_usable() {
            return;
        }
        if let Err(error) = self.call(call, &[], Deadline::after(RELEASE_TIMEOUT)) {
            tracing::debug!(number, %error, "the service keeps {what} for now");
        }
    }

    /// Makes a call that the service answers with a mere acknowledgement, and waits for that until
    /// the caller's deadline, at most [`QUICK_CALL_TIMEOUT`].
    pub(crate) fn call_acknowledged(
        &self,
        call: Call,
        descriptors: &[BorrowedFd<'_>],
        deadline: Deadline,
    ) -> Result<(), ClientError> {
        let longest = Deadline::after(QUICK_CALL_TIMEOUT);
        let deadline = deadline.as_ns().map_or(longest, |at| {
            Deadline::at_ns(longest.as_ns().map_or(at, |longest| longest.min(at)))
        });
        match self.call(call, descriptors, deadline)? {
            (Answer::Done, _) => Ok(()),
            _ => Err(ClientError::UnexpectedAnswer),
        }
    }

    /// From now on the watcher looks after this burst.
    pub(crate) fn add_burst(&self, number: u32, watch: &Arc<BurstWatch>) {
        self.lock_bursts().insert(number, Arc::clone(watch));
        if self.is_dead() {
            watch.close(); // the service died before the watcher knew of this burst
        }
    }

    pub(crate) fn remove_burst(&self, number: u32) {
        self.lock_bursts().remove(&number);
    }

    pub(crate) fn find_burst(&self, number: u32) -> Option<Arc<BurstWatch>> {
        self.lock_bursts().get(&number).cloned()
    }

    fn lock_bursts(&self) -> MutexGuard<'_, HashMap<u32, Arc<BurstWatch>>> {
        self.bursts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why a burst's queue was found closed.
    pub(crate) fn why_closed(&self, watch: &BurstWatch) -> ClientError {
        let guard = watch.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = |(): &mut ()| !self.is_dead() && watch.ended.get().is_none();
        drop(watch.changed.wait_timeout_while(guard, REASON_PATIENCE, unknown));
        if self.is_dead() {
            return self.peer_died();
        }
        let detail = watch.ended.get().cloned();
        ClientError::BurstEnded { detail: detail.unwrap_or_else(|| "it closed the queue".into()) }
    }
}

impl BurstWatch {
    pub(crate) fn new(closers: [Closer; 2]) -> Self {
        BurstWatch {
            slots: SlotTable::default(),
            closers,
            ended: OnceLock::new(),
            lock: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Whether the service ended the burst.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended.get().is_some()
    }

    /// The service ended the burst.
    pub(crate) fn end(&self, detail: &str) {
        self.ended.get_or_init(|| detail.into());
        self.close();
    }

    fn close(&self) {
        self.closers.iter().for_each(Closer::close);
        // Notified under the lock, so that `why_closed` cannot miss it between its check and its
        // wait.
        let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed.notify_all();
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

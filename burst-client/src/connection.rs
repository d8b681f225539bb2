//! What all objects of one connection share, and its end.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use burst_wire::control::{self, Answer, Call, ClientMessage};
use burst_wire::{WireError, socket};
use fmq::{Closer, Deadline};

use crate::ClientError;
use crate::calls::{Calls, NoReply, SlowCalls};
use crate::connect::Peer;
use crate::shared::SharedMemories;
use crate::slots::SlotTable;
use crate::watcher;

/// How long a call may take that does nothing but keep books.
const QUICK_CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait for the reason after a queue was found closed: the message or the hang-up
/// that says so is already on its way.
const REASON_PATIENCE: Duration = Duration::from_secs(1);

/// One connection, as the watcher sees it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    pub(crate) peer: Peer,
    pub(crate) calls: Calls,
    pub(crate) memories: SharedMemories,
    slow_calls: SlowCalls,
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
            calls: Calls::default(),
            memories: SharedMemories::default(),
            slow_calls: SlowCalls::default(),
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
    /// What everybody is told when the service is gone.
    pub(crate) fn peer_died(&self) -> ClientError {
        ClientError::PeerDied { pid: self.peer.pid }
    }

    pub(crate) fn is_dead(&self) -> bool {
        // Acquire: pairs with Release in `die`.
        self.dead.load(Ordering::Acquire)
    }

    /// The service is gone: every wait ends now.
    pub(crate) fn die(&self) {
        // Release: pairs with Acquire in `is_dead`; before any waiter is woken.
        self.dead.store(true, Ordering::Release);
        self.calls.close();
        for burst in self.lock_bursts().values() {
            burst.close();
        }
    }

    /// Makes a call that takes no time worth mentioning.
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
        let _place = match call.is_slow() {
            true => Some(self.slow_calls.enter(deadline)?),
            false => None,
        };
        let (id, waiting) = self.calls.open().ok_or_else(|| self.peer_died())?;
        let sent = control::encode(&ClientMessage::Call { id, call })
            .and_then(|message| socket::send(&self.socket, &message, descriptors));
        if let Err(error) = sent {
            self.calls.forget(id);
            return Err(match error {
                WireError::Closed => self.peer_died(),
                error => error.into(),
            });
        }
        match waiting.wait(deadline) {
            Ok((Ok(answer), descriptors)) => Ok((answer, descriptors)),
            Ok((Err(refusal), _)) => Err(ClientError::Refused {
                status: refusal.status(),
                detail: refusal.detail.as_str().into(),
            }),
            Err(NoReply::Lost) => Err(self.peer_died()),
            Err(NoReply::Timeout) => {
                self.calls.forget(id);
                Err(ClientError::Timeout)
            }
        }
    }

    /// A call that answers nothing but that it was done.
    pub(crate) fn order(
        &self,
        call: Call,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), ClientError> {
        match self.quick_call(call, descriptors)? {
            (Answer::Done, _) => Ok(()),
            _ => Err(ClientError::UnexpectedAnswer),
        }
    }

    /// From now on the watcher looks after this burst.
    pub(crate) fn add_burst(&self, number: u32, watch: &Arc<BurstWatch>) {
        self.lock_bursts().insert(number, Arc::clone(watch));
        if self.is_dead() {
            watch.close(); // it died before the watcher knew of this burst
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

    /// The service ended the burst.
    pub(crate) fn end(&self, detail: &str) {
        self.ended.get_or_init(|| detail.into());
        self.close();
    }

    fn close(&self) {
        self.closers.iter().for_each(Closer::close);
        // Under the lock, so that it cannot fall between a look and a wait.
        let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed.notify_all();
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

//! Where results come from: the queue itself, or a thread that waits at the queue and says so
//! through a descriptor.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use burst_wire::{DATUM_BYTES, Features, PIPELINE_DEPTH_MAX, PacketKind, WireError, packet_datums};
use fmq::{Closer, Consumer, Deadline, QueueError, Wait};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use crate::ClientError;
use crate::waiting::remaining;

/// Results that may lie here: as many as there can be requests. A service that sends more answers
/// requests that the client never sent.
const BACKLOG_MAX: usize = PIPELINE_DEPTH_MAX as usize;

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoResult {
    Queue(QueueError),
    /// The length of a packet is malformed, so the beginning of the next one is unknown.
    Framing(WireError),
    /// The service sent more results than the client sent requests.
    Flood,
    /// The request was called off.
    Cancelled,
}

impl From<QueueError> for NoResult {
    fn from(error: QueueError) -> Self {
        NoResult::Queue(error)
    }
}

/// The results of one burst.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one per burst, and the queue is the hot path")]
pub(crate) enum Results {
    /// The caller's own thread waits at the queue.
    Queue(Queue),
    /// The bridge's thread waits at the queue, callers wait for the thread.
    Bridge(Bridge),
    /// Between the two; never seen from outside.
    Moving,
}

/// The queue, and how packets end in it.
#[derive(Debug)]
pub(crate) struct Queue {
    consumer: Consumer,
    /// With pipelining packets say their length; otherwise one is everything there is.
    features: Features,
}

impl Queue {
    /// Waits for a packet and copies it out, once, before any of it is looked at.
    fn read(&mut self, packet: &mut Vec<u8>, deadline: Deadline) -> Result<(), NoResult> {
        let mut datums = self.consumer.wait(1, deadline)?;
        let is_framed = self.features.contains(Features::PIPELINING);
        if is_framed {
            let mut first = [0; DATUM_BYTES];
            self.consumer.peek(1)?.copy_out(0, &mut first)?;
            datums = packet_datums(PacketKind::Result, self.features, &first, datums)
                .map_err(NoResult::Framing)?;
        }
        packet.resize(datums * DATUM_BYTES, 0);
        if is_framed {
            return Ok(self.consumer.read(packet)?); // wakes the service, which may wait for room
        }
        // Of one request at a time the service finds the queue empty and never waits for room. To look whether it does
        // takes until the other CPU has let go of a cache line.
        Ok(self.consumer.read_quiet(packet)?)
    }
}

impl Results {
    pub(crate) fn new(consumer: Consumer, features: Features) -> Self {
        Results::Queue(Queue { consumer, features })
    }

    /// Waits for the next packet and copies it to `packet`.
    pub(crate) fn receive(
        &mut self,
        packet: &mut Vec<u8>,
        deadline: Deadline,
    ) -> Result<(), NoResult> {
        match self {
            Results::Queue(queue) => queue.read(packet, deadline),
            Results::Bridge(bridge) => bridge.shared.receive(packet, deadline),
            Results::Moving => Err(QueueError::PeerDied.into()),
        }
    }

    /// Whether [`Results::receive`] would return at once.
    pub(crate) fn is_readable(&mut self) -> Result<bool, NoResult> {
        match self {
            Results::Queue(queue) => Ok(queue.consumer.available_to_read()? > 0),
            Results::Bridge(bridge) => Ok(bridge.shared.is_readable()),
            Results::Moving => Err(QueueError::PeerDied.into()),
        }
    }

    /// A descriptor that can be read while there is a result, or the end. Starts the thread that
    /// sees to it, the first time.
    pub(crate) fn descriptor(&mut self) -> Result<BorrowedFd<'_>, ClientError> {
        if let Results::Queue(_) = self {
            let shared = Arc::new(Shared::new()?);
            let Results::Queue(queue) = std::mem::replace(self, Results::Moving) else {
                return Err(ClientError::UnexpectedAnswer); // looked at above
            };
            *self = Results::Bridge(Bridge::start(queue, shared)?);
        }
        match self {
            Results::Bridge(bridge) => Ok(bridge.shared.ready.as_fd()),
            _ => Err(ClientError::System { call: "clone", errno: Errno::AGAIN }),
        }
    }

    /// In a forked child: there is no thread here to wait for.
    pub(crate) fn forget_thread(&mut self) {
        if let Results::Bridge(bridge) = self {
            std::mem::forget(bridge.thread.take());
        }
    }
}

/// The thread at the queue.
#[derive(Debug)]
pub(crate) struct Bridge {
    shared: Arc<Shared>,
    closer: Closer,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    arrived: Condvar,
    /// An eventfd, above zero while there is something to take.
    ready: OwnedFd,
}

#[derive(Debug, Default)]
struct State {
    packets: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    end: Option<NoResult>,
}

impl Bridge {
    fn start(mut queue: Queue, shared: Arc<Shared>) -> Result<Self, ClientError> {
        // A caller with an event loop does other work meanwhile, so this thread must not spin.
        queue.consumer.set_wait(Wait::Sleep);
        let closer = queue.consumer.closer();
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("burst-answers".to_owned())
            .spawn(move || theirs.carry(queue))
            .map_err(|error| ClientError::System {
                call: "clone",
                errno: Errno::from_io_error(&error).unwrap_or(Errno::AGAIN),
            })?;
        Ok(Bridge { shared, closer, thread: Some(thread) })
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.closer.close();
        if thread.join().is_err() {
            tracing::error!("the thread that waits for results panicked");
        }
    }
}

impl Shared {
    fn new() -> Result<Self, ClientError> {
        let ready = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(ClientError::system("eventfd"))?;
        Ok(Shared { state: Mutex::default(), arrived: Condvar::new(), ready })
    }

    /// The thread: packets from the queue to here, until the end.
    fn carry(&self, mut queue: Queue) {
        loop {
            let mut packet = self.lock().spare.pop().unwrap_or_default();
            let read = queue.read(&mut packet, Deadline::never());
            let mut state = self.lock();
            match read {
                Ok(()) if state.packets.len() < BACKLOG_MAX => state.packets.push_back(packet),
                Ok(()) => state.end = Some(NoResult::Flood),
                Err(error) => state.end = Some(error),
            }
            let ended = state.end.is_some();
            // Under the lock, so that this write cannot fall between a caller's last look at the
            // packets and its reset of the descriptor.
            // It fails only for a counter that is about to overflow, and then it is readable.
            let _ = rustix::io::write(&self.ready, &1_u64.to_ne_bytes());
            drop(state);
            self.arrived.notify_all();
            if ended {
                return;
            }
        }
    }

    fn receive(&self, packet: &mut Vec<u8>, deadline: Deadline) -> Result<(), NoResult> {
        let mut state = self.lock();
        loop {
            if let Some(next) = state.packets.pop_front() {
                let used = std::mem::replace(packet, next);
                state.spare.push(used);
                self.reset_if_empty(&state);
                return Ok(());
            }
            if let Some(end) = &state.end {
                return Err(end.clone());
            }
            state = match remaining(deadline) {
                None => self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) if left.is_zero() => return Err(QueueError::Timeout.into()),
                Some(left) => {
                    let waited = self.arrived.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// The descriptor stays readable while there is something, and for ever after the end.
    fn reset_if_empty(&self, state: &State) {
        if state.packets.is_empty() && state.end.is_none() {
            let _ = rustix::io::read(&self.ready, &mut [0_u8; 8]);
        }
    }

    fn is_readable(&self) -> bool {
        let state = self.lock();
        !state.packets.is_empty() || state.end.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

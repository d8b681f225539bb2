//! What the watcher's thread shares with those who wait.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Mutex;
use std::time::Duration;

use burst_hal::{CancelHook, TimePoint};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFlags, Timespec, eventfd};

use super::{Ended, WaitEnd};
use crate::fence::CheckedFence;
use crate::locks::lock;
use crate::{FenceState, LaunchError};

/// Longest sleep: so that its milliseconds are a number that every kernel takes.
const SLEEP_MAX: Duration = Duration::from_secs(3600);
/// Events taken at once; the others come with the next look.
const EVENTS: usize = 64;

/// One wait.
pub(super) struct Wait {
    deadline: Option<TimePoint>,
    /// It ends at its deadline alone.
    is_alarm: bool,
    /// Descriptors of the fences that are not done yet.
    pending: Vec<RawFd>,
    ended: Ended,
    hook: Option<CancelHook>,
}

#[derive(Debug)]
pub(super) struct Shared {
    epoll: OwnedFd,
    /// Wakes the thread.
    wake: OwnedFd,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    waits: HashMap<u64, Wait>,
    fences: HashMap<RawFd, Watched>,
    deadlines: BTreeSet<(TimePoint, u64)>,
    /// Waits that have ended and whose end nobody was told.
    ended: Vec<(Wait, WaitEnd)>,
    is_stopped: bool,
}

/// A fence, and the waits for it.
struct Watched {
    fence: CheckedFence,
    waits: Vec<u64>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("waits", &self.waits.len()).finish_non_exhaustive()
    }
}

impl Wait {
    pub(super) fn new(deadline: Option<TimePoint>, ended: Ended) -> Self {
        Wait { deadline, is_alarm: false, pending: Vec::new(), ended, hook: None }
    }

    /// One that ends at this time.
    pub(super) fn alarm(at: TimePoint, ended: Ended) -> Self {
        Wait { is_alarm: true, ..Wait::new(Some(at), ended) }
    }

    /// Tells of the end.
    pub(super) fn end(self, end: WaitEnd) {
        drop(self.hook);
        (self.ended)(end);
    }
}

impl Shared {
    pub(super) fn new() -> Result<Self, LaunchError> {
        let system = LaunchError::system;
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(system("epoll_create1"))?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(system("eventfd2"))?;
        let data = EventData::new_u64(own_number(&wake));
        epoll::add(&epoll, &wake, data, EventFlags::IN).map_err(system("epoll_ctl"))?;
        Ok(Shared { epoll, wake, state: Mutex::default() })
    }

    /// Adds a wait; gives its number.
    pub(super) fn add(&self, mut wait: Wait, fences: &[CheckedFence]) -> Result<u64, LaunchError> {
        let mut state = lock(&self.state);
        let number = state.next;
        state.next += 1;
        for fence in fences {
            if let Err(error) = self.watch(&mut state, number, fence) {
                for fd in wait.pending {
                    self.leave(&mut state, fd, number);
                }
                return Err(error);
            }
            let fd = fence.as_fd().as_raw_fd();
            if !wait.pending.contains(&fd) {
                wait.pending.push(fd);
            }
        }
        let earliest = state.deadlines.first().map(|(at, _)| *at);
        let is_earliest = wait.deadline.is_some_and(|at| earliest.is_none_or(|first| at < first));
        let is_over = (wait.pending.is_empty() && !wait.is_alarm) || state.is_stopped;
        state.deadlines.extend(wait.deadline.map(|at| (at, number)));
        state.waits.insert(number, wait);
        if is_over {
            let end = if state.is_stopped { WaitEnd::Cancelled } else { WaitEnd::Done };
            self.finish(&mut state, number, end);
        }
        drop(state);
        if is_earliest || is_over {
            self.wake();
        }
        Ok(number)
    }

    /// Keeps what tells of a cancel, as long as the wait is under way.
    pub(super) fn keep_hook(&self, number: u64, hook: CancelHook) {
        let mut hook = Some(hook);
        if let Some(wait) = lock(&self.state).waits.get_mut(&number) {
            wait.hook = hook.take();
        }
        drop(hook); // with no lock held: it asks for one of its own
    }

    /// Ends a wait where it is under way.
    pub(super) fn cancel(&self, number: u64) {
        self.finish(&mut lock(&self.state), number, WaitEnd::Cancelled);
        self.wake();
    }

    /// Cancels everything, now and later, and ends the thread.
    pub(super) fn stop(&self) {
        lock(&self.state).is_stopped = true;
        self.wake();
    }

    /// Sleeps until something has happened, and looks at what; true where the watcher is stopped.
    pub(super) fn sleep(&self) -> bool {
        let mut events = Vec::with_capacity(EVENTS);
        let timeout = self.timeout();
        if let Err(errno) = epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref())
            && errno != rustix::io::Errno::INTR
        {
            // It has to be our own descriptor that is broken; deadlines still hold.
            tracing::error!(%errno, "fences cannot be watched");
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut state = lock(&self.state);
        for event in events {
            let (data, flags) = (event.data, event.flags);
            if data.u64() == own_number(&self.wake) {
                let _ = rustix::io::read(&self.wake, &mut [0; 8]);
            } else if let Ok(fd) = RawFd::try_from(data.u64()) {
                self.signalled(&mut state, fd, flags);
            }
        }
        self.pass_deadlines(&mut state);
        state.is_stopped
    }

    /// Takes what has ended; all that waits where the watcher is stopped.
    pub(super) fn take_ended(&self, is_stopped: bool) -> Vec<(Wait, WaitEnd)> {
        let mut state = lock(&self.state);
        if is_stopped {
            let numbers: Vec<u64> = state.waits.keys().copied().collect();
            for number in numbers {
                self.finish(&mut state, number, WaitEnd::Cancelled);
            }
        }
        std::mem::take(&mut state.ended)
    }

    /// How long until the next deadline; none to sleep for as long as it takes.
    fn timeout(&self) -> Option<Timespec> {
        let state = lock(&self.state);
        if !state.ended.is_empty() || state.is_stopped {
            return Some(Timespec::default());
        }
        let (at, _) = state.deadlines.first()?;
        let left = at.since(TimePoint::now()).min(SLEEP_MAX);
        Some(Timespec::try_from(left).unwrap_or_default())
    }

    fn pass_deadlines(&self, state: &mut State) {
        let now = TimePoint::now();
        while let Some((at, number)) = state.deadlines.first().copied()
            && at <= now
        {
            self.finish(state, number, WaitEnd::MissedDeadline);
            state.deadlines.remove(&(at, number)); // where nobody waited for it
        }
    }

    /// `epoll` says something of a fence.
    fn signalled(&self, state: &mut State, fd: RawFd, flags: EventFlags) {
        // Another event of the same look may have ended the last wait for it.
        let Some(watched) = state.fences.get(&fd) else { return };
        let end = match watched.fence.judge(poll_flags(flags)) {
            FenceState::Pending => return,
            FenceState::Done => WaitEnd::Done,
            FenceState::Failed => WaitEnd::Failed,
        };
        for number in watched.waits.clone() {
            self.leave(state, fd, number);
            let Some(wait) = state.waits.get_mut(&number) else { continue };
            wait.pending.retain(|one| *one != fd);
            if end == WaitEnd::Failed || wait.pending.is_empty() {
                self.finish(state, number, end);
            }
        }
    }

    /// A wait has ended: nothing is watched for it any more.
    fn finish(&self, state: &mut State, number: u64, end: WaitEnd) {
        let Some(mut wait) = state.waits.remove(&number) else { return };
        for fd in std::mem::take(&mut wait.pending) {
            self.leave(state, fd, number);
        }
        if let Some(at) = wait.deadline {
            state.deadlines.remove(&(at, number));
        }
        state.ended.push((wait, end));
    }

    fn watch(
        &self,
        state: &mut State,
        number: u64,
        fence: &CheckedFence,
    ) -> Result<(), LaunchError> {
        let fd = fence.as_fd().as_raw_fd();
        if let Some(watched) = state.fences.get_mut(&fd) {
            watched.waits.push(number);
            return Ok(());
        }
        let data = EventData::new_u64(own_number(fence));
        epoll::add(&self.epoll, fence, data, EventFlags::IN)
            .map_err(LaunchError::system("epoll_ctl"))?;
        // Kept while it is watched, so that no other descriptor gets its number.
        let watched = Watched { fence: fence.clone(), waits: vec![number] };
        state.fences.insert(fd, watched);
        Ok(())
    }

    /// A wait no longer waits for this fence.
    fn leave(&self, state: &mut State, fd: RawFd, number: u64) {
        let Some(watched) = state.fences.get_mut(&fd) else { return };
        watched.waits.retain(|one| *one != number);
        if watched.waits.is_empty()
            && let Some(watched) = state.fences.remove(&fd)
        {
            // It was added, and is open: nothing can be wrong.
            let _ = epoll::delete(&self.epoll, &watched.fence);
        }
    }

    fn wake(&self) {
        // It fails only where the counter is full, and then the thread is awake.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

/// The number by which `epoll` knows a descriptor.
fn own_number(fd: &impl AsFd) -> u64 {
    u64::from(fd.as_fd().as_raw_fd().unsigned_abs())
}

/// What `epoll` says, in the words of `poll`, whose bits are the same.
fn poll_flags(flags: EventFlags) -> PollFlags {
    let pairs = [
        (EventFlags::IN, PollFlags::IN),
        (EventFlags::HUP, PollFlags::HUP),
        (EventFlags::ERR, PollFlags::ERR),
    ];
    pairs.into_iter().filter(|(one, _)| flags.contains(*one)).map(|(_, other)| other).collect()
}

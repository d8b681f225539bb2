//! The threads of one client that run its executions, and what waits for one of them.
//!
//! A *slot* is the right to be run by one of the threads. Only what has a slot waits for a run token, so that
//! whoever is given one finds a thread at once: a token is never idle for want of a thread. There are at
//! most as many slots as the client may have threads, and each is charged to its user as a thread from
//! before the slot is given until neither slot nor thread is left. A client with anything under way has one
//! slot at least. The threads themselves start with the first token, and end a while after the last.
//!
//! One more thread does *errands*: what has to be done soon, computes nothing, and takes as long as the client
//! makes it, such as unmapping the client's memory. Whoever has such a thing to do and is somebody else's thread
//! hands it over. It has no slot, so that it neither waits for an execution nor makes one with a token wait; it
//! is charged as a thread as long as anything is under way.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::LaunchHost;
use crate::ServerError;
use crate::admission::{Charge, ClientBudgets, Limit};
use crate::panics::{catch_panic, lock};
use crate::threads;

/// How long a thread waits for the next execution before it ends: longer than a frame takes.
const LINGER: Duration = Duration::from_secs(1);

/// Something that is run by a thread of its client.
pub(super) trait Piece: Send + Sync {
    /// It has a slot. It asks for a thread ([`Lane::dispatch`]) as soon as it can be run, or lets go of the
    /// slot ([`Lane::leave_slot`]). This does not wait.
    fn admitted(self: Arc<Self>);

    /// It is run, on a thread of the client's; afterwards its slot is free.
    fn work(self: Arc<Self>);

    /// No thread starts, and none is there; afterwards its slot is free. This does not wait.
    fn no_thread(self: Arc<Self>);
}

/// Something that the thread for errands does. It may wait for the client's memory, and for nothing else.
pub(super) type Errand = Box<dyn FnOnce() + Send>;

/// The threads of one client.
pub(super) struct Lane {
    host: Arc<LaunchHost>,
    budgets: Arc<ClientBudgets>,
    /// Of the threads.
    name: String,
    width: usize,
    state: Mutex<State>,
    work: Condvar,
    /// There are errands, or nothing else is going to be.
    errand: Condvar,
}

#[derive(Default)]
struct State {
    is_closed: bool,
    /// One for each thread that there may be; never fewer than threads, and than slots in use.
    permits: Vec<Charge>,
    /// Executions under way, which need one slot at least.
    members: usize,
    slots: usize,
    /// What waits for a slot.
    waiting: VecDeque<Arc<dyn Piece>>,
    /// What waits for a thread: a thread is on its way to each.
    ready: VecDeque<Arc<dyn Piece>>,
    threads: usize,
    /// Threads that wait for work.
    idle: usize,
    errands: VecDeque<Errand>,
    /// Pays for the thread that does them, from before there may be any.
    errands_permit: Option<Charge>,
    /// It runs, or is on its way.
    has_errands_thread: bool,
}

/// An execution under way, until this is dropped.
pub(super) struct Member(Arc<Lane>);

impl State {
    /// Permits that are not needed any more, for the caller to drop with the lock let go of.
    fn surplus(&mut self) -> Vec<Charge> {
        let needed = self.threads.max(self.slots).max(self.members.min(1));
        let kept = needed.min(self.permits.len());
        let mut surplus = self.permits.split_off(kept);
        if self.members == 0 && !self.has_errands_thread {
            surplus.extend(self.errands_permit.take());
        }
        surplus
    }
}

impl Lane {
    pub(super) fn new(
        host: Arc<LaunchHost>,
        budgets: Arc<ClientBudgets>,
        name: String,
        width: usize,
    ) -> Arc<Self> {
        let (work, errand) = (Condvar::new(), Condvar::new());
        Arc::new(Lane { host, budgets, name, width, state: Mutex::default(), work, errand })
    }

    /// One more execution is under way.
    ///
    /// # Errors
    /// Its user may not have a thread more for it, and one for errands.
    pub(super) fn enlist(self: &Arc<Self>) -> Result<Member, ServerError> {
        let mut state = lock(&self.state);
        let runs = if state.permits.is_empty() { Some(self.budgets.thread()?) } else { None };
        if state.errands_permit.is_none() {
            state.errands_permit = Some(self.budgets.thread()?);
        }
        state.permits.extend(runs);
        state.members += 1;
        Ok(Member(Arc::clone(self)))
    }

    /// Something wants a slot, and gets it now or later.
    pub(super) fn enter(&self, piece: Arc<dyn Piece>) {
        lock(&self.state).waiting.push_back(piece);
        self.admit();
    }

    /// It wants none any more.
    pub(super) fn withdraw(&self, piece: &Arc<dyn Piece>) {
        let mut state = lock(&self.state);
        let at = state.waiting.iter().position(|one| Arc::ptr_eq(one, piece));
        let withdrawn = at.and_then(|at| state.waiting.remove(at));
        drop(state);
        drop(withdrawn);
    }

    /// Gives slots to what waits for one.
    fn admit(&self) {
        while let Some(piece) = self.next_admitted() {
            piece.admitted();
        }
    }

    fn next_admitted(&self) -> Option<Arc<dyn Piece>> {
        let mut state = lock(&self.state);
        if state.waiting.is_empty() {
            return None;
        }
        if state.slots == state.permits.len() {
            // Another thread where its user may have one; otherwise it waits for a slot of this client's,
            // of which there is one in use: its end comes here again.
            if state.slots >= self.width {
                return None;
            }
            let permit = self.budgets.thread().ok()?;
            state.permits.push(permit);
        }
        state.slots += 1;
        state.waiting.pop_front()
    }

    /// A slot is free again.
    pub(super) fn leave_slot(&self) {
        let mut state = lock(&self.state);
        state.slots -= 1;
        let surplus = if state.waiting.is_empty() { state.surplus() } else { Vec::new() };
        drop(state);
        drop(surplus);
        self.admit();
    }

    /// Something with a slot can be run: wakes a thread, or has one started. This does not wait; the calling
    /// thread may be somebody else's.
    pub(super) fn dispatch(self: &Arc<Self>, piece: Arc<dyn Piece>) {
        let mut state = lock(&self.state);
        state.ready.push_back(piece);
        // Threads that are idle, or start, and for which nothing is ready yet.
        let needs_thread = state.ready.len() > state.idle && state.threads < state.slots;
        if needs_thread {
            state.threads += 1;
            // A thread that starts takes something as an idle one does.
            state.idle += 1;
        }
        drop(state);
        self.work.notify_one();
        if needs_thread {
            // Starting a thread takes longer than the calling one has.
            let lane = Arc::clone(self);
            if self.host.watcher.soon(move || lane.start_thread()).is_err() {
                self.start_thread();
            }
        }
    }

    fn start_thread(self: &Arc<Self>) {
        let started = threads::start(self.name.clone(), Arc::clone(self), |lane| lane.run());
        if started.is_ok() {
            return;
        }
        self.host.meters.refused(Limit::Threads);
        let mut state = lock(&self.state);
        state.threads -= 1;
        state.idle -= 1;
        // Where there is another thread, it takes this piece after its own.
        let left =
            if state.threads == 0 { std::mem::take(&mut state.ready) } else { VecDeque::new() };
        drop(state);
        for piece in left {
            piece.no_thread();
            self.leave_slot();
        }
    }

    /// A thread of the client's.
    fn run(&self) {
        while let Some(piece) = self.next() {
            if catch_panic(|| piece.work()).is_err() {
                tracing::error!(thread = self.name, "an execution's thread panicked");
            }
            self.leave_slot();
            lock(&self.state).idle += 1;
        }
    }

    /// The next piece for a thread that is counted as idle; `None` where it ends.
    fn next(&self) -> Option<Arc<dyn Piece>> {
        let mut state = lock(&self.state);
        let mut lingered = false;
        loop {
            if let Some(piece) = state.ready.pop_front() {
                state.idle -= 1;
                return Some(piece);
            }
            if lingered || state.is_closed {
                state.idle -= 1;
                state.threads -= 1;
                let surplus = state.surplus();
                drop(state);
                drop(surplus);
                return None;
            }
            let waited = self.work.wait_timeout(state, LINGER);
            let (next, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            (state, lingered) = (next, timeout.timed_out());
        }
    }

    /// Has an errand done for an execution that is under way, or was. This does not wait; the calling thread may be
    /// somebody else's. Where the system has no thread left, the calling one does it.
    pub(super) fn send_on_errand(self: &Arc<Self>, errand: Errand) {
        let mut state = lock(&self.state);
        state.errands.push_back(errand);
        if state.errands_permit.is_none() {
            // Nothing is under way any more, and this is the last reference to something that was. It has to go
            // in any case: there is one such thread of a connection at most.
            state.errands_permit = self.budgets.thread().ok();
        }
        let needs_thread = !state.has_errands_thread;
        state.has_errands_thread = true;
        drop(state);
        self.errand.notify_one();
        if needs_thread {
            let lane = Arc::clone(self);
            if threads::start(self.name.clone(), lane, |lane| lane.do_errands(LINGER)).is_err() {
                self.host.meters.refused(Limit::Threads);
                self.do_errands(Duration::ZERO);
            }
        }
    }

    /// The thread that does errands, and waits so long for the next one.
    fn do_errands(&self, linger: Duration) {
        while let Some(errand) = self.next_errand(linger) {
            if catch_panic(errand).is_err() {
                tracing::error!(thread = self.name, "an errand of an execution panicked");
            }
        }
    }

    /// The next errand; `None` where the thread ends.
    fn next_errand(&self, linger: Duration) -> Option<Errand> {
        let mut state = lock(&self.state);
        let mut lingered = false;
        loop {
            if let Some(errand) = state.errands.pop_front() {
                return Some(errand);
            }
            if lingered || state.is_closed {
                state.has_errands_thread = false;
                let surplus = state.surplus();
                drop(state);
                drop(surplus);
                return None;
            }
            let waited = self.errand.wait_timeout(state, linger);
            let (next, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            (state, lingered) = (next, timeout.timed_out());
        }
    }

    /// Threads end as soon as nothing is left for them.
    pub(super) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.work.notify_all();
        self.errand.notify_all();
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.members -= 1;
        let surplus = state.surplus();
        drop(state);
        drop(surplus);
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "lane_tests.rs"]
mod tests;

//! A thread that computes for a client, and its part in taking turns.

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use burst_hal::trace::{Marks, SpanKind, Tracer, when_on};
use burst_hal::{CancelWord, TimePoint, Turn};
use fmq::Gauge;
use rustix::thread::sched_yield;

use super::Scheduler;
use super::claims::Claimant;
use super::meter::Waited;
use super::turns::{Asked, Slice, Verdict};
use super::urgent::{CLIENTS_TURN_NS, LOOK_EVERY_NS, Need, News, Urgent, Watched};
use super::waiter::{Given, Granted, NoToken, Waiter};

/// What computes, for log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// The burst with this number.
    Burst(u32),
    /// One execution over the socket.
    Execution,
    /// The execution with this number, which nobody waits for.
    Launched(u32),
    /// A model is prepared.
    Preparation,
    /// A device is asked which operations it supports.
    Survey,
    /// A buffer is copied to memory of the client, or from there.
    Copy,
}

/// Somebody who computes for a client again and again (a burst) or once (a call). It holds a token from
/// [`begin`](Run::begin) to [`end`](Run::end), one at a time, on the thread that has
/// [entered](Run::enter) it. Where no token moves for too long it computes without one, beside those that
/// do not give way.
pub(crate) struct Run {
    pub(super) scheduler: Arc<Scheduler>,
    pub(super) number: u64,
    of: Claimant,
    work: Work,
    waiter: Arc<Waiter>,
    /// Bursts of the same user.
    urgent: Arc<Urgent>,
    /// One of the constants below, or when it was handed its token. Only the thread that has entered
    /// the run writes it, and the fields below; others read it for reports.
    slice: AtomicU64,
    /// Until when the time of this slice is charged.
    charged: AtomicU64,
    /// It computes beside those that have a token.
    is_beside: AtomicBool,
    /// How often it ended.
    ends: AtomicU64,
    /// How often more urgent ones had ended when it looked last.
    urgent_ends: AtomicU64,
    /// Until when it lets the clients of more urgent ones have its core.
    yields_until: AtomicU64,
    /// When it looked whether more urgent ones have news.
    looked_at: AtomicU64,
    /// In nanoseconds; `u64::MAX` for none.
    deadline: AtomicU64,
    /// Where the spans of its waiting go.
    tracer: OnceLock<Tracer>,
    /// How long it has waited for its turn, for reports.
    waited: Waited,
}

/// It does not compute.
const IDLE: u64 = 0;
/// It computes without a token: it was cancelled, or missed its deadline, when it was not its turn, and
/// is about to give up.
const WITHOUT_TOKEN: u64 = 1;
/// It took its token when nobody waited, and did not look at the clock.
const SINCE_QUIET: u64 = 2;
/// The same, and since then it was charged for the time up to [`Run::charged`].
const SINCE_QUIET_CHARGED: u64 = 3;

thread_local! {
    /// The run that the thread has entered.
    static CURRENT: RefCell<Option<Arc<Run>>> = const { RefCell::new(None) };
}

/// The calling thread computes for a run until this is dropped, which ends what it has begun.
#[derive(Debug)]
pub(crate) struct Entered(Arc<Run>);

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.end();
        CURRENT.with_borrow_mut(Option::take);
    }
}

impl Run {
    pub(super) fn new(
        scheduler: Arc<Scheduler>,
        number: u64,
        of: Claimant,
        work: Work,
        cancel: &CancelWord,
    ) -> Self {
        Run {
            urgent: scheduler.users.of(of.user),
            scheduler,
            number,
            of,
            work,
            waiter: Arc::new(Waiter::new(cancel)),
            slice: AtomicU64::new(IDLE),
            charged: AtomicU64::new(0),
            is_beside: AtomicBool::new(false),
            ends: AtomicU64::new(0),
            urgent_ends: AtomicU64::new(0),
            yields_until: AtomicU64::new(0),
            looked_at: AtomicU64::new(0),
            deadline: AtomicU64::new(u64::MAX),
            tracer: OnceLock::new(),
            waited: Waited::default(),
        }
    }

    /// The spans of its waiting go there.
    pub(crate) fn traced_by(&self, tracer: Tracer) {
        // Said once, by whoever made it.
        let _ = self.tracer.set(tracer);
    }

    /// From now on the calling thread is the one that computes for this run.
    pub(crate) fn enter(self: &Arc<Self>) -> Entered {
        CURRENT.set(Some(Arc::clone(self)));
        Entered(Arc::clone(self))
    }

    /// Takes a token, waiting for its turn until `deadline`. Where it was kept since the last time, it is
    /// there already.
    ///
    /// # Errors
    /// The run has no token and must not compute.
    #[inline]
    pub(crate) fn begin(&self, deadline: Option<TimePoint>) -> Result<(), NoToken> {
        self.deadline.store(deadline.map_or(u64::MAX, |at| at.nanos), Ordering::Relaxed);
        if self.slice() != IDLE {
            return Ok(());
        }
        if self.scheduler.turns.try_take() {
            self.hold(SINCE_QUIET);
            return Ok(());
        }
        self.wait_for_first_turn()
    }

    /// Takes a token where it is there at once (true). Otherwise no thread waits: `granted` is called when
    /// it is the run's turn, and the thread that is going to compute [takes over](Run::take_over).
    pub(crate) fn begin_later(&self, granted: Granted) -> bool {
        if self.scheduler.turns.try_take() {
            self.hold(SINCE_QUIET);
            return true;
        }
        self.waiter.tell(granted);
        let computes = self.ask();
        if computes {
            self.waiter.forget_to_tell();
        }
        computes
    }

    /// Ends the waiting that [`begin_later`](Run::begin_later) began; false where the run has its token, or
    /// is about to be told of it.
    pub(crate) fn leave(&self) -> bool {
        let left = self.scheduler.turns.leave(self.of, &self.waiter, TimePoint::now().nanos);
        if left {
            self.waiter.forget_to_tell();
        }
        left
    }

    /// The token that the run was given while no thread waited is the calling thread's from now on.
    pub(crate) fn take_over(&self) {
        if let Some(given) = self.waiter.take_given() {
            self.hold_given(given);
        }
    }

    /// Gives the token back.
    #[inline]
    pub(crate) fn end(&self) {
        if self.slice() != IDLE {
            // Relaxed, and no read-modify-write: one thread writes.
            self.ends.store(self.ends() + 1, Ordering::Relaxed);
            self.give_back(IDLE);
        }
    }

    /// Gives the token back, where it has one; `then` is its state from now on.
    #[inline]
    fn give_back(&self, then: u64) {
        let slice = self.slice();
        self.hold(then);
        if slice > WITHOUT_TOKEN && (self.is_beside() || !self.scheduler.turns.try_give_back()) {
            self.hand_over(slice);
        }
    }

    /// Nothing further begins: the burst was closed, or its client is gone. Ends its waiting for the
    /// first step; what it has begun goes on, by turns.
    pub(crate) fn call_off(&self) {
        self.waiter.call_off();
        self.scheduler.wake_called_off();
    }

    /// Whether it was called off, or cancelled.
    #[inline]
    pub(crate) fn is_called_off(&self) -> bool {
        self.waiter.is_called_off()
    }

    pub(super) fn cancel(&self) {
        self.waiter.cancel();
    }

    /// Ends its waiting in the middle of what it computes, where its cancel word was set. To be called after that:
    /// a driver that waits for its turn looks at nothing.
    pub(crate) fn look_again(&self) {
        self.waiter.look_again();
    }

    /// Whether it computes just now, or waits in the middle of it.
    pub(crate) fn computes(&self) -> bool {
        self.slice() != IDLE
    }

    /// Whether its thread waits for its turn just now.
    pub(crate) fn waits(&self) -> bool {
        self.waited.since() != 0
    }

    /// How long its thread has waited for its turn since it was made.
    pub(crate) fn waited_ns(&self) -> u64 {
        self.waited.ns()
    }

    #[cold]
    fn wait_for_first_turn(&self) -> Result<(), NoToken> {
        self.take(Waiter::is_called_off)?;
        if self.is_called_off() {
            self.end(); // called off and given its token in the same instant
            return Err(NoToken::CalledOff);
        }
        Ok(())
    }

    /// Takes a token, waiting for its turn.
    fn take(&self, gives_up: fn(&Waiter) -> bool) -> Result<(), NoToken> {
        if self.ask() { Ok(()) } else { self.wait(gives_up) }
    }

    /// Whether it may compute at once; otherwise it waits from now on.
    fn ask(&self) -> bool {
        let now = TimePoint::now().nanos;
        match self.scheduler.turns.take_or_wait(self.of, Arc::clone(&self.waiter), now) {
            Asked::Token => self.hold(SINCE_QUIET),
            Asked::Beside => self.hold_given(Given { since: now, is_beside: true }),
            Asked::Waits { watch_at } => {
                if let Some(at) = watch_at {
                    self.scheduler.watch_at(at);
                }
                return false;
            }
        }
        true
    }

    #[cold]
    fn hand_over(&self, slice: u64) {
        let now = TimePoint::now().nanos;
        let times = self.times(slice);
        self.is_beside.store(false, Ordering::Relaxed);
        if let Some(next) = self.scheduler.turns.give_back(self.of, times, now) {
            next.run.grant(now, next.is_beside);
        }
    }

    #[cold]
    fn give_way_to_others(&self) {
        let slice = self.slice();
        // A driver may keep the turn and call from anywhere; a token belongs to one thread.
        if slice <= WITHOUT_TOKEN || !self.is_entered_here() || self.waiter.is_cancelled() {
            return;
        }
        let now = TimePoint::now().nanos;
        let waiter = Arc::clone(&self.waiter);
        match self.scheduler.turns.give_way(self.of, waiter, self.times(slice), now) {
            Verdict::GoOn(times) => {
                self.charged.store(times.charged, Ordering::Relaxed);
                self.hold(slice.max(SINCE_QUIET_CHARGED));
            }
            Verdict::Waits(next) => {
                self.is_beside.store(false, Ordering::Relaxed);
                if let Some(next) = next {
                    next.run.grant(now, next.is_beside);
                }
                if self.wait(Waiter::is_cancelled).is_err() {
                    self.hold(WITHOUT_TOKEN);
                }
            }
        }
    }

    /// It is of a burst with these requests: less urgent runs of the same user look at them.
    pub(crate) fn watches(self: &Arc<Self>, requests: Gauge) {
        let run = Arc::downgrade(self);
        self.urgent.add(self.number, self.of.priority, run, requests);
    }

    /// Lets threads of more urgent bursts, and of their clients, have this core.
    #[cold]
    fn let_urgent_run(&self) {
        if self.slice() <= WITHOUT_TOKEN || !self.is_entered_here() {
            return;
        }
        let (now, looked_at) = (TimePoint::now().nanos, self.looked_at.load(Ordering::Relaxed));
        if now < looked_at + LOOK_EVERY_NS {
            return;
        }
        self.looked_at.store(now, Ordering::Relaxed);
        let News { need, ends } = self.urgent.news(self.of.priority);
        if self.urgent_ends.swap(ends, Ordering::Relaxed) != ends {
            self.yields_until.store(now + CLIENTS_TURN_NS, Ordering::Relaxed);
        }
        match need {
            // The token has to be there when the thread begins.
            Some(Need::CoreAndToken) => without_token(sched_yield),
            Some(Need::Core) => sched_yield(),
            None if now < self.yields_until.load(Ordering::Relaxed) => sched_yield(),
            None => {}
        }
    }

    /// Waits for a token that the scheduler knows this run to wait for.
    fn wait(&self, gives_up: fn(&Waiter) -> bool) -> Result<(), NoToken> {
        let tracer = self.tracer.get().and_then(when_on);
        let mut marks = Marks::begin(tracer.as_deref());
        self.waited.begin();
        let deadline = self.deadline.load(Ordering::Relaxed);
        let leave = |now| self.scheduler.turns.leave(self.of, &self.waiter, now);
        let waited = self.waiter.wait(&self.scheduler.bells, deadline, gives_up, leave);
        self.waited.end();
        marks.mark(SpanKind::WaitForTurn);
        waited.map(|given| self.hold_given(given))
    }

    fn slice(&self) -> u64 {
        // Relaxed, as all of these: one thread writes, and reports need no order.
        self.slice.load(Ordering::Relaxed)
    }

    fn hold(&self, slice: u64) {
        self.slice.store(slice, Ordering::Relaxed);
    }

    /// Has what was given to it: a token, or the right to compute without one.
    fn hold_given(&self, Given { since, is_beside }: Given) {
        self.hold(since.max(SINCE_QUIET_CHARGED + 1));
        self.charged.store(since, Ordering::Relaxed);
        self.is_beside.store(is_beside, Ordering::Relaxed);
    }

    fn is_beside(&self) -> bool {
        self.is_beside.load(Ordering::Relaxed)
    }

    fn times(&self, slice: u64) -> Slice {
        let is_beside = self.is_beside();
        let charged = self.charged.load(Ordering::Relaxed);
        let (since, charged) = match slice {
            SINCE_QUIET => (None, 0), // what is there is of an earlier slice
            SINCE_QUIET_CHARGED => (None, charged),
            since => (Some(since), charged),
        };
        Slice { since, charged, is_beside }
    }

    fn is_entered_here(&self) -> bool {
        CURRENT.with_borrow(|run| run.as_ref().is_some_and(|run| std::ptr::eq(&**run, self)))
    }
}

impl Turn for Run {
    #[inline]
    fn give_way(&self) {
        if self.scheduler.turns.are_wanted() {
            self.give_way_to_others();
        }
        if self.urgent.is_above(self.of.priority) {
            self.let_urgent_run();
        }
    }

    fn step_aside(&self, may_wait: &mut dyn FnMut()) {
        // A driver may keep the turn and call from anywhere; a token belongs to one thread.
        match self.is_entered_here() {
            true => without_token(may_wait),
            false => may_wait(),
        }
    }
}

impl Watched for Run {
    fn needs(&self, has_requests: &dyn Fn() -> bool) -> Option<Need> {
        // A request stays in its queue until it is answered.
        let has_not_begun = || !self.computes() && !self.waits() && has_requests();
        match self.waiter.is_granted() {
            true => Some(Need::Core),
            false => has_not_begun().then_some(Need::CoreAndToken),
        }
    }

    fn ends(&self) -> u64 {
        self.ends.load(Ordering::Relaxed)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.scheduler.forget(self.number);
        self.urgent.forget(self.number);
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Claimant { user, connection, .. } = self.of;
        match self.work {
            Work::Burst(burst) => write!(f, "burst {burst}")?,
            Work::Execution => f.write_str("an execution over the socket")?,
            Work::Launched(execution) => write!(f, "execution {execution}")?,
            Work::Preparation => f.write_str("a preparation")?,
            Work::Survey => f.write_str("a survey")?,
            Work::Copy => f.write_str("a copy of a buffer")?,
        }
        write!(f, " of client {connection}, user {user}")
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Run({self})")
    }
}

/// Runs what may wait for something that a client controls, such as a file on a file system of its
/// own. The token that the calling thread holds goes back for as long.
pub(crate) fn without_token<T>(may_wait: impl FnOnce() -> T) -> T {
    let holds = |run: &&Arc<Run>| run.slice() > WITHOUT_TOKEN;
    let run = CURRENT.with_borrow(|run| run.as_ref().filter(holds).cloned());
    let Some(run) = run else { return may_wait() };
    run.give_back(WITHOUT_TOKEN);
    let result = may_wait();
    if run.scheduler.turns.try_take() {
        run.hold(SINCE_QUIET);
    } else {
        // Cancelled or past its deadline it goes on as it is, and gives up where it looks at them next.
        let _ = run.take(Waiter::is_cancelled);
    }
    result
}

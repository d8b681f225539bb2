//! One execution that its client does not wait for, from its launch to its end.
//!
//! ```text
//! Entered -> Fences -> Slot -> Token -> Running -> Ended
//!                 \______\_______\________________/   deadline, cancel, failed fence, end of the client
//! ```
//!
//! Where it waits (the first four) anybody may end it at once; whoever moves the stage to `Ended` tells of
//! it. Once it runs only its thread does, and the driver looks at its cancel word.
//!
//! To tell is to let go first of all that it held, and to write spans into memory of the client's: that takes as
//! long as the client makes it. So what ends on the thread that watches everybody's fences and deadlines is
//! told by a thread of the client's own ([`Lane::send_on_errand`]), which also has the last reference to it.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use burst_hal::trace::{Marks, Span, SpanKind, when_on};
use burst_hal::{
    CancelHook, CancelWord, ErrorStatus, ExecutionInfo, ExecutionOptions, ExecutionResult, Failure,
    FencedInfo, Request, TimePoint,
};
use burst_launch::{CheckedFence, Completion, FenceState, WaitEnd, Waiting, sooner};

use super::LaunchHost;
use super::ending::Telling;
use super::lane::{Lane, Member, Piece};
use crate::admission::{Charge, Limit};
use crate::buffers::BufferEntry;
use crate::client::{ClientLink, Presence};
use crate::execution::finish;
use crate::panics::{catch_panic, lock};
use crate::prepared::{PreparedEntry, left_until};
use crate::scheduler::{Run, Work};

/// What is to be executed.
pub(crate) struct NewLaunch {
    /// By which its client knows it.
    pub(crate) number: u32,
    pub(crate) entry: Arc<PreparedEntry>,
    pub(crate) request: Request,
    /// What the tokens of the request stand for.
    pub(crate) buffers: Vec<Arc<BufferEntry>>,
    pub(crate) options: ExecutionOptions,
    /// When the call came.
    pub(crate) arrived: Instant,
    /// `None` where it is asynchronous: its client is told its result.
    pub(crate) fenced: Option<Fences>,
    /// A place among the executions that are not waited for.
    pub(crate) place: Charge,
    /// What it keeps until its end.
    pub(crate) kept: Charge,
}

/// What a fenced execution has besides.
pub(crate) struct Fences {
    pub(crate) wait_for: Vec<CheckedFence>,
    pub(crate) duration: Option<Duration>,
    pub(crate) completion: Arc<Completion>,
}

/// Called when the number of an asynchronous execution is free again.
type Leave = Box<dyn FnOnce() + Send>;

/// Whose executions they are.
pub(super) struct Owner {
    pub(super) host: Arc<LaunchHost>,
    pub(super) lane: Arc<Lane>,
    pub(super) telling: Telling,
    pub(super) link: Arc<ClientLink>,
}

/// One execution.
pub(crate) struct Launched {
    number: u32,
    owner: Arc<Owner>,
    options: ExecutionOptions,
    arrived: Instant,
    /// The same for spans, a moment later.
    entered: TimePoint,
    /// Until its deadline when it came.
    left: Option<Duration>,
    run: Arc<Run>,
    cancel: CancelWord,
    completion: Option<Arc<Completion>>,
    /// Of a fenced execution: until it is released.
    _place: Option<Charge>,
    state: Mutex<State>,
}

struct State {
    stage: Stage,
    /// Why it is not to begin, where that was found out just when it was given its token.
    refused: Option<ErrorStatus>,
    load: Option<Load>,
    /// When all fences were done, and when it is no longer wanted from then on.
    fenced: Option<TimePoint>,
    deadline: Option<TimePoint>,
    /// What tells of a cancel, and of the deadline.
    hooks: Vec<CancelHook>,
    alarm: Option<Waiting>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Entered,
    Fences,
    Slot,
    Token,
    Running,
    Ended,
}

/// What it holds until its end; what is dropped last stands last.
struct Load {
    request: Request,
    buffers: Vec<Arc<BufferEntry>>,
    entry: Arc<PreparedEntry>,
    wait_for: Vec<CheckedFence>,
    duration: Option<Duration>,
    leave: Option<Leave>,
    kept: Charge,
    /// Of an asynchronous one.
    place: Option<Charge>,
    member: Member,
    presence: Arc<Presence>,
}

impl Launched {
    pub(super) fn new(
        launch: NewLaunch,
        owner: &Arc<Owner>,
        (member, presence): (Member, Arc<Presence>),
        leave: Leave,
    ) -> Arc<Self> {
        let NewLaunch { number, entry, request, buffers, options, .. } = launch;
        let NewLaunch { arrived, fenced, place, kept, .. } = launch;
        let cancel = CancelWord::default();
        let run = owner.host.scheduler.run(
            presence.claimant(entry.priority),
            Work::Launched(number),
            &cancel,
        );
        run.traced_by(owner.link.tracer());
        // Who hears of its end has its number and its place again; of a fenced one only the release tells.
        let mut load = Load {
            request,
            buffers,
            entry,
            wait_for: Vec::new(),
            duration: None,
            leave: None,
            kept,
            place: None,
            member,
            presence,
        };
        let mut completion = None;
        let mut until_released = None;
        match fenced {
            None => (load.leave, load.place) = (Some(leave), Some(place)),
            Some(fences) => {
                until_released = Some(place);
                completion = Some(fences.completion);
                (load.wait_for, load.duration) = (fences.wait_for, fences.duration);
            }
        }
        let state = State {
            stage: Stage::Entered,
            refused: None,
            load: Some(load),
            fenced: None,
            deadline: options.deadline,
            hooks: Vec::new(),
            alarm: None,
        };
        Arc::new(Launched {
            number,
            owner: Arc::clone(owner),
            options,
            arrived,
            entered: TimePoint::now(),
            left: left_until(options.deadline),
            run,
            cancel,
            completion,
            _place: until_released,
            state: Mutex::new(state),
        })
    }

    /// Whether it is fenced.
    pub(super) fn is_fenced(&self) -> bool {
        self.completion.is_some()
    }

    /// What came of it; `None` where it is not fenced.
    pub(super) fn info(&self) -> Option<Result<ExecutionInfo, Failure>> {
        let info = self.completion.as_ref()?.execution_info();
        Some(
            info.map(|info| ExecutionInfo {
                status: self.owner.telling.status(info.status),
                ..info
            }),
        )
    }

    /// Its client knows of it: it begins to wait for its fences, or for its turn.
    pub(crate) fn start(self: &Arc<Self>) {
        let weak = Arc::downgrade(self);
        let own = self.cancel.clone();
        // The end of the client is one of each of its executions.
        let of_client = self.owner.link.cancel_word().when_cancelled(move || own.cancel());
        let own = self.cancel.when_cancelled(move || {
            if let Some(launched) = weak.upgrade() {
                launched.call_off();
            }
        });
        self.keep_hooks([of_client, own]);
        let mut state = lock(&self.state);
        if state.stage != Stage::Entered {
            return; // cancelled by now
        }
        state.stage = Stage::Fences;
        let load = state.load.as_mut();
        let Some(load) = load else { return };
        let (fences, refusal) = (std::mem::take(&mut load.wait_for), load.entry.refusal(self.left));
        drop(state);
        match refusal {
            Some(hopeless) => self.end_waiting(hopeless),
            None => self.wait_for(&fences),
        }
    }

    fn keep_hooks(&self, hooks: [CancelHook; 2]) {
        let mut state = lock(&self.state);
        let kept = if state.stage == Stage::Ended { Err(hooks) } else { Ok(hooks) };
        let unwanted = kept.map(|hooks| state.hooks.extend(hooks));
        drop(state);
        drop(unwanted); // with no lock held: they ask for one of their own
    }

    fn wait_for(self: &Arc<Self>, fences: &[CheckedFence]) {
        if fences.iter().all(|fence| fence.state() == FenceState::Done) {
            return Arc::clone(self).waited(WaitEnd::Done);
        }
        let longest = TimePoint::after(self.owner.host.fence_wait);
        let until = self.options.deadline.map_or(longest, |deadline| deadline.min(longest));
        let launched = Arc::clone(self);
        // The watcher's thread, or this one.
        let ended = move |end| launched.waited(end);
        let waits = self.owner.host.watcher.wait(fences, Some(until), &self.cancel, ended);
        if let Err(error) = waits {
            tracing::warn!(%error, "fences cannot be watched");
            self.end_waiting(error.status());
        }
    }

    /// The wait for its fences has ended.
    fn waited(self: Arc<Self>, end: WaitEnd) {
        match end {
            WaitEnd::Done => self.ready(),
            WaitEnd::MissedDeadline => {
                if !self.options.deadline.is_some_and(TimePoint::has_passed) {
                    self.owner.host.meters.refused(Limit::FenceWait);
                }
                let missed = self.missed();
                self.end_elsewhere(missed);
            }
            WaitEnd::Failed | WaitEnd::Cancelled => {
                self.end_elsewhere(ErrorStatus::GeneralFailure);
            }
        }
    }

    /// All fences are done: it waits for a slot, and then for its run token, until its deadline.
    fn ready(self: Arc<Self>) {
        let fenced = TimePoint::now();
        let mut state = lock(&self.state);
        if state.stage != Stage::Fences {
            drop(state);
            return self.leave_to_its_client();
        }
        let duration = state.load.as_ref().and_then(|load| load.duration);
        let deadline = sooner(self.options.deadline, fenced, duration);
        (state.fenced, state.deadline, state.stage) = (Some(fenced), deadline, Stage::Slot);
        drop(state);
        match deadline {
            Some(at) if at <= fenced => {
                let missed = self.missed();
                return self.end_elsewhere(missed);
            }
            Some(at) => self.set_alarm(at),
            None => {}
        }
        let lane = Arc::clone(&self.owner.lane);
        lane.enter(self);
    }

    fn set_alarm(self: &Arc<Self>, at: TimePoint) {
        let weak = Arc::downgrade(self);
        let alarm = self.owner.host.watcher.alarm(at, move |end| {
            // Where it has ended before, not even looked up: this thread must not have its last reference.
            if end != WaitEnd::MissedDeadline {
                return;
            }
            if let Some(launched) = weak.upgrade() {
                let missed = launched.missed();
                launched.end_elsewhere(missed);
            }
        });
        match alarm {
            // Its deadline is met where it gets its token, too.
            Err(error) => tracing::warn!(%error, "no alarm for a deadline"),
            Ok(alarm) => {
                let mut state = lock(&self.state);
                if state.stage != Stage::Ended {
                    state.alarm = Some(alarm);
                }
            }
        }
    }

    /// The status of one whose deadline has passed while it waited.
    fn missed(&self) -> ErrorStatus {
        let state = lock(&self.state);
        let load = state.load.as_ref();
        load.map_or(ErrorStatus::MissedDeadlineTransient, |load| load.entry.missed(self.left))
    }

    /// Asks it to give up.
    pub(super) fn cancel(&self) {
        self.cancel.cancel();
        self.run.look_again();
    }

    /// What has not begun never will.
    pub(super) fn call_off(self: &Arc<Self>) {
        self.end_waiting(ErrorStatus::GeneralFailure);
    }

    /// Ends it where it still waits, on a thread of its client's.
    fn end_waiting(self: &Arc<Self>, status: ErrorStatus) {
        if let Some(waited_for) = self.leave(status) {
            self.tell(ExecutionResult::of(status), None);
            self.leave_lane(waited_for);
        }
    }

    /// The same on a thread that others wait for.
    fn end_elsewhere(self: Arc<Self>, status: ErrorStatus) {
        match self.leave(status) {
            Some(waited_for) => {
                // Not the owner, which has the connection: this must not be its last reference.
                let lane = Arc::clone(&self.owner.lane);
                lane.send_on_errand(Box::new(move || {
                    self.tell(ExecutionResult::of(status), None);
                    self.leave_lane(waited_for);
                }));
            }
            None => self.leave_to_its_client(),
        }
    }

    /// What may be the last reference to it, and to its client's connection, goes on a thread of the client's.
    fn leave_to_its_client(self: Arc<Self>) {
        let lane = Arc::clone(&self.owner.lane);
        if let Some(last) = Arc::into_inner(self) {
            lane.send_on_errand(Box::new(move || drop(last)));
        }
    }

    /// Moves the stage to `Ended` where it still waits; gives for what it did.
    fn leave(&self, status: ErrorStatus) -> Option<Stage> {
        let mut state = lock(&self.state);
        let waited_for = state.stage;
        match waited_for {
            Stage::Entered | Stage::Fences | Stage::Slot => {}
            Stage::Token if self.run.leave() => {}
            // It has its token, or is about to wait for it: whoever goes on with it looks here.
            Stage::Token => {
                state.refused = Some(status);
                return None;
            }
            Stage::Running | Stage::Ended => return None,
        }
        state.stage = Stage::Ended;
        Some(waited_for)
    }

    /// Its slot, or its place among those that wait for one, is free.
    fn leave_lane(self: &Arc<Self>, waited_for: Stage) {
        let lane = &self.owner.lane;
        match waited_for {
            Stage::Slot => lane.withdraw(&(Arc::clone(self) as Arc<dyn Piece>)),
            Stage::Token => lane.leave_slot(),
            _ => {}
        }
    }

    /// Tells of its end, having let go of all that it held. Called once, by whoever moved the stage to
    /// `Ended`.
    fn tell(&self, result: ExecutionResult, in_driver_ns: Option<u64>) {
        let mut state = lock(&self.state);
        let (load, fenced) = (state.load.take(), state.fenced);
        let (hooks, alarm) = (std::mem::take(&mut state.hooks), state.alarm.take());
        drop(state);
        drop(hooks);
        if let Some(alarm) = alarm {
            alarm.cancel();
        }
        let Some(Load { request, buffers, entry, leave, kept, place, member, presence, .. }) = load
        else {
            return;
        };
        let nanos = u64::try_from(self.arrived.elapsed().as_nanos()).unwrap_or(u64::MAX);
        entry.meter.socket().count(result.status, Some(nanos));
        self.record_whole(fenced);
        drop((request, buffers, entry, kept, place));
        match &self.completion {
            Some(completion) => completion.end(&result, fenced),
            None => {
                if let Some(leave) = leave {
                    leave();
                }
                self.owner.telling.executed(self.number, result, in_driver_ns, (member, presence));
            }
        }
    }

    /// The spans of all of it, and of waiting for its fences.
    fn record_whole(&self, fenced: Option<TimePoint>) {
        let Some(tracer) = when_on(&self.owner.link.tracer()) else { return };
        let whole = Span::since(self.entered.nanos, SpanKind::Request);
        if self.is_fenced() {
            let end_ns = fenced.map_or(whole.end_ns, |fenced| fenced.nanos);
            tracer.record(&Span { kind: SpanKind::WaitForFences, end_ns, ..whole });
        }
        tracer.record(&whole);
    }

    /// Executes, on a thread that has the run token.
    fn execute(&self) -> (ExecutionResult, Option<u64>) {
        let failed = |status| (ExecutionResult::of(status), None);
        let mut state = lock(&self.state);
        let (deadline, refused, fenced) = (state.deadline, state.refused, state.fenced);
        let load = state.load.as_mut();
        let Some((request, entry)) =
            load.map(|load| (std::mem::take(&mut load.request), Arc::clone(&load.entry)))
        else {
            return failed(ErrorStatus::GeneralFailure);
        };
        drop(state);
        if let Some(status) = refused {
            return failed(status);
        }
        // The token is there; this says until when it is waited for in the middle of the execution.
        if deadline.is_some_and(TimePoint::has_passed) || self.run.begin(deadline).is_err() {
            return failed(entry.missed(self.left));
        }
        let computing = entry.meter.computing(&self.run);
        let tracer = when_on(&self.owner.link.tracer());
        if let Some((tracer, fenced)) = tracer.as_ref().zip(fenced) {
            tracer.record(&Span::since(fenced.nanos, SpanKind::WaitForTurn));
        }
        let mut marks = Marks::begin(tracer.as_deref());
        let caller = self.owner.link.caller_by(&self.cancel).with_turn(Arc::clone(&self.run) as _);
        let caller = entry.paying(caller);
        let options = ExecutionOptions { deadline, ..self.options };
        let executed = catch_panic(|| entry.model.execute_for(&request, &options, &caller));
        drop(computing);
        let Ok(mut result) = executed else {
            tracing::error!(lane = ?self.owner.lane, execution = self.number, "the driver panicked");
            return failed(ErrorStatus::GeneralFailure);
        };
        marks.mark(SpanKind::Device);
        result.status = entry.judge(result.status, self.left);
        let outputs = request.outputs.len();
        let in_driver = finish(&mut result, outputs, options.measure_timing, self.arrived);
        marks.mark(SpanKind::EncodeResult);
        (result, in_driver)
    }
}

impl Piece for Launched {
    fn admitted(self: Arc<Self>) {
        let lane = Arc::clone(&self.owner.lane);
        let mut state = lock(&self.state);
        let is_wanted = state.stage == Stage::Slot;
        if is_wanted {
            state.stage = Stage::Token;
        }
        drop(state);
        if !is_wanted {
            self.leave_to_its_client();
            return lane.leave_slot();
        }
        let launched = Arc::clone(&self);
        let granted = Box::new(move || {
            let lane = Arc::clone(&launched.owner.lane);
            lane.dispatch(launched);
        });
        if self.run.begin_later(granted) {
            return lane.dispatch(self);
        }
        // Who wanted to end it in the instant before it waited found nothing to end.
        let refused = lock(&self.state).refused;
        match refused {
            Some(status) => self.end_elsewhere(status),
            None => self.leave_to_its_client(),
        }
    }

    fn work(self: Arc<Self>) {
        let entered = self.run.enter();
        self.run.take_over();
        lock(&self.state).stage = Stage::Running;
        let (result, in_driver_ns) = self.execute();
        drop(entered);
        lock(&self.state).stage = Stage::Ended;
        self.tell(result, in_driver_ns);
    }

    fn no_thread(self: Arc<Self>) {
        self.run.take_over();
        self.run.end();
        lock(&self.state).stage = Stage::Ended;
        let lane = Arc::clone(&self.owner.lane);
        lane.send_on_errand(Box::new(move || {
            self.tell(ExecutionResult::of(ErrorStatus::ResourceExhaustedTransient), None);
        }));
    }
}

impl fmt::Debug for Launched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launched").field("number", &self.number).finish_non_exhaustive()
    }
}

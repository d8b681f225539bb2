//! What a fenced execution leaves behind: its fence, its status and its times.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use burst_hal::{
    ErrorStatus, ExecutionInfo, ExecutionResult, Failure, Fence, FencedInfo, TimePoint, Timing,
};

use crate::LaunchError;
use crate::fence::FenceSignal;
use crate::locks::lock;

/// The end of a fenced execution, and whoever asks for it. Where it is dropped before it has
/// [ended](Completion::end), its fence fails.
#[derive(Debug)]
pub struct Completion {
    launched: TimePoint,
    measure_timing: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    UnderWay(FenceSignal),
    Ended(ExecutionInfo),
}

impl Completion {
    /// An execution that is launched now, and its fence.
    ///
    /// # Errors
    /// [`LaunchError::System`] where the process has no descriptor left.
    pub fn new(measure_timing: bool) -> Result<(Arc<Self>, Fence), LaunchError> {
        let (signal, fence) = FenceSignal::new()?;
        let state = Mutex::new(State::UnderWay(signal));
        let launched = TimePoint::now();
        Ok((Arc::new(Completion { launched, measure_timing, state }), fence))
    }

    /// The execution has ended, all of whose fences were done at `fenced`, where they were. Whoever sees the
    /// fence done, or failed, finds the answer here. Only the first call counts.
    ///
    /// Outputs that are too small are a failure like any other: nobody asked for their shapes.
    pub fn end(&self, result: &ExecutionResult, fenced: Option<TimePoint>) {
        let status = match result.status {
            ErrorStatus::OutputInsufficientSize => ErrorStatus::GeneralFailure,
            status => status,
        };
        let (timing_launched, timing_fenced) = match fenced {
            Some(fenced) if self.measure_timing && status == ErrorStatus::None => {
                timings(result.timing, self.launched, fenced, TimePoint::now())
            }
            _ => (Timing::UNAVAILABLE, Timing::UNAVAILABLE),
        };
        let ended = State::Ended(ExecutionInfo { status, timing_launched, timing_fenced });
        let mut state = lock(&self.state);
        if matches!(*state, State::Ended(_)) {
            return;
        }
        let before = std::mem::replace(&mut *state, ended);
        drop(state);
        // After the answer is there. Otherwise it is dropped, which fails it.
        if let State::UnderWay(signal) = before
            && status == ErrorStatus::None
        {
            signal.done();
        }
    }

    /// As [`end`](Completion::end), where it was never begun, or came to nothing.
    pub fn fail(&self, status: ErrorStatus) {
        self.end(&ExecutionResult::of(status), None);
    }

    /// Whether it has ended, and that well.
    #[must_use]
    pub fn has_ended_well(&self) -> bool {
        matches!(&*lock(&self.state), State::Ended(info) if info.status == ErrorStatus::None)
    }
}

impl FencedInfo for Completion {
    fn execution_info(&self) -> Result<ExecutionInfo, Failure> {
        match &*lock(&self.state) {
            State::Ended(info) => Ok(*info),
            State::UnderWay(_) => Err(Failure::general("the execution has not ended yet")),
        }
    }
}

/// Times from the launch and from the end of the fences, until now: each at least as long as what it
/// encloses.
fn timings(
    device: Timing,
    launched: TimePoint,
    fenced: TimePoint,
    now: TimePoint,
) -> (Timing, Timing) {
    let micros = |since| u64::try_from(now.since(since).as_micros()).unwrap_or(u64::MAX - 1);
    let known = |us: u64| Some(us).filter(|us| *us != u64::MAX).unwrap_or(0);
    let time_on_device_us = device.time_on_device_us;
    let inner = known(time_on_device_us).max(known(device.time_in_driver_us));
    let since_fenced = micros(fenced).max(inner);
    let since_launched = micros(launched).max(since_fenced);
    let timing = |time_in_driver_us| Timing { time_on_device_us, time_in_driver_us };
    (timing(since_launched), timing(since_fenced))
}

/// When an execution is over whose fences were done at `fenced`: at its deadline, or after its duration,
/// whichever is first.
#[must_use]
pub fn sooner(
    deadline: Option<TimePoint>,
    fenced: TimePoint,
    duration: Option<Duration>,
) -> Option<TimePoint> {
    let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let after =
        duration.map(|duration| TimePoint { nanos: fenced.nanos.saturating_add(nanos(duration)) });
    [deadline, after].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CheckedFence, FenceState};

    fn ended(measure: bool, result: &ExecutionResult) -> (ExecutionInfo, FenceState) {
        let (completion, fence) = Completion::new(measure).unwrap();
        let [seen] = &CheckedFence::check_all(vec![fence]).unwrap()[..] else { panic!() };
        assert_eq!(seen.state(), FenceState::Pending);
        let early = completion.execution_info().unwrap_err();
        assert_eq!(early.status, ErrorStatus::GeneralFailure, "before the end");
        completion.end(result, Some(TimePoint::now()));
        completion.fail(ErrorStatus::DeviceUnavailable); // too late
        (completion.execution_info().unwrap(), seen.state())
    }

    #[test]
    fn the_fence_tells_whether_it_went_well_and_the_info_how() {
        let timing = Timing { time_on_device_us: 7, time_in_driver_us: 1_000_000 };
        let good = ExecutionResult { timing, ..ExecutionResult::of(ErrorStatus::None) };
        let (info, state) = ended(true, &good);
        assert_eq!((info.status, state), (ErrorStatus::None, FenceState::Done));
        assert!(info.timing_launched.time_in_driver_us >= info.timing_fenced.time_in_driver_us);
        assert!(info.timing_fenced.time_in_driver_us >= 1_000_000, "no shorter than inside");
        assert_eq!(info.timing_fenced.time_on_device_us, 7);
        let (info, _) = ended(false, &good);
        assert_eq!(info.timing_launched, Timing::UNAVAILABLE, "nobody asked");
        for (status, want) in [
            (ErrorStatus::MissedDeadlineTransient, ErrorStatus::MissedDeadlineTransient),
            (ErrorStatus::OutputInsufficientSize, ErrorStatus::GeneralFailure),
        ] {
            let (info, state) = ended(true, &ExecutionResult { status, ..good.clone() });
            assert_eq!((info.status, state), (want, FenceState::Failed));
            assert_eq!(info.timing_fenced, Timing::UNAVAILABLE);
        }
    }

    #[test]
    fn the_sooner_of_deadline_and_duration_counts() {
        let at = |nanos| TimePoint { nanos };
        let ns = |nanos| Some(Duration::from_nanos(nanos));
        for (deadline, duration, want) in [
            (None, None, None),
            (Some(at(5)), None, Some(at(5))),
            (None, ns(10), Some(at(110))),
            (Some(at(105)), ns(10), Some(at(105))),
            (Some(at(500)), ns(10), Some(at(110))),
            (None, ns(u64::MAX), Some(at(u64::MAX))),
        ] {
            assert_eq!(sooner(deadline, at(100), duration), want);
        }
    }
}

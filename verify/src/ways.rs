//! The four ways to execute, each with the rules that it has beyond its result.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use burst_hal::{
    Burst, Caller, ErrorStatus, ExecutionInfo, ExecutionOptions, ExecutionResult, Failure, Fence,
    FenceState, FencedExecution, FencedOptions, PreparedModel, Request, Route, TimePoint, Timing,
};

/// Far above any execution; only turns a hang into an error.
const PATIENCE: Duration = Duration::from_secs(60);

/// A prepared model over a route.
pub(crate) struct Way {
    prepared: Arc<dyn PreparedModel>,
    route: Route,
    /// One burst for all requests, so that their memory keeps its slots.
    burst: Option<Box<dyn Burst>>,
}

/// What an execution came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) result: ExecutionResult,
    /// The status with which it was refused at once, where it can be told from a result.
    pub(crate) refused: Option<ErrorStatus>,
}

impl Way {
    pub(crate) fn open(prepared: &Arc<dyn PreparedModel>, route: Route) -> Result<Self, String> {
        let burst = match route {
            Route::Burst => Some(Arc::clone(prepared).open_burst()),
            _ => None,
        };
        let burst = burst.transpose().map_err(|failure| format!("open_burst: {failure}"))?;
        Ok(Way { prepared: Arc::clone(prepared), route, burst })
    }

    pub(crate) fn route(&self) -> Route {
        self.route
    }

    /// Executes once, and waits for the end.
    pub(crate) fn execute(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<Ran, String> {
        match self.route {
            Route::Synchronous => {
                let result = self.prepared.execute_synchronously(request, options);
                Ok(Ran { result, refused: None })
            }
            Route::Asynchronous => self.asynchronously(request, options),
            Route::Fenced => self.fenced(request, options),
            Route::Burst => {
                // A driver that does not write its result has failed.
                let mut result = ExecutionResult::of(ErrorStatus::GeneralFailure);
                if let Some(burst) = &mut self.burst {
                    burst.execute(request, options, &mut result);
                }
                Ok(Ran { result, refused: None })
            }
        }
    }

    /// The launch says no more than its callback, and of a deadline it says nothing.
    fn asynchronously(&self, request: &Request, options: &ExecutionOptions) -> Result<Ran, String> {
        let (tell, told) = sync_channel(1);
        let callback = Box::new(move |result| drop(tell.send(result)));
        let (request, caller) = (request.clone(), Caller::default());
        let launched =
            Arc::clone(&self.prepared).execute_asynchronously(request, *options, caller, callback);
        let result: ExecutionResult = told
            .recv_timeout(PATIENCE)
            .map_err(|_| "the callback of an asynchronous execution was not called".to_owned())?;
        let refused = launched.err().map(|failure| failure.status);
        if let Some(status) = refused {
            use ErrorStatus::{MissedDeadlinePersistent, MissedDeadlineTransient};
            if matches!(status, MissedDeadlinePersistent | MissedDeadlineTransient) {
                return Err(format!("the launch says {status}, which is for the callback to say"));
            }
            if status != result.status {
                return Err(format!("the launch says {status}, the callback {}", result.status));
            }
        }
        Ok(Ran { result, refused })
    }

    fn fenced(&self, request: &Request, options: &ExecutionOptions) -> Result<Ran, String> {
        let execution = match self.start_fenced(request, Vec::new(), options) {
            Ok(execution) => execution,
            Err(failure) => return Ok(refused(failure.status)),
        };
        let info = ended(&execution, options)?;
        let mut result = ExecutionResult::of(info.status);
        result.timing = info.timing_launched;
        Ok(Ran { result, refused: None })
    }

    /// Starts an execution behind fences.
    pub(crate) fn start_fenced(
        &self,
        request: &Request,
        wait_for: Vec<Fence>,
        options: &ExecutionOptions,
    ) -> Result<FencedExecution, Failure> {
        let options = FencedOptions { execution: *options, duration: None };
        let model = Arc::clone(&self.prepared);
        model.execute_fenced(request.clone(), wait_for, options, Caller::default())
    }
}

fn refused(status: ErrorStatus) -> Ran {
    Ran { result: ExecutionResult::of(status), refused: Some(status) }
}

/// Waits for a fenced execution and asks what came of it: its fence says the same.
pub(crate) fn ended(
    execution: &FencedExecution,
    options: &ExecutionOptions,
) -> Result<ExecutionInfo, String> {
    let state = match &execution.fence {
        None => FenceState::Done,
        Some(fence) => fence.wait(Some(TimePoint::after(PATIENCE))),
    };
    let info = execution.info.execution_info();
    let info = info.map_err(|failure| format!("the fence is {state:?}, the info: {failure}"))?;
    let agrees = match state {
        FenceState::Pending => return Err("the fence was not signalled".to_owned()),
        FenceState::Done => info.status == ErrorStatus::None,
        FenceState::Failed => info.status != ErrorStatus::None,
    };
    if !agrees {
        return Err(format!("the fence is {state:?}, the status {}", info.status));
    }
    for timing in [info.timing_launched, info.timing_fenced] {
        check_timing(timing, options.measure_timing && info.status == ErrorStatus::None)?;
    }
    let (launched, fenced) =
        (info.timing_launched.time_in_driver_us, info.timing_fenced.time_in_driver_us);
    if launched != u64::MAX && fenced != u64::MAX && launched < fenced {
        return Err(format!("{launched} us since the launch, {fenced} us since the fences"));
    }
    Ok(info)
}

/// Times are there only where they were asked for, and in order.
pub(crate) fn check_timing(timing: Timing, measured: bool) -> Result<(), String> {
    if !measured && timing != Timing::UNAVAILABLE {
        return Err(format!("timing {timing:?} although it was not asked for"));
    }
    let known = timing.time_on_device_us != u64::MAX && timing.time_in_driver_us != u64::MAX;
    if known && timing.time_on_device_us > timing.time_in_driver_us {
        return Err(format!("more time on the device than in the driver: {timing:?}"));
    }
    Ok(())
}

/// A fence of our own, which is done once its other end has a byte.
pub(crate) fn gate() -> Result<(Fence, std::io::PipeWriter), String> {
    let (read, write) = std::io::pipe().map_err(|error| format!("no pipe: {error}"))?;
    Ok((Fence::from(OwnedFd::from(read)), write))
}

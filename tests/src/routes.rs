//! One execution over any route, of any device.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use burst_hal::{
    Caller, ErrorStatus, ExecutionOptions, ExecutionResult, FenceState, FencedOptions,
    PreparedModel, Request, Route, TimePoint,
};

/// How long anything may take before it is a hang.
const HANG: Duration = Duration::from_secs(60);

/// Executes a request over a route and waits for its end. A fenced execution tells no shapes; one that is not
/// started has the status of its refusal.
///
/// # Panics
/// It never ends; what the route says of its end contradicts itself.
pub fn execute_over(
    route: Route,
    prepared: &Arc<dyn PreparedModel>,
    request: &Request,
    options: &ExecutionOptions,
) -> ExecutionResult {
    match route {
        Route::Synchronous => prepared.execute_synchronously(request, options),
        Route::Asynchronous => asynchronously(prepared, request, options),
        Route::Burst => {
            let mut burst = match Arc::clone(prepared).open_burst() {
                Ok(burst) => burst,
                Err(failure) => return ExecutionResult::of(failure.status),
            };
            let mut result = ExecutionResult::of(ErrorStatus::None);
            burst.execute(request, options, &mut result);
            result
        }
        Route::Fenced => fenced(prepared, request, options),
    }
}

fn asynchronously(
    prepared: &Arc<dyn PreparedModel>,
    request: &Request,
    options: &ExecutionOptions,
) -> ExecutionResult {
    let (tell, told) = channel();
    let callback = Box::new(move |result| {
        // Nobody listens any more where the wait below has failed.
        let _ = tell.send(result);
    });
    let prepared = Arc::clone(prepared);
    let caller = Caller::default();
    let launched = prepared.execute_asynchronously(request.clone(), *options, caller, callback);
    let result: ExecutionResult = told.recv_timeout(HANG).expect("the callback is called");
    if let Err(failure) = launched {
        assert_eq!(
            failure.status, result.status,
            "the launch says one thing, the callback another"
        );
    }
    result
}

fn fenced(
    prepared: &Arc<dyn PreparedModel>,
    request: &Request,
    options: &ExecutionOptions,
) -> ExecutionResult {
    let options = FencedOptions { execution: *options, duration: None };
    let prepared = Arc::clone(prepared);
    let started =
        match prepared.execute_fenced(request.clone(), Vec::new(), options, Caller::default()) {
            Ok(started) => started,
            Err(failure) => return ExecutionResult::of(failure.status),
        };
    let until = Some(TimePoint::after(HANG));
    let state = started.fence.as_ref().map_or(FenceState::Done, |fence| fence.wait(until));
    assert_ne!(state, FenceState::Pending, "the fence is signalled");
    let info = started.info.execution_info().expect("it has ended");
    assert_eq!(state == FenceState::Done, info.status == ErrorStatus::None, "fence and status");
    ExecutionResult { timing: info.timing_launched, ..ExecutionResult::of(info.status) }
}

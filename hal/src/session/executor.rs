//! A prepared model over a route.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use crate::trace::{Marks, SpanKind};
use crate::{
    Burst, Caller, ErrorStatus, ExecutionOptions, ExecutionResult, Failure, FenceState,
    FencedOptions, Pool, PreparedModel, Request, Route,
};

/// A prepared model, executed over the route that it was opened for.
pub struct Executor {
    call: Call,
    caller: Caller,
}

/// What carries a request.
enum Call {
    Synchronous(Arc<dyn PreparedModel>),
    Asynchronous(Arc<dyn PreparedModel>),
    /// One burst for all requests, so that their memory keeps its slots.
    Burst(Box<dyn Burst>),
    Fenced(Arc<dyn PreparedModel>),
}

impl Executor {
    /// Opens a route to a prepared model.
    ///
    /// # Errors
    /// There is no burst.
    pub fn open(prepared: Arc<dyn PreparedModel>, route: Route) -> Result<Self, Failure> {
        Executor::open_for(prepared, route, &Caller::default())
    }

    /// The same, whose executions are for this caller.
    ///
    /// # Errors
    /// There is no burst.
    pub fn open_for(
        prepared: Arc<dyn PreparedModel>,
        route: Route,
        caller: &Caller,
    ) -> Result<Self, Failure> {
        let call = match route {
            Route::Synchronous => Call::Synchronous(prepared),
            Route::Asynchronous => Call::Asynchronous(prepared),
            Route::Burst => {
                let mut burst = prepared.open_burst()?;
                burst.work_for(caller);
                Call::Burst(burst)
            }
            Route::Fenced => Call::Fenced(prepared),
        };
        Ok(Executor { call, caller: caller.clone() })
    }

    /// The route.
    #[must_use]
    pub fn route(&self) -> Route {
        match self.call {
            Call::Synchronous(_) => Route::Synchronous,
            Call::Asynchronous(_) => Route::Asynchronous,
            Call::Burst(_) => Route::Burst,
            Call::Fenced(_) => Route::Fenced,
        }
    }

    /// Requests are going to name this memory. A burst caches it ahead of the first; the other routes have nothing
    /// to keep it for.
    pub fn cache_memory(&mut self, memory: &Pool) {
        if let Call::Burst(burst) = &mut self.call {
            burst.cache_memory(memory);
        }
    }

    /// Runs once and waits for the end; the result is written into `result`, whose storage a burst uses
    /// again. Every failure is a status in the result. A fenced execution tells no shapes.
    pub fn execute(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) {
        let caller = &self.caller;
        match &mut self.call {
            Call::Synchronous(model) => *result = model.execute_for(request, options, caller),
            Call::Asynchronous(model) => *result = asynchronously(model, request, options, caller),
            Call::Burst(burst) => burst.execute(request, options, result),
            Call::Fenced(model) => *result = fenced(model, request, options, caller),
        }
    }
}

fn asynchronously(
    model: &Arc<dyn PreparedModel>,
    request: &Request,
    options: &ExecutionOptions,
    caller: &Caller,
) -> ExecutionResult {
    let (tell, told) = sync_channel(1);
    let callback = move |result| {
        // An error means that nobody waits any more, which cannot be before this.
        let _ = tell.send(result);
    };
    let (request, callback) = (request.clone(), Box::new(callback));
    // Where it is refused the callback has the same status.
    let _ = Arc::clone(model).execute_asynchronously(request, *options, caller.clone(), callback);
    let mut marks = Marks::begin(caller.tracing());
    let outcome = told.recv();
    marks.mark(SpanKind::WaitForResult);
    // A driver that drops the callback uncalled has failed.
    outcome.unwrap_or_else(|_| ExecutionResult::of(ErrorStatus::GeneralFailure))
}

fn fenced(
    model: &Arc<dyn PreparedModel>,
    request: &Request,
    options: &ExecutionOptions,
    caller: &Caller,
) -> ExecutionResult {
    let options = FencedOptions { execution: *options, duration: None };
    let request = request.clone();
    let started = Arc::clone(model).execute_fenced(request, Vec::new(), options, caller.clone());
    let execution = match started {
        Ok(execution) => execution,
        Err(failure) => return ExecutionResult::of(failure.status),
    };
    let mut marks = Marks::begin(caller.tracing());
    if execution.fence.is_some_and(|fence| fence.wait(None) == FenceState::Pending) {
        return ExecutionResult::of(ErrorStatus::GeneralFailure); // it cannot be waited for
    }
    marks.mark(SpanKind::WaitForResult);
    let info = execution.info.execution_info();
    marks.mark(SpanKind::DecodeResult);
    match info {
        Ok(info) => {
            let mut result = ExecutionResult::of(info.status);
            result.timing = info.timing_launched;
            result
        }
        Err(failure) => ExecutionResult::of(failure.status),
    }
}

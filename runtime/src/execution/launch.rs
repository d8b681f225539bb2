//! An execution of the framework as something that threads run, and that may wait for fences first.

use std::sync::{Arc, Mutex, PoisonError};

use burst_hal::validate::RequestRules;
use burst_hal::{
    Caller, ExecutionOptions, ExecutionResult, Fence, FencedExecution, FencedOptions, Model,
    PreparedModel, Priority, Request, ResultCode, TimePoint, Timing,
};

use crate::error::{Error, Result};
use crate::launching::launcher;

/// What is run: it gets the deadline that holds then, and says how it ended.
pub(super) type Body = Box<dyn FnOnce(Option<TimePoint>) -> (ResultCode, Timing) + Send>;

/// An execution as a model without arguments, so that whatever launches models launches it.
struct Launched {
    body: Mutex<Option<Body>>,
    rules: RequestRules,
}

impl PreparedModel for Launched {
    fn execute_synchronously(&self, _: &Request, options: &ExecutionOptions) -> ExecutionResult {
        let body = self.body.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (code, timing) =
            body.map_or((ResultCode::OpFailed, Timing::UNAVAILABLE), |body| body(options.deadline));
        ExecutionResult { timing, ..ExecutionResult::of(code.into()) }
    }

    fn request_rules(&self) -> Option<&RequestRules> {
        Some(&self.rules)
    }
}

fn launched(body: Body) -> Result<Arc<Launched>> {
    let rules = RequestRules::new(&Model::default())?;
    Ok(Arc::new(Launched { body: Mutex::new(Some(body)), rules }))
}

/// Has a thread run it, the most urgent first. `ended` is called once it has, or once it is clear that none will.
///
/// # Errors
/// RESOURCE_EXHAUSTED where too much waits for a thread: `ended` has been called.
pub(super) fn start(
    priority: Priority,
    body: Body,
    ended: impl FnOnce(ResultCode) + Send + 'static,
) -> Result<()> {
    let callback = Box::new(move |result: ExecutionResult| ended(result.status.into()));
    launcher()
        .execute_asynchronously(
            launched(body)?,
            priority,
            Request::default(),
            ExecutionOptions::default(),
            Caller::default(),
            callback,
        )
        .map_err(Error::from)
}

/// Has a thread run it once all fences are done, the most urgent first.
///
/// # Errors
/// What is no fence; RESOURCE_EXHAUSTED where too much waits.
pub(super) fn start_behind(
    priority: Priority,
    fences: Vec<Fence>,
    options: FencedOptions,
    body: Body,
) -> Result<FencedExecution> {
    let (request, caller) = (Request::default(), Caller::default());
    Ok(launcher().execute_fenced(launched(body)?, priority, request, fences, options, caller)?)
}

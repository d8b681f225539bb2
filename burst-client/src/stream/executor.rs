//! What carries the requests of a stream, and how it is made again on another connection.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use burst_hal::trace::{Marks, SpanKind};
use burst_hal::{
    Caller, CancelWord, ErrorStatus, ExecutionOptions, ExecutionResult, Fence, FenceState,
    FencedOptions, Pool, Request, Route, TimePoint,
};
use fmq::Deadline;

use super::options::StreamOptions;
use crate::connection::{LateReply, Link};
use crate::waiting::remaining;
use crate::{
    Burst, BurstOptions, ClientError, Executed, RemotePreparedModel, RetryPolicy, ShmMemory,
};

/// What of the options is needed again when the stream moves to another connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setup {
    route: Route,
    burst: BurstOptions,
    service_outputs: bool,
    pub(super) retry: RetryPolicy,
}

/// A route to the driver that is open.
#[derive(Debug)]
pub(super) enum Executor {
    Burst(Box<Burst>),
    /// The model, and what its last execution came to; and the reply of one whose caller gave up, until it
    /// has come: such an execution uses the memory.
    Synchronous(Arc<RemotePreparedModel>, Executed, Option<LateReply>),
    /// Likewise; and the result of such an execution.
    Asynchronous(Arc<RemotePreparedModel>, Executed, Option<Outcomes>),
    /// Likewise; and the fence of such an execution.
    Fenced(Arc<RemotePreparedModel>, Executed, Option<Fence>),
}

/// Where the outcome of an execution comes.
type Outcomes = Receiver<Result<Executed, ClientError>>;

impl Setup {
    pub(super) fn new(options: &StreamOptions) -> Self {
        let mut burst = BurstOptions::default().waiting(options.wait);
        burst.queue_datums = options.queue_datums;
        let StreamOptions { route, service_outputs, retry, .. } = *options;
        Setup { route, burst, service_outputs, retry }
    }

    /// A burst, or the control socket where no burst can be had and the policy permits it.
    pub(super) fn open(
        &self,
        prepared: &Arc<RemotePreparedModel>,
    ) -> Result<Executor, ClientError> {
        let synchronous =
            || Executor::Synchronous(Arc::clone(prepared), Executed::of(ErrorStatus::None), None);
        let nothing = Executed::of(ErrorStatus::None);
        match self.route {
            Route::Synchronous => return Ok(synchronous()),
            Route::Asynchronous => {
                return Ok(Executor::Asynchronous(Arc::clone(prepared), nothing, None));
            }
            Route::Fenced => return Ok(Executor::Fenced(Arc::clone(prepared), nothing, None)),
            Route::Burst => {}
        }
        let configure = || prepared.configure_burst(&self.burst);
        match self.retry.run(Deadline::never(), configure) {
            Ok(burst) => Ok(Executor::Burst(Box::new(burst))),
            Err(error) if self.retry.falls_back(error.status()) => {
                tracing::info!(%error, "no burst; requests go over the control socket");
                Ok(synchronous())
            }
            Err(error) => Err(error),
        }
    }

    /// Memory for the outputs: the service's, or ours where it makes none.
    pub(super) fn output_memory(
        &self,
        prepared: &RemotePreparedModel,
        bytes: u64,
    ) -> Result<Pool, ClientError> {
        let bytes = bytes.max(1); // an empty memory cannot be made
        if self.service_outputs {
            match prepared.allocate_outputs(bytes) {
                Err(ClientError::Refused { status, detail }) => {
                    tracing::debug!(%status, detail, "the service makes no memory for outputs");
                }
                other => return other,
            }
        }
        let length = usize::try_from(bytes).map_err(|_| ClientError::PoolTooLong { bytes })?;
        Ok(Arc::new(ShmMemory::create(length)?))
    }
}

impl Executor {
    pub(super) fn link(&self) -> &Link {
        match self {
            Executor::Burst(burst) => burst.link(),
            Executor::Synchronous(model, ..)
            | Executor::Asynchronous(model, ..)
            | Executor::Fenced(model, ..) => model.link(),
        }
    }

    /// Whether a request says by when its result is wanted. A burst without this addition would have
    /// to send each one over the socket for it.
    pub(super) fn takes_deadlines(&self) -> bool {
        match self {
            Executor::Burst(burst) => burst.takes_deadlines(),
            Executor::Synchronous(..) | Executor::Asynchronous(..) | Executor::Fenced(..) => true,
        }
    }

    /// Requests are going to name this memory: a burst sends it now.
    pub(super) fn cache_memory(&mut self, memory: &Pool) {
        if let Executor::Burst(burst) = self {
            burst_hal::Burst::cache_memory(&mut **burst, memory);
        }
    }

    /// Runs once: how long that took in the driver.
    pub(super) fn run(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        deadline: Deadline,
    ) -> Result<Option<Duration>, ClientError> {
        match self {
            Executor::Burst(burst) => {
                burst.run(request, options, deadline)?;
                Ok(burst.driver_time())
            }
            Executor::Synchronous(model, last, late) => {
                if let Some(before) = late.take() {
                    before.wait(deadline).map_err(|before| {
                        *late = Some(before);
                        ClientError::Timeout
                    })?;
                }
                *last = model.handle().execute_leaving(request, options, deadline, late)?;
                Ok(last.driver_time)
            }
            Executor::Asynchronous(model, last, late) => {
                *last = asynchronously(model, request, options, deadline, late)?;
                Ok(last.driver_time)
            }
            Executor::Fenced(model, last, late) => {
                *last = fenced(model, request, options, deadline, late)?;
                Ok(last.driver_time)
            }
        }
    }

    /// The result of the last run.
    pub(super) fn result(&self) -> &ExecutionResult {
        match self {
            Executor::Burst(burst) => burst.last_result(),
            Executor::Synchronous(_, last, _)
            | Executor::Asynchronous(_, last, _)
            | Executor::Fenced(_, last, _) => &last.result,
        }
    }

    pub(super) fn burst(&self) -> Option<&Burst> {
        match self {
            Executor::Burst(burst) => Some(burst),
            Executor::Synchronous(..) | Executor::Asynchronous(..) | Executor::Fenced(..) => None,
        }
    }
}

/// Starts an execution and waits for its outcome; for that of the one before, first, where its caller gave
/// up.
fn asynchronously(
    model: &RemotePreparedModel,
    request: &Request,
    options: &ExecutionOptions,
    deadline: Deadline,
    late: &mut Option<Outcomes>,
) -> Result<Executed, ClientError> {
    if let Some(before) = late.take()
        && receive(&before, deadline).is_none()
    {
        *late = Some(before);
        return Err(ClientError::Timeout);
    }
    let (tell, told) = sync_channel(1);
    let word = CancelWord::default();
    let caller = Caller::new(&word);
    // Whatever stands in the way of starting it is its outcome too.
    let _ = model
        .start_with(request.clone(), options, &caller, move |outcome| drop(tell.send(outcome)));
    let tracer = model.link().tracer();
    let mut marks = Marks::begin(tracer.as_deref());
    let outcome = receive(&told, deadline);
    marks.mark(SpanKind::WaitForResult);
    outcome.unwrap_or_else(|| {
        word.cancel();
        *late = Some(told);
        Err(ClientError::Timeout)
    })
}

/// The outcome of an execution; `None` where it has not come by the deadline.
fn receive(told: &Outcomes, deadline: Deadline) -> Option<Result<Executed, ClientError>> {
    // A callback that panicked has told nothing.
    let lost = Err(ClientError::UnexpectedAnswer);
    match remaining(deadline) {
        None => Some(told.recv().unwrap_or(lost)),
        Some(left) => match told.recv_timeout(left) {
            Ok(outcome) => Some(outcome),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(lost),
        },
    }
}

/// Starts a fenced execution behind no fence, waits for its own and asks what came of it. The one before
/// comes first, as above.
fn fenced(
    model: &RemotePreparedModel,
    request: &Request,
    options: &ExecutionOptions,
    deadline: Deadline,
    late: &mut Option<Fence>,
) -> Result<Executed, ClientError> {
    let until = deadline.as_ns().map(|nanos| TimePoint { nanos });
    if let Some(before) = late.take()
        && before.wait(until) == FenceState::Pending
    {
        *late = Some(before);
        return Err(ClientError::Timeout);
    }
    let word = CancelWord::default();
    let fenced = FencedOptions { execution: *options, duration: None };
    let started = match model.start_fenced(request.clone(), &[], &fenced, &Caller::new(&word)) {
        Ok(started) => started,
        Err(ClientError::Refused { status, detail }) => {
            tracing::debug!(%status, detail, "execution refused");
            return Ok(Executed::of(status));
        }
        Err(error) => return Err(error),
    };
    let tracer = model.link().tracer();
    let mut marks = Marks::begin(tracer.as_deref());
    if let Some(fence) = &started.fence
        && fence.wait(until) == FenceState::Pending
    {
        word.cancel();
        *late = Some(fence.clone());
        return Err(ClientError::Timeout);
    }
    marks.mark(SpanKind::WaitForResult);
    let info = started.info.execution_info().map_err(|failure| match failure.status {
        ErrorStatus::DeviceUnavailable => model.link().peer_died(),
        status => ClientError::Execution { status },
    })?;
    let mut result = ExecutionResult::of(info.status);
    result.timing = info.timing_launched;
    let us = Some(result.timing.time_in_driver_us).filter(|us| *us != u64::MAX);
    marks.mark(SpanKind::DecodeResult);
    Ok(Executed { result, driver_time: us.map(Duration::from_micros) })
}

//! What carries the requests of a stream, and how it is made again on another connection.

use std::sync::Arc;
use std::time::Duration;

use burst_hal::{ErrorStatus, ExecutionOptions, ExecutionResult, Pool, Request, Route};
use burst_wire::Features;
use fmq::Deadline;

use super::options::StreamOptions;
use crate::connection::Link;
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
    /// The model, and what its last execution came to.
    Synchronous(Arc<RemotePreparedModel>, Executed),
}

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
        let synchronous = || {
            let nothing = ExecutionResult::of(ErrorStatus::None);
            let executed = Executed { result: nothing, driver_time: None };
            Executor::Synchronous(Arc::clone(prepared), executed)
        };
        if self.route == Route::Synchronous {
            return Ok(synchronous());
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
            Executor::Synchronous(model, _) => model.link(),
        }
    }

    /// Whether a request says by when its result is wanted. A burst without this addition would have
    /// to send each one over the socket for it.
    pub(super) fn takes_deadlines(&self) -> bool {
        match self {
            Executor::Burst(burst) => burst.features().contains(Features::DEADLINES),
            Executor::Synchronous(..) => true,
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
            Executor::Synchronous(model, last) => {
                *last = model.execute(request, options, deadline)?;
                Ok(last.driver_time)
            }
        }
    }

    /// The result of the last run.
    pub(super) fn result(&self) -> &ExecutionResult {
        match self {
            Executor::Burst(burst) => burst.last_result(),
            Executor::Synchronous(_, last) => &last.result,
        }
    }

    pub(super) fn burst(&self) -> Option<&Burst> {
        match self {
            Executor::Burst(burst) => Some(burst),
            Executor::Synchronous(..) => None,
        }
    }
}

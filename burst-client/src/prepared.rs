//! A prepared model of the service, as a [`burst_hal::PreparedModel`].

use std::sync::Arc;

use burst_hal::{
    Caller, ErrorStatus, ExecutionCallback, ExecutionOptions, ExecutionResult, Extension, Failure,
    Fence, FencedExecution, FencedOptions, Pool, PrepareOptions, PreparedModel, Request,
};
use burst_launch::Execution;
use burst_wire::control::DeviceInfo;
use fmq::Deadline;

use crate::connection::Link;
use crate::model_handle::{ExecutedCallback, ModelHandle, RemoteFenced};
use crate::waiting::{Patience, answer_by};
use crate::{Burst, BurstOptions, ClientError, Executed};

/// A model that is prepared in another process.
#[derive(Debug)]
pub struct RemotePreparedModel {
    handle: Arc<ModelHandle>,
    /// Without a deadline.
    options: PrepareOptions,
    device: Arc<DeviceInfo>,
}

impl RemotePreparedModel {
    pub(crate) fn new(
        handle: ModelHandle,
        options: PrepareOptions,
        device: &Arc<DeviceInfo>,
    ) -> Self {
        let options = PrepareOptions { deadline: None, ..options };
        RemotePreparedModel { handle: Arc::new(handle), options, device: Arc::clone(device) }
    }

    /// Those of its device.
    pub(crate) fn extensions(&self) -> Vec<Extension> {
        self.device.extensions()
    }

    pub(crate) fn handle(&self) -> &ModelHandle {
        &self.handle
    }

    pub(crate) fn link(&self) -> &Link {
        self.handle.link()
    }

    /// Process id of the driver service.
    #[must_use]
    pub fn driver_pid(&self) -> u32 {
        self.handle.driver_pid()
    }

    /// Starts a burst.
    ///
    /// # Errors
    /// The service refuses it, or is gone.
    pub fn configure_burst(self: &Arc<Self>, options: &BurstOptions) -> Result<Burst, ClientError> {
        self.configure_burst_until(options, Deadline::never())
    }

    /// The same, with no answer later than this.
    ///
    /// # Errors
    /// As [`RemotePreparedModel::configure_burst`]; [`ClientError::Timeout`].
    pub fn configure_burst_until(
        self: &Arc<Self>,
        options: &BurstOptions,
        deadline: Deadline,
    ) -> Result<Burst, ClientError> {
        self.configure_burst_with(options, deadline.into())
    }

    /// The same, for somebody who waits for so long.
    pub(crate) fn configure_burst_with(
        &self,
        options: &BurstOptions,
        patience: Patience<'_>,
    ) -> Result<Burst, ClientError> {
        Burst::configure(&self.handle, options, patience)
    }

    /// Makes memory that the service writes and this process can only read: results in it need
    /// no copy on the service's side. It can be used in requests like any other.
    ///
    /// Memories that were dropped are given back first, so that their room counts for this one.
    ///
    /// # Errors
    /// The service refuses, or is gone.
    pub fn allocate_outputs(&self, length: u64) -> Result<Pool, ClientError> {
        self.link().allocate_memory(length)
    }

    /// Runs once over the control socket and waits for the result until `deadline`.
    ///
    /// Memories that have a descriptor cross the socket with their first use; others are copied
    /// there and back.
    ///
    /// # Errors
    /// The service is gone or the deadline passed. What the execution itself came to is in the
    /// result's status.
    pub fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        deadline: Deadline,
    ) -> Result<Executed, ClientError> {
        self.handle.execute(request, options, deadline)
    }

    /// Starts an execution over the control socket: an object that waits, calls back, or is a `Future`.
    /// Dropped, it cancels; the request's memories stay referenced until the service has told the end.
    ///
    /// # Errors
    /// It was not started: the service refuses it, or is gone. A missed deadline and a shortage are
    /// results.
    pub fn start(
        self: &Arc<Self>,
        request: Request,
        options: &ExecutionOptions,
    ) -> Result<Execution, Failure> {
        Execution::start(Arc::clone(self) as Arc<dyn PreparedModel>, request, *options)
    }

    /// Starts an execution over the control socket. `callback` gets its outcome, exactly once, on a
    /// thread of the connection that does nothing else, or before this returns where nothing was
    /// started. Until then the request's memories stay referenced and are in use. Any number may be
    /// under way at once, up to the service's limit; results come in any order.
    ///
    /// Memory without a descriptor is copied there now, and back before `callback` is called.
    ///
    /// # Errors
    /// It was not started: `callback` got the same error, or the service's status as a result.
    pub fn start_with(
        &self,
        request: Request,
        options: &ExecutionOptions,
        caller: &Caller,
        callback: impl FnOnce(Result<Executed, ClientError>) + Send + 'static,
    ) -> Result<(), ClientError> {
        self.start_until(request, options, caller, answer_by(options.deadline), callback)
    }

    /// The same; launching it takes no longer than until then.
    ///
    /// # Errors
    /// As [`RemotePreparedModel::start_with`]; [`ClientError::Timeout`].
    pub fn start_until(
        &self,
        request: Request,
        options: &ExecutionOptions,
        caller: &Caller,
        until: Deadline,
        callback: impl FnOnce(Result<Executed, ClientError>) + Send + 'static,
    ) -> Result<(), ClientError> {
        let callback: ExecutedCallback = Box::new(callback);
        self.handle.start(request, options, caller, until, callback)
    }

    /// Starts an execution that waits for fences first, over the control socket. A chain of these runs
    /// in the service without this process.
    ///
    /// The service keeps what came of it until [`FencedExecution::info`] is dropped; it goes on then,
    /// and cannot be cancelled any more. When the service dies its fence fails.
    ///
    /// # Errors
    /// The service refuses it, or is gone; [`ClientError::OutputNotShared`] for an output in memory
    /// without a descriptor; [`ClientError::TooManyFences`].
    pub fn start_fenced(
        &self,
        request: Request,
        wait_for: &[Fence],
        options: &FencedOptions,
        caller: &Caller,
    ) -> Result<FencedExecution, ClientError> {
        let until = answer_by(options.execution.deadline);
        let (fence, info) = self.start_fenced_until(request, wait_for, options, caller, until)?;
        Ok(FencedExecution { fence, info })
    }

    /// The same; launching it takes no longer than until then. What is returned is its fence, where it has not
    /// ended well already, and what says how it ended.
    ///
    /// # Errors
    /// As [`RemotePreparedModel::start_fenced`]; [`ClientError::Timeout`].
    pub fn start_fenced_until(
        &self,
        request: Request,
        wait_for: &[Fence],
        options: &FencedOptions,
        caller: &Caller,
        until: Deadline,
    ) -> Result<(Option<Fence>, Arc<RemoteFenced>), ClientError> {
        self.handle.start_fenced(request, wait_for, options, caller, until)
    }
}

impl PreparedModel for RemotePreparedModel {
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        result_of(self.handle.execute(request, options, answer_by(options.deadline)))
    }

    /// There is no call that takes an execution back which somebody waits for: whoever cancels is not kept waiting,
    /// and the service goes on with it until its end or its deadline. One that the service is to give up
    /// is asynchronous.
    fn execute_for(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        caller: &Caller,
    ) -> ExecutionResult {
        let patience = Patience::of(caller, answer_by(options.deadline));
        result_of(self.handle.execute(request, options, patience))
    }

    /// Over [`RemotePreparedModel::start_with`]. An execution that misses its deadline before it is started, or
    /// finds the service short of something, has that as its result alone.
    fn execute_asynchronously(
        self: Arc<Self>,
        request: Request,
        options: ExecutionOptions,
        caller: Caller,
        callback: ExecutionCallback,
    ) -> Result<(), Failure> {
        launched(
            self.start_with(request, &options, &caller, |outcome| callback(result_of(outcome))),
        )
    }

    fn execute_fenced(
        self: Arc<Self>,
        request: Request,
        wait_for: Vec<Fence>,
        options: FencedOptions,
        caller: Caller,
    ) -> Result<FencedExecution, Failure> {
        Ok(self.start_fenced(request, &wait_for, &options, &caller)?)
    }

    fn prepare_options(&self) -> Option<PrepareOptions> {
        Some(self.options)
    }

    fn open_burst(self: Arc<Self>) -> Result<Box<dyn burst_hal::Burst>, Failure> {
        Ok(Box::new(self.configure_burst(&BurstOptions::default())?))
    }
}

/// The outcome of an execution as the HAL has it.
fn result_of(outcome: Result<Executed, ClientError>) -> ExecutionResult {
    match outcome {
        Ok(executed) => executed.result,
        Err(error) => {
            tracing::debug!(%error, "execution failed");
            ExecutionResult::of(error.status())
        }
    }
}

/// What launching answers. Deadlines and shortages are results, which the callback has got; whatever
/// else stood in the way is also said at once.
pub(crate) fn launched(started: Result<(), ClientError>) -> Result<(), Failure> {
    use ErrorStatus::{
        MissedDeadlinePersistent, MissedDeadlineTransient, ResourceExhaustedPersistent,
        ResourceExhaustedTransient,
    };
    started.or_else(|error| match error.status() {
        MissedDeadlineTransient
        | MissedDeadlinePersistent
        | ResourceExhaustedTransient
        | ResourceExhaustedPersistent => Ok(()),
        _ => Err(error.into()),
    })
}

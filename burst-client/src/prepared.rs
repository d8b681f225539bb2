//! A prepared model of the service, as a [`burst_hal::PreparedModel`].

use std::sync::Arc;

use burst_hal::{ExecutionOptions, ExecutionResult, Failure, Pool, PreparedModel, Request};
use fmq::Deadline;

use crate::connection::Link;
use crate::model_handle::ModelHandle;
use crate::{Burst, BurstOptions, ClientError, Executed};

/// A model that is prepared in another process.
#[derive(Debug)]
pub struct RemotePreparedModel {
    handle: Arc<ModelHandle>,
}

impl RemotePreparedModel {
    pub(crate) fn new(handle: ModelHandle) -> Self {
        RemotePreparedModel { handle: Arc::new(handle) }
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
        Burst::configure(&self.handle, options)
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
}

impl PreparedModel for RemotePreparedModel {
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        let deadline = options.deadline.map_or(Deadline::never(), |at| Deadline::at_ns(at.nanos));
        match self.execute(request, options, deadline) {
            Ok(executed) => executed.result,
            Err(error) => {
                tracing::debug!(%error, "execution failed");
                ExecutionResult::of(error.status())
            }
        }
    }

    fn open_burst(self: Arc<Self>) -> Result<Box<dyn burst_hal::Burst>, Failure> {
        Ok(Box::new(self.configure_burst(&BurstOptions::default())?))
    }
}

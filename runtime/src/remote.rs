//! What is reached through a service: its device over one connection, models that it has prepared, buffers.
//!
//! Every call ends, whatever becomes of the service: [`Patience`] says when.

use std::sync::Arc;

use burst_client::{
    BurstOptions, ClientError, Deadline, Executed, RemoteBuffer, RemoteDevice, RemotePreparedModel,
    deadline_at,
};
use burst_hal::{
    Buffer, BufferRequest, CompilationCache, ExecutionOptions, ExecutionResult, Failure, Model,
    Pool, PrepareOptions, PreparedModel, Request, TimePoint,
};
use burst_launch::Execution;

use crate::error::{Error, Result};
use crate::patience::{ANSWER_LONGEST, Patience};

/// A device of a service over one connection.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    device: RemoteDevice,
    patience: Patience,
}

/// A model that a service has prepared.
#[derive(Debug, Clone)]
pub(crate) struct RemoteModel {
    model: Arc<RemotePreparedModel>,
    service: Remote,
}

/// A series of executions of a model of a service.
pub(crate) struct RemoteBurst {
    burst: Box<burst_client::Burst>,
    service: Remote,
}

/// A call that a service has not answered as it should.
#[derive(Debug)]
pub(crate) struct Missed {
    pub(crate) error: Error,
    /// Whether the service may yet do what was asked, and write what it was to write.
    pub(crate) is_under_way: bool,
}

impl Remote {
    pub(crate) fn new(device: RemoteDevice, patience: Patience) -> Self {
        Remote { device, patience }
    }

    /// Whether the service lives, as far as is known.
    pub(crate) fn is_alive(&self) -> bool {
        self.device.is_alive()
    }

    /// Whether the service is there, after a wait that was as long as one may be. One that is not is hung up on.
    pub(crate) fn is_there(&self) -> bool {
        let is_there = self.device.answers(Deadline::after(ANSWER_LONGEST));
        if !is_there && self.is_alive() {
            tracing::warn!("the service does not answer any more; it counts as dead");
            self.device.hang_up();
        }
        is_there
    }

    /// When a wait for it is as long as one may be.
    pub(crate) fn patience(&self) -> Patience {
        self.patience
    }

    /// What an error means, of a call that was to end by the caller's deadline.
    fn meant(&self, error: ClientError, by: Option<TimePoint>) -> ClientError {
        let is_late = by.is_some_and(TimePoint::has_passed);
        match matches!(error, ClientError::Timeout) && !is_late && !self.is_there() {
            true => ClientError::StoppedAnswering,
            false => error,
        }
    }

    fn missed(&self, error: ClientError, by: Option<TimePoint>) -> Missed {
        let is_under_way = matches!(error, ClientError::Timeout);
        Missed { error: self.meant(error, by).into(), is_under_way }
    }

    fn told<T>(
        &self,
        answer: std::result::Result<T, ClientError>,
        by: Option<TimePoint>,
    ) -> Result<T> {
        Ok(answer.map_err(|error| self.meant(error, by))?)
    }

    /// # Errors
    /// The device does not answer, for whatever reason.
    pub(crate) fn supported_operations(
        &self,
        model: &Model,
        by: Option<TimePoint>,
    ) -> Result<Vec<bool>> {
        let until = deadline_at(self.patience.until(by));
        self.told(self.device.query_operations_until(model, until), by)
    }

    /// Has the device prepare a model. It is told when that is no longer wanted.
    ///
    /// # Errors
    /// The device's; DEAD_OBJECT.
    pub(crate) fn prepare(
        &self,
        model: &Model,
        options: &PrepareOptions,
        cache: Option<&CompilationCache>,
    ) -> Result<RemoteModel> {
        let by = options.deadline;
        let options = PrepareOptions { deadline: self.patience.until(by), ..*options };
        let prepared = match cache {
            None => self.device.prepare(model, &options),
            Some(cache) => self.device.prepare_caching(model, &options, cache),
        };
        self.model(prepared, by)
    }

    /// The model that the device has kept in files.
    ///
    /// # Errors
    /// The device's; DEAD_OBJECT.
    pub(crate) fn prepare_from_cache(
        &self,
        cache: &CompilationCache,
        by: Option<TimePoint>,
    ) -> Result<RemoteModel> {
        self.model(self.device.prepare_from_cache(cache, self.patience.until(by)), by)
    }

    fn model(
        &self,
        prepared: std::result::Result<Arc<RemotePreparedModel>, ClientError>,
        by: Option<TimePoint>,
    ) -> Result<RemoteModel> {
        Ok(RemoteModel { model: self.told(prepared, by)?, service: self.clone() })
    }

    /// A buffer in the device's own memory.
    ///
    /// # Errors
    /// The device's; DEAD_OBJECT.
    pub(crate) fn allocate(&self, request: &BufferRequest) -> Result<Arc<dyn Buffer>> {
        let buffer = self.told(self.device.allocate_buffer(request), None)?;
        Ok(Arc::new(ServiceBuffer { buffer, service: self.clone() }))
    }
}

impl RemoteModel {
    pub(crate) fn service(&self) -> &Remote {
        &self.service
    }

    /// As the contract has it.
    pub(crate) fn as_model(&self) -> Arc<dyn PreparedModel> {
        Arc::clone(&self.model) as Arc<dyn PreparedModel>
    }

    pub(crate) fn is_same(&self, other: &RemoteModel) -> bool {
        Arc::ptr_eq(&self.model, &other.model)
    }

    /// Whether requests for this model may name this buffer.
    pub(crate) fn may_use(&self, buffer: &dyn Buffer) -> bool {
        let own = buffer.downcast_ref::<ServiceBuffer>();
        own.is_some_and(|own| own.buffer.is_beside(&self.model))
    }

    /// # Errors
    /// The service has not answered.
    pub(crate) fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> std::result::Result<ExecutionResult, Missed> {
        let until = deadline_at(self.service.patience.until(options.deadline));
        let executed = self.model.execute(request, options, until);
        let executed = executed.map_err(|error| self.service.missed(error, options.deadline))?;
        let Executed { result, .. } = executed;
        Ok(result)
    }

    /// The same by the asynchronous call.
    ///
    /// # Errors
    /// It was not started; the service has not answered.
    pub(crate) fn execute_apart(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> std::result::Result<ExecutionResult, Missed> {
        let by = options.deadline;
        let started = Execution::start(self.as_model(), request.clone(), *options);
        let refused = |failure: Failure| Missed { error: failure.into(), is_under_way: false };
        let execution = started.map_err(refused)?;
        match self.service.patience.until(by) {
            None => Ok(execution.wait()),
            Some(until) => {
                let ended = execution.wait_until(until);
                ended.map_err(|_given_up| self.service.missed(ClientError::Timeout, by))
            }
        }
    }

    /// # Errors
    /// The service refuses, or is gone.
    pub(crate) fn open_burst(&self) -> Result<RemoteBurst> {
        let burst = self.model.configure_burst(&BurstOptions::default());
        let burst = Box::new(self.service.told(burst, None)?);
        Ok(RemoteBurst { burst, service: self.service.clone() })
    }
}

impl RemoteBurst {
    /// Runs once. `None` where the burst is over and the model lives: another way may do.
    ///
    /// # Errors
    /// The service has not answered.
    pub(crate) fn execute(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> std::result::Result<Option<&ExecutionResult>, Missed> {
        let until = deadline_at(self.service.patience.until(options.deadline));
        match self.burst.execute(request, options, until) {
            Ok(result) => Ok(Some(result)),
            Err(ClientError::BurstEnded { detail }) => {
                tracing::info!(%detail, "the service gave up the burst");
                Ok(None)
            }
            Err(error) => Err(self.service.missed(error, options.deadline)),
        }
    }
}

/// A buffer of a device of a service.
#[derive(Debug)]
struct ServiceBuffer {
    buffer: RemoteBuffer,
    service: Remote,
}

impl ServiceBuffer {
    fn copied(
        &self,
        answer: std::result::Result<(), ClientError>,
    ) -> std::result::Result<(), Failure> {
        Ok(answer.map_err(|error| self.service.meant(error, None))?)
    }

    fn until(&self) -> Deadline {
        deadline_at(self.service.patience.end())
    }
}

impl Buffer for ServiceBuffer {
    fn token(&self) -> u32 {
        self.buffer.token()
    }

    fn copy_to(&self, destination: &Pool) -> std::result::Result<(), Failure> {
        self.copied(self.buffer.read_into_until(destination, self.until()))
    }

    fn copy_from(&self, source: &Pool, dimensions: &[u32]) -> std::result::Result<(), Failure> {
        self.copied(self.buffer.fill_from_until(source, dimensions, self.until()))
    }
}

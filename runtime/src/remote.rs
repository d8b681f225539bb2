//! What is reached through a service: its device over one connection, models that it has prepared, buffers.
//!
//! Every call ends, whatever becomes of the service: [`Patience`] says when.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};

use burst_client::{
    BurstOptions, ClientError, Deadline, Executed, RemoteBuffer, RemoteDevice, RemoteFenced,
    RemotePreparedModel, deadline_at,
};
use burst_hal::{
    Buffer, BufferRequest, Caller, CancelWord, CompilationCache, ExecutionInfo, ExecutionOptions,
    ExecutionResult, Failure, Fence, FencedExecution, FencedInfo, FencedOptions, Model, Pool,
    PrepareOptions, PreparedModel, Request, TimePoint,
};

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

/// Why there is no burst.
#[derive(Debug)]
pub(crate) enum NoBurst {
    /// The device does not want one: executions go another way.
    Refused(Error),
    /// It has not answered, and whoever asked has no time left for another way.
    NotAnswered(Error),
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
        let until = deadline_at(self.patience.end());
        let buffer = self.told(self.device.allocate_buffer_until(request, until), None)?;
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
        let until = self.service.patience.until(by);
        let (word, (tell, told)) = (CancelWord::default(), sync_channel(1));
        // Nobody listens any more where the wait was given up.
        let callback = move |outcome| drop(tell.send(outcome));
        let (request, caller) = (request.clone(), Caller::new(&word));
        let started =
            self.model.start_until(request, options, &caller, deadline_at(until), callback);
        if let Err(error) = started {
            tracing::debug!(%error, "the execution was not started"); // and that is its outcome
        }
        let executed = outcome_by(&told, until).inspect_err(|_| word.cancel());
        Ok(executed.map_err(|error| self.service.missed(error, by))?.result)
    }

    /// Starts it behind fences, in the service.
    ///
    /// # Errors
    /// The service refuses, or is gone.
    pub(crate) fn execute_fenced(
        &self,
        request: Request,
        wait_for: &[Fence],
        options: &FencedOptions,
    ) -> std::result::Result<FencedExecution, Failure> {
        let by = options.execution.deadline;
        let (until, caller) = (self.service.patience.until(by), Caller::default());
        let (until, model) = (deadline_at(until), &self.model);
        let started = model.start_fenced_until(request, wait_for, options, &caller, until);
        let (fence, info) = started.map_err(|error| self.service.meant(error, by))?;
        let info = Arc::new(ServiceInfo { info, service: self.service.clone() });
        Ok(FencedExecution { fence, info })
    }

    /// # Errors
    /// The service refuses; or does not answer until then, or for as long as it may be waited for.
    pub(crate) fn open_burst(
        &self,
        by: Option<TimePoint>,
    ) -> std::result::Result<RemoteBurst, NoBurst> {
        let until = deadline_at(self.service.patience.until(by));
        let burst = self.model.configure_burst_until(&BurstOptions::default(), until);
        match burst.map_err(|error| self.service.meant(error, by)) {
            Ok(burst) => Ok(RemoteBurst { burst: Box::new(burst), service: self.service.clone() }),
            Err(error) if error.is_loss() || matches!(error, ClientError::Timeout) => {
                Err(NoBurst::NotAnswered(error.into()))
            }
            Err(error) => Err(NoBurst::Refused(error.into())),
        }
    }
}

/// The outcome of an execution, waited for until then.
fn outcome_by(
    told: &Receiver<std::result::Result<Executed, ClientError>>,
    until: Option<TimePoint>,
) -> std::result::Result<Executed, ClientError> {
    let received = match until {
        None => told.recv().map_err(RecvTimeoutError::from),
        Some(until) => told.recv_timeout(until.since(TimePoint::now())),
    };
    received.unwrap_or_else(|error| match error {
        RecvTimeoutError::Timeout => Err(ClientError::Timeout),
        // The callback is called whatever happens.
        RecvTimeoutError::Disconnected => Err(ClientError::UnexpectedAnswer),
    })
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

/// What a service knows of an execution behind fences.
struct ServiceInfo {
    info: Arc<RemoteFenced>,
    service: Remote,
}

impl FencedInfo for ServiceInfo {
    fn execution_info(&self) -> std::result::Result<ExecutionInfo, Failure> {
        let told = self.info.execution_info_until(deadline_at(self.service.patience.end()));
        Ok(told.map_err(|error| self.service.meant(error, None))?)
    }
}

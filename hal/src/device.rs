//! What a driver is: a device that prepares models, prepared models that execute, bursts that
//! execute often.
//!
//! A service offers any [`Device`] over a socket; a client sees the same trait on its side.
//!
//! How much of a burst a driver does itself:
//!
//! | it implements | what a burst does then |
//! |---|---|
//! | [`PreparedModel::execute_synchronously`] | each request is one such call; the service keeps memories mapped |
//! | [`PreparedModel::open_burst`] | the driver's [`Burst`], which keeps its resources between executions |
//! | [`PreparedModel::open_executor`] | the driver's [`BurstExecutor`], which also keeps what it made of each memory |
//! | a context of its own (`burst_server::BurstContexts`) | the driver serves the queues itself |

use std::sync::Arc;

use crate::{
    CacheFiles, Caller, Capabilities, DeviceStatus, DeviceType, ErrorStatus, ExecutionOptions,
    ExecutionPreference, ExecutionResult, Extension, Failure, Model, Priority, Request, TimePoint,
};

/// How a model is to be prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrepareOptions {
    /// What it should be good at.
    pub preference: ExecutionPreference,
    /// How urgent its executions are.
    pub priority: Priority,
    /// When the prepared model is no longer wanted.
    pub deadline: Option<TimePoint>,
}

impl Default for PrepareOptions {
    fn default() -> Self {
        PrepareOptions {
            preference: ExecutionPreference::FastSingleAnswer,
            priority: Priority::Medium,
            deadline: None,
        }
    }
}

/// What preparing a model gives.
pub type PrepareResult = Result<Arc<dyn PreparedModel>, Failure>;

/// A driver. Answers to questions are constant over the device's life.
pub trait Device: Send + Sync {
    /// The name that clients choose it by.
    fn name(&self) -> &str;

    /// A text that changes whenever the behaviour does.
    fn version_string(&self) -> &str;

    /// What kind of hardware it is; by default [`DeviceType::Other`].
    fn device_type(&self) -> DeviceType {
        DeviceType::Other
    }

    /// How fast and economical it is, by operand type; not known by default.
    ///
    /// # Errors
    /// A device that cannot be reached.
    fn capabilities(&self) -> Result<Capabilities, Failure> {
        Ok(Capabilities::default())
    }

    /// Extensions it knows.
    fn supported_extensions(&self) -> Vec<Extension> {
        Vec::new()
    }

    /// Files it keeps a compilation in.
    fn cache_files_needed(&self) -> CacheFiles {
        CacheFiles::default()
    }

    /// Whether it takes work.
    fn status(&self) -> DeviceStatus {
        DeviceStatus::Available
    }

    /// For each operation of the main graph, whether this device runs it.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a model that is not legal.
    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure>;

    /// As [`supported_operations`](Device::supported_operations), for a caller that may call it off.
    /// A device that computes nothing for an answer need not implement this.
    ///
    /// # Errors
    /// Those of `supported_operations`; any status once the caller has cancelled.
    fn supported_operations_for(
        &self,
        model: &Model,
        caller: &Caller,
    ) -> Result<Vec<bool>, Failure> {
        let _ = caller;
        self.supported_operations(model)
    }

    /// Makes a model ready to execute.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a model that is not legal, exactly where
    /// [`supported_operations`](Device::supported_operations) says so; GENERAL_FAILURE for a legal
    /// one with an operation that this device does not run; MISSED_DEADLINE_* or
    /// RESOURCE_EXHAUSTED_* otherwise.
    fn prepare_model(&self, model: &Model, options: &PrepareOptions) -> PrepareResult;

    /// As [`prepare_model`](Device::prepare_model), for a caller that pays for what the prepared
    /// model holds as long as it lives, its executions' working memory included, and that may call
    /// the preparation off. A device that holds little, and prepares quickly, need not implement this.
    ///
    /// # Errors
    /// Those of `prepare_model`; RESOURCE_EXHAUSTED_* where the caller's account does not suffice; any
    /// status once the caller has cancelled.
    fn prepare_model_for(
        &self,
        model: &Model,
        options: &PrepareOptions,
        caller: &Caller,
    ) -> PrepareResult {
        let _ = caller;
        self.prepare_model(model, options)
    }
}

/// A model that is ready to execute, from any number of threads at once.
pub trait PreparedModel: Send + Sync {
    /// Runs once and waits for the result.
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult;

    /// As [`execute_synchronously`](PreparedModel::execute_synchronously), for a caller: once it
    /// cancels, the execution gives up with any status, as soon as it can; between steps the
    /// execution [gives way](crate::Turn::give_way) to other callers. A driver whose executions are
    /// short need not implement this: they then run to their end. The memory was paid for by the
    /// caller that the model was prepared for.
    fn execute_for(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        caller: &Caller,
    ) -> ExecutionResult {
        let _ = caller;
        self.execute_synchronously(request, options)
    }

    /// Starts a series of executions that keep their resources in between. A driver that has
    /// nothing to keep leaves this to [`PlainBurst`].
    ///
    /// # Errors
    /// GENERAL_FAILURE where the resources cannot be had.
    fn open_burst(self: Arc<Self>) -> Result<Box<dyn Burst>, Failure>
    where
        Self: 'static,
    {
        Ok(Box::new(PlainBurst::new(self)))
    }

    /// Starts a series of executions that keep what they made of each memory: for drivers that
    /// import buffers. Where there is one it is used in place of
    /// [`open_burst`](PreparedModel::open_burst).
    ///
    /// # Errors
    /// GENERAL_FAILURE where the resources cannot be had.
    fn open_executor(self: Arc<Self>) -> Result<Option<Box<dyn BurstExecutor>>, Failure> {
        Ok(None)
    }
}

/// A series of executions on one prepared model, one at a time, with warm resources.
pub trait Burst: Send {
    /// Runs once and writes the result into `result`, reusing its storage.
    ///
    /// Every failure is a status in the result.
    fn execute(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    );

    /// From now on executions are for this caller, as in [`PreparedModel::execute_for`].
    fn work_for(&mut self, caller: &Caller) {
        let _ = caller;
    }

    /// Lets go of whatever can be made again, after idle time.
    fn release_resources(&mut self) {}
}

/// A series of executions on one prepared model, one at a time, by a driver that keeps something
/// of its own for each memory: an import into the device, a mapping of another kind.
///
/// Memories have slots, numbers from 0 on that the client chose; a slot stands for the same
/// memory from [`add`](BurstExecutor::add) to [`remove`](BurstExecutor::remove). Before each
/// execution the service adds those of its memories that are not
/// [there](BurstExecutor::is_cached); the driver may drop any of them at any time, and gets them
/// again.
pub trait BurstExecutor: Send {
    /// Whether the driver still has what it prepared for this slot's memory.
    fn is_cached(&self, slot: i32) -> bool;

    /// Prepares a memory for the driver, such as by importing it into the device. The driver may keep
    /// references to it until [`remove`](BurstExecutor::remove).
    ///
    /// # Errors
    /// The status that the execution then has; INVALID_ARGUMENT for memory that the device cannot
    /// use, RESOURCE_EXHAUSTED_* where it has no room.
    fn add(&mut self, slot: i32, memory: &crate::Pool) -> Result<(), Failure>;

    /// The client has freed the slot: lets go of its memory. Slots that were never added are
    /// ignored.
    fn remove(&mut self, slot: i32);

    /// Runs once and writes the result into `result`, reusing its storage. `slots[i]` is the slot of
    /// the request's pool `i`; all of them were added.
    ///
    /// Every failure is a status in the result.
    fn execute(
        &mut self,
        request: &Request,
        slots: &[i32],
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    );

    /// From now on executions are for this caller, as in [`PreparedModel::execute_for`].
    fn work_for(&mut self, caller: &Caller) {
        let _ = caller;
    }

    /// Lets go of whatever can be made again, after idle time.
    fn release_resources(&mut self) {}
}

/// The burst of a device that brings none of its own: every execution is a synchronous one.
pub struct PlainBurst<M: ?Sized = dyn PreparedModel> {
    caller: Caller,
    model: Arc<M>,
}

impl<M: PreparedModel + ?Sized> PlainBurst<M> {
    /// A burst over a prepared model.
    #[must_use]
    pub fn new(model: Arc<M>) -> Self {
        PlainBurst { caller: Caller::default(), model }
    }
}

impl<M: PreparedModel + ?Sized> Burst for PlainBurst<M> {
    fn execute(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) {
        *result = self.model.execute_for(request, options, &self.caller);
    }

    fn work_for(&mut self, caller: &Caller) {
        self.caller = caller.clone();
    }
}

/// A buffer in the driver's own memory (HAL 1.3).
pub trait Buffer: Send + Sync {
    /// The number that stands for it in a request; above 0.
    fn token(&self) -> u32;

    /// Copies its content to a pool of the same size.
    ///
    /// # Errors
    /// GENERAL_FAILURE when nothing was written to it yet; INVALID_ARGUMENT for another size.
    fn copy_to(&self, destination: &crate::Pool) -> Result<(), Failure>;

    /// Fills it from a pool.
    ///
    /// # Errors
    /// INVALID_ARGUMENT when size or dimensions do not fit.
    fn copy_from(&self, source: &crate::Pool, dimensions: &[u32]) -> Result<(), Failure>;
}

/// What a status means for a call that only succeeds or fails.
impl From<ErrorStatus> for Failure {
    fn from(status: ErrorStatus) -> Self {
        Failure::new(status, status.name())
    }
}

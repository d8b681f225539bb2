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

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::validate::RequestRules;
use crate::{
    Buffer, BufferRole, CacheFiles, Caller, Capabilities, CompilationCache, DeviceStatus,
    DeviceType, Dimensions, ErrorStatus, ExecutionCallback, ExecutionOptions, ExecutionPreference,
    ExecutionResult, Extension, Failure, Fence, FencedExecution, FencedOptions, HalVersion, Model,
    Pace, Priority, Request, TimePoint,
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

/// What a buffer is asked for: the arguments that it will be used for.
#[derive(Clone, Default)]
pub struct BufferRequest {
    /// Dimensions, as far as the caller knows more than the models; empty for no more.
    pub dimensions: Dimensions,
    /// The models of the roles.
    pub models: Vec<Arc<dyn PreparedModel>>,
    /// Inputs that it will be used for.
    pub inputs: Vec<BufferRole>,
    /// Outputs that it will be used for.
    pub outputs: Vec<BufferRole>,
}

impl fmt::Debug for BufferRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferRequest")
            .field("dimensions", &self.dimensions)
            .field("models", &self.models.len())
            .field("inputs", &self.inputs)
            .field("outputs", &self.outputs)
            .finish()
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

    /// The newest version of the HAL that it has all of: that of this contract, unless it stands for a
    /// driver of an [older one](crate::versions).
    fn hal_version(&self) -> HalVersion {
        HalVersion::LATEST
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

    /// As [`prepare_model_for`](Device::prepare_model_for), and keeps the compilation in these files, so
    /// that [`prepare_model_from_cache`](Device::prepare_model_from_cache) is quicker. Files that it
    /// cannot use are no reason to fail: then nothing usable is kept. A device that
    /// [needs no files](Device::cache_files_needed) need not implement this.
    ///
    /// # Errors
    /// Those of `prepare_model_for`.
    fn prepare_model_caching(
        &self,
        model: &Model,
        options: &PrepareOptions,
        cache: &CompilationCache,
        caller: &Caller,
    ) -> PrepareResult {
        let _ = cache;
        self.prepare_model_for(model, options, caller)
    }

    /// Makes the model ready that was kept in these files, with the preference and the priority that it
    /// was prepared with. Its [`request_rules`](PreparedModel::request_rules) are known.
    ///
    /// # Errors
    /// GENERAL_FAILURE for anything that is wrong with the files, or where the device keeps no
    /// compilations; INVALID_ARGUMENT for another number of files; otherwise those of `prepare_model_for`.
    fn prepare_model_from_cache(
        &self,
        cache: &CompilationCache,
        deadline: Option<TimePoint>,
        caller: &Caller,
    ) -> PrepareResult {
        let _ = (cache, deadline, caller);
        Err(Failure::general("this device keeps no compilations"))
    }

    /// Makes a buffer in the driver's own memory, which the caller pays for as long as it lives.
    ///
    /// # Errors
    /// INVALID_ARGUMENT where the roles are not legal; GENERAL_FAILURE for a buffer that the device does
    /// not make, as by default any; RESOURCE_EXHAUSTED_* where the caller's account does not suffice.
    fn allocate(
        &self,
        request: &BufferRequest,
        caller: &Caller,
    ) -> Result<Arc<dyn Buffer>, Failure> {
        let _ = (request, caller);
        Err(Failure::general("this device makes no buffers"))
    }
}

/// A model that is ready to execute, from any number of threads at once.
///
/// A driver gets its own type back from a `dyn PreparedModel` by
/// [`downcast_ref`](trait@PreparedModel#method.downcast_ref).
pub trait PreparedModel: Any + Send + Sync {
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

    /// Starts an execution. `callback` gets its result, exactly once, from any thread, perhaps before
    /// this returns. Once the caller cancels, the execution gives up; its memories are in use until
    /// the callback has been called.
    ///
    /// By default it executes before it returns. `burst_launch` has threads for devices that bring
    /// none.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a request that is not legal: `callback` gets the same status. A deadline that
    /// has passed is no error here, but a result.
    fn execute_asynchronously(
        self: Arc<Self>,
        request: Request,
        options: ExecutionOptions,
        caller: Caller,
        callback: ExecutionCallback,
    ) -> Result<(), Failure> {
        let result = self.execute_for(&request, &options, &caller);
        drop(request);
        let status = result.status;
        callback(result);
        match status {
            ErrorStatus::InvalidArgument => Err(status.into()),
            _ => Ok(()),
        }
    }

    /// Starts an execution that waits for fences first, and returns at once a fence for its end. Every
    /// output has to have a size that is known from the model and the request.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a request that is not legal, for an output of unknown size and for a fence that
    /// has failed or is none; GENERAL_FAILURE where the device has no fenced executions, as by
    /// default. `burst_launch` has them for any device.
    fn execute_fenced(
        self: Arc<Self>,
        request: Request,
        wait_for: Vec<Fence>,
        options: FencedOptions,
        caller: Caller,
    ) -> Result<FencedExecution, Failure> {
        let _ = (request, wait_for, options, caller);
        Err(Failure::general("this device has no fenced executions"))
    }

    /// What it asks of a request, where it knows; always of a model that was
    /// [prepared from files](Device::prepare_model_from_cache), as nobody else can know it then. A model in another
    /// process need not say: there it is known, and looked at.
    fn request_rules(&self) -> Option<&RequestRules> {
        None
    }

    /// How long its executions take, where the driver notes it: who takes requests for it then refuses
    /// those whose deadline is hopeless before they wait for anything.
    fn pace(&self) -> Option<&Pace> {
        None
    }

    /// The model that this one stands for, where it only adds something around that of a driver: so the
    /// driver gets [its own type](trait@PreparedModel#method.downcast_ref) back. Never itself.
    fn wrapped(&self) -> Option<&Arc<dyn PreparedModel>> {
        None
    }

    /// How it was prepared, where it knows, without a deadline; always of a model that was
    /// [prepared from files](Device::prepare_model_from_cache), as only they say it.
    fn prepare_options(&self) -> Option<PrepareOptions> {
        None
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

    /// Requests are going to name this memory: whoever has to hand it to a driver in another process does
    /// so now, and the first execution need not wait for it. Where that fails, the first execution with this memory
    /// tries again, and has the status if it fails once more.
    fn cache_memory(&mut self, memory: &crate::Pool) {
        let _ = memory;
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

    /// Whether requests may name [buffers](crate::Buffer) of the device, by token. Their slots are never
    /// added: the token stands for the buffer. By default not; a service then executes such requests by
    /// [`PreparedModel::execute_for`].
    fn takes_buffers(&self) -> bool {
        false
    }

    /// Runs once and writes the result into `result`, reusing its storage. `slots[i]` is the slot of
    /// the request's pool `i`; all that are memory were added.
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

/// What a status means for a call that only succeeds or fails.
impl From<ErrorStatus> for Failure {
    fn from(status: ErrorStatus) -> Self {
        Failure::new(status, status.name())
    }
}

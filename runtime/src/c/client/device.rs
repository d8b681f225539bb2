//! A device of a library, as the HAL sees devices.

use std::any::Any;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use burst_hal::{
    Buffer, BufferRequest, Burst, Caller, Device, DeviceType, ErrorStatus, ExecutionCallback,
    ExecutionOptions, ExecutionResult, Failure, Fence, FencedExecution, FencedOptions, Model,
    PrepareOptions, PrepareResult, PreparedModel, Request,
};

use super::buffers::{Buffers, NdkBuffer};
use super::execution::{By, Prepared, Started, failure, nanos, nanos_left};
use super::library::Library;
use super::model::{BuiltModel, build};
use super::objects::{Burst as BurstObject, Compilation, DeviceHandle, Memory};
use crate::{Error, Result, priority_code};

/// A device of a library that was loaded by name, over the functions of that library alone.
///
/// Executions are launched as the HAL asks for them: `compute`, `startCompute`, `burstCompute`,
/// `startComputeWithDependencies`. Those that measure, and those behind fences, have their arguments in memories;
/// the others have them in buffers of this process, so that whoever runs both kinds sees both. Where no device is
/// named nothing is measured, and every other execution of a model has them in memories.
#[derive(Clone)]
pub struct NdkDevice {
    /// Any device will do to make what belongs to no device.
    device: DeviceHandle,
    /// Those that are asked what they run.
    asked: Arc<[DeviceHandle]>,
    is_named: bool,
    name: String,
    version: String,
    kind: DeviceType,
    buffers: Arc<Buffers>,
}

impl fmt::Debug for NdkDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NdkDevice").field("name", &self.name).finish_non_exhaustive()
    }
}

impl NdkDevice {
    /// The devices of a library, the one of last resort last.
    ///
    /// # Errors
    /// What the library answers.
    pub fn all(library: &Arc<Library>) -> Result<Vec<Self>> {
        let device = |device: DeviceHandle| {
            let kind = DeviceType::from_code(device.kind()?).unwrap_or(DeviceType::Other);
            let (name, version) = (device.name()?, device.version()?);
            let asked = Arc::from([device.clone()]);
            let buffers = Arc::default();
            Ok(NdkDevice { device, asked, is_named: true, name, version, kind, buffers })
        };
        DeviceHandle::all(library)?.into_iter().map(device).collect()
    }

    /// All devices of a library together: compilations name none, and the library divides models among them.
    /// There are neither deadlines nor times.
    ///
    /// # Errors
    /// What the library answers; it has no device.
    pub fn any(library: &Arc<Library>) -> Result<Self> {
        let asked: Arc<[DeviceHandle]> = DeviceHandle::all(library)?.into();
        let device = asked.first().ok_or_else(|| Error::bad_data("a library without devices"))?;
        Ok(NdkDevice {
            device: device.clone(),
            asked: Arc::clone(&asked),
            is_named: false,
            name: "any".to_owned(),
            version: device.version()?,
            kind: DeviceType::Other,
            buffers: Arc::default(),
        })
    }

    /// A compilation of a model with no options, and the model, which has to outlive it.
    pub(super) fn compiled(&self, model: &Model) -> Result<(Compilation, BuiltModel)> {
        let built = build(&self.device, model)?;
        let mut compilation = built.model.compilation(self.named())?;
        compilation.finish()?;
        Ok((compilation, built))
    }

    pub(super) fn memory(&self, fd: BorrowedFd<'_>, size: usize) -> Result<Memory> {
        self.device.memory(fd, size)
    }

    /// The device that compilations name.
    fn named(&self) -> Option<&DeviceHandle> {
        self.is_named.then_some(&self.device)
    }

    fn prepare(&self, model: &Model, options: &PrepareOptions) -> Result<NdkModel> {
        let built = build(&self.device, model)?;
        let mut compilation = built.model.compilation(self.named())?;
        compilation.set_preference(options.preference.code())?;
        compilation.set_priority(priority_code(options.priority))?;
        if let Some(nanos) = nanos_left(options.deadline) {
            compilation.set_timeout(nanos)?;
        }
        compilation.finish()?;
        let outputs = model.main.output_indexes.len();
        let device = self.clone();
        Ok(NdkModel { device, compilation, outputs, runs: AtomicUsize::new(0), _built: built })
    }

    fn buffer(&self, request: &BufferRequest) -> Result<Arc<NdkBuffer>> {
        let mut desc = self.device.desc()?;
        let roles = request.inputs.iter().map(|role| (true, role));
        for (is_input, role) in roles.chain(request.outputs.iter().map(|role| (false, role))) {
            let model = request.models.get(role.model as usize);
            let model = model.and_then(|model| (&**model as &dyn Any).downcast_ref::<NdkModel>());
            let model =
                model.ok_or_else(|| Error::bad_data("a role of no model of this device"))?;
            desc.add_role(&model.compilation, is_input, role.position, role.frequency)?;
        }
        if !request.dimensions.is_empty() {
            desc.set_dimensions(&request.dimensions)?;
        }
        Ok(self.buffers.add(desc.memory()?, self.device.clone()))
    }
}

impl Device for NdkDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn version_string(&self) -> &str {
        &self.version
    }

    fn device_type(&self) -> DeviceType {
        self.kind
    }

    fn supported_operations(&self, model: &Model) -> std::result::Result<Vec<bool>, Failure> {
        let ask = || {
            let built = build(&self.device, model)?;
            built.model.supported(&self.asked, model.main.operations.len())
        };
        ask().map_err(|error: Error| failure(&error))
    }

    fn prepare_model(&self, model: &Model, options: &PrepareOptions) -> PrepareResult {
        match self.prepare(model, options) {
            Ok(prepared) => Ok(Arc::new(prepared)),
            Err(error) => Err(failure(&error)),
        }
    }

    /// A size that is not known is what a description may be refused for.
    fn allocate(
        &self,
        request: &BufferRequest,
        _: &Caller,
    ) -> std::result::Result<Arc<dyn Buffer>, Failure> {
        match self.buffer(request) {
            Ok(buffer) => Ok(buffer),
            Err(error) => Err(failure(&error)),
        }
    }
}

/// A compilation, with the model that it was made of.
struct NdkModel {
    device: NdkDevice,
    compilation: Compilation,
    outputs: usize,
    /// How many executions were asked for.
    runs: AtomicUsize,
    _built: BuiltModel,
}

impl NdkModel {
    fn prepared(&self, request: &Request, options: &ExecutionOptions, by: By) -> Result<Prepared> {
        let NdkDevice { device, buffers, .. } = &self.device;
        Prepared::new(device, &self.compilation, buffers, request, options, by)
    }

    /// Runs once, by whichever call, and waits.
    fn run(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        compute: impl FnOnce(&Prepared) -> Result<()>,
    ) -> ExecutionResult {
        // Relaxed: the number alone matters.
        let is_second = self.runs.fetch_add(1, Ordering::Relaxed) % 2 == 1;
        let in_memory = options.measure_timing || (!self.device.is_named && is_second);
        let by = if in_memory { By::Memory } else { By::Pointer };
        let prepared = match self.prepared(request, options, by) {
            Ok(prepared) => prepared,
            Err(error) => return ExecutionResult::of(error.code.into()),
        };
        let mut result = prepared.result(compute(&prepared));
        if matches!(result.status, ErrorStatus::None | ErrorStatus::OutputInsufficientSize) {
            match prepared.shapes(self.outputs) {
                Ok(shapes) => result.output_shapes = shapes,
                Err(error) => return lost(&error),
            }
        }
        if options.measure_timing && result.status == ErrorStatus::None {
            match prepared.timing(0, 1) {
                Ok(timing) => result.timing = timing,
                Err(error) => return lost(&error),
            }
        }
        result
    }
}

/// The library does not say what an execution came to.
fn lost(error: &Error) -> ExecutionResult {
    tracing::warn!(%error, "no result of an execution that succeeded");
    ExecutionResult::of(ErrorStatus::GeneralFailure)
}

impl PreparedModel for NdkModel {
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        self.run(request, options, |prepared| prepared.execution.compute())
    }

    fn execute_asynchronously(
        self: Arc<Self>,
        request: Request,
        options: ExecutionOptions,
        _: Caller,
        callback: ExecutionCallback,
    ) -> std::result::Result<(), Failure> {
        let result = self.run(&request, &options, |prepared| prepared.execution.start()?.wait());
        drop(request);
        let status = result.status;
        callback(result);
        match status {
            ErrorStatus::InvalidArgument => Err(status.into()),
            _ => Ok(()),
        }
    }

    fn execute_fenced(
        self: Arc<Self>,
        request: Request,
        wait_for: Vec<Fence>,
        options: FencedOptions,
        _: Caller,
    ) -> std::result::Result<FencedExecution, Failure> {
        let start = || -> Result<Started> {
            let prepared = self.prepared(&request, &options.execution, By::Memory)?;
            let events = wait_for.iter().map(|fence| self.device.device.event(fence.as_fd()));
            let events = events.collect::<Result<Vec<_>>>()?;
            let duration = options.duration.map_or(0, nanos);
            let event = prepared.execution.start_behind(&events, duration)?;
            let fence = event.fence().map(Fence::from);
            let measured = options.execution.measure_timing;
            Ok(Started { event, fence, measured, prepared: Mutex::new(prepared) })
        };
        let started = start().map_err(|error| failure(&error))?;
        let fence = started.fence.clone();
        Ok(FencedExecution { fence, info: Arc::new(started) })
    }

    fn open_burst(self: Arc<Self>) -> std::result::Result<Box<dyn Burst>, Failure> {
        let burst = self.compilation.burst().map_err(|error| failure(&error))?;
        Ok(Box::new(NdkBurst { burst, model: self }))
    }
}

/// A burst of a compilation.
struct NdkBurst {
    burst: BurstObject,
    model: Arc<NdkModel>,
}

impl Burst for NdkBurst {
    fn execute(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) {
        let burst = &self.burst;
        *result = self.model.run(request, options, |prepared| prepared.execution.compute_in(burst));
    }
}

//! A caller of the C functions in this process who keeps what the header says of memory, and nothing else.
//!
//! For whoever looks for calls that hurt: any handle, in any order, with any numbers, from safe Rust. Every pointer
//! that goes over the edge comes from a slice or a value here; buffers of executions live until the caller is
//! dropped, which waits for all that was started.

#![allow(unsafe_code, reason = "calls the exported functions with pointers to its own memory")]

use std::ffi::c_int;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{null, null_mut};

mod raw;

pub use raw::OperandType;
use raw::*;

/// A handle as C holds it, or any other number.
pub type Handle = usize;
/// What a function returns.
pub type Code = c_int;

/// Most values that a function answers at once: an operand's dimensions, or a flag for each operation.
const ANSWERS_MAX: usize = 1 << 12;

/// Declares functions of the header, and a call of each that takes handles and numbers alone.
macro_rules! plain {
    ($($(#[$doc:meta])* $function:ident = $name:ident($($argument:ident: $ty:ty),*);)*) => {
        mod plain {
            use std::ffi::c_int;
            unsafe extern "C" {
                $(pub(super) safe fn $name($($argument: $ty),*) -> c_int;)*
            }
        }

        /// Functions that take handles and numbers alone.
        impl Caller {
            $($(#[$doc])* pub fn $function(&self, $($argument: $ty),*) -> Code {
                plain::$name($($argument),*)
            })*
        }
    };
}

plain! {
    /// Finishes a model.
    model_finish = ANeuralNetworksModel_finish(model: usize);
    /// Relaxes a model.
    model_relax = ANeuralNetworksModel_relaxComputationFloat32toFloat16(model: usize, allow: bool);
    /// A constant in a memory.
    model_set_value_from_memory = ANeuralNetworksModel_setOperandValueFromMemory(
        model: usize, index: i32, memory: usize, offset: usize, length: usize);
    /// A graph as a value.
    model_set_value_from_model = ANeuralNetworksModel_setOperandValueFromModel(
        model: usize, index: i32, value: usize);
    /// A preference.
    compilation_set_preference = ANeuralNetworksCompilation_setPreference(
        compilation: usize, preference: i32);
    /// A priority.
    compilation_set_priority = ANeuralNetworksCompilation_setPriority(
        compilation: usize, priority: i32);
    /// A time-out.
    compilation_set_timeout = ANeuralNetworksCompilation_setTimeout(
        compilation: usize, nanos: u64);
    /// Finishes a compilation.
    compilation_finish = ANeuralNetworksCompilation_finish(compilation: usize);
    /// Copies a memory to another.
    memory_copy = ANeuralNetworksMemory_copy(from: usize, to: usize);
    /// A role as an input.
    desc_add_input_role = ANeuralNetworksMemoryDesc_addInputRole(
        desc: usize, compilation: usize, index: u32, frequency: f32);
    /// A role as an output.
    desc_add_output_role = ANeuralNetworksMemoryDesc_addOutputRole(
        desc: usize, compilation: usize, index: u32, frequency: f32);
    /// Finishes a description.
    desc_finish = ANeuralNetworksMemoryDesc_finish(desc: usize);
    /// Times are wanted.
    execution_set_measure_timing = ANeuralNetworksExecution_setMeasureTiming(
        execution: usize, measure: bool);
    /// A time-out.
    execution_set_timeout = ANeuralNetworksExecution_setTimeout(execution: usize, nanos: u64);
    /// A time-out of loops.
    execution_set_loop_timeout = ANeuralNetworksExecution_setLoopTimeout(
        execution: usize, nanos: u64);
    /// Computes again and again.
    execution_set_reusable = ANeuralNetworksExecution_setReusable(execution: usize, reusable: bool);
    /// Room behind arguments.
    execution_enable_padding = ANeuralNetworksExecution_enableInputAndOutputPadding(
        execution: usize, enable: bool);
    /// Computes.
    execution_compute = ANeuralNetworksExecution_compute(execution: usize);
    /// Computes over a burst.
    execution_burst_compute = ANeuralNetworksExecution_burstCompute(execution: usize, burst: usize);
    /// Waits.
    event_wait = ANeuralNetworksEvent_wait(event: usize);
}

/// A caller, and the memory that its executions use.
#[derive(Debug, Default)]
pub struct Caller {
    /// Buffers of executions, which are not touched here any more.
    lent: Vec<*mut [u8]>,
    /// Events of what was started, which may use them until its end.
    started: Vec<Handle>,
}

/// Where the function puts a handle.
fn made(call: impl FnOnce(*mut usize) -> Code) -> (Code, Handle) {
    let mut handle = 0;
    (call(&raw mut handle), handle)
}

impl Caller {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Caller::default()
    }

    /// A device.
    pub fn device(&self, index: u32) -> (Code, Handle) {
        // SAFETY: room for a handle.
        made(|to| unsafe { ANeuralNetworks_getDevice(index, to) })
    }

    /// A new model.
    pub fn model(&self) -> (Code, Handle) {
        // SAFETY: room for a handle.
        made(|to| unsafe { ANeuralNetworksModel_create(to) })
    }

    /// Adds an operand.
    pub fn model_add_operand(&self, model: Handle, ty: &OperandType<'_>) -> Code {
        let raw = ty.raw();
        // SAFETY: a structure with as many dimensions as it says.
        unsafe { ANeuralNetworksModel_addOperand(model, &raw const raw) }
    }

    /// Gives an operand a value; an empty one is null.
    pub fn model_set_value(&self, model: Handle, index: i32, value: &[u8]) -> Code {
        let at = pointer(value);
        // SAFETY: as many bytes as are said, or null and none.
        unsafe { ANeuralNetworksModel_setOperandValue(model, index, at, value.len()) }
    }

    /// Gives an operand scales.
    pub fn model_set_scales(&self, model: Handle, index: i32, axis: u32, scales: &[f32]) -> Code {
        let raw =
            RawScales { channel_dim: axis, scale_count: count(scales), scales: pointer(scales) };
        // SAFETY: a structure with as many scales as it says.
        unsafe {
            ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(model, index, &raw const raw)
        }
    }

    /// Adds an operation.
    pub fn model_add_operation(
        &self,
        model: Handle,
        ty: i32,
        inputs: &[u32],
        outputs: &[u32],
    ) -> Code {
        let (first, second) = (pointer(inputs), pointer(outputs));
        let (inputs, outputs) = (count(inputs), count(outputs));
        // SAFETY: lists of as many as are said.
        unsafe { ANeuralNetworksModel_addOperation(model, ty, inputs, first, outputs, second) }
    }

    /// Says which operands are inputs and outputs.
    pub fn model_identify(&self, model: Handle, inputs: &[u32], outputs: &[u32]) -> Code {
        let (first, second) = (pointer(inputs), pointer(outputs));
        let (inputs, outputs) = (count(inputs), count(outputs));
        // SAFETY: lists of as many as are said.
        unsafe {
            ANeuralNetworksModel_identifyInputsAndOutputs(model, inputs, first, outputs, second)
        }
    }

    /// Asks what devices run of a model of fewer than `ANSWERS_MAX` operations.
    pub fn model_supported(&self, model: Handle, devices: &[Handle]) -> Code {
        let mut answers = [0_u8; ANSWERS_MAX];
        let (at, count) = (pointer(devices), count(devices));
        // SAFETY: a list of as many as are said, and room for more answers than a model here has operations.
        unsafe {
            ANeuralNetworksModel_getSupportedOperationsForDevices(
                model,
                at,
                count,
                answers.as_mut_ptr(),
            )
        }
    }

    /// Frees a model.
    pub fn model_free(&self, model: Handle) {
        ANeuralNetworksModel_free(model);
    }

    /// A compilation for all devices.
    pub fn compilation(&self, model: Handle) -> (Code, Handle) {
        // SAFETY: room for a handle.
        made(|to| unsafe { ANeuralNetworksCompilation_create(model, to) })
    }

    /// A compilation for these.
    pub fn compilation_for(&self, model: Handle, devices: &[Handle]) -> (Code, Handle) {
        let (at, count) = (pointer(devices), count(devices));
        // SAFETY: a list of as many as are said; room for a handle.
        made(|to| unsafe { ANeuralNetworksCompilation_createForDevices(model, at, count, to) })
    }

    /// Frees a compilation.
    pub fn compilation_free(&self, compilation: Handle) {
        ANeuralNetworksCompilation_free(compilation);
    }

    /// A memory of a descriptor.
    pub fn memory(
        &self,
        fd: BorrowedFd<'_>,
        size: usize,
        protection: i32,
        offset: usize,
    ) -> (Code, Handle) {
        let fd = std::os::fd::AsRawFd::as_raw_fd(&fd);
        // SAFETY: room for a handle; the descriptor is open.
        made(|to| unsafe { ANeuralNetworksMemory_createFromFd(size, protection, fd, offset, to) })
    }

    /// A memory of a description.
    pub fn memory_of(&self, desc: Handle) -> (Code, Handle) {
        // SAFETY: room for a handle.
        made(|to| unsafe { ANeuralNetworksMemory_createFromDesc(desc, to) })
    }

    /// Frees a memory.
    pub fn memory_free(&self, memory: Handle) {
        ANeuralNetworksMemory_free(memory);
    }

    /// A description.
    pub fn desc(&self) -> (Code, Handle) {
        // SAFETY: room for a handle.
        made(|to| unsafe { ANeuralNetworksMemoryDesc_create(to) })
    }

    /// Says what shape a description has.
    pub fn desc_set_dimensions(&self, desc: Handle, dimensions: &[u32]) -> Code {
        let (at, rank) = (pointer(dimensions), count(dimensions));
        // SAFETY: a list of as many as are said.
        unsafe { ANeuralNetworksMemoryDesc_setDimensions(desc, rank, at) }
    }

    /// Frees a description.
    pub fn desc_free(&self, desc: Handle) {
        ANeuralNetworksMemoryDesc_free(desc);
    }

    /// An execution.
    pub fn execution(&self, compilation: Handle) -> (Code, Handle) {
        // SAFETY: room for a handle.
        made(|to| unsafe { ANeuralNetworksExecution_create(compilation, to) })
    }

    /// Frees an execution.
    pub fn execution_free(&self, execution: Handle) {
        ANeuralNetworksExecution_free(execution);
    }

    /// A buffer for executions, which lives until the caller is dropped and is touched by nobody else.
    fn lend(&mut self, bytes: &[u8]) -> *mut u8 {
        if bytes.is_empty() {
            return null_mut();
        }
        let buffer = Box::into_raw(Box::<[u8]>::from(bytes));
        self.lent.push(buffer);
        buffer.cast()
    }

    /// An input in memory of the caller's; an empty one is null.
    pub fn execution_set_input(
        &mut self,
        execution: Handle,
        index: i32,
        ty: Option<&OperandType<'_>>,
        value: &[u8],
    ) -> Code {
        let buffer = self.lend(value);
        let raw = ty.map(OperandType::raw);
        let ty = raw.as_ref().map_or(null(), |raw| &raw const *raw);
        // SAFETY: a structure or null; a buffer of so many bytes that lives until all that was started has ended.
        unsafe { ANeuralNetworksExecution_setInput(execution, index, ty, buffer, value.len()) }
    }

    /// An output in memory of the caller's; an empty one is null.
    pub fn execution_set_output(
        &mut self,
        execution: Handle,
        index: i32,
        ty: Option<&OperandType<'_>>,
        length: usize,
    ) -> Code {
        let buffer = self.lend(&vec![0; length]);
        let raw = ty.map(OperandType::raw);
        let ty = raw.as_ref().map_or(null(), |raw| &raw const *raw);
        // SAFETY: as above; no other argument has this buffer.
        unsafe { ANeuralNetworksExecution_setOutput(execution, index, ty, buffer, length) }
    }

    /// An input, or an output, in a memory.
    pub fn execution_set_from_memory(
        &self,
        execution: Handle,
        (index, is_output): (i32, bool),
        ty: Option<&OperandType<'_>>,
        memory: Handle,
        (offset, length): (usize, usize),
    ) -> Code {
        let raw = ty.map(OperandType::raw);
        let ty = raw.as_ref().map_or(null(), |raw| &raw const *raw);
        match is_output {
            // SAFETY: a structure or null.
            true => unsafe {
                ANeuralNetworksExecution_setOutputFromMemory(
                    execution, index, ty, memory, offset, length,
                )
            },
            // SAFETY: as above.
            false => unsafe {
                ANeuralNetworksExecution_setInputFromMemory(
                    execution, index, ty, memory, offset, length,
                )
            },
        }
    }

    /// Starts to compute.
    pub fn execution_start(&mut self, execution: Handle) -> (Code, Handle) {
        // SAFETY: room for a handle.
        let made = made(|to| unsafe { ANeuralNetworksExecution_startCompute(execution, to) });
        self.started.push(made.1);
        made
    }

    /// Starts to compute behind events.
    pub fn execution_start_behind(
        &mut self,
        execution: Handle,
        events: &[Handle],
        duration: u64,
    ) -> (Code, Handle) {
        let (at, count) = (pointer(events), count(events));
        // SAFETY: a list of as many as are said; room for a handle.
        let made = made(|to| unsafe {
            ANeuralNetworksExecution_startComputeWithDependencies(
                execution, at, count, duration, to,
            )
        });
        self.started.push(made.1);
        made
    }

    /// How long it took.
    pub fn execution_duration(&self, execution: Handle, code: i32) -> (Code, u64) {
        let mut nanos = 0;
        // SAFETY: room for a number.
        let code = unsafe { ANeuralNetworksExecution_getDuration(execution, code, &raw mut nanos) };
        (code, nanos)
    }

    /// The rank of an output.
    pub fn execution_rank(&self, execution: Handle, index: i32) -> (Code, u32) {
        let mut rank = 0;
        // SAFETY: room for a number.
        let code = unsafe {
            ANeuralNetworksExecution_getOutputOperandRank(execution, index, &raw mut rank)
        };
        (code, rank)
    }

    /// The shape of an output: as many numbers as its rank says.
    pub fn execution_dimensions(&self, execution: Handle, index: i32) -> (Code, Vec<u32>) {
        let mut dimensions = vec![0; ANSWERS_MAX];
        let at = dimensions.as_mut_ptr();
        // SAFETY: room for far more axes than any operand may have.
        let code =
            unsafe { ANeuralNetworksExecution_getOutputOperandDimensions(execution, index, at) };
        (code, dimensions)
    }

    /// A burst.
    pub fn burst(&self, compilation: Handle) -> (Code, Handle) {
        // SAFETY: room for a handle.
        made(|to| unsafe { ANeuralNetworksBurst_create(compilation, to) })
    }

    /// Frees a burst.
    pub fn burst_free(&self, burst: Handle) {
        ANeuralNetworksBurst_free(burst);
    }

    /// An event of a fence.
    pub fn event(&self, fd: RawFd) -> (Code, Handle) {
        // SAFETY: room for a handle; a number that is no open descriptor is refused.
        made(|to| unsafe { ANeuralNetworksEvent_createFromSyncFenceFd(fd, to) })
    }

    /// The fence of an event.
    pub fn event_fence(&self, event: Handle) -> (Code, Option<OwnedFd>) {
        let mut fd = -1;
        // SAFETY: room for a number.
        let code = unsafe { ANeuralNetworksEvent_getSyncFenceFd(event, &raw mut fd) };
        // SAFETY: what is answered belongs to the caller from then on, and to nobody else.
        let fence = (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) });
        (code, fence)
    }

    /// Frees an event.
    pub fn event_free(&self, event: Handle) {
        ANeuralNetworksEvent_free(event);
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        // Whoever frees an event waits for its execution.
        for event in self.started.drain(..) {
            ANeuralNetworksEvent_free(event);
        }
        for buffer in self.lent.drain(..) {
            // SAFETY: made by `Box::into_raw` in `lend`, once; nobody uses it any more, as all that was
            // started has ended.
            drop(unsafe { Box::from_raw(buffer) });
        }
    }
}

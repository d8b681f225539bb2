//! What lies under the caller: types of the header, and its functions that take pointers or only free something.

#![allow(unsafe_code, reason = "declares the exported functions")]

use std::ffi::c_int;
use std::ptr::null;

/// `ANeuralNetworksOperandType`.
#[repr(C)]
pub(super) struct RawType {
    ty: i32,
    dimension_count: u32,
    dimensions: *const u32,
    scale: f32,
    zero_point: i32,
}

/// `ANeuralNetworksSymmPerChannelQuantParams`.
#[repr(C)]
pub(super) struct RawScales {
    pub(super) channel_dim: u32,
    pub(super) scale_count: u32,
    pub(super) scales: *const f32,
}

/// A type of an operand; without dimensions a null pointer to them.
#[derive(Debug, Clone, Copy, Default)]
pub struct OperandType<'a> {
    /// Its code.
    pub ty: i32,
    /// Sizes along each axis.
    pub dimensions: &'a [u32],
    /// Scale.
    pub scale: f32,
    /// Zero point.
    pub zero_point: i32,
}

impl OperandType<'_> {
    pub(super) fn raw(&self) -> RawType {
        RawType {
            ty: self.ty,
            dimension_count: count(self.dimensions),
            dimensions: pointer(self.dimensions),
            scale: self.scale,
            zero_point: self.zero_point,
        }
    }
}

pub(super) fn count<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

pub(super) fn pointer<T>(list: &[T]) -> *const T {
    if list.is_empty() { null() } else { list.as_ptr() }
}

// SAFETY: the exported functions of this crate, with the types that their header has.
unsafe extern "C" {
    pub(super) safe fn ANeuralNetworksModel_free(model: usize);
    pub(super) safe fn ANeuralNetworksCompilation_free(compilation: usize);
    pub(super) safe fn ANeuralNetworksMemory_free(memory: usize);
    pub(super) safe fn ANeuralNetworksMemoryDesc_free(desc: usize);
    pub(super) safe fn ANeuralNetworksExecution_free(execution: usize);
    pub(super) safe fn ANeuralNetworksBurst_free(burst: usize);
    pub(super) safe fn ANeuralNetworksEvent_free(event: usize);
    pub(super) fn ANeuralNetworks_getDevice(index: u32, device: *mut usize) -> c_int;
    pub(super) fn ANeuralNetworksModel_create(model: *mut usize) -> c_int;
    pub(super) fn ANeuralNetworksModel_addOperand(model: usize, ty: *const RawType) -> c_int;
    pub(super) fn ANeuralNetworksModel_setOperandValue(
        model: usize,
        index: i32,
        value: *const u8,
        length: usize,
    ) -> c_int;
    pub(super) fn ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(
        model: usize,
        index: i32,
        scales: *const RawScales,
    ) -> c_int;
    pub(super) fn ANeuralNetworksModel_addOperation(
        model: usize,
        ty: i32,
        input_count: u32,
        inputs: *const u32,
        output_count: u32,
        outputs: *const u32,
    ) -> c_int;
    pub(super) fn ANeuralNetworksModel_identifyInputsAndOutputs(
        model: usize,
        input_count: u32,
        inputs: *const u32,
        output_count: u32,
        outputs: *const u32,
    ) -> c_int;
    pub(super) fn ANeuralNetworksModel_getSupportedOperationsForDevices(
        model: usize,
        devices: *const usize,
        device_count: u32,
        supported: *mut u8,
    ) -> c_int;
    pub(super) fn ANeuralNetworksCompilation_create(model: usize, compilation: *mut usize)
    -> c_int;
    pub(super) fn ANeuralNetworksCompilation_createForDevices(
        model: usize,
        devices: *const usize,
        device_count: u32,
        compilation: *mut usize,
    ) -> c_int;
    pub(super) fn ANeuralNetworksMemory_createFromFd(
        size: usize,
        protection: c_int,
        fd: c_int,
        offset: usize,
        memory: *mut usize,
    ) -> c_int;
    pub(super) fn ANeuralNetworksMemory_createFromDesc(desc: usize, memory: *mut usize) -> c_int;
    pub(super) fn ANeuralNetworksMemoryDesc_create(desc: *mut usize) -> c_int;
    pub(super) fn ANeuralNetworksMemoryDesc_setDimensions(
        desc: usize,
        rank: u32,
        dimensions: *const u32,
    ) -> c_int;
    pub(super) fn ANeuralNetworksExecution_create(
        compilation: usize,
        execution: *mut usize,
    ) -> c_int;
    pub(super) fn ANeuralNetworksExecution_setInput(
        execution: usize,
        index: i32,
        ty: *const RawType,
        buffer: *const u8,
        length: usize,
    ) -> c_int;
    pub(super) fn ANeuralNetworksExecution_setInputFromMemory(
        execution: usize,
        index: i32,
        ty: *const RawType,
        memory: usize,
        offset: usize,
        length: usize,
    ) -> c_int;
    pub(super) fn ANeuralNetworksExecution_setOutput(
        execution: usize,
        index: i32,
        ty: *const RawType,
        buffer: *mut u8,
        length: usize,
    ) -> c_int;
    pub(super) fn ANeuralNetworksExecution_setOutputFromMemory(
        execution: usize,
        index: i32,
        ty: *const RawType,
        memory: usize,
        offset: usize,
        length: usize,
    ) -> c_int;
    pub(super) fn ANeuralNetworksExecution_startCompute(
        execution: usize,
        event: *mut usize,
    ) -> c_int;
    pub(super) fn ANeuralNetworksExecution_startComputeWithDependencies(
        execution: usize,
        dependencies: *const usize,
        dependency_count: u32,
        duration: u64,
        event: *mut usize,
    ) -> c_int;
    pub(super) fn ANeuralNetworksExecution_getDuration(
        execution: usize,
        code: i32,
        nanos: *mut u64,
    ) -> c_int;
    pub(super) fn ANeuralNetworksExecution_getOutputOperandRank(
        execution: usize,
        index: i32,
        rank: *mut u32,
    ) -> c_int;
    pub(super) fn ANeuralNetworksExecution_getOutputOperandDimensions(
        execution: usize,
        index: i32,
        dimensions: *mut u32,
    ) -> c_int;
    pub(super) fn ANeuralNetworksBurst_create(compilation: usize, burst: *mut usize) -> c_int;
    pub(super) fn ANeuralNetworksEvent_createFromSyncFenceFd(fd: c_int, event: *mut usize)
    -> c_int;
    pub(super) fn ANeuralNetworksEvent_getSyncFenceFd(event: usize, fd: *mut c_int) -> c_int;
}

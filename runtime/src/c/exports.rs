//! The exported functions: their names, and where each is.
//!
//! A name is a jump to the function, so that the compiler, which knows nothing of versions of symbols, does
//! not export the function itself: docs/decisions/0033-symbol-versions.md. `exports.txt` says which
//! version each name has; a test below fails where the two lists differ.

#![allow(unsafe_code, reason = "names for the linker: nothing here is executed but the jumps")]

use std::arch::global_asm;

use super::{
    burst, compilation, devices, event, execution, hardware_buffer, memory, memory_desc, model,
};

/// The instruction that goes on at `{function}` with the arguments of its caller, behind the mark of a place
/// that may be called through a pointer.
#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    () => {
        "endbr64\njmp {function}"
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    () => {
        "hint #34\nb {function}"
    };
}
#[cfg(target_arch = "riscv64")]
macro_rules! jump {
    () => {
        "tail {function}"
    };
}

macro_rules! exports {
    ($($name:ident = $module:ident::$function:ident,)*) => {
        $(global_asm!(
            concat!(".pushsection .text.", stringify!($name), ",\"ax\",%progbits"),
            ".p2align 4",
            concat!(".globl ", stringify!($name)),
            concat!(".type ", stringify!($name), ",%function"),
            concat!(stringify!($name), ":"),
            jump!(),
            concat!(".size ", stringify!($name), ", . - ", stringify!($name)),
            ".popsection",
            function = sym $module::$function,
        );)*

        /// Every name.
        #[cfg(test)]
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

exports! {
    ANeuralNetworks_getDeviceCount = devices::get_device_count,
    ANeuralNetworks_getDevice = devices::get_device,
    ANeuralNetworks_getDefaultLoopTimeout = devices::get_default_loop_timeout,
    ANeuralNetworks_getMaximumLoopTimeout = devices::get_maximum_loop_timeout,
    ANeuralNetworks_getRuntimeFeatureLevel = devices::get_runtime_feature_level,
    ANeuralNetworksDevice_getName = devices::get_name,
    ANeuralNetworksDevice_getType = devices::get_type,
    ANeuralNetworksDevice_getVersion = devices::get_version,
    ANeuralNetworksDevice_getFeatureLevel = devices::get_feature_level,
    ANeuralNetworksDevice_wait = devices::wait,
    ANeuralNetworksDevice_getExtensionSupport = devices::get_extension_support,

    ANeuralNetworksModel_create = model::create,
    ANeuralNetworksModel_free = model::free,
    ANeuralNetworksModel_finish = model::finish,
    ANeuralNetworksModel_addOperand = model::add_operand,
    ANeuralNetworksModel_setOperandValue = model::set_operand_value,
    ANeuralNetworksModel_setOperandSymmPerChannelQuantParams =
        model::set_operand_symm_per_channel_quant_params,
    ANeuralNetworksModel_setOperandValueFromMemory = model::set_operand_value_from_memory,
    ANeuralNetworksModel_setOperandValueFromModel = model::set_operand_value_from_model,
    ANeuralNetworksModel_addOperation = model::add_operation,
    ANeuralNetworksModel_identifyInputsAndOutputs = model::identify_inputs_and_outputs,
    ANeuralNetworksModel_relaxComputationFloat32toFloat16 =
        model::relax_computation_float32_to_float16,
    ANeuralNetworksModel_getSupportedOperationsForDevices =
        model::get_supported_operations_for_devices,
    ANeuralNetworksModel_getExtensionOperandType = model::get_extension_operand_type,
    ANeuralNetworksModel_getExtensionOperationType = model::get_extension_operation_type,
    ANeuralNetworksModel_setOperandExtensionData = model::set_operand_extension_data,

    ANeuralNetworksCompilation_create = compilation::create,
    ANeuralNetworksCompilation_createForDevices = compilation::create_for_devices,
    ANeuralNetworksCompilation_free = compilation::free,
    ANeuralNetworksCompilation_setPreference = compilation::set_preference,
    ANeuralNetworksCompilation_setCaching = compilation::set_caching,
    ANeuralNetworksCompilation_setPriority = compilation::set_priority,
    ANeuralNetworksCompilation_setTimeout = compilation::set_timeout,
    ANeuralNetworksCompilation_finish = compilation::finish,
    ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput =
        compilation::alignment_for_input,
    ANeuralNetworksCompilation_getPreferredMemoryAlignmentForOutput =
        compilation::alignment_for_output,
    ANeuralNetworksCompilation_getPreferredMemoryPaddingForInput = compilation::padding_for_input,
    ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput = compilation::padding_for_output,
    ANeuralNetworksCompilation_addExtensionAttribute = compilation::add_extension_attribute,

    ANeuralNetworksMemory_createFromFd = memory::create_from_fd,
    ANeuralNetworksMemory_createFromAHardwareBuffer = memory::create_from_hardware_buffer,
    ANeuralNetworksMemory_createFromDesc = memory::create_from_desc,
    ANeuralNetworksMemory_copy = memory::copy,
    ANeuralNetworksMemory_free = memory::free,
    ANeuralNetworksMemoryDesc_create = memory_desc::create,
    ANeuralNetworksMemoryDesc_free = memory_desc::free,
    ANeuralNetworksMemoryDesc_addInputRole = memory_desc::add_input_role,
    ANeuralNetworksMemoryDesc_addOutputRole = memory_desc::add_output_role,
    ANeuralNetworksMemoryDesc_setDimensions = memory_desc::set_dimensions,
    ANeuralNetworksMemoryDesc_finish = memory_desc::finish,

    ANeuralNetworksExecution_create = execution::create,
    ANeuralNetworksExecution_free = execution::free,
    ANeuralNetworksExecution_setInput = execution::set_input,
    ANeuralNetworksExecution_setInputFromMemory = execution::set_input_from_memory,
    ANeuralNetworksExecution_setOutput = execution::set_output,
    ANeuralNetworksExecution_setOutputFromMemory = execution::set_output_from_memory,
    ANeuralNetworksExecution_setMeasureTiming = execution::set_measure_timing,
    ANeuralNetworksExecution_setTimeout = execution::set_timeout,
    ANeuralNetworksExecution_setLoopTimeout = execution::set_loop_timeout,
    ANeuralNetworksExecution_setReusable = execution::set_reusable,
    ANeuralNetworksExecution_enableInputAndOutputPadding =
        execution::enable_input_and_output_padding,
    ANeuralNetworksExecution_compute = execution::compute,
    ANeuralNetworksExecution_startCompute = execution::start_compute,
    ANeuralNetworksExecution_burstCompute = execution::burst_compute,
    ANeuralNetworksExecution_startComputeWithDependencies =
        execution::start_compute_with_dependencies,
    ANeuralNetworksExecution_getDuration = execution::get_duration,
    ANeuralNetworksExecution_getOutputOperandRank = execution::get_output_operand_rank,
    ANeuralNetworksExecution_getOutputOperandDimensions =
        execution::get_output_operand_dimensions,
    ANeuralNetworksExecution_addExtensionAttribute = execution::add_extension_attribute,

    ANeuralNetworksBurst_create = burst::create,
    ANeuralNetworksBurst_free = burst::free,
    ANeuralNetworksEvent_wait = event::wait,
    ANeuralNetworksEvent_free = event::free,
    ANeuralNetworksEvent_createFromSyncFenceFd = event::create_from_sync_fence_fd,
    ANeuralNetworksEvent_getSyncFenceFd = event::get_sync_fence_fd,

    AHardwareBuffer_allocate = hardware_buffer::allocate,
    AHardwareBuffer_acquire = hardware_buffer::acquire,
    AHardwareBuffer_release = hardware_buffer::release,
    AHardwareBuffer_describe = hardware_buffer::describe,
    AHardwareBuffer_lock = hardware_buffer::lock,
    AHardwareBuffer_unlock = hardware_buffer::unlock,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::NAMES;

    #[test]
    fn the_names_here_are_those_of_the_list() {
        let list = include_str!("../../exports.txt");
        let listed: BTreeSet<&str> =
            list.lines().filter_map(|line| line.split_once(' ')).map(|(_, name)| name).collect();
        assert_eq!(listed, NAMES.iter().copied().collect(), "exports.txt, and the names here");
        assert_eq!(listed.len(), NAMES.len(), "none twice");
    }
}

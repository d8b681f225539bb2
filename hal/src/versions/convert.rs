//! Requests, options, statuses and capabilities as an older version says them. Models: [`super::model_to`].

use super::loss::{Converted, Loss};
use crate::{
    Capabilities, CapabilitiesV1_0, CapabilitiesV1_1, CapabilitiesV1_2, ErrorStatus,
    ExecutionOptions, Failure, HalVersion, OperandType, PrepareOptions, Request, request_complies,
};

/// A request as an older version says it: the same, or not at all.
///
/// # Errors
/// INVALID_ARGUMENT for buffers of the driver below HAL 1.3, and for buffers of devices below HAL 1.2.
pub fn request_to(request: &Request, version: HalVersion) -> Result<&Request, Failure> {
    match request_complies(request, version) {
        true => Ok(request),
        false if version < HalVersion::V1_2 => {
            let what =
                "takes shared memory and files alone, no buffers of devices or of the driver";
            Err(Failure::invalid(format!("HAL {version} {what}")))
        }
        false => Err(Failure::invalid(format!("HAL {version} has no buffers of the driver"))),
    }
}

/// How a model is to be prepared, as an older version says it: what it lacks has its default.
#[must_use]
pub fn prepare_options_to(
    options: &PrepareOptions,
    version: HalVersion,
) -> Converted<PrepareOptions> {
    let mut converted = Converted { value: *options, lost: Vec::new() };
    let Converted { value, lost } = &mut converted;
    let default = PrepareOptions::default();
    if version < HalVersion::V1_1 && value.preference != default.preference {
        lost.push(Loss::Preference(value.preference));
        value.preference = default.preference;
    }
    if version < HalVersion::V1_3 {
        if value.priority != default.priority {
            lost.push(Loss::Priority(value.priority));
            value.priority = default.priority;
        }
        lost.extend(value.deadline.take().map(|_| Loss::Deadline));
    }
    converted
}

/// How an execution is to be run, as an older version says it.
#[must_use]
pub fn execution_options_to(
    options: &ExecutionOptions,
    version: HalVersion,
) -> Converted<ExecutionOptions> {
    let mut converted = Converted { value: *options, lost: Vec::new() };
    let Converted { value, lost } = &mut converted;
    if version < HalVersion::V1_2 && std::mem::take(&mut value.measure_timing) {
        lost.push(Loss::Timing);
    }
    if version < HalVersion::V1_3 {
        lost.extend(value.deadline.take().map(|_| Loss::Deadline));
        lost.extend(value.loop_timeout.take().map(|_| Loss::LoopTimeout));
    }
    converted
}

/// A status as an older version says it; see [`ErrorStatus::for_version`].
#[must_use]
pub fn status_to(status: ErrorStatus, version: HalVersion) -> Converted<ErrorStatus> {
    let value = status.for_version(version);
    let lost = if value == status { Vec::new() } else { vec![Loss::Status(status)] };
    Converted { value, lost }
}

/// What a device says of its speed, as HAL 1.2 says it.
#[must_use]
pub fn capabilities_to_v1_2(capabilities: &Capabilities) -> Converted<CapabilitiesV1_2> {
    let is_known = |ty: OperandType| ty.since().is_some_and(|since| since <= HalVersion::V1_2);
    let (known, new): (Vec<_>, Vec<_>) =
        capabilities.operand_performance.iter().partition(|(ty, _)| is_known(*ty));
    let mut lost: Vec<Loss> = new.iter().map(|(ty, _)| Loss::Performance(*ty)).collect();
    lost.push(Loss::ControlFlowPerformance);
    let value = CapabilitiesV1_2 {
        relaxed_float32_to_float16_scalar: capabilities.relaxed_float32_to_float16_scalar,
        relaxed_float32_to_float16_tensor: capabilities.relaxed_float32_to_float16_tensor,
        operand_performance: known,
    };
    Converted { value, lost }
}

/// The same for HAL 1.1: what it says of tensors of floats, and of bytes, stands for everything.
#[must_use]
pub fn capabilities_to_v1_1(capabilities: &Capabilities) -> Converted<CapabilitiesV1_1> {
    let (float32, quantized8) = (OperandType::TensorFloat32, OperandType::TensorQuant8Asymm);
    let stands = |ty: OperandType| ty == float32 || ty == quantized8;
    let types = capabilities.operand_performance.iter().map(|(ty, _)| *ty);
    let mut lost: Vec<Loss> = types.filter(|ty| !stands(*ty)).map(Loss::Performance).collect();
    lost.extend([Loss::RelaxedScalars, Loss::ControlFlowPerformance]);
    let value = CapabilitiesV1_1 {
        float32: capabilities.performance_of(float32),
        quantized8: capabilities.performance_of(quantized8),
        relaxed_float32_to_float16: capabilities.relaxed_float32_to_float16_tensor,
    };
    Converted { value, lost }
}

/// The same for HAL 1.0.
#[must_use]
pub fn capabilities_to_v1_0(capabilities: &Capabilities) -> Converted<CapabilitiesV1_0> {
    let mut converted = capabilities_to_v1_1(capabilities)
        .map(|value| CapabilitiesV1_0 { float32: value.float32, quantized8: value.quantized8 });
    converted.lost.push(Loss::RelaxedComputation);
    converted
}

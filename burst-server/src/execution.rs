//! What executions over a burst and over the socket have in common.

use std::time::Instant;

use burst_hal::log_tags::EXECUTION;
use burst_hal::{ErrorStatus, ExecutionResult};

/// Brings a device's answer into the form that the HAL promises to clients, and fills in how long the
/// execution took in the driver: from the request's arrival until now, never less than on the device.
/// Gives the same in nanoseconds.
pub(crate) fn finish(
    result: &mut ExecutionResult,
    outputs: usize,
    measure: bool,
    arrived: Instant,
) -> Option<u64> {
    if !matches!(result.status, ErrorStatus::None | ErrorStatus::OutputInsufficientSize) {
        result.output_shapes.clear();
    }
    if let Err(error) = burst_wire::check_shapes(result, outputs) {
        tracing::error!(%error, "the driver answered with shapes that no request can have");
        result.reset(ErrorStatus::GeneralFailure);
    }
    tracing::debug!(target: EXECUTION, status = %result.status, "answered");
    if !measure || result.status != ErrorStatus::None {
        result.timing = burst_hal::Timing::UNAVAILABLE;
        return None;
    }
    let elapsed = arrived.elapsed();
    let whole_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX - 1);
    let device_us = Some(result.timing.time_on_device_us).filter(|us| *us != u64::MAX);
    result.timing.time_in_driver_us = whole_us.max(device_us.unwrap_or(0));
    u64::try_from(elapsed.as_nanos()).ok()
}

//! Which operations of a model a device runs.

use std::sync::Arc;

use burst_hal::validate::validate_model;
use burst_hal::versions::{Slice, slice};
use burst_hal::{HalVersion, Model, TimePoint};

use crate::devices::{LiveDevice, RuntimeDevice};
use crate::error::{Error, Result};
use crate::process::check_process;

/// Refuses a list of devices that is empty, or names one twice.
///
/// # Errors
/// BAD_DATA.
pub(crate) fn check_list(devices: &[Arc<RuntimeDevice>]) -> Result<()> {
    if devices.is_empty() {
        return Err(Error::bad_data("no device"));
    }
    for (index, device) in devices.iter().enumerate() {
        if devices[..index].iter().any(|other| Arc::ptr_eq(other, device)) {
            return Err(Error::bad_data(format!(
                "the device {} stands there twice",
                device.name()
            )));
        }
    }
    Ok(())
}

/// For each operation of the main graph whether the device runs it. A device that fails to answer runs
/// none.
///
/// # Errors
/// UNAVAILABLE_DEVICE in a forked child.
pub(crate) fn supported_operations(device: &RuntimeDevice, model: &Model) -> Result<Vec<bool>> {
    check_process()?;
    let none = vec![false; model.main.operations.len()];
    match device.live() {
        Ok(live) => Ok(ask(device, &live, model, (false, None))?.unwrap_or(none)),
        Err(error) => {
            tracing::warn!(device = device.name(), %error, "the device does not answer");
            Ok(none)
        }
    }
}

/// Asks a device about the part of a model that is legal for its version. `None` where it fails to answer, also by
/// not doing so in time.
///
/// # Errors
/// OP_FAILED, where it is `strict`, for a part that is not legal by itself.
pub(crate) fn ask(
    device: &RuntimeDevice,
    live: &LiveDevice,
    model: &Model,
    (strict, by): (bool, Option<TimePoint>),
) -> Result<Option<Vec<bool>>> {
    let version = device.hal_version();
    if version == HalVersion::LATEST {
        return Ok(answer(device, live, model, by));
    }
    let mut supported = vec![false; model.main.operations.len()];
    let Some(Slice { model: part, operations }) = slice(model, version) else {
        return Ok(Some(supported));
    };
    if let (true, Err(error)) = (strict, validate_model(&part, version)) {
        let name = device.name();
        return Err(Error::op_failed(format!("the part of the model for {name}: {error}")));
    }
    let Some(answers) = answer(device, live, &part, by) else { return Ok(None) };
    for (index, answer) in operations.into_iter().zip(answers) {
        if let Some(whole) = usize::try_from(index).ok().and_then(|at| supported.get_mut(at)) {
            *whole = answer;
        }
    }
    Ok(Some(supported))
}

fn answer(
    device: &RuntimeDevice,
    live: &LiveDevice,
    model: &Model,
    by: Option<TimePoint>,
) -> Option<Vec<bool>> {
    let count = model.main.operations.len();
    match live.supported_operations(model, by) {
        Ok(answers) if answers.len() == count => return Some(answers),
        Ok(answers) => {
            let (name, found) = (device.name(), answers.len());
            tracing::warn!(name, found, count, "answers for another number of operations");
        }
        Err(error) => tracing::warn!(name = device.name(), %error, "the device does not answer"),
    }
    None
}

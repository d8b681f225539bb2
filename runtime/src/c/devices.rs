//! Devices: their handles and names, which live for ever.

use std::ffi::{CString, c_char, c_int};
use std::sync::{Arc, OnceLock};

use burst_hal::validate::MAX_EXTENSION_NAME_BYTES;

use super::arguments::{Bool, In, Out, Text};
use super::guard::{bad_data, call};
use super::handles::Handle;
use crate::{RUNTIME_FEATURE_LEVEL, Registry, Result, RuntimeDevice};

/// Devices that a list may have: far more than there can be, so that it has one twice and is refused anyway.
const MAX_LISTED: usize = 1 << 10;

/// A device with the texts that C is given of it.
pub(super) struct Device {
    pub(super) device: Arc<RuntimeDevice>,
    name: CString,
    version: CString,
}

impl Device {
    fn new(device: &Arc<RuntimeDevice>) -> Self {
        Device {
            name: text(device.name()),
            version: text(device.version()),
            device: Arc::clone(device),
        }
    }
}

/// The text without what C takes for its end.
fn text(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// Handles of all devices, in the order of their numbers. They are never freed.
fn handles() -> Result<&'static [Handle<Device>]> {
    /// One step, so that no device gets two handles.
    static HANDLES: OnceLock<Result<Vec<Handle<Device>>>> = OnceLock::new();
    let made = HANDLES.get_or_init(|| {
        let devices = Registry::system().devices().iter();
        devices.map(|device| Handle::new(Arc::new(Device::new(device)))).collect()
    });
    made.as_deref().map_err(Clone::clone)
}

/// The devices of a list of handles, which has none twice or the framework says so.
pub(super) fn listed(devices: In<Handle<Device>>, count: u32) -> Result<Vec<Arc<RuntimeDevice>>> {
    let listed = devices.read_many(count, MAX_LISTED, "devices")?.into_iter();
    listed.map(|handle| Ok(Arc::clone(&handle.get()?.device))).collect()
}

pub(super) extern "C" fn get_device_count(count: Out<u32>) -> c_int {
    call(|| {
        let count = count.required("count")?;
        let devices = u32::try_from(handles()?.len());
        count.set(devices.map_err(|_| bad_data("more devices than can be counted"))?);
        Ok(())
    })
}

pub(super) extern "C" fn get_device(index: u32, device: Out<Handle<Device>>) -> c_int {
    call(|| {
        let place = device.required("device")?;
        let handles = handles()?;
        let found = usize::try_from(index).ok().and_then(|index| handles.get(index));
        let none = || bad_data(format!("device {index} of {}", handles.len()));
        place.set(*found.ok_or_else(none)?);
        Ok(())
    })
}

pub(super) extern "C" fn get_name(device: Handle<Device>, name: Out<*const c_char>) -> c_int {
    call(|| {
        let place = name.required("name")?;
        // The table holds the device for ever, and the device its name.
        place.set(device.get()?.name.as_ptr());
        Ok(())
    })
}

pub(super) extern "C" fn get_version(device: Handle<Device>, version: Out<*const c_char>) -> c_int {
    call(|| {
        let place = version.required("version")?;
        place.set(device.get()?.version.as_ptr());
        Ok(())
    })
}

pub(super) extern "C" fn get_type(device: Handle<Device>, ty: Out<i32>) -> c_int {
    call(|| {
        let place = ty.required("type")?;
        place.set(device.get()?.device.device_type().code());
        Ok(())
    })
}

pub(super) extern "C" fn get_feature_level(device: Handle<Device>, level: Out<i64>) -> c_int {
    call(|| {
        let place = level.required("level")?;
        place.set(device.get()?.device.feature_level());
        Ok(())
    })
}

pub(super) extern "C" fn wait(device: Handle<Device>) -> c_int {
    call(|| device.get()?.device.wait())
}

pub(super) extern "C" fn get_extension_support(
    device: Handle<Device>,
    extension: Text,
    is_supported: Out<Bool>,
) -> c_int {
    call(|| {
        let place = is_supported.required("answer")?;
        let extension = extension.string(MAX_EXTENSION_NAME_BYTES, "extension name")?;
        place.set(device.get()?.device.supports_extension(&extension).into());
        Ok(())
    })
}

/// The same in every process, so that it needs no guard.
pub(super) extern "C" fn get_runtime_feature_level() -> i64 {
    RUNTIME_FEATURE_LEVEL
}

pub(super) extern "C" fn get_default_loop_timeout() -> u64 {
    nanos(burst_hal::LOOP_TIMEOUT_DEFAULT)
}

pub(super) extern "C" fn get_maximum_loop_timeout() -> u64 {
    nanos(burst_hal::LOOP_TIMEOUT_MAXIMUM)
}

fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

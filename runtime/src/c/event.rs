//! Events.

use std::ffi::c_int;
use std::os::fd::{AsFd, IntoRawFd};

use super::arguments::{Out, duplicate};
use super::guard::{bad_data, call, code_of, quietly};
use super::handles::Handle;
use crate::Event;

pub(super) extern "C" fn wait(event: Handle<Event>) -> c_int {
    code_of(|| Ok(event.get()?.wait())).code()
}

/// Waits for the end of an execution: callers take back its buffers once the event is gone. Nobody waits for a
/// fence of somebody else's, which may never be signalled.
pub(super) extern "C" fn free(event: Handle<Event>) {
    quietly(|| {
        if let Some(event) = event.free().filter(|event| event.is_of_an_execution()) {
            event.wait();
        }
    });
}

pub(super) extern "C" fn create_from_sync_fence_fd(fd: c_int, event: Out<Handle<Event>>) -> c_int {
    call(|| {
        let place = event.required("event")?;
        place.set(Handle::NULL);
        // 0 is refused too, as the original does.
        let fence = if fd > 0 { duplicate(fd) } else { None };
        let fence = fence.ok_or_else(|| bad_data(format!("descriptor {fd}")))?;
        place.set(Handle::new(Event::from_sync_fence_fd(fence.as_fd())?)?);
        Ok(())
    })
}

pub(super) extern "C" fn get_sync_fence_fd(event: Handle<Event>, fd: Out<c_int>) -> c_int {
    call(|| {
        let place = fd.required("descriptor")?;
        place.set(-1);
        // From here on it is the caller's.
        place.set(event.get()?.sync_fence_fd()?.into_raw_fd());
        Ok(())
    })
}

//! Memories.

use std::ffi::c_int;
use std::os::fd::AsFd;
use std::sync::Arc;

use burst_hal::ResultCode;

use super::arguments::{Out, duplicate};
use super::guard::{bad_data, call, quietly};
use super::handles::Handle;
use super::hardware_buffer::HardwareBuffer;
use crate::{Error, Memory, MemoryDesc, Result};

pub(super) extern "C" fn create_from_fd(
    size: usize,
    prot: c_int,
    fd: c_int,
    offset: usize,
    memory: Out<Handle<Memory>>,
) -> c_int {
    made(memory, || {
        if size == 0 || fd < 0 {
            return Err(bad_data(format!("{size} bytes of descriptor {fd}")));
        }
        // The code that the original answers; it is meant for a pointer, but callers may know it.
        let closed =
            || Error::new(ResultCode::UnexpectedNull, format!("descriptor {fd} is closed"));
        let fd = duplicate(fd).ok_or_else(closed)?;
        Memory::from_fd(size, prot, fd.as_fd(), offset)
    })
}

pub(super) extern "C" fn create_from_hardware_buffer(
    buffer: Handle<HardwareBuffer>,
    memory: Out<Handle<Memory>>,
) -> c_int {
    made(memory, || Ok(Memory::from_pool(buffer.get()?.pool())))
}

pub(super) extern "C" fn create_from_desc(
    desc: Handle<MemoryDesc>,
    memory: Out<Handle<Memory>>,
) -> c_int {
    made(memory, || Memory::from_desc(&*desc.get()?))
}

fn made(place: Out<Handle<Memory>>, make: impl FnOnce() -> Result<Arc<Memory>>) -> c_int {
    call(|| {
        let place = place.required("memory")?;
        place.set(Handle::NULL);
        place.set(Handle::new(make()?)?);
        Ok(())
    })
}

pub(super) extern "C" fn copy(from: Handle<Memory>, to: Handle<Memory>) -> c_int {
    call(|| {
        let from = from.get()?;
        Memory::copy(&from, &to.get()?)
    })
}

pub(super) extern "C" fn free(memory: Handle<Memory>) {
    quietly(|| drop(memory.free()));
}

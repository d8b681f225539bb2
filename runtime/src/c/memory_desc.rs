//! What a memory is wanted for.

use std::ffi::c_int;

use burst_hal::validate::MAX_RANK;

use super::arguments::{In, Out};
use super::guard::{call, quietly};
use super::handles::Handle;
use crate::{Compilation, MemoryDesc};

pub(super) extern "C" fn create(desc: Out<Handle<MemoryDesc>>) -> c_int {
    call(|| {
        let place = desc.required("description")?;
        place.set(Handle::NULL);
        place.set(Handle::new(MemoryDesc::new())?);
        Ok(())
    })
}

pub(super) extern "C" fn free(desc: Handle<MemoryDesc>) {
    quietly(|| drop(desc.free()));
}

pub(super) extern "C" fn add_input_role(
    desc: Handle<MemoryDesc>,
    compilation: Handle<Compilation>,
    index: u32,
    frequency: f32,
) -> c_int {
    call(|| {
        let compilation = compilation.get()?;
        desc.get()?.add_input_role(&compilation, index, frequency)
    })
}

pub(super) extern "C" fn add_output_role(
    desc: Handle<MemoryDesc>,
    compilation: Handle<Compilation>,
    index: u32,
    frequency: f32,
) -> c_int {
    call(|| {
        let compilation = compilation.get()?;
        desc.get()?.add_output_role(&compilation, index, frequency)
    })
}

pub(super) extern "C" fn set_dimensions(
    desc: Handle<MemoryDesc>,
    rank: u32,
    dimensions: In<u32>,
) -> c_int {
    call(|| {
        let desc = desc.get()?;
        let dimensions = match rank {
            0 => Vec::new(),
            _ => dimensions.read_many(rank, MAX_RANK, "dimensions")?,
        };
        desc.set_dimensions(&dimensions)
    })
}

pub(super) extern "C" fn finish(desc: Handle<MemoryDesc>) -> c_int {
    call(|| desc.get()?.finish())
}

//! Compilations.

use std::ffi::{OsStr, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use burst_hal::CACHE_TOKEN_BYTES;
use burst_hal::validate::MAX_EXTENSION_NAME_BYTES;

use super::arguments::{Bytes, In, Out, Text};
use super::devices::{Device, listed};
use super::guard::{bad_data, call, quietly};
use super::handles::Handle;
use crate::{Compilation, Model, Registry, Result};

/// Longest path of a cache folder: the kernel takes none that is longer.
const MAX_PATH_BYTES: usize = 4096;

pub(super) extern "C" fn create(
    model: Handle<Model>,
    compilation: Out<Handle<Compilation>>,
) -> c_int {
    made(compilation, || Compilation::new(&model.get()?, Registry::system()))
}

pub(super) extern "C" fn create_for_devices(
    model: Handle<Model>,
    devices: In<Handle<Device>>,
    device_count: u32,
    compilation: Out<Handle<Compilation>>,
) -> c_int {
    made(compilation, || {
        let devices = devices.required("devices")?;
        let model = model.get()?;
        Compilation::for_devices(&model, &listed(devices, device_count)?)
    })
}

fn made(place: Out<Handle<Compilation>>, make: impl FnOnce() -> Result<Arc<Compilation>>) -> c_int {
    call(|| {
        let place = place.required("compilation")?;
        place.set(Handle::NULL);
        place.set(Handle::new(make()?)?);
        Ok(())
    })
}

pub(super) extern "C" fn free(compilation: Handle<Compilation>) {
    quietly(|| drop(compilation.free()));
}

pub(super) extern "C" fn set_preference(
    compilation: Handle<Compilation>,
    preference: i32,
) -> c_int {
    call(|| compilation.get()?.set_preference(preference))
}

pub(super) extern "C" fn set_caching(
    compilation: Handle<Compilation>,
    directory: Text,
    token: In<u8>,
) -> c_int {
    call(|| {
        let token = token.required("token")?;
        let directory = directory.bytes(MAX_PATH_BYTES, "cache folder")?;
        let compilation = compilation.get()?;
        let token = token.read_many(CACHE_TOKEN_BYTES_U32, CACHE_TOKEN_BYTES, "bytes of token")?;
        let token = token.try_into().map_err(|_| bad_data("a token that is too short"))?;
        compilation.set_caching(Path::new(OsStr::from_bytes(&directory)), token)
    })
}

/// [`CACHE_TOKEN_BYTES`] as C counts.
const CACHE_TOKEN_BYTES_U32: u32 = 32;
const _: () = assert!(CACHE_TOKEN_BYTES == 32);

pub(super) extern "C" fn set_priority(compilation: Handle<Compilation>, priority: c_int) -> c_int {
    call(|| compilation.get()?.set_priority(priority))
}

pub(super) extern "C" fn set_timeout(compilation: Handle<Compilation>, nanos: u64) -> c_int {
    call(|| compilation.get()?.set_timeout(nanos))
}

pub(super) extern "C" fn finish(compilation: Handle<Compilation>) -> c_int {
    call(|| compilation.get()?.finish())
}

pub(super) extern "C" fn alignment_for_input(
    compilation: Handle<Compilation>,
    index: u32,
    alignment: Out<u32>,
) -> c_int {
    preferred(compilation, alignment, |it| it.preferred_memory_alignment_for_input(index))
}

pub(super) extern "C" fn alignment_for_output(
    compilation: Handle<Compilation>,
    index: u32,
    alignment: Out<u32>,
) -> c_int {
    preferred(compilation, alignment, |it| it.preferred_memory_alignment_for_output(index))
}

pub(super) extern "C" fn padding_for_input(
    compilation: Handle<Compilation>,
    index: u32,
    padding: Out<u32>,
) -> c_int {
    preferred(compilation, padding, |it| it.preferred_memory_padding_for_input(index))
}

pub(super) extern "C" fn padding_for_output(
    compilation: Handle<Compilation>,
    index: u32,
    padding: Out<u32>,
) -> c_int {
    preferred(compilation, padding, |it| it.preferred_memory_padding_for_output(index))
}

fn preferred(
    compilation: Handle<Compilation>,
    bytes: Out<u32>,
    ask: impl FnOnce(&Compilation) -> Result<u32>,
) -> c_int {
    call(|| {
        let place = bytes.required("answer")?;
        place.set(ask(&*compilation.get()?)?);
        Ok(())
    })
}

pub(super) extern "C" fn add_extension_attribute(
    compilation: Handle<Compilation>,
    extension: Text,
    code: u16,
    data: Bytes,
    length: usize,
) -> c_int {
    call(|| {
        let extension = extension.string(MAX_EXTENSION_NAME_BYTES, "extension name")?;
        let compilation = compilation.get()?;
        data.lend(length, "data", |_| compilation.add_extension_attribute(&extension, code))
    })
}

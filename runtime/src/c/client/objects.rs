//! The library's objects, each freed once, and the calls of them with Rust's types.

#![allow(unsafe_code, reason = "calls functions of a loaded library")]

use std::ffi::{CStr, c_char, c_int};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use burst_hal::ResultCode;

use super::library::{Library, Raw, RawScales, RawType};
use crate::{Error, OperandTypeDesc, Result};

/// Calls a function: `Ok` for NO_ERROR, otherwise the code with the function's name.
macro_rules! call {
    ($library:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        let function = $library.functions.$function;
        // SAFETY: the function has the type that the header says (`functions!`). Every argument is a value, a
        // live object of its kind (held by its wrapper), or an address of as many values of ours as stand
        // beside it, which live until the call returns, and what the call keeps is kept by the wrapper.
        checked(stringify!($function), unsafe { function($($argument),*) })
    }};
}

fn checked(function: &'static str, code: c_int) -> Result<()> {
    match ResultCode::from_code(code) {
        Some(ResultCode::NoError) => Ok(()),
        Some(code) => Err(Error::new(code, format!("from {function}"))),
        None => Err(Error::new(ResultCode::OpFailed, format!("unknown code {code}, {function}"))),
    }
}

/// A count as C has it. No list of ours is that long.
fn count<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

/// An index as C has it. A caller who has none so large gets an index that nothing has.
fn index(index: usize) -> i32 {
    i32::try_from(index).unwrap_or(i32::MAX)
}

/// Declares wrappers, each of which frees its object.
macro_rules! objects {
    ($($(#[$meta:meta])* $name:ident $free:ident,)*) => {
        $(
            $(#[$meta])*
            pub(super) struct $name {
                library: Arc<Library>,
                raw: Raw,
            }

            // SAFETY: an object that may be used by any thread; those under construction are built by one
            // (`&mut self`, or before they are shared).
            unsafe impl Send for $name {}
            // SAFETY: as above.
            unsafe impl Sync for $name {}

            impl Drop for $name {
                fn drop(&mut self) {
                    let free = self.library.functions.$free;
                    // SAFETY: made by the library, and freed here alone.
                    unsafe { free(self.raw) };
                }
            }
        )*
    };
}

objects! {
    /// A model.
    Model model_free,
    /// A compilation.
    Compilation compilation_free,
    /// A memory.
    Memory memory_free,
    /// A description of a memory.
    Desc desc_free,
    /// An execution. The caller keeps its buffers until it has completed.
    Execution execution_free,
    /// A burst.
    Burst burst_free,
    /// An event.
    Event event_free,
}

/// A device of a library, which lives for ever.
#[derive(Clone)]
pub(super) struct DeviceHandle {
    library: Arc<Library>,
    raw: Raw,
}

// SAFETY: devices may be used by any thread, and are never freed.
unsafe impl Send for DeviceHandle {}
// SAFETY: as above.
unsafe impl Sync for DeviceHandle {}

impl DeviceHandle {
    /// All devices of a library.
    pub(super) fn all(library: &Arc<Library>) -> Result<Vec<Self>> {
        let mut count = 0;
        call!(library, get_device_count(&mut count))?;
        let one = |number| {
            let mut raw = null_mut();
            call!(library, get_device(number, &mut raw))?;
            Ok(DeviceHandle { library: Arc::clone(library), raw })
        };
        (0..count).map(one).collect()
    }

    pub(super) fn name(&self) -> Result<String> {
        let mut text = null();
        call!(self.library, device_get_name(self.raw, &mut text))?;
        Ok(copied(text))
    }

    pub(super) fn version(&self) -> Result<String> {
        let mut text = null();
        call!(self.library, device_get_version(self.raw, &mut text))?;
        Ok(copied(text))
    }

    pub(super) fn kind(&self) -> Result<i32> {
        let mut kind = 0;
        call!(self.library, device_get_type(self.raw, &mut kind))?;
        Ok(kind)
    }

    pub(super) fn model(&self) -> Result<Model> {
        let mut raw = null_mut();
        call!(self.library, model_create(&mut raw))?;
        Ok(Model { library: Arc::clone(&self.library), raw })
    }

    pub(super) fn desc(&self) -> Result<Desc> {
        let mut raw = null_mut();
        call!(self.library, desc_create(&mut raw))?;
        Ok(Desc { library: Arc::clone(&self.library), raw })
    }

    /// A memory of the first `size` bytes of a descriptor, readable and writable.
    pub(super) fn memory(&self, fd: BorrowedFd<'_>, size: usize) -> Result<Memory> {
        let (mut raw, protection) = (null_mut(), libc::PROT_READ | libc::PROT_WRITE);
        call!(self.library, memory_from_fd(size, protection, fd.as_raw_fd(), 0, &mut raw))?;
        Ok(Memory { library: Arc::clone(&self.library), raw })
    }

    pub(super) fn event(&self, fence: BorrowedFd<'_>) -> Result<Event> {
        let mut raw = null_mut();
        call!(self.library, event_from_fence(fence.as_raw_fd(), &mut raw))?;
        Ok(Event { library: Arc::clone(&self.library), raw })
    }
}

/// A copy of a text of the library.
fn copied(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null; a text of a device ends with a zero and lives for ever.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

impl Model {
    pub(super) fn add_operand(&mut self, ty: &OperandTypeDesc) -> Result<()> {
        let raw = RawType {
            ty: ty.code,
            dimension_count: count(&ty.dimensions),
            dimensions: if ty.dimensions.is_empty() { null() } else { ty.dimensions.as_ptr() },
            scale: ty.scale,
            zero_point: ty.zero_point,
        };
        call!(self.library, model_add_operand(self.raw, &raw))
    }

    /// `value` has to live as long as the model where it is longer than what is copied at once.
    pub(super) fn set_value(&mut self, operand: usize, value: Option<&[u8]>) -> Result<()> {
        let (at, length) = value.map_or((null(), 0), |value| (value.as_ptr(), value.len()));
        call!(self.library, model_set_value(self.raw, index(operand), at.cast(), length))
    }

    pub(super) fn set_value_from_memory(
        &mut self,
        operand: usize,
        memory: &Memory,
        offset: usize,
        length: usize,
    ) -> Result<()> {
        let operand = index(operand);
        let from = memory.raw;
        call!(self.library, model_set_value_from_memory(self.raw, operand, from, offset, length))
    }

    pub(super) fn set_value_from_model(&mut self, operand: usize, value: &Model) -> Result<()> {
        call!(self.library, model_set_value_from_model(self.raw, index(operand), value.raw))
    }

    pub(super) fn set_scales(
        &mut self,
        operand: usize,
        channel_dim: u32,
        scales: &[f32],
    ) -> Result<()> {
        let raw = RawScales { channel_dim, scale_count: count(scales), scales: scales.as_ptr() };
        call!(self.library, model_set_scales(self.raw, index(operand), &raw))
    }

    pub(super) fn add_operation(&mut self, ty: i32, inputs: &[u32], outputs: &[u32]) -> Result<()> {
        call!(
            self.library,
            model_add_operation(
                self.raw,
                ty,
                count(inputs),
                inputs.as_ptr(),
                count(outputs),
                outputs.as_ptr()
            )
        )
    }

    pub(super) fn identify(&mut self, inputs: &[u32], outputs: &[u32]) -> Result<()> {
        call!(
            self.library,
            model_identify(
                self.raw,
                count(inputs),
                inputs.as_ptr(),
                count(outputs),
                outputs.as_ptr()
            )
        )
    }

    pub(super) fn relax(&mut self, allow: bool) -> Result<()> {
        call!(self.library, model_relax(self.raw, allow))
    }

    pub(super) fn finish(&mut self) -> Result<()> {
        call!(self.library, model_finish(self.raw))
    }

    /// One answer for each of `operations` operations, which is how many were added: whether any of the
    /// devices runs it.
    pub(super) fn supported(
        &self,
        devices: &[DeviceHandle],
        operations: usize,
    ) -> Result<Vec<bool>> {
        let mut answers = vec![0_u8; operations];
        let list: Vec<Raw> = devices.iter().map(|device| device.raw).collect();
        let (at, number) = (list.as_ptr(), count(&list));
        call!(self.library, model_supported(self.raw, at, number, answers.as_mut_ptr()))?;
        Ok(answers.into_iter().map(|answer| answer != 0).collect())
    }

    /// For this device; for any that there are, where none is named.
    pub(super) fn compilation(&self, device: Option<&DeviceHandle>) -> Result<Compilation> {
        let mut raw = null_mut();
        match device {
            None => call!(self.library, compilation_create(self.raw, &mut raw))?,
            Some(device) => {
                call!(self.library, compilation_create_for(self.raw, &device.raw, 1, &mut raw))?;
            }
        }
        Ok(Compilation { library: Arc::clone(&self.library), raw })
    }
}

impl Compilation {
    pub(super) fn set_preference(&mut self, preference: i32) -> Result<()> {
        call!(self.library, compilation_set_preference(self.raw, preference))
    }

    pub(super) fn set_priority(&mut self, priority: i32) -> Result<()> {
        call!(self.library, compilation_set_priority(self.raw, priority))
    }

    pub(super) fn set_timeout(&mut self, nanos: u64) -> Result<()> {
        call!(self.library, compilation_set_timeout(self.raw, nanos))
    }

    pub(super) fn finish(&mut self) -> Result<()> {
        call!(self.library, compilation_finish(self.raw))
    }

    pub(super) fn execution(&self) -> Result<Execution> {
        let mut raw = null_mut();
        call!(self.library, execution_create(self.raw, &mut raw))?;
        Ok(Execution { library: Arc::clone(&self.library), raw })
    }

    pub(super) fn burst(&self) -> Result<Burst> {
        let mut raw = null_mut();
        call!(self.library, burst_create(self.raw, &mut raw))?;
        Ok(Burst { library: Arc::clone(&self.library), raw })
    }
}

impl Memory {
    pub(super) fn copy_to(&self, to: &Memory) -> Result<()> {
        call!(self.library, memory_copy(self.raw, to.raw))
    }
}

impl Desc {
    pub(super) fn add_role(
        &mut self,
        compilation: &Compilation,
        is_input: bool,
        position: u32,
        frequency: f32,
    ) -> Result<()> {
        let (own, of) = (self.raw, compilation.raw);
        match is_input {
            true => call!(self.library, desc_add_input_role(own, of, position, frequency)),
            false => call!(self.library, desc_add_output_role(own, of, position, frequency)),
        }
    }

    pub(super) fn set_dimensions(&mut self, dimensions: &[u32]) -> Result<()> {
        let (rank, at) = (count(dimensions), dimensions.as_ptr());
        call!(self.library, desc_set_dimensions(self.raw, rank, at))
    }

    pub(super) fn memory(&mut self) -> Result<Memory> {
        let mut raw = null_mut();
        call!(self.library, desc_finish(self.raw))?;
        call!(self.library, memory_from_desc(self.raw, &mut raw))?;
        Ok(Memory { library: Arc::clone(&self.library), raw })
    }
}

impl Execution {
    /// The buffer has to live, unchanged, until the execution has completed.
    pub(super) fn set_input(&mut self, position: usize, buffer: Option<&[u8]>) -> Result<()> {
        let (at, length) = buffer.map_or((null(), 0), |buffer| (buffer.as_ptr(), buffer.len()));
        let position = index(position);
        call!(self.library, execution_set_input(self.raw, position, null(), at.cast(), length))
    }

    /// The buffer has to live, untouched, until the execution has completed.
    pub(super) fn set_output(&mut self, position: usize, buffer: &mut [u8]) -> Result<()> {
        let (at, length, position) = (buffer.as_mut_ptr(), buffer.len(), index(position));
        call!(self.library, execution_set_output(self.raw, position, null(), at.cast(), length))
    }

    pub(super) fn set_input_from_memory(
        &mut self,
        position: usize,
        memory: &Memory,
        (offset, length): (usize, usize),
    ) -> Result<()> {
        let (own, position, from) = (self.raw, index(position), memory.raw);
        call!(
            self.library,
            execution_set_input_from_memory(own, position, null(), from, offset, length)
        )
    }

    pub(super) fn set_output_from_memory(
        &mut self,
        position: usize,
        memory: &Memory,
        (offset, length): (usize, usize),
    ) -> Result<()> {
        let (own, position, to) = (self.raw, index(position), memory.raw);
        call!(
            self.library,
            execution_set_output_from_memory(own, position, null(), to, offset, length)
        )
    }

    pub(super) fn set_measure_timing(&mut self, measure: bool) -> Result<()> {
        call!(self.library, execution_set_measure_timing(self.raw, measure))
    }

    pub(super) fn set_timeout(&mut self, nanos: u64) -> Result<()> {
        call!(self.library, execution_set_timeout(self.raw, nanos))
    }

    pub(super) fn set_loop_timeout(&mut self, nanos: u64) -> Result<()> {
        call!(self.library, execution_set_loop_timeout(self.raw, nanos))
    }

    pub(super) fn compute(&self) -> Result<()> {
        call!(self.library, execution_compute(self.raw))
    }

    pub(super) fn compute_in(&self, burst: &Burst) -> Result<()> {
        call!(self.library, execution_burst(self.raw, burst.raw))
    }

    pub(super) fn start(&self) -> Result<Event> {
        let mut raw = null_mut();
        call!(self.library, execution_start(self.raw, &mut raw))?;
        Ok(Event { library: Arc::clone(&self.library), raw })
    }

    pub(super) fn start_behind(&self, events: &[Event], nanos: u64) -> Result<Event> {
        let (mut raw, list) = (null_mut(), events.iter().map(|event| event.raw));
        let list: Vec<Raw> = list.collect();
        let (number, at) = (count(&list), list.as_ptr());
        call!(self.library, execution_start_fenced(self.raw, at, number, nanos, &mut raw))?;
        Ok(Event { library: Arc::clone(&self.library), raw })
    }

    /// In nanoseconds; `u64::MAX` for a time that is not known.
    pub(super) fn duration(&self, code: i32) -> Result<u64> {
        let mut nanos = 0;
        call!(self.library, execution_duration(self.raw, code, &mut nanos))?;
        Ok(nanos)
    }

    /// The dimensions of an output, and whether its room was enough.
    pub(super) fn shape(&self, position: usize) -> Result<(Vec<u32>, bool)> {
        let (mut rank, position) = (0, index(position));
        let is_sufficient =
            enough(call!(self.library, execution_rank(self.raw, position, &mut rank)))?;
        let mut dimensions = vec![0; rank as usize];
        if rank > 0 {
            let at = dimensions.as_mut_ptr();
            enough(call!(self.library, execution_dimensions(self.raw, position, at)))?;
        }
        Ok((dimensions, is_sufficient))
    }
}

/// Room that was not enough is an answer, and no failure.
fn enough(result: Result<()>) -> Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.code == ResultCode::OutputInsufficientSize => Ok(false),
        Err(error) => Err(error),
    }
}

impl Event {
    pub(super) fn wait(&self) -> Result<()> {
        call!(self.library, event_wait(self.raw))
    }

    /// Its fence; none where the execution had ended before there was a reason for one.
    pub(super) fn fence(&self) -> Option<OwnedFd> {
        let mut fd = -1;
        call!(self.library, event_fence(self.raw, &mut fd)).ok()?;
        // SAFETY: the library says that it is open, and the caller's from here on.
        Some(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

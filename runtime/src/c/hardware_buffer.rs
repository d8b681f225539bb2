//! Hardware buffers of the format BLOB: a length of memory that applications share by descriptor.
//!
//! On Android these functions come from the platform, and a buffer may lie in a device. Here a buffer is a
//! memfd; memory of a device comes as a dma-buf, through `ANeuralNetworksMemory_createFromFd`. The functions
//! answer 0, or a negative error number of the system.

#![allow(unsafe_code, reason = "says of a structure that any bits are a value of it")]

use std::ffi::{c_int, c_void};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use burst_client::ShmMemory;
use burst_hal::{Pool, ResultCode};
use memmap2::{MmapOptions, MmapRaw};
use rustix::io::Errno;

use super::arguments::{In, Out, Plain};
use super::guard::{bad_data, code_of, quietly};
use super::handles::Handle;
use crate::{Error, Result};

/// The one format there is: bytes without a shape.
const BLOB: u32 = 0x21;

/// `AHardwareBuffer_Desc`.
///
/// ```text
///  0       4        8        12       16      24       28     32     40
///  | width | height | layers | format | usage | stride | rfu0 | rfu1 |
/// ```
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Desc {
    width: u32,
    height: u32,
    layers: u32,
    format: u32,
    usage: u64,
    stride: u32,
    reserved: u32,
    reserved_wide: u64,
}

// SAFETY: numbers.
unsafe impl Plain for Desc {}

const _: () = assert!(size_of::<Desc>() == 40 && std::mem::offset_of!(Desc, usage) == 16);

/// A buffer. It lives as long as a caller holds a reference, its memory as long as anything uses it.
pub(super) struct HardwareBuffer {
    desc: Desc,
    pool: Pool,
    mapping: MmapRaw,
    references: AtomicU32,
}

impl HardwareBuffer {
    fn new(desc: Desc) -> Result<Self> {
        if desc.format != BLOB || desc.height != 1 || desc.layers != 1 || desc.width == 0 {
            return Err(bad_data(format!("{desc:?}: only BLOB, of height and layers 1, is there")));
        }
        let bytes = usize::try_from(desc.width).map_err(|_| bad_data("too long"))?;
        let none = |cause| Error::new(ResultCode::OutOfMemory, cause);
        let memory = burst_shm::Memory::create("burst-hardware-buffer", bytes)
            .map_err(|error| none(error.to_string()))?;
        // Sealed against shrinking when made, so that the mapping stays whole.
        let mapping = MmapOptions::new().len(bytes).map_raw(&memory.as_fd());
        let mapping = mapping.map_err(|error| none(error.to_string()))?;
        let pool: Pool = Arc::new(ShmMemory::open(memory.into(), desc.width.into())?);
        let desc = Desc { stride: desc.width, ..desc };
        Ok(HardwareBuffer { desc, pool, mapping, references: AtomicU32::new(1) })
    }

    /// Its memory.
    pub(super) fn pool(&self) -> Pool {
        Arc::clone(&self.pool)
    }
}

/// 0, or the negative error number that comes closest.
fn status(work: impl FnOnce() -> Result<()>) -> c_int {
    let errno = match code_of(|| work().map(|()| ResultCode::NoError)) {
        ResultCode::NoError => return 0,
        ResultCode::OutOfMemory => Errno::NOMEM,
        ResultCode::UnavailableDevice => Errno::NODEV,
        _ => Errno::INVAL,
    };
    -errno.raw_os_error()
}

pub(super) extern "C" fn allocate(desc: In<Desc>, buffer: Out<Handle<HardwareBuffer>>) -> c_int {
    status(|| {
        let place = buffer.required("buffer")?;
        place.set(Handle::NULL);
        place.set(Handle::new(Arc::new(HardwareBuffer::new(desc.read("description")?)?))?);
        Ok(())
    })
}

pub(super) extern "C" fn acquire(buffer: Handle<HardwareBuffer>) {
    quietly(|| {
        if let Ok(buffer) = buffer.get() {
            // Relaxed, here and below: the count guards no other memory; the table's lock does.
            buffer.references.fetch_add(1, Ordering::Relaxed);
        }
    });
}

pub(super) extern "C" fn release(buffer: Handle<HardwareBuffer>) {
    quietly(|| {
        let last = buffer.get().is_ok_and(|it| it.references.fetch_sub(1, Ordering::Relaxed) == 1);
        if last {
            drop(buffer.free());
        }
    });
}

pub(super) extern "C" fn describe(buffer: Handle<HardwareBuffer>, desc: Out<Desc>) {
    quietly(|| {
        if let (Ok(buffer), Ok(place)) = (buffer.get(), desc.required("description")) {
            place.set(buffer.desc);
        }
    });
}

/// The address stays valid until the last reference is released. There is no fence to wait for: nothing but
/// executions writes the memory, and their callers know when these have ended.
pub(super) extern "C" fn lock(
    buffer: Handle<HardwareBuffer>,
    _usage: u64,
    fence: c_int,
    rectangle: In<c_void>,
    address: Out<*mut c_void>,
) -> c_int {
    status(|| {
        let place = address.required("address")?;
        if fence >= 0 || !rectangle.is_null() {
            return Err(bad_data("a blob is locked without a fence, and as a whole"));
        }
        place.set(buffer.get()?.mapping.as_mut_ptr().cast());
        Ok(())
    })
}

pub(super) extern "C" fn unlock(buffer: Handle<HardwareBuffer>, fence: Out<c_int>) -> c_int {
    status(|| {
        buffer.get()?;
        if let Ok(place) = fence.required("fence") {
            place.set(-1); // nothing is left to wait for
        }
        Ok(())
    })
}

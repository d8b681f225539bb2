//! Memory that Python's arrays lie in: Python's own mapping of it, of the module `mmap`.
//!
//! Inputs are written by this process alone: once Python has mapped them, the memory is sealed against every other
//! writer, and only then it is handed to a service. Outputs are the service's, which may write them at any time: Python
//! has them mapped for reading, and nothing here refers to their bytes.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;

use burst_client::{ClientError, RemotePreparedModel, ShmMemory};
use burst_hal::Pool;
use burst_shm::Memory;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rustix::fs::{SealFlags, fcntl_get_seals};

use crate::errors::{self, Class};

/// Memory for requests, and Python's mapping of it.
pub(crate) struct Shared {
    pub(crate) pool: Pool,
    pub(crate) mapping: Py<PyAny>,
}

/// Memory of so many bytes that this process alone can write.
pub(crate) fn inputs(py: Python<'_>, bytes: u64) -> PyResult<Shared> {
    let length =
        usize::try_from(bytes).map_err(|_| refused(&ClientError::PoolTooLong { bytes }))?;
    let system = |error| refused(&ClientError::Memory(error));
    let mut memory = Memory::create("burst-input", length).map_err(system)?;
    let descriptor = memory.duplicate_fd().map_err(system)?;
    let mapping = map(py, std::os::fd::AsFd::as_fd(&descriptor), bytes, true)?;
    // A mapping that is there already stays writable.
    memory.seal_future_write().map_err(system)?;
    let pool = ShmMemory::open(descriptor, bytes).map_err(|error| refused(&error))?;
    Ok(Shared { pool: Arc::new(pool), mapping })
}

/// Memory of so many bytes that the service makes and writes; our own where it makes none.
pub(crate) fn output_pool(model: &RemotePreparedModel, bytes: u64) -> Result<Pool, ClientError> {
    let bytes = bytes.max(1); // an empty memory cannot be made
    match model.allocate_outputs(bytes) {
        Err(ClientError::Refused { .. }) => {
            let length = usize::try_from(bytes).map_err(|_| ClientError::PoolTooLong { bytes })?;
            Ok(Arc::new(ShmMemory::create(length)?))
        }
        other => other,
    }
}

/// Python's mapping of the outputs, for reading.
pub(crate) fn outputs(py: Python<'_>, pool: &Pool) -> PyResult<Py<PyAny>> {
    let descriptor = pool.fd().ok_or_else(|| refused(&ClientError::NoDescriptor))?;
    // Reading behind the end of a file that has become shorter would be the end of this process.
    let seals = fcntl_get_seals(descriptor)
        .map_err(|errno| refused(&ClientError::System { call: "fcntl(F_GET_SEALS)", errno }))?;
    if !seals.contains(SealFlags::SHRINK) {
        return Err(errors::raise(Class::Refused, &"the service's memory for outputs may shrink"));
    }
    map(py, descriptor, pool.len(), false)
}

fn map(
    py: Python<'_>,
    descriptor: BorrowedFd<'_>,
    bytes: u64,
    writable: bool,
) -> PyResult<Py<PyAny>> {
    let module = py.import("mmap")?;
    let read = module.getattr("PROT_READ")?;
    let protection = if writable { read.add(module.getattr("PROT_WRITE")?)? } else { read };
    let options = PyDict::new(py);
    options.set_item("prot", protection)?;
    options.set_item("flags", module.getattr("MAP_SHARED")?)?;
    let mapping = module.getattr("mmap")?.call((descriptor.as_raw_fd(), bytes), Some(&options))?;
    Ok(mapping.unbind())
}

fn refused(error: &ClientError) -> PyErr {
    errors::of_client(error, Class::Refused)
}

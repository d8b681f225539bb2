//! Buffers of this device: the value that one execution left is read by the next one where it lies.
//!
//! A buffer refers to its value. Who reads it, an execution or a copy, holds a reference of its own from
//! its beginning to its end, and sees that value whole. Who writes takes the memory out of the
//! buffer, which has no value from then on, and puts it back at the end. Where readers still hold the
//! memory, or another writer has it, the writer makes new memory, which the buffer's account pays for. So
//! nobody ever waits for anybody else here, in whatever order buffers are named; the only lock is held
//! while a reference changes hands. Why it is so: `docs/decisions/0021-buffers.md`.

use std::sync::Arc;

use burst_hal::log_tags::MEMORY;
use burst_hal::{
    Buffer, BufferHandle, BufferRoles, BufferTracker, Caller, Dimensions, Failure, MemoryCharge,
    Pool, TrackedBuffer,
};

use crate::OpError;
use crate::aligned::AlignedBytes;
use crate::error::DriverError;

/// The buffers of a device.
pub(crate) type Buffers = BufferTracker<Storage>;
/// One of them.
pub(crate) type Tracked = TrackedBuffer<Storage>;

/// The memory of a buffer.
#[derive(Debug)]
pub(crate) struct Storage {
    /// With a value, or room for one. `None` while somebody writes it.
    memory: Option<Arc<AlignedBytes>>,
    /// Empty, to the account that pays for the buffer.
    payer: MemoryCharge,
    /// Bytes of every value, where that is known. Of a buffer of open size each value says it.
    bytes: Option<usize>,
}

/// A buffer of this device.
#[derive(Debug)]
pub(crate) struct CpuBuffer {
    handle: BufferHandle<Storage>,
    /// What its list of roles takes.
    _charge: MemoryCharge,
}

impl CpuBuffer {
    /// Makes a buffer; the caller pays for it. Its pages come with its first value, and so does all of its
    /// memory where roles and request leave the size open: whatever a value needs is charged to the same
    /// account before the value is written.
    ///
    /// # Errors
    /// GENERAL_FAILURE for values of a type of unknown length; RESOURCE_EXHAUSTED_* where the caller's
    /// account does not suffice, or the system has no such memory.
    pub(crate) fn allocate(
        buffers: &Buffers,
        roles: BufferRoles,
        caller: &Caller,
    ) -> Result<Self, Failure> {
        let operand = roles.operand();
        if operand.ty.element_bytes().is_none() {
            return Err(Failure::general(
                "this device makes no buffers for types of unknown length",
            ));
        }
        let is_open = !operand.is_specified(&operand.dimensions);
        let bytes = (!is_open).then(|| operand.bytes().unwrap_or(u64::MAX));
        let charge = caller.charge((roles.held_bytes() + size_of::<Tracked>()) as u64)?;
        let mut memory = AlignedBytes::paid_by(caller.empty_charge());
        let room = bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        memory.reserve(room.unwrap_or(0)).map_err(|cause| {
            let limit = crate::aligned::MAX_ALLOCATION_BYTES as u64;
            let bytes = bytes.unwrap_or(0);
            DriverError::given_up(&cause).unwrap_or(DriverError::TooLarge { bytes, limit })
        })?;
        let memory = Some(Arc::new(memory));
        tracing::debug!(target: MEMORY, bytes = room, "a buffer of the driver");
        let storage = Storage { memory, payer: caller.empty_charge(), bytes: room };
        Ok(CpuBuffer { handle: buffers.add(roles, storage), _charge: charge })
    }
}

/// The value of a buffer and its dimensions, for as long as they are wanted; `None` where it has no value.
pub(crate) fn value(buffer: &Tracked) -> Option<(Dimensions, Arc<AlignedBytes>)> {
    let state = buffer.lock();
    Some((state.dimensions()?.into(), state.storage.memory.clone()?))
}

/// Memory of a buffer that is being written. Dropped, it leaves the buffer without a value.
#[derive(Debug)]
pub(crate) struct Writing {
    buffer: Arc<Tracked>,
    memory: Arc<AlignedBytes>,
}

impl Writing {
    /// Takes a buffer's value away, to write another one: the memory is as long as every value of the
    /// buffer is, and empty where only the value will say.
    ///
    /// # Errors
    /// [`OpError::Refused`] or [`OpError::Range`] where there has to be new memory and there is none.
    pub(crate) fn begin(buffer: &Arc<Tracked>) -> Result<Self, OpError> {
        let (memory, new, bytes) = {
            let mut state = buffer.lock();
            state.clear();
            let Storage { memory, payer, bytes } = &mut state.storage;
            (memory.take(), payer.same_account(), *bytes)
        };
        let empty = || Arc::new(AlignedBytes::paid_by(new.same_account()));
        let mut memory = memory.unwrap_or_else(empty);
        if Arc::get_mut(&mut memory).is_none() {
            memory = empty();
        }
        // Nobody else has got hold of it since: its buffer does not refer to it any more.
        Arc::get_mut(&mut memory).ok_or(SHARED)?.resize(bytes.unwrap_or(0))?;
        Ok(Writing { buffer: Arc::clone(buffer), memory })
    }

    /// The memory to write.
    pub(crate) fn memory(&mut self) -> Result<&mut AlignedBytes, OpError> {
        Arc::get_mut(&mut self.memory).ok_or(SHARED)
    }

    /// What was written is the buffer's value from now on.
    pub(crate) fn finish(self, dimensions: Dimensions) {
        let before = {
            let mut state = self.buffer.lock();
            state.set(dimensions);
            state.storage.memory.replace(self.memory)
        };
        drop(before); // of another writer, who ended earlier
    }

    /// The buffer has no value. It keeps the memory, unless something made it longer than a value is; one
    /// of open size keeps none.
    pub(crate) fn give_up(self) {
        let mut state = self.buffer.lock();
        state.clear();
        let kept = state.storage.bytes.map_or(0, AlignedBytes::bytes_held_for);
        let fits = kept >= self.memory.held_bytes();
        if state.storage.memory.is_none() && fits {
            state.storage.memory = Some(self.memory);
        }
    }
}

const SHARED: OpError = OpError::Internal { what: "memory that is written has a reader" };

impl Buffer for CpuBuffer {
    fn token(&self) -> u32 {
        self.handle.token()
    }

    fn copy_to(&self, destination: &Pool) -> Result<(), Failure> {
        self.handle.check_copy_to(&self.handle.lock(), destination.len())?;
        // The lock was let go of: the pool may be a file of somebody who takes long to answer.
        let (_, value) = value(&self.handle).ok_or_else(|| Failure::general("it has no value"))?;
        destination.write(0, value.as_slice()).map_err(Failure::general)
    }

    fn copy_from(&self, source: &Pool, dimensions: &[u32]) -> Result<(), Failure> {
        let dimensions =
            self.handle.check_copy_from(source.len(), dimensions).inspect_err(|_| {
                self.handle.lock().clear();
            })?;
        let mut writing = Writing::begin(&self.handle).map_err(failure)?;
        let copied = self.fill(&mut writing, source, &dimensions);
        match copied {
            Ok(()) => writing.finish(dimensions),
            Err(_) => writing.give_up(),
        }
        copied
    }
}

impl CpuBuffer {
    /// Copies a value of these dimensions from all of a pool.
    fn fill(
        &self,
        writing: &mut Writing,
        source: &Pool,
        dimensions: &[u32],
    ) -> Result<(), Failure> {
        // The pool is as long as the value, where that is a number at all.
        let bytes = self.handle.operand().ty.byte_length(dimensions);
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes.ok_or_else(|| {
            Failure::invalid(format!("a value of {dimensions:?} is longer than any memory"))
        })?;
        let memory = writing.memory().map_err(failure)?;
        memory.resize(bytes).map_err(failure)?;
        source.read(0, memory.as_mut_slice()).map_err(Failure::general)
    }
}

fn failure(cause: OpError) -> Failure {
    DriverError::given_up(&cause)
        .map_or_else(|| Failure::new(burst_hal::ErrorStatus::GeneralFailure, cause), Failure::from)
}

#[cfg(test)]
#[path = "buffers_tests.rs"]
mod tests;

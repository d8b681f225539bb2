//! Bytes whose start is aligned for every element type and for vector loads.

use burst_hal::MemoryCharge;
use bytemuck::{Pod, Zeroable};

use crate::OpError;
use crate::pages::Pages;
use crate::stop::Stop;

/// Alignment of every tensor in memory, in bytes: one cache line, one AVX-512 register.
pub(crate) const ALIGNMENT: usize = 64;

/// Largest single allocation, in bytes. A model that needs more for one tensor is refused rather
/// than left to the system's out-of-memory killer, which would take the whole service.
pub(crate) const MAX_ALLOCATION_BYTES: usize = 4 << 30;

/// A line of a cache.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u8; ALIGNMENT]);

/// A growing byte buffer that starts on a cache line. Shrinking keeps the memory.
///
/// Its memory is charged to an account before it is allocated, and given back when the buffer is dropped.
#[derive(Debug, Default)]
pub(crate) struct AlignedBytes {
    lines: Vec<Line>,
    len: usize,
    charge: MemoryCharge,
}

const TOO_LARGE: OpError = OpError::Range { what: "size of a tensor in memory" };

/// Bytes that are copied between two checks whether the copy is still wanted: they stay in a core's own
/// cache between being made and being filled.
const COPIED_AT_ONCE: usize = 1 << 16;

impl AlignedBytes {
    /// An empty buffer whose memory is charged to the account of this charge.
    pub(crate) fn paid_by(charge: MemoryCharge) -> Self {
        AlignedBytes { charge, ..AlignedBytes::default() }
    }

    /// A buffer of `len` zero bytes.
    ///
    /// # Errors
    /// [`OpError::Range`] over [`MAX_ALLOCATION_BYTES`], or when the system has no such memory;
    /// [`OpError::Refused`] when the account does not suffice.
    pub(crate) fn zeroed(len: usize, charge: MemoryCharge) -> Result<Self, OpError> {
        let mut bytes = AlignedBytes::paid_by(charge);
        bytes.resize(len)?;
        Ok(bytes)
    }

    /// A copy of `len` bytes, which `read` copies part by part: it gets the position of the part.
    ///
    /// # Errors
    /// As [`AlignedBytes::zeroed`], those of `read`, and those of `stop`.
    pub(crate) fn copied<E: From<OpError>>(
        len: usize,
        charge: MemoryCharge,
        stop: Stop<'_>,
        mut read: impl FnMut(usize, &mut [u8]) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut copy = AlignedBytes::paid_by(charge);
        copy.reserve(len)?;
        let mut pages = Pages::default();
        for at in (0..len).step_by(COPIED_AT_ONCE) {
            stop.check()?;
            let (lines, more) = (copy.lines.len(), COPIED_AT_ONCE / ALIGNMENT);
            pages.ahead_of(lines, copy.lines.spare_capacity_mut(), more);
            copy.resize(len.min(at + COPIED_AT_ONCE))?;
            read(at, &mut copy.as_mut_slice()[at..])?;
        }
        Ok(copy)
    }

    /// Changes the length; bytes beyond the old length are zero, or what they last were.
    ///
    /// # Errors
    /// As [`AlignedBytes::zeroed`].
    pub(crate) fn resize(&mut self, len: usize) -> Result<(), OpError> {
        let lines = len.div_ceil(ALIGNMENT);
        if lines > self.lines.len() {
            self.grow(len, lines)?;
        }
        self.len = len;
        Ok(())
    }

    /// Makes it so many lines, which are more than there are.
    #[cold]
    fn grow(&mut self, len: usize, lines: usize) -> Result<(), OpError> {
        if !self.lines.is_empty() || self.lines.capacity() >= lines {
            self.reserve(len)?;
            self.lines.resize(lines, Line([0; ALIGNMENT]));
            return Ok(());
        }
        // The system's memory is zero: what nobody writes has no pages yet, and takes no time.
        let more = self.charge_for(len, lines)?;
        let Ok(zeros) = bytemuck::allocation::try_zeroed_vec(lines) else {
            self.charge.shrink(more);
            return Err(TOO_LARGE);
        };
        self.lines = zeros;
        Ok(())
    }

    /// Charges what so many lines take beyond what is held now, and says how much that is.
    fn charge_for(&mut self, len: usize, lines: usize) -> Result<u64, OpError> {
        if len > MAX_ALLOCATION_BYTES {
            return Err(TOO_LARGE);
        }
        let more = (lines * ALIGNMENT).saturating_sub(self.held_bytes()) as u64;
        if more > 0 {
            self.charge.grow(more).map_err(OpError::refused)?;
        }
        Ok(more)
    }

    /// Makes room for `len` bytes in all, without touching it.
    ///
    /// # Errors
    /// As [`AlignedBytes::zeroed`].
    #[cold]
    pub(crate) fn reserve(&mut self, len: usize) -> Result<(), OpError> {
        let lines = len.div_ceil(ALIGNMENT);
        let more = self.charge_for(len, lines)?;
        if more > 0 && self.lines.try_reserve_exact(lines - self.lines.len()).is_err() {
            self.charge.shrink(more);
            return Err(TOO_LARGE);
        }
        Ok(())
    }

    /// The bytes.
    #[must_use]
    pub(crate) fn as_slice(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.len]
    }

    /// The bytes, to be written.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.len]
    }

    /// What a buffer of `len` bytes holds that never was longer.
    pub(crate) fn bytes_held_for(len: usize) -> usize {
        len.div_ceil(ALIGNMENT).saturating_mul(ALIGNMENT)
    }

    /// Bytes of memory held, whatever the length.
    #[must_use]
    pub(crate) fn held_bytes(&self) -> usize {
        self.lines.capacity() * ALIGNMENT
    }
}

#[cfg(test)]
impl AlignedBytes {
    /// A copy of `bytes` that nobody pays for.
    pub(crate) fn copy_of(bytes: &[u8]) -> Self {
        let mut copy = AlignedBytes::zeroed(bytes.len(), MemoryCharge::default()).unwrap();
        copy.as_mut_slice().copy_from_slice(bytes);
        copy
    }
}

#[cfg(test)]
impl Clone for AlignedBytes {
    fn clone(&self) -> Self {
        AlignedBytes::copy_of(self.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_on_a_cache_line_and_keeps_its_memory() {
        let mut bytes = AlignedBytes::zeroed(100, MemoryCharge::default()).unwrap();
        assert_eq!(bytes.as_slice().as_ptr().addr() % ALIGNMENT, 0);
        assert_eq!(bytes.as_slice().len(), 100);
        bytes.as_mut_slice()[99] = 7;
        let held = bytes.held_bytes();
        bytes.resize(3).unwrap();
        bytes.resize(100).unwrap();
        assert_eq!(bytes.held_bytes(), held);
        assert!(AlignedBytes::zeroed(MAX_ALLOCATION_BYTES + 1, MemoryCharge::default()).is_err());
    }

    #[test]
    fn a_copy_of_several_parts_has_all_bytes_and_is_charged_once() {
        let values: Vec<u8> = (0..=250).cycle().take(2 * COPIED_AT_ONCE + 7).collect();
        let read = |at: usize, out: &mut [u8]| {
            out.copy_from_slice(&values[at..][..out.len()]);
            Ok::<(), OpError>(())
        };
        let charge = MemoryCharge::default();
        let copy = AlignedBytes::copied(values.len(), charge, Stop::default(), read).unwrap();
        assert_eq!(copy.as_slice(), values);
        assert_eq!(copy.charge.bytes(), copy.held_bytes() as u64);
    }
}

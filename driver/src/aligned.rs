//! Bytes whose start is aligned for every element type and for vector loads.

use bytemuck::{Pod, Zeroable};

use crate::OpError;

/// Alignment of every tensor in memory, in bytes: one cache line, one AVX-512 register.
pub(crate) const ALIGNMENT: usize = 64;

/// Largest single allocation, in bytes. A model that needs more for one tensor is refused rather
/// than left to the system's out-of-memory killer, which would take the whole service.
pub(crate) const MAX_ALLOCATION_BYTES: usize = 4 << 30;

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; ALIGNMENT]);

/// A growing byte buffer that starts on a cache line. Shrinking keeps the memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct AlignedBytes {
    lines: Vec<Line>,
    len: usize,
}

impl AlignedBytes {
    /// A buffer of `len` zero bytes.
    ///
    /// # Errors
    /// [`OpError::Range`] over [`MAX_ALLOCATION_BYTES`], or when the system has no such memory.
    pub(crate) fn zeroed(len: usize) -> Result<Self, OpError> {
        let mut bytes = AlignedBytes::default();
        bytes.resize(len)?;
        Ok(bytes)
    }

    /// A copy of `bytes`.
    ///
    /// # Errors
    /// As [`AlignedBytes::zeroed`].
    pub(crate) fn copy_of(bytes: &[u8]) -> Result<Self, OpError> {
        let mut copy = AlignedBytes::zeroed(bytes.len())?;
        copy.as_mut_slice().copy_from_slice(bytes);
        Ok(copy)
    }

    /// Changes the length; bytes beyond the old length are zero, or what they last were.
    ///
    /// # Errors
    /// As [`AlignedBytes::zeroed`].
    pub(crate) fn resize(&mut self, len: usize) -> Result<(), OpError> {
        let too_large = OpError::Range { what: "size of a tensor in memory" };
        if len > MAX_ALLOCATION_BYTES {
            return Err(too_large);
        }
        let lines = len.div_ceil(ALIGNMENT);
        if lines > self.lines.len() {
            self.lines.try_reserve_exact(lines - self.lines.len()).map_err(|_| too_large)?;
            self.lines.resize(lines, Line([0; ALIGNMENT]));
        }
        self.len = len;
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

    /// Bytes of memory held, whatever the length.
    #[must_use]
    pub(crate) fn held_bytes(&self) -> usize {
        self.lines.capacity() * ALIGNMENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_on_a_cache_line_and_keeps_its_memory() {
        let mut bytes = AlignedBytes::zeroed(100).unwrap();
        assert_eq!(bytes.as_slice().as_ptr().addr() % ALIGNMENT, 0);
        assert_eq!(bytes.as_slice().len(), 100);
        bytes.as_mut_slice()[99] = 7;
        let held = bytes.held_bytes();
        bytes.resize(3).unwrap();
        bytes.resize(100).unwrap();
        assert_eq!(bytes.held_bytes(), held);
        assert!(AlignedBytes::zeroed(MAX_ALLOCATION_BYTES + 1).is_err());
    }
}

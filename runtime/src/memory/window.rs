//! A part of a pool as a pool of its own, for this process alone.

use burst_hal::{Memory, MemoryError, MemoryKind, Pool};

/// Bytes `start..start + length` of a pool.
#[derive(Debug)]
pub(crate) struct Window {
    pool: Pool,
    start: u64,
    length: u64,
}

impl Window {
    pub(crate) fn new(pool: Pool, start: u64, length: u64) -> Self {
        Window { pool, start, length }
    }

    /// The same range in the pool behind it.
    fn check(&self, offset: u64, len: usize) -> Result<u64, MemoryError> {
        let (size, len) = (self.length, len as u64);
        let end = offset.checked_add(len).filter(|end| *end <= size);
        end.and_then(|_| self.start.checked_add(offset)).ok_or(MemoryError::OutOfRange {
            offset,
            len,
            size,
        })
    }
}

impl Memory for Window {
    fn len(&self) -> u64 {
        self.length
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), MemoryError> {
        self.pool.read(self.check(offset, out.len())?, out)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.pool.write(self.check(offset, bytes.len())?, bytes)
    }

    fn fill(
        &self,
        offset: u64,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<bool, MemoryError> {
        self.pool.fill(self.check(offset, len)?, len, fill)
    }

    fn is_mapped(&self) -> bool {
        self.pool.is_mapped()
    }

    fn kind(&self) -> MemoryKind {
        self.pool.kind()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use burst_hal::HeapMemory;

    use super::*;

    #[test]
    fn a_window_shows_its_part_and_nothing_else() {
        let heap = Arc::new(HeapMemory::new(vec![0, 1, 2, 3, 4]));
        let window = Window::new(heap.clone(), 1, 3);
        let mut bytes = [0; 3];
        window.read(0, &mut bytes).unwrap();
        assert_eq!((bytes, window.len()), ([1, 2, 3], 3));
        window.write(2, &[9]).unwrap();
        assert_eq!(heap.to_vec(), [0, 1, 2, 9, 4]);
        for (offset, len) in [(3, 1), (0, 4), (u64::MAX, 1)] {
            let outside = window.read(offset, &mut vec![0; len]);
            assert!(matches!(outside, Err(MemoryError::OutOfRange { size: 3, .. })), "{offset}");
        }
    }
}

//! Bytes with guards around them, which show when a kernel wrote outside of what it was given.

use burst_hal::MemoryCharge;

use crate::OpError;
use crate::aligned::{ALIGNMENT, AlignedBytes};

/// Bytes of a guard on either side: what follows it stays aligned.
const GUARD: usize = ALIGNMENT;
/// What every byte of a guard is.
const CANARY: u8 = 0xC5;

/// Bytes that start on a cache line, between two guards.
#[derive(Debug)]
pub(crate) struct GuardedBytes {
    bytes: AlignedBytes,
    len: usize,
}

impl GuardedBytes {
    /// `len` zero bytes, charged to the account of this charge with their guards.
    ///
    /// # Errors
    /// As [`AlignedBytes::zeroed`].
    pub(crate) fn zeroed(len: usize, charge: MemoryCharge) -> Result<Self, OpError> {
        let mut guarded = GuardedBytes { bytes: AlignedBytes::paid_by(charge), len: 0 };
        guarded.resize(len)?;
        Ok(guarded)
    }

    /// Changes the length; bytes beyond the old length are zero.
    ///
    /// # Errors
    /// As [`AlignedBytes::zeroed`].
    pub(crate) fn resize(&mut self, len: usize) -> Result<(), OpError> {
        let too_large = OpError::Range { what: "size of a tensor in memory" };
        let end = GUARD.checked_add(len).ok_or(too_large.clone())?;
        self.bytes.resize(end.checked_add(GUARD).ok_or(too_large)?)?;
        let bytes = self.bytes.as_mut_slice();
        bytes[..GUARD].fill(CANARY);
        if let Some(new) = bytes.get_mut(GUARD + self.len..end) {
            new.fill(0);
        }
        bytes[end..].fill(CANARY);
        self.len = len;
        Ok(())
    }

    /// The bytes between the guards.
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes.as_slice()[GUARD..GUARD + self.len]
    }

    /// The bytes between the guards, to be written.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes.as_mut_slice()[GUARD..GUARD + self.len]
    }

    /// Whether nobody wrote to a guard.
    pub(crate) fn is_intact(&self) -> bool {
        let bytes = self.bytes.as_slice();
        let (before, rest) = bytes.split_at(GUARD);
        before.iter().chain(&rest[self.len..]).all(|byte| *byte == CANARY)
    }

    /// All bytes with the guards, for tests that write where nobody may.
    #[cfg(test)]
    pub(crate) fn with_guards(&mut self) -> &mut [u8] {
        self.bytes.as_mut_slice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_on_either_side_is_seen_whatever_the_length() {
        for len in [0, 1, 63, 64, 65, 1000] {
            let mut bytes = GuardedBytes::zeroed(len, MemoryCharge::default()).unwrap();
            assert_eq!(bytes.as_slice().len(), len);
            assert!(bytes.as_slice().iter().all(|byte| *byte == 0));
            assert_eq!(bytes.as_slice().as_ptr().addr() % ALIGNMENT, 0);
            bytes.as_mut_slice().fill(0xFF);
            assert!(bytes.is_intact(), "{len} bytes that may be written");
            for at in [0, GUARD - 1, GUARD + len, 2 * GUARD + len - 1] {
                let was = std::mem::replace(&mut bytes.with_guards()[at], 1);
                assert!(!bytes.is_intact(), "byte {at} around {len}");
                bytes.with_guards()[at] = was;
            }
            assert!(bytes.is_intact());
        }
    }

    #[test]
    fn what_is_resized_keeps_its_bytes_and_has_guards_at_its_new_ends() {
        let mut bytes = GuardedBytes::zeroed(3, MemoryCharge::default()).unwrap();
        bytes.as_mut_slice().copy_from_slice(&[1, 2, 3]);
        bytes.resize(200).unwrap();
        assert_eq!(bytes.as_slice()[..4], [1, 2, 3, 0]);
        assert!(bytes.is_intact() && bytes.as_slice()[3..].iter().all(|byte| *byte == 0));
        bytes.resize(2).unwrap();
        assert!(bytes.is_intact());
        assert_eq!(bytes.as_slice(), [1, 2]);
        assert!(bytes.resize(usize::MAX - 1).is_err());
    }
}

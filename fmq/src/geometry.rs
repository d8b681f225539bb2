//! The shape of a ring: bytes, items, and arithmetic on counters without division.

use crate::error::QueueError;

/// Largest ring, in bytes. A libfmq peer refuses extents above `INT_MAX` less one page; the
/// largest page in use is 64 KiB.
pub const MAX_RING_BYTES: u64 = i32::MAX as u64 - 65_536;

/// Capacity and item size of a ring, with what is needed to divide by the item size exactly.
///
/// For `quantum = odd << shift`, a number is a multiple exactly if its product with the inverse of
/// `odd` modulo 2^64, rotated right by `shift`, is at most `u64::MAX / quantum`; that product is
/// then the quotient. One multiplication and one comparison, for any item size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    capacity: u64,
    quantum: u64,
    inverse: u64,
    shift: u32,
    largest_quotient: u64,
}

impl Geometry {
    /// A ring of `items` items of `quantum` bytes.
    ///
    /// # Errors
    /// [`QueueError::BadConfig`] for zero items, items of zero bytes, and more than
    /// [`MAX_RING_BYTES`] in all.
    pub fn new(items: u64, quantum: u64) -> Result<Geometry, QueueError> {
        let refused = QueueError::BadConfig { capacity: items, quantum, max: MAX_RING_BYTES };
        match items.checked_mul(quantum) {
            Some(capacity @ 1..=MAX_RING_BYTES) => Ok(Geometry::exact(capacity, quantum)),
            _ => Err(refused),
        }
    }

    /// `capacity` is a non-zero multiple of `quantum`.
    fn exact(capacity: u64, quantum: u64) -> Geometry {
        let shift = quantum.trailing_zeros();
        let inverse = inverse_of_odd(quantum >> shift);
        Geometry { capacity, quantum, inverse, shift, largest_quotient: u64::MAX / quantum }
    }

    /// Bytes in the ring.
    #[inline]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Bytes per item.
    #[inline]
    pub fn quantum(&self) -> u64 {
        self.quantum
    }

    /// `bytes / quantum`, or `None` if that is not a whole number.
    #[inline]
    pub fn items(&self, bytes: u64) -> Option<u64> {
        let quotient = bytes.wrapping_mul(self.inverse).rotate_right(self.shift);
        (quotient <= self.largest_quotient).then_some(quotient)
    }

    /// Bytes of so many items; `u64::MAX`, which no ring holds, where that overflows.
    #[inline]
    pub fn bytes(&self, items: usize) -> u64 {
        (items as u64).saturating_mul(self.quantum)
    }

    /// Position of a counter in the ring. Divides: for set-up only.
    pub fn position(&self, counter: u64) -> u64 {
        counter % self.capacity
    }

    /// `position + bytes`, wrapped. Both are at most the capacity.
    #[inline]
    pub fn advance(&self, position: u64, bytes: u64) -> u64 {
        let next = position + bytes;
        if next >= self.capacity { next - self.capacity } else { next }
    }

    /// Bytes written and not yet read. The only function that answers [`QueueError::Corrupt`] for a
    /// synchronized ring: negative, over capacity, or not a whole number of items.
    ///
    /// # Errors
    /// [`QueueError::Corrupt`].
    #[inline]
    pub fn in_flight(&self, read: u64, write: u64) -> Result<u64, QueueError> {
        match write.checked_sub(read) {
            Some(n) if n <= self.capacity && self.items(n).is_some() => Ok(n),
            _ => Err(self.corrupt(read, write)),
        }
    }

    #[cold]
    pub(crate) fn corrupt(&self, read: u64, write: u64) -> QueueError {
        QueueError::Corrupt { read, write, capacity: self.capacity }
    }
}

/// Newton's iteration: each step doubles the number of right bits, beginning with three.
const fn inverse_of_odd(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut step = 0;
    while step < 5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn impossible_rings_are_refused() {
        for (items, quantum) in [(0, 1), (1, 0), (u64::MAX, 2), (MAX_RING_BYTES + 1, 1)] {
            assert!(Geometry::new(items, quantum).is_err(), "{items} x {quantum}");
        }
        assert!(Geometry::new(MAX_RING_BYTES, 1).is_ok());
    }

    #[test]
    fn in_flight_names_every_impossible_pair() {
        let ring = Geometry::new(4, 24).unwrap();
        let bad = [(24, 0), (0, 120), (0, 25), (1, 25 + 1), (u64::MAX, 0), (0, u64::MAX)];
        for (read, write) in bad {
            let expected = QueueError::Corrupt { read, write, capacity: 96 };
            assert_eq!(ring.in_flight(read, write), Err(expected), "{read} {write}");
        }
        assert_eq!(ring.in_flight(24, 120), Ok(96));
        assert_eq!(ring.in_flight(u64::MAX, u64::MAX), Ok(0));
    }

    proptest! {
        #[test]
        fn items_is_exact_division(quantum in 1..5000_u64, bytes: u64, whole in 0..1_000_000_u64) {
            let ring = Geometry::new(1, quantum).unwrap();
            let expected = (bytes % quantum == 0).then_some(bytes / quantum);
            prop_assert_eq!(ring.items(bytes), expected);
            prop_assert_eq!(ring.items(whole * quantum), Some(whole));
        }
    }
}

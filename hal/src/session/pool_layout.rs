//! Tensors one behind the other in a pool.

use std::ops::Range;

use super::error::LayoutError;
use crate::{DataLocation, Dimensions, RequestArgument};

/// Tensors begin at multiples of this many bytes, so that no two share a cache line.
pub const ALIGNMENT: u32 = 64;

/// Most bytes of a pool whose tensors a request can name: its offsets have 32 bits.
pub const MAX_POOL_BYTES: u64 = u32::MAX as u64;

/// Where a tensor lies in its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorSlot {
    /// First byte.
    pub offset: u32,
    /// How many bytes.
    pub length: u32,
}

impl TensorSlot {
    /// The same as a range of bytes.
    #[must_use]
    pub const fn range(self) -> Range<usize> {
        let start = self.offset as usize;
        start..start + self.length as usize
    }

    /// An argument of a request that names this slot.
    #[must_use]
    pub fn argument(self, pool_index: u32) -> RequestArgument {
        let TensorSlot { offset, length } = self;
        RequestArgument {
            has_no_value: false,
            location: DataLocation { pool_index, offset, length },
            dimensions: Dimensions::new(),
        }
    }
}

/// A set of tensors in a pool, once or several times (frames): aligned, and within 32 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolLayout {
    /// Slots of the first frame.
    slots: Vec<TensorSlot>,
    /// Bytes from one frame to the next.
    frame_bytes: u32,
    frames: u32,
}

impl PoolLayout {
    /// Lays tensors of these lengths out, `frames` times and at least once.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`] where they need more than `limit` bytes or [`MAX_POOL_BYTES`].
    pub fn new(lengths: &[u64], frames: usize, limit: u64) -> Result<Self, LayoutError> {
        let limit = limit.min(MAX_POOL_BYTES);
        let frames = u32::try_from(frames.max(1)).unwrap_or(u32::MAX);
        let frame = lengths.iter().fold(0, |end: u64, length| {
            let next = end.saturating_add(*length);
            next.checked_next_multiple_of(ALIGNMENT.into()).unwrap_or(u64::MAX)
        });
        let bytes = frame.saturating_mul(frames.into());
        if bytes > limit {
            return Err(LayoutError::TooLarge { bytes, limit });
        }
        // All frames together fit into 32 bits, and so does every number below.
        let mut frame_bytes = 0;
        let mut slots = Vec::with_capacity(lengths.len());
        for length in lengths {
            let length = u32::try_from(*length).unwrap_or(u32::MAX);
            slots.push(TensorSlot { offset: frame_bytes, length });
            frame_bytes = (frame_bytes + length).next_multiple_of(ALIGNMENT);
        }
        Ok(PoolLayout { slots, frame_bytes, frames })
    }

    /// How many tensors a frame has.
    #[must_use]
    pub fn tensors(&self) -> usize {
        self.slots.len()
    }

    /// Number of frames.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames as usize
    }

    /// Bytes of the pool; 0 where there is nothing to lay out.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.frame_bytes) * u64::from(self.frames)
    }

    /// Where a tensor of a frame lies.
    ///
    /// # Panics
    /// There is no such frame or tensor.
    #[must_use]
    pub fn slot(&self, frame: usize, tensor: usize) -> TensorSlot {
        let frame = u32::try_from(frame).ok().filter(|frame| *frame < self.frames);
        let frame = frame.expect("a frame of this layout");
        let TensorSlot { offset, length } = self.slots[tensor];
        TensorSlot { offset: frame * self.frame_bytes + offset, length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_aligned_and_within_the_limit_in_every_frame() {
        const GIB: u64 = 1 << 30;
        const LARGEST: u64 = MAX_POOL_BYTES - 63; // the last multiple of 64
        // Lengths, frames, limit; then offsets in the last frame and the pool's bytes, or the bytes
        // that exceed the limit.
        type Case<'c> = (&'c [u64], usize, u64, Result<(&'c [u32], u64), u64>);
        let cases: &[Case<'_>] = &[
            (&[], 1, GIB, Ok((&[], 0))),
            (&[], 7, 0, Ok((&[], 0))),
            (&[1, 64, 65], 1, GIB, Ok((&[0, 64, 128], 256))),
            (&[1, 64, 65], 3, GIB, Ok((&[512, 576, 640], 768))),
            (&[0, 5], 1, GIB, Ok((&[0, 0], 64))),
            (&[4], 0, GIB, Ok((&[0], 64))),
            (&[64], 1, 64, Ok((&[0], 64))),
            (&[65], 1, 127, Err(128)),
            (&[64], 2, 127, Err(128)),
            (&[LARGEST], 1, u64::MAX, Ok((&[0], LARGEST))),
            (&[LARGEST + 1], 1, u64::MAX, Err(1 << 32)),
            (&[2 * GIB], 2, u64::MAX, Err(1 << 32)),
            (&[u64::MAX, 1], 1, u64::MAX, Err(u64::MAX)),
            (&[1], usize::MAX, u64::MAX, Err(64 * u64::from(u32::MAX))),
        ];
        for (lengths, frames, limit, want) in cases {
            let case = format!("{lengths:?} {frames} {limit}");
            match (PoolLayout::new(lengths, *frames, *limit), want) {
                (Ok(layout), Ok((offsets, bytes))) => {
                    let last = layout.frames() - 1;
                    let slots = (0..layout.tensors()).map(|tensor| layout.slot(last, tensor));
                    let slots: Vec<TensorSlot> = slots.collect();
                    let found: Vec<u32> = slots.iter().map(|slot| slot.offset).collect();
                    assert_eq!((found.as_slice(), layout.bytes()), (*offsets, *bytes), "{case}");
                    let found: Vec<u64> = slots.iter().map(|slot| slot.length.into()).collect();
                    assert_eq!(found, *lengths, "{case}");
                }
                (Err(LayoutError::TooLarge { bytes, limit: found }), Err(want)) => {
                    assert_eq!((bytes, found), (*want, (*limit).min(MAX_POOL_BYTES)), "{case}");
                }
                (found, _) => panic!("{case}: {found:?}"),
            }
        }
    }

    #[test]
    #[should_panic(expected = "a frame of this layout")]
    fn a_frame_that_is_not_there_has_no_slots() {
        let _ = PoolLayout::new(&[4], 2, MAX_POOL_BYTES).unwrap().slot(2, 0);
    }

    #[test]
    fn an_argument_names_the_bytes_of_its_slot() {
        let slot = TensorSlot { offset: 128, length: 5 };
        assert_eq!(slot.range(), 128..133);
        let argument = slot.argument(3);
        assert_eq!(argument.location, DataLocation { pool_index: 3, offset: 128, length: 5 });
        assert!(!argument.has_no_value && argument.dimensions.is_empty());
    }
}

//! What the tests of several families share.

/// Numbers that look random and are the same in every run.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// A number in `0..below`.
    pub(crate) fn below(&mut self, below: usize) -> usize {
        usize::try_from(self.next() % below as u64).unwrap()
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next().to_le_bytes()[0]).collect()
    }

    /// Whole numbers in -6 to 6, whose sums of products are exact in any order.
    pub(crate) fn small_floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| f32::from(i8::try_from(self.below(13)).unwrap() - 6)).collect()
    }
}

//! Numbers from a seed: SplitMix64, which gives the same ones everywhere.

/// A stream of numbers.
pub(super) struct Random(u64);

impl Random {
    /// The stream of a seed.
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From -1 to 1.
    pub(super) fn unit(&mut self) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "24 bits are exact")]
        let value = (self.bits() >> 40) as f32;
        value / 8_388_608.0 - 1.0
    }

    /// A weight in 8 bits, the least of all left out, so that both signs reach as far.
    pub(super) fn step(&mut self) -> i8 {
        let value = (self.bits() % 255) as i16 - 127;
        i8::try_from(value).unwrap_or(0)
    }
}

//! Random numbers: SplitMix64, small and the same everywhere.

/// The generator's step, 2^64 divided by the golden ratio (made odd).
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers for a seed on every machine.
///
/// ```
/// use burst_verify::random::Rng;
///
/// let mut rng = Rng::new(1_234_567);
/// assert_eq!(rng.next(), 6_457_827_717_110_365_317);
/// ```
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The numbers of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait, reason = "it never ends, and is no iterator elsewhere")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A generator whose numbers have nothing to do with this one's.
    #[must_use]
    pub fn fork(&mut self) -> Rng {
        Rng(self.next())
    }

    /// One of `0..bound`; 0 where there is none.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % (bound.max(1) as u64)).unwrap_or(0)
    }

    /// One of `low..=high`.
    pub fn size(&mut self, low: u32, high: u32) -> u32 {
        let count = u64::from(high.saturating_sub(low)) + 1;
        low + u32::try_from(self.next() % count).unwrap_or(0)
    }

    /// One of `low..=high`.
    pub fn int(&mut self, low: i32, high: i32) -> i32 {
        let steps = self.size(0, high.abs_diff(low));
        low.saturating_add_unsigned(steps)
    }

    /// Uniform in `0..1`.
    pub fn unit(&mut self) -> f32 {
        let high = u16::try_from(self.next() >> 48).unwrap_or(0);
        f32::from(high) / 65_536.0
    }

    /// Uniform in `low..high`.
    pub fn real(&mut self, low: f32, high: f32) -> f32 {
        low + self.unit() * (high - low)
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f32) -> bool {
        self.unit() < probability
    }

    /// One of these.
    ///
    /// # Panics
    /// Where there are none.
    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

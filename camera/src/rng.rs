//! Random numbers: SplitMix64, small and the same everywhere.

/// The generator's step, 2^64 divided by the golden ratio (made odd).
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    #[cfg(test)]
    pub(crate) fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// A generator for part `index` of what `seed` stands for, unrelated to its neighbours.
    pub(crate) fn part(seed: u64, index: u64) -> Rng {
        Rng(mix(mix(seed.wrapping_add(STEP)) ^ index.wrapping_mul(STEP)))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// Uniform in `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f32 {
        // 24 bits are what an `f32` holds exactly.
        let bits = self.next();
        let high = u16::try_from(bits >> 48).unwrap_or(0);
        let low = u8::try_from((bits >> 40) & 0xFF).unwrap_or(0);
        (f32::from(high) * 256.0 + f32::from(low)) / 16_777_216.0
    }

    /// Uniform in `[low, high)`.
    pub(crate) fn range(&mut self, low: f32, high: f32) -> f32 {
        low + self.unit() * (high - low)
    }

    /// Uniform in `0..bound`; `bound` must not be 0. Its bias, `bound` in 2^64, is of no account here.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap_or(0)
    }

    /// True with probability `p`.
    pub(crate) fn chance(&mut self, p: f32) -> bool {
        self.unit() < p
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_published_numbers_for_seed_1234567() {
        let mut rng = Rng::new(1_234_567);
        let got = [rng.next(), rng.next(), rng.next()];
        assert_eq!(got, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }

    #[test]
    fn unit_fills_its_interval_evenly() {
        let mut rng = Rng::new(1);
        let mut tenths = [0u32; 10];
        for _ in 0..10_000 {
            let x = rng.unit();
            assert!((0.0..1.0).contains(&x));
            let tenth = (0..10u8).find(|&t| x < (f32::from(t) + 1.0) / 10.0).unwrap_or(9);
            tenths[usize::from(tenth)] += 1;
        }
        // Mean 1000, standard deviation 30: five of them each way.
        assert!(tenths.iter().all(|&n| (850..1150).contains(&n)), "{tenths:?}");
    }

    #[test]
    fn parts_of_one_seed_differ() {
        let mut first: Vec<u64> = (0..1000).map(|i| Rng::part(9, i).next()).collect();
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), 1000);
    }
}

//! Numbers that a seed determines: SplitMix64, which needs no more than one word of state.

/// A sequence.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// The sequence of a seed and of who asks: each has one of its own.
    pub(crate) fn new(seed: u64, who: u64) -> Random {
        let mut random = Random(seed ^ who.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to, and without, `end`, which is at least one.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = end.max(1);
        usize::try_from(self.next() % end as u64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_and_everybody_others() {
        let numbers = |seed, who| {
            let mut random = Random::new(seed, who);
            (0..8).map(|_| random.next()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(1, 2), numbers(1, 2));
        assert_ne!(numbers(1, 2), numbers(1, 3));
        assert_ne!(numbers(1, 2), numbers(2, 2));
        let mut random = Random::new(5, 0);
        assert!((0..1000).all(|_| random.below(7) < 7));
        assert_eq!(random.below(0), 0);
    }
}

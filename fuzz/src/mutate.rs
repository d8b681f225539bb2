//! Blind mutations of seeds, the same on every machine: what `cargo test` runs in place of
//! libFuzzer.

/// Longest mutated input; libFuzzer takes the longest seed, and so does nearly every mutation.
const LONGEST: usize = 4096;

/// Numbers that lie where code changes its mind.
const EDGES: [u64; 12] =
    [0, 1, 2, 7, 0x7F, 0x80, 0xFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, u64::MAX / 2, u64::MAX];

/// Makes wrong bytes out of right ones.
#[derive(Debug, Clone)]
pub struct Mutator {
    state: u64,
}

impl Mutator {
    /// The same seed gives the same mutations.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Mutator { state: seed | 1 }
    }

    /// Any number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state % end as u64) as usize
    }

    /// One of `seeds` with one to six changes; `seeds` is not empty.
    pub fn mutated(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(6) {
            let other = self.below(seeds.len());
            self.change(&mut bytes, &seeds[other]);
        }
        bytes.truncate(LONGEST.max(seeds.iter().map(Vec::len).max().unwrap_or(0)));
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(bytes.len() + 1);
        let count = 1 + self.below(16);
        let end = (at + count).min(bytes.len());
        match self.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            1 if at < bytes.len() => bytes[at] = self.below(256) as u8,
            2 => self.overwrite_with_edge(bytes, at),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let new: Vec<u8> = (0..count).map(|_| self.below(256) as u8).collect();
                bytes.splice(at..at, new);
            }
            5 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            6 if !other.is_empty() => {
                let from = self.below(other.len());
                let to = (from + count * 4).min(other.len());
                bytes.splice(at..at, other[from..to].iter().copied());
            }
            _ => bytes.truncate(at.max(1)),
        }
    }

    fn overwrite_with_edge(&mut self, bytes: &mut [u8], at: usize) {
        let width = 1 << self.below(4);
        let edge = EDGES[self.below(EDGES.len())].to_le_bytes();
        for (byte, new) in bytes[at..].iter_mut().zip(&edge[..width]) {
            *byte = *new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutations_repeat_differ_and_stay_short() {
        let seeds = vec![vec![7; 100], vec![9; 10]];
        let all = |seed| {
            let mut mutator = Mutator::new(seed);
            (0..1000).map(|_| mutator.mutated(&seeds)).collect::<Vec<_>>()
        };
        let once = all(3);
        assert_eq!(once, all(3));
        assert_ne!(once, all(5));
        let changed = once.iter().filter(|bytes| !seeds.contains(bytes)).count();
        assert!(changed > 900, "only {changed} of 1000 differ from every seed");
        assert!(once.iter().all(|bytes| bytes.len() <= LONGEST));
    }
}

//! Choices, read from any bytes.

/// Any bytes as a source of choices. Behind their end every choice is the first.
#[derive(Debug, Clone)]
pub(super) struct Bytes<'a> {
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Bytes { rest: bytes }
    }

    /// The next byte.
    pub(super) fn byte(&mut self) -> u8 {
        match self.rest.split_first() {
            Some((first, rest)) => {
                self.rest = rest;
                *first
            }
            None => 0,
        }
    }

    /// The next four bytes as a number.
    pub(super) fn word(&mut self) -> u32 {
        u32::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// A number below `end`, which is at most 256; 0 where there is none.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()).checked_rem(end).unwrap_or(0)
    }

    /// One of these.
    pub(super) fn pick<T: Copy, const N: usize>(&mut self, from: [T; N]) -> T {
        from[self.below(N)]
    }

    /// True once in so many times.
    pub(super) fn rarely(&mut self, once_in: usize) -> bool {
        self.below(once_in) + 1 == once_in
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_the_end_every_choice_is_the_first() {
        let mut bytes = Bytes::new(&[7, 1, 0, 0, 1, 255]);
        assert_eq!((bytes.below(4), bytes.word(), bytes.rarely(2)), (3, 0x0100_0001, true));
        assert_eq!((bytes.byte(), bytes.word(), bytes.pick([5, 6])), (0, 0, 5));
        assert_eq!((bytes.below(0), bytes.rarely(2)), (0, false));
    }
}

//! Pages of large values that are filled from front to back, made a stretch ahead of whoever fills them.

use burst_shm::populate;

/// Bytes whose pages are made at a time: they are still in a core's own cache when they are filled.
const STRETCH: usize = 1 << 18;

/// Smaller allocations come mostly from memory whose pages are there.
pub(crate) const SMALLEST: usize = 1 << 15;

/// Bytes of a page at least. The page in which a stretch ends is made with the next one.
const PAGE: usize = 4096;

/// How many elements of a vector have their pages.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    ready: usize,
}

impl Pages {
    /// Makes pages for the `more` elements that are about to be written to `room` behind `len` that were, as far as
    /// there is room for them, and for a stretch beyond, so that few calls reach the kernel.
    #[inline]
    pub(crate) fn ahead_of<T>(&mut self, len: usize, room: &mut [T], more: usize) {
        self.ahead_of_by(len, room, more, populate);
    }

    /// The same where `make` makes the room ready. It gets each element at least once before that is written, and never after.
    #[inline]
    pub(crate) fn ahead_of_by<T>(
        &mut self,
        len: usize,
        room: &mut [T],
        more: usize,
        make: fn(&mut [T]),
    ) {
        let is_large = (len + room.len()).saturating_mul(size_of::<T>()) >= SMALLEST;
        if is_large && len + more > self.ready {
            self.make(len, room, more, make);
        }
    }

    #[cold]
    fn make<T>(&mut self, len: usize, room: &mut [T], more: usize, make: fn(&mut [T])) {
        let elements = |bytes: usize| bytes.div_ceil(size_of::<T>().max(1));
        let begin = self.ready.saturating_sub(len).saturating_sub(elements(PAGE));
        let end = (more + elements(STRETCH)).min(room.len());
        make(&mut room[begin.min(end)..end]);
        self.ready = len + end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_made_for_what_follows_and_never_beyond_the_capacity() {
        let mut pages = Pages::default();
        let mut small: Vec<u8> = Vec::with_capacity(SMALLEST - 1);
        pages.ahead_of(0, small.spare_capacity_mut(), 100);
        assert_eq!(pages.ready, 0);

        let mut values: Vec<[u8; 64]> = Vec::with_capacity(SMALLEST / 64 + 5);
        let mut calls = 0;
        while values.len() < values.capacity() {
            let before = pages.ready;
            pages.ahead_of(values.len(), values.spare_capacity_mut(), 3);
            calls += usize::from(pages.ready != before);
            assert!(pages.ready <= values.capacity());
            assert!(pages.ready >= (values.len() + 3).min(values.capacity()));
            values.extend([[7; 64]; 3].into_iter().take(values.capacity() - values.len()));
        }
        assert!(calls <= 3, "{calls} calls for two stretches and a rest");
    }
}

//! Pages of large values that are filled from front to back, made a stretch ahead of whoever fills them.

use burst_shm::populate;

/// Bytes whose pages are made at a time: they are still in a core's own cache when they are filled.
const STRETCH: usize = 1 << 16;

/// Smaller allocations come mostly from memory whose pages are there.
const SMALLEST: usize = 1 << 17;

/// Bytes of a page at least. The page in which a stretch ends is made with the next one.
const PAGE: usize = 4096;

/// How many elements of a vector have their pages.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    ready: usize,
}

impl Pages {
    /// Makes pages for the `more` elements that are about to follow those of `values`, as far as there is
    /// capacity for them, and for a stretch beyond, so that few calls reach the kernel.
    #[inline]
    pub(crate) fn ahead_of<T>(&mut self, values: &mut Vec<T>, more: usize) {
        let is_large = values.capacity().saturating_mul(size_of::<T>()) >= SMALLEST;
        if is_large && values.len() + more > self.ready {
            self.make(values, more);
        }
    }

    #[cold]
    fn make<T>(&mut self, values: &mut Vec<T>, more: usize) {
        let elements = |bytes: usize| bytes.div_ceil(size_of::<T>().max(1));
        let (len, room) = (values.len(), values.spare_capacity_mut());
        let begin = self.ready.saturating_sub(len).saturating_sub(elements(PAGE));
        let end = (more + elements(STRETCH)).min(room.len());
        populate(&mut room[begin.min(end)..end]);
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
        pages.ahead_of(&mut small, 100);
        assert_eq!(pages.ready, 0);

        let mut values: Vec<[u8; 64]> = Vec::with_capacity(SMALLEST / 64 + 5);
        let mut calls = 0;
        while values.len() < values.capacity() {
            let before = pages.ready;
            pages.ahead_of(&mut values, 3);
            calls += usize::from(pages.ready != before);
            assert!(pages.ready <= values.capacity());
            assert!(pages.ready >= (values.len() + 3).min(values.capacity()));
            values.extend([[7; 64]; 3].into_iter().take(values.capacity() - values.len()));
        }
        assert!(calls <= 3, "{calls} calls for two stretches and a rest");
    }
}

//! A list that kernels fill with lines, from registers where there are instructions for it.

#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use crate::aligned::Line;
use crate::weight_room::Packed;

/// A list to which lines are appended.
///
/// To write a line a CPU first fetches what stands there, although all of it is overwritten, and pushes another one out of its
/// caches for it. Where the list `streams`, lines from registers go to memory without that, by writes that are ordered with no others until the fence.
#[derive(Debug)]
pub(crate) struct Lines {
    fence: Fence,
    list: Packed<Line>,
    /// The thread that writes is the one that passes the fence.
    on_one_thread: PhantomData<*const ()>,
}

/// Comes before anything that this thread writes after it is gone.
#[derive(Debug)]
struct Fence {
    streams: bool,
}

impl Lines {
    pub(crate) fn of(list: Packed<Line>, streams: bool) -> Self {
        Lines { fence: Fence { streams }, list, on_one_thread: PhantomData }
    }

    /// The list, which others may read from here on.
    pub(crate) fn into_list(self) -> Packed<Line> {
        drop(self.fence);
        self.list
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Room for what is appended, of which nothing can be read.
    pub(crate) fn room(&mut self) -> &mut [MaybeUninit<Line>] {
        self.list.spare_capacity_mut()
    }

    /// Appends lines one by one, through the caches.
    pub(crate) fn append_each(&mut self, lines: impl IntoIterator<Item = Line>) {
        self.list.extend(lines);
    }

    /// Room for 16 lines that come in any order.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn sixteen(&mut self) -> Sixteen<'_> {
        let first = self.next::<16>().as_mut_ptr().cast();
        Sixteen { lines: self, first, written: 0 }
    }

    /// Appends lines, two registers each.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx")]
    pub(crate) fn append<const COUNT: usize>(&mut self, values: [[__m256i; 2]; COUNT]) {
        let streams = self.fence.streams;
        let next = self.next::<COUNT>();
        if streams {
            for (line, [first, second]) in next.iter_mut().zip(values) {
                let to = line.as_mut_ptr().cast::<__m256i>();
                // SAFETY: 32 bytes are written to the first half of a line, which begins at a multiple. The fence comes before
                // the list is anybody's.
                unsafe { _mm256_stream_si256(to, first) };
                // SAFETY: as above, to the second half.
                unsafe { _mm256_stream_si256(to.wrapping_add(1), second) };
            }
        } else {
            for (line, [first, second]) in next.iter_mut().zip(values) {
                let to = line.as_mut_ptr().cast::<__m256i>();
                // SAFETY: 32 bytes are written to the first half of a line.
                unsafe { _mm256_store_si256(to, first) };
                // SAFETY: and to the second.
                unsafe { _mm256_store_si256(to.wrapping_add(1), second) };
            }
        }
        // SAFETY: that many lines behind the last one were just written, and there is room for them.
        unsafe { self.list.set_len(self.list.len() + COUNT) };
    }

    /// Room for the next lines.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn next<const COUNT: usize>(&mut self) -> &mut [MaybeUninit<Line>] {
        if self.list.spare_capacity_mut().len() < COUNT {
            self.grow(COUNT);
        }
        &mut self.list.spare_capacity_mut()[..COUNT]
    }

    /// Whoever makes a list knows how long it becomes: this is for who does not.
    #[cfg(target_arch = "x86_64")]
    #[cold]
    #[inline(never)]
    fn grow(&mut self, count: usize) {
        self.list.reserve(count);
    }
}

/// The next 16 lines of a list.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Sixteen<'l> {
    lines: &'l mut Lines,
    /// In the list, which has room for 16 from here on.
    first: *mut __m512i,
    /// A bit for each line that was written.
    written: u16,
}

#[cfg(target_arch = "x86_64")]
impl Sixteen<'_> {
    /// Writes one of them: `number` counts from 0, and begins anew after 15.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(crate) fn put(&mut self, number: usize, line: __m512i) {
        let number = number % 16;
        let to = self.first.wrapping_add(number);
        if self.lines.fence.streams {
            // SAFETY: 64 bytes are written to a line, which has as many and begins at a multiple; there is room for 16. The fence
            // comes before the list is anybody's.
            unsafe { _mm512_stream_si512(to, line) };
        } else {
            // SAFETY: 64 bytes are written to a line; there is room for 16.
            unsafe { _mm512_store_si512(to, line) };
        }
        self.written |= 1 << number;
    }

    /// Appends them, if all were written.
    #[inline(always)]
    pub(crate) fn append(self) {
        if self.written == u16::MAX {
            // SAFETY: 16 lines behind the last one were written since there is room for them, all of which are this value's.
            unsafe { self.lines.list.set_len(self.lines.list.len() + 16) };
        }
    }
}

impl Drop for Fence {
    fn drop(&mut self) {
        if self.streams {
            // SAFETY: every CPU of this architecture has the instruction.
            #[cfg(target_arch = "x86_64")]
            unsafe {
                _mm_sfence();
            }
        }
    }
}

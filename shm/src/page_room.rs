//! Room for large values of one owner, on huge pages where the kernel has them.
//!
//! A page of 4 KiB that is new takes the kernel about as long as filling it takes us. A huge page is made in one
//! go, and a walk through it misses no translation. The C library's allocator asks for none, and places values
//! where no huge page begins.

#![allow(unsafe_code, reason = "hands out parts of a mapping, as an allocator")]

use std::alloc::Layout;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use allocator_api2::alloc::{AllocError, Allocator, Global};
use allocator_api2::vec::Vec;
use bytemuck::Zeroable;
use memmap2::{Advice, MmapOptions, MmapRaw};

use crate::populate::populate;

/// Bytes of a huge page, where ordinary ones have 4 KiB.
pub const HUGE_PAGE: usize = 2 << 20;

/// Bytes that are made zero at a time: a part of a core's own cache.
const ZEROED_AT_ONCE: usize = 1 << 18;

/// Most bytes of the heap that are written to be zero, in a few milliseconds.
const MOST_ZEROED: usize = 8 << 20;

/// A stretch of addresses from which vectors take their memory, one behind the other, and the heap for what no
/// longer fits. The [default](PageRoom::default) has no stretch: all is taken from the heap.
///
/// The stretch is one owner's: what is given back can be taken again where nothing was taken after it, and all of it
/// goes back to the kernel when the last clone of this value does, of which each vector has one.
#[derive(Debug, Clone, Default)]
pub struct PageRoom(Option<Arc<Stretch>>);

#[derive(Debug)]
struct Stretch {
    mapping: MmapRaw,
    /// Where in the mapping the stretch begins: at the first address of a huge page.
    begin: usize,
    len: usize,
    /// Bytes at its beginning that are huge pages, where the kernel has any.
    huge: usize,
    /// Everything before it was taken. Whoever takes moves it up, and has what it moved over for itself.
    next: AtomicUsize,
    /// Everything from here on was never taken: it is zero.
    untouched: AtomicUsize,
    /// Bytes that were taken and not given back.
    live: AtomicUsize,
}

impl PageRoom {
    /// Addresses for `len` bytes, of which the first `huge` are to be huge pages: whole ones. No page is made yet.
    /// Where the kernel has no such addresses, it is the heap.
    #[must_use]
    pub fn reserve(len: usize, huge: usize) -> Self {
        PageRoom(Stretch::new(len, huge / HUGE_PAGE * HUGE_PAGE).map(Arc::new))
    }

    /// Bytes of pages that have to be there once `more` bytes are taken, and that nobody has taken: the rest of the
    /// huge page in which that ends, and what was given back. `None` where there is no room for so many.
    #[must_use]
    pub fn spare_after(&self, more: usize) -> Option<usize> {
        let stretch = self.0.as_ref()?;
        let next = stretch.next.load(Ordering::Relaxed).checked_add(more);
        let next = next.filter(|next| *next <= stretch.len)?;
        let live = stretch.live.load(Ordering::Relaxed).saturating_add(more);
        Some(stretch.made(next).saturating_sub(live))
    }

    /// So many values that are all zero: in the stretch, where they are new, nothing is written for it.
    ///
    /// # Errors
    /// Where there is no such memory.
    pub fn zeroed<T: Zeroable + Copy>(&self, len: usize) -> Result<Vec<T, PageRoom>, AllocError> {
        let layout = Layout::array::<T>(len).map_err(|_| AllocError)?;
        let taken = self.0.as_ref().and_then(|stretch| stretch.take(layout));
        let (block, used) = match taken {
            Some(taken) => taken,
            // The system's memory is zero, and takes no time that nobody could call off.
            None if layout.size() > MOST_ZEROED => (Global.allocate_zeroed(layout)?, 0),
            None => (Global.allocate(layout)?, layout.size()),
        };
        let first = block.cast::<MaybeUninit<u8>>().as_ptr();
        // SAFETY: `used` is at most the size of the block, which was just handed out and is nobody else's; what is not
        // a value yet may be of any content.
        let used = unsafe { std::slice::from_raw_parts_mut(first, used) };
        // Part by part: pages that are new are made in one go, and are in the cache when they are written to.
        for part in used.chunks_mut(ZEROED_AT_ONCE) {
            populate(part);
            part.fill(MaybeUninit::new(0));
        }
        let first = block.cast::<T>().as_ptr();
        // SAFETY: this allocator has handed it out for `len` values. All of it is zero, which is a value of this type:
        // what was used before was written just now, and the rest is new in the stretch or the heap's zeros.
        Ok(unsafe { Vec::from_raw_parts_in(first, len, len, self.clone()) })
    }

    /// Whether what is [zeroed](PageRoom::zeroed) may have no pages yet. In the heap it has.
    #[must_use]
    pub fn has_new_pages(&self) -> bool {
        self.0.is_some()
    }

    /// Bytes of pages that are there at most, in use or not.
    #[must_use]
    pub fn made_bytes(&self) -> usize {
        let stretch = self.0.as_ref();
        stretch.map_or(0, |stretch| stretch.made(stretch.next.load(Ordering::Relaxed)))
    }
}

impl Stretch {
    fn new(len: usize, huge: usize) -> Option<Self> {
        let len = len.max(huge).checked_next_multiple_of(HUGE_PAGE)?;
        let mut options = MmapOptions::new();
        // As much again as lies before the first address of a huge page. What nobody writes takes no memory.
        options.len(len.checked_add(HUGE_PAGE)?).no_reserve_swap();
        let mapping = MmapRaw::from(options.map_anon().ok()?);
        let begin = mapping.as_mut_ptr().align_offset(HUGE_PAGE);
        if begin > HUGE_PAGE {
            return None;
        }
        if huge > 0 {
            // Best effort: a kernel without huge pages makes ordinary ones.
            let _ = mapping.advise_range(Advice::HugePage, begin, huge);
        }
        let [next, untouched, live] = [0; 3].map(AtomicUsize::new);
        Some(Stretch { mapping, begin, len, huge, next, untouched, live })
    }

    /// Bytes of pages that what lies before this place takes.
    fn made(&self, next: usize) -> usize {
        if next <= self.huge { next.next_multiple_of(HUGE_PAGE) } else { next }
    }

    /// Takes a block, and says how many bytes at its beginning may not be zero.
    fn take(&self, layout: Layout) -> Option<(NonNull<[u8]>, usize)> {
        if layout.size() == 0 || layout.align() > HUGE_PAGE {
            return None;
        }
        let behind = |next: usize| {
            // The stretch is aligned to more than any layout here.
            let start = next.checked_next_multiple_of(layout.align())?;
            let end = start.checked_add(layout.size())?;
            (end <= self.len).then_some((start, end))
        };
        // Acquire: with the Release of `give_back`, so that what is written here comes after all that was done with
        // the same bytes before.
        let taken = self.next.fetch_update(Ordering::AcqRel, Ordering::Acquire, |next| {
            behind(next).map(|(_, end)| end)
        });
        let (start, end) = behind(taken.ok()?)?;
        // Whoever had these bytes before has said so before giving them back.
        let untouched = self.untouched.fetch_max(end, Ordering::Relaxed);
        self.live.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the mapping has `begin + len` bytes at least, as `begin` is at most the huge page that it has more,
        // and `start` is less than `len`.
        let first = unsafe { self.mapping.as_mut_ptr().add(self.begin + start) };
        let block = NonNull::slice_from_raw_parts(NonNull::new(first)?, layout.size());
        Some((block, untouched.saturating_sub(start).min(layout.size())))
    }

    /// Where in the stretch it points, if it does.
    fn offset(&self, pointer: NonNull<u8>) -> Option<usize> {
        let first = self.mapping.as_mut_ptr().addr() + self.begin;
        pointer.addr().get().checked_sub(first).filter(|offset| *offset < self.len)
    }

    fn give_back(&self, start: usize, len: usize) {
        self.live.fetch_sub(len, Ordering::Relaxed);
        // Release: with the Acquire of `take`. It fails where more was taken behind it, whose place stays.
        let _ =
            self.next.compare_exchange(start + len, start, Ordering::Release, Ordering::Relaxed);
    }
}

// A block of the stretch is told from one of the heap by its address: the heap has none within a mapping that it has not
// made, and a block of no bytes, which is always the heap's, has an address below every mapping.
//
// SAFETY: a block is valid, aligned and nobody else's until it is given back: `take` moves `next` over it in one step,
// `give_back` moves `next` back over that block alone, and each clone's `Arc` keeps the mapping where it is.
unsafe impl Allocator for PageRoom {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let taken = self.0.as_ref().and_then(|stretch| stretch.take(layout));
        taken.map_or_else(|| Global.allocate(layout), |(block, _)| Ok(block))
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        let stretch = self.0.as_ref();
        match stretch.and_then(|stretch| Some((stretch, stretch.offset(block)?))) {
            Some((stretch, start)) => stretch.give_back(start, layout.size()),
            // SAFETY: it is not of the stretch, so `allocate` has taken it from there, with this layout.
            None => unsafe { Global.deallocate(block, layout) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(room: &PageRoom, len: usize, value: u64) -> Vec<u64, PageRoom> {
        let mut values = Vec::new_in(room.clone());
        values.try_reserve_exact(len).unwrap();
        values.resize(len, value);
        values
    }

    #[test]
    fn values_lie_behind_each_other_and_then_in_the_heap() {
        let room = PageRoom::reserve(HUGE_PAGE, 0);
        let values = [1000, 7, HUGE_PAGE / 8].map(|len| filled(&room, len, len as u64));
        let addresses = values.each_ref().map(|values| values.as_ptr().addr());
        assert_eq!(addresses[0] % HUGE_PAGE, 0);
        assert_eq!(addresses[1], addresses[0] + 8000);
        assert!(!(addresses[0]..addresses[0] + HUGE_PAGE).contains(&addresses[2]), "no room left");
        for values in &values {
            assert!(values.iter().all(|value| *value == values.len() as u64));
        }
        let heap = PageRoom::default();
        assert_eq!(filled(&heap, 3, 5).as_slice(), [5; 3]);
        assert_eq!((heap.spare_after(1), heap.made_bytes()), (None, 0));
        assert!(room.has_new_pages() && !heap.has_new_pages());
    }

    #[test]
    fn what_was_taken_last_can_be_taken_again_and_nothing_else() {
        let room = PageRoom::reserve(HUGE_PAGE, HUGE_PAGE);
        let first = filled(&room, 512, 1);
        let second = filled(&room, 512, 2);
        let place = second.as_ptr();
        drop(second);
        let third = filled(&room, 512, 3);
        assert_eq!(third.as_ptr(), place);
        drop(first);
        assert_eq!(room.spare_after(0), Some(HUGE_PAGE - 4096));
        let fourth = filled(&room, 512, 4);
        assert!(fourth.as_ptr().addr() > place.addr());
        assert!(third.iter().all(|value| *value == 3));
    }

    #[test]
    fn zeros_are_zero_wherever_something_else_lay_before() {
        for room in [PageRoom::reserve(HUGE_PAGE, 0), PageRoom::default()] {
            let first = room.zeroed::<u64>(100).unwrap();
            assert!(first.iter().all(|value| *value == 0));
            drop(filled(&room, 700, u64::MAX));
            let second = room.zeroed::<u64>(1000).unwrap();
            assert!(second.iter().all(|value| *value == 0));
            assert_eq!(second.len(), second.capacity());
            assert_eq!(room.zeroed::<u64>(0).unwrap().len(), 0);
            let large = room.zeroed::<u8>(MOST_ZEROED + 1).unwrap();
            assert_eq!((large.len(), large[0], large[MOST_ZEROED]), (MOST_ZEROED + 1, 0, 0));
            assert!(room.zeroed::<u64>(usize::MAX / 8).is_err());
        }
    }

    #[test]
    fn what_pages_take_beyond_what_is_in_use_is_said_beforehand() {
        let room = PageRoom::reserve(3 * HUGE_PAGE, 2 * HUGE_PAGE);
        assert_eq!((room.spare_after(0), room.made_bytes()), (Some(0), 0));
        assert_eq!(room.spare_after(4096), Some(HUGE_PAGE - 4096));
        let _first = filled(&room, 512, 1);
        assert_eq!(room.made_bytes(), HUGE_PAGE);
        assert_eq!(room.spare_after(HUGE_PAGE), Some(HUGE_PAGE - 4096));
        // Behind the huge ones pages are small, and made as they are needed.
        assert_eq!(room.spare_after(2 * HUGE_PAGE), Some(0));
        assert_eq!(room.spare_after(3 * HUGE_PAGE), None);
    }

    #[test]
    fn threads_that_take_at_the_same_time_have_different_memory() {
        let room = PageRoom::reserve(HUGE_PAGE, 0);
        std::thread::scope(|scope| {
            for number in 0..4 {
                let room = room.clone();
                scope.spawn(move || {
                    for round in 0..200 {
                        let kept = filled(&room, 100, number);
                        drop(filled(&room, 50, round));
                        assert!(kept.iter().all(|value| *value == number));
                    }
                });
            }
        });
    }

    #[test]
    fn more_than_there_are_addresses_for_is_the_heap() {
        assert_eq!(PageRoom::reserve(usize::MAX - 5, 0).spare_after(0), None);
        assert_eq!(PageRoom::reserve(1 << 62, 1 << 62).spare_after(0), None);
    }
}

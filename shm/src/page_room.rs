//! Room for large values of one owner, on huge pages where the kernel has them.
//!
//! A page of 4 KiB that is new takes the kernel about as long as filling it takes us. A huge page is made in one
//! go, and a walk through it misses no translation. The C library's allocator asks for none, and places values
//! where no huge page begins.

#![allow(unsafe_code, reason = "hands out parts of a mapping, as an allocator")]

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;

use allocator_api2::alloc::{AllocError, Allocator, Global};
use allocator_api2::collections::TryReserveError;
use allocator_api2::vec::Vec;

use crate::stretch::{HUGE_PAGE, Stretch};

/// A stretch of addresses from which vectors take their memory, one behind the other, and the heap for what no
/// longer fits. The [default](PageRoom::default) has no stretch: all is taken from the heap.
///
/// The stretch is one owner's: what is given back can be taken again where nothing was taken after it, and all of it
/// is the kernel's to take when the last clone of this value is gone, of which each vector has one. What the kernel has not
/// taken by then, the next room of as many huge pages has at once; at most 32 MiB, and none after
/// [`give_back_freed_memory`](crate::give_back_freed_memory).
#[derive(Debug, Clone, Default)]
pub struct PageRoom(Option<Arc<Stretch>>);

impl PageRoom {
    /// Addresses for `len` bytes, of which the first `huge` are to be huge pages: whole ones. No page is made yet.
    /// Where the kernel has no such addresses, it is the heap.
    #[must_use]
    pub fn reserve(len: usize, huge: usize) -> Self {
        PageRoom(Stretch::new(len, huge / HUGE_PAGE * HUGE_PAGE).map(Arc::new))
    }

    /// The same addresses that an earlier room had, with pages that are there, of any content. `None` where no such room was let
    /// go, or the kernel has taken its pages since.
    #[must_use]
    pub fn reserve_freed(len: usize, huge: usize) -> Option<Self> {
        Stretch::freed(len, huge / HUGE_PAGE * HUGE_PAGE)
            .map(|stretch| PageRoom(Some(Arc::new(stretch))))
    }

    /// Bytes of pages that have to be there once `more` bytes are taken, and that nobody has taken: the rest of the
    /// huge page in which that ends, and what was given back. `None` where there is no room for so many.
    #[must_use]
    pub fn spare_after(&self, more: usize) -> Option<usize> {
        self.0.as_ref()?.spare_after(more)
    }

    /// An empty list with room for so many values: in the stretch, or in the heap.
    ///
    /// # Errors
    /// Where there is no such memory.
    pub fn list<T>(&self, len: usize) -> Result<Vec<T, PageRoom>, TryReserveError> {
        let mut list = Vec::new_in(self.clone());
        list.try_reserve_exact(len)?;
        Ok(list)
    }

    /// Whether the kernel has yet to make the pages, which are in the caches then. The heap's are mostly there.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.0.as_ref().is_some_and(|stretch| stretch.is_new())
    }

    /// Bytes of pages that are there at most, in use or not.
    #[must_use]
    pub fn made_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |stretch| stretch.made_bytes())
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
        taken.map_or_else(|| Global.allocate(layout), Ok)
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
        assert!(room.is_new() && !heap.is_new());
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
    fn a_list_has_room_for_what_was_said_and_is_refused_where_there_is_none() {
        for room in [PageRoom::reserve(HUGE_PAGE, 0), PageRoom::default()] {
            let list = room.list::<u64>(100).unwrap();
            assert_eq!((list.len(), list.capacity()), (0, 100));
            assert_eq!(room.list::<u64>(0).unwrap().capacity(), 0);
            // More than the stretch has is the heap's.
            let large = room.list::<u8>(HUGE_PAGE + 1).unwrap();
            assert_eq!(large.capacity(), HUGE_PAGE + 1);
            assert!(room.list::<u64>(usize::MAX / 8).is_err());
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

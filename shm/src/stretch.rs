//! Stretches of addresses, and what the process keeps of those that nobody uses any more.
//!
//! To make a huge page the kernel clears it, which takes as long as reading the weights that are to lie there. So a stretch
//! that is let go stays with the process, as what is freed stays with the heap, but its pages are the kernel's to
//! take (`MADV_FREE`): it does so where memory is short, before anybody has to wait or is refused any. The next owner of as many huge pages
//! finds them made.

#![allow(
    unsafe_code,
    reason = "tells the kernel that the content of a mapping is no longer needed"
)]

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::{Advice, MmapOptions, MmapRaw, UncheckedAdvice};

use crate::populate::are_there;

/// Bytes of a huge page, where ordinary ones have 4 KiB.
pub const HUGE_PAGE: usize = 2 << 20;

/// Most bytes of freed stretches that the process keeps: the weights of a large model for a camera.
const MOST_FREED: usize = 32 << 20;

/// What the process keeps of freed stretches, as its heap keeps freed memory.
static FREED: Mutex<Freed> = Mutex::new(Freed(Vec::new()));

/// Addresses from which blocks are taken, one behind the other.
#[derive(Debug)]
pub(crate) struct Stretch {
    addresses: Arc<Addresses>,
    /// Everything before it was taken. Whoever takes moves it up, and has what it moved over for itself.
    next: AtomicUsize,
    /// Bytes that were taken and not given back.
    live: AtomicUsize,
    /// Bytes at its beginning that were taken some time.
    touched: AtomicUsize,
    is_new: bool,
}

/// A mapping of this process.
#[derive(Debug)]
struct Addresses {
    mapping: MmapRaw,
    /// Where in the mapping they begin: at the first address of a huge page.
    begin: usize,
    len: usize,
    /// Bytes at their beginning that are huge pages, where the kernel has any.
    huge: usize,
}

impl Stretch {
    /// Addresses for `len` bytes, of which the first `huge` are to be huge pages: whole ones.
    pub(crate) fn new(len: usize, huge: usize) -> Option<Self> {
        let len = len.max(huge).checked_next_multiple_of(HUGE_PAGE)?;
        Some(Self::of(Arc::new(Addresses::new(len, huge)?), 0))
    }

    /// One that was let go, if there is one with room for `len` bytes, of which the first `huge` are huge pages, and the kernel
    /// has not taken them.
    pub(crate) fn freed(len: usize, huge: usize) -> Option<Self> {
        let (addresses, touched) = lock(&FREED).take(len.max(huge), huge)?;
        addresses.is_made(touched).then(|| Self::of(addresses, touched))
    }

    fn of(addresses: Arc<Addresses>, touched: usize) -> Self {
        let is_new = touched == 0;
        let [next, live, touched] = [0, 0, touched].map(AtomicUsize::new);
        Stretch { addresses, next, live, touched, is_new }
    }

    /// Whether nobody had these addresses before.
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Bytes of pages that have to be there once `more` bytes are taken, and that nobody has taken. `None` where there is
    /// no room for so many.
    pub(crate) fn spare_after(&self, more: usize) -> Option<usize> {
        let next = self.next.load(Ordering::Relaxed).checked_add(more);
        let next = next.filter(|next| *next <= self.addresses.len)?;
        let live = self.live.load(Ordering::Relaxed).saturating_add(more);
        Some(self.addresses.made(next).saturating_sub(live))
    }

    /// Bytes of pages that are there for what was taken.
    pub(crate) fn made_bytes(&self) -> usize {
        self.addresses.made(self.next.load(Ordering::Relaxed))
    }

    /// Takes a block, of any content.
    pub(crate) fn take(&self, layout: Layout) -> Option<NonNull<[u8]>> {
        if layout.size() == 0 || layout.align() > HUGE_PAGE {
            return None;
        }
        let behind = |next: usize| {
            // The stretch is aligned to more than any layout here.
            let start = next.checked_next_multiple_of(layout.align())?;
            let end = start.checked_add(layout.size())?;
            (end <= self.addresses.len).then_some((start, end))
        };
        // Acquire: with the Release of `give_back`, so that what is written here comes after all that was done with
        // the same bytes before.
        let taken = self.next.fetch_update(Ordering::AcqRel, Ordering::Acquire, |next| {
            behind(next).map(|(_, end)| end)
        });
        let (start, end) = behind(taken.ok()?)?;
        self.touched.fetch_max(end, Ordering::Relaxed);
        self.live.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the mapping has `begin + len` bytes at least, as `begin` is at most the huge page that it has more,
        // and `start` is less than `len`.
        let first = unsafe { self.addresses.first().add(start) };
        Some(NonNull::slice_from_raw_parts(NonNull::new(first)?, layout.size()))
    }

    /// Where in the stretch it points, if it does.
    pub(crate) fn offset(&self, pointer: NonNull<u8>) -> Option<usize> {
        let offset = pointer.addr().get().checked_sub(self.addresses.first().addr());
        offset.filter(|offset| *offset < self.addresses.len)
    }

    /// The block that was taken there is nobody's any more.
    pub(crate) fn give_back(&self, start: usize, len: usize) {
        self.live.fetch_sub(len, Ordering::Relaxed);
        // Release: with the Acquire of `take`. It fails where more was taken behind it, whose place stays.
        let _ =
            self.next.compare_exchange(start + len, start, Ordering::Release, Ordering::Relaxed);
    }
}

/// The last block is gone.
impl Drop for Stretch {
    fn drop(&mut self) {
        let touched = *self.touched.get_mut();
        // Ordinary pages are made as quickly as they are found.
        if self.addresses.huge > 0 && touched > 0 && self.addresses.let_go(touched) {
            let dropped = lock(&FREED).keep(&self.addresses, touched);
            drop(dropped); // under no lock, as it takes the kernel a while
        }
    }
}

impl Addresses {
    fn new(len: usize, huge: usize) -> Option<Self> {
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
        Some(Addresses { mapping, begin, len, huge })
    }

    fn first(&self) -> *mut u8 {
        self.mapping.as_mut_ptr().wrapping_add(self.begin)
    }

    /// Bytes of pages that what lies before this place takes.
    fn made(&self, next: usize) -> usize {
        if next <= self.huge { next.next_multiple_of(HUGE_PAGE) } else { next }
    }

    /// Whether all pages are there of which so many bytes were taken.
    fn is_made(&self, touched: usize) -> bool {
        are_there(self.first(), self.made(touched))
    }

    /// Leaves the pages of so many bytes to the kernel, which takes them when it needs them; until then they stay as
    /// they are. Says whether it does so. Whoever calls it is the last that has used these bytes.
    fn let_go(&self, touched: usize) -> bool {
        // Whole huge pages: where it is told of a part, the kernel divides the page.
        let made = self.made(touched);
        // SAFETY: the bytes may be zero from here on, or what they were. No block is left that lies there: each has a clone of the
        // room that owns this stretch, and the stretch is being dropped.
        let said =
            unsafe { self.mapping.unchecked_advise_range(UncheckedAdvice::Free, self.begin, made) };
        said.is_ok()
    }
}

/// Freed stretches, the last one at the end, each with how many bytes at its beginning were taken some time.
#[derive(Debug)]
struct Freed(Vec<(Arc<Addresses>, usize)>);

impl Freed {
    /// The last one that has as many huge pages, and room enough.
    fn take(&mut self, len: usize, huge: usize) -> Option<(Arc<Addresses>, usize)> {
        let fits = |(freed, _): &(Arc<Addresses>, usize)| freed.huge == huge && freed.len >= len;
        let at = self.0.iter().rposition(fits)?;
        Some(self.0.remove(at))
    }

    /// Keeps one more, unless it is too large by itself. Gives those back, the oldest first, that are too many then.
    fn keep(&mut self, addresses: &Arc<Addresses>, touched: usize) -> Vec<(Arc<Addresses>, usize)> {
        if addresses.made(touched) > MOST_FREED {
            return Vec::new();
        }
        self.0.push((Arc::clone(addresses), touched));
        let mut bytes = 0;
        let fitting = self.0.iter().rev().take_while(|(freed, touched)| {
            bytes += freed.made(*touched);
            bytes <= MOST_FREED
        });
        let too_many = self.0.len() - fitting.count();
        self.0.drain(..too_many).collect()
    }
}

/// Lets go what the process keeps of freed stretches, and says whether there was any.
pub(crate) fn release_freed() -> bool {
    let freed = std::mem::take(&mut lock(&FREED).0);
    !freed.is_empty()
}

fn lock(freed: &Mutex<Freed>) -> std::sync::MutexGuard<'_, Freed> {
    freed.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number of huge pages that no other test of this process asks for.
    const HUGE: usize = 3 * HUGE_PAGE;

    /// Takes a block, and writes to all of it.
    fn written(stretch: &Stretch, len: usize) -> *mut u8 {
        let block = stretch.take(Layout::from_size_align(len, 64).unwrap()).unwrap();
        let first = block.cast::<u8>().as_ptr();
        // SAFETY: the block has as many bytes, and is this test's.
        unsafe { first.write_bytes(7, len) };
        first
    }

    #[test]
    fn the_next_owner_of_as_many_huge_pages_has_those_that_were_freed() {
        assert!(Stretch::freed(HUGE, HUGE).is_none());
        let first = Stretch::new(HUGE + HUGE_PAGE, HUGE).unwrap();
        assert!(first.is_new());
        let place = written(&first, 5 * HUGE_PAGE / 2);
        if !lies_on_huge_pages(place, HUGE) {
            // Of ordinary ones those are there that were written.
            written(&first, HUGE_PAGE / 2);
        }
        drop(first);
        assert!(Stretch::freed(HUGE + 5 * HUGE_PAGE, HUGE).is_none(), "it has fewer addresses");
        let again = Stretch::freed(HUGE, HUGE).unwrap();
        // All that was taken before is there again, and nothing is taken yet.
        assert_eq!((again.made_bytes(), again.spare_after(64)), (0, Some(HUGE_PAGE - 64)));
        assert_eq!(written(&again, 64), place);
        assert!(!again.is_new());
        assert!(Stretch::freed(HUGE, HUGE).is_none(), "one owner at a time");
    }

    #[test]
    fn ordinary_pages_are_not_kept_nor_addresses_at_which_nothing_was() {
        for (huge, len) in [(0, 4096), (4 * HUGE_PAGE, 0)] {
            let stretch = Stretch::new(4 * HUGE_PAGE, huge).unwrap();
            if len > 0 {
                written(&stretch, len);
            }
            drop(stretch);
            assert!(Stretch::freed(4 * HUGE_PAGE, huge).is_none());
        }
    }

    #[test]
    fn what_is_freed_is_the_kernels_to_take() {
        for is_taken in [false, true] {
            let stretch = Stretch::new(5 * HUGE_PAGE, 5 * HUGE_PAGE).unwrap();
            let place = written(&stretch, HUGE_PAGE + 5);
            let is_huge = lies_on_huge_pages(place, 2 * HUGE_PAGE);
            if !is_huge {
                written(&stretch, HUGE_PAGE - 64);
            }
            let addresses = Arc::clone(&stretch.addresses);
            assert_eq!(of_mapping(place.addr(), "LazyFree:"), 0);
            drop(stretch);
            let two = 2 * HUGE_PAGE as u64;
            let left = of_mapping(place.addr(), "LazyFree:");
            // Whole huge pages, undivided. Of ordinary ones the kernel passes over the last ones made, which it has not listed yet.
            let least = if is_huge { two } else { two - two / 16 };
            assert!((least..=two).contains(&left), "{left} bytes");
            if is_taken {
                let (begin, taken) = (addresses.begin + HUGE_PAGE, UncheckedAdvice::DontNeed);
                // SAFETY: no block lies there any more.
                unsafe { addresses.mapping.unchecked_advise_range(taken, begin, HUGE_PAGE) }
                    .unwrap();
            }
            let again = Stretch::freed(5 * HUGE_PAGE, 5 * HUGE_PAGE);
            assert_eq!(again.is_none(), is_taken, "who has none of them asks the kernel anew");
        }
    }

    /// Whether the kernel made huge pages of so many bytes in this mapping: it may have none free, or be told to make none.
    fn lies_on_huge_pages(place: *mut u8, bytes: usize) -> bool {
        of_mapping(place.addr(), "AnonHugePages:") >= bytes as u64
    }

    /// What the kernel says of the mapping in which this address lies, in bytes, by the name it has in `smaps`.
    fn of_mapping(address: usize, what: &str) -> u64 {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut is_in = false;
        for line in maps.lines() {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let range = range.and_then(|(begin, end)| {
                let number = |hex| usize::from_str_radix(hex, 16).ok();
                Some(number(begin)?..number(end)?)
            });
            match range {
                Some(range) => is_in = range.contains(&address),
                None if is_in && line.starts_with(what) => {
                    let kib = line.split_ascii_whitespace().nth(1).unwrap();
                    return kib.parse::<u64>().unwrap() << 10;
                }
                None => {}
            }
        }
        panic!("nothing is mapped there");
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let mut freed = Freed(Vec::new());
        let page = || Arc::new(Addresses::new(HUGE_PAGE, HUGE_PAGE).unwrap());
        let pages: Vec<_> = (0..MOST_FREED / HUGE_PAGE + 3).map(|_| page()).collect();
        let mut gone = Vec::new();
        for page in &pages {
            gone.extend(freed.keep(page, 5));
        }
        assert_eq!(gone.len(), 3);
        assert!(gone.iter().zip(&pages).all(|((gone, _), page)| Arc::ptr_eq(gone, page)));
        let (last, touched) = freed.take(HUGE_PAGE, HUGE_PAGE).unwrap();
        assert!(Arc::ptr_eq(&last, &pages[pages.len() - 1]) && touched == 5);
        let large = MOST_FREED + HUGE_PAGE;
        let large = Arc::new(Addresses::new(large, large).unwrap());
        assert!(freed.keep(&large, MOST_FREED + 1).is_empty());
        assert!(freed.take(large.len, large.huge).is_none(), "too large by itself");
        assert!(freed.take(HUGE_PAGE, HUGE_PAGE).is_some(), "the others stay");
    }
}

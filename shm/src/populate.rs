//! Pages of memory that is about to be written, made in one go.
//!
//! Memory that the allocator has just taken from the kernel has no pages yet. Each one is made when it is
//! first written, by an exception of its own, which takes longer than filling the page. Who is about to fill
//! all of it asks for many pages at once (`MADV_POPULATE_WRITE`), which halves the time.

#![allow(unsafe_code, reason = "advises the kernel about memory that the caller holds")]

use std::mem::MaybeUninit;

use bytemuck::Zeroable;
use rustix::mm::{Advice, madvise};
use rustix::param::page_size;

/// Pages that are asked about at a time.
const ASKED: usize = 256;

/// Has the kernel make the pages now that lie wholly within `room`, as far as they are not there. What stands there stays
/// as it is.
///
/// An allocator hands out mostly memory whose pages are there. The kernel takes longer to find nothing to be made of them than
/// to say that they are there, as it looks at its notes on each page, which lie in no cache.
///
/// Best effort: where the kernel does not know this (before 5.14), has no such memory or forbids the call,
/// pages are made when they are written, as ever.
pub fn populate<T>(room: &mut [T]) {
    let (page, bytes) = (page_size(), size_of_val(room));
    let begin = room.as_mut_ptr().cast::<u8>();
    let before = begin.align_offset(page);
    let whole = bytes.saturating_sub(before) / page * page;
    for at in (0..whole).step_by(ASKED * page) {
        let len = (whole - at).min(ASKED * page);
        // It stays within `room`: `before + whole` is at most `bytes`, as only what lies behind `before` is counted.
        let first = begin.wrapping_add(before + at);
        if !are_there(first, len) {
            // SAFETY: `len` bytes from `first` on lie within `room`, which the caller holds alone for this call. The
            // advice makes pages and changes no byte of them, nor what may be done with them.
            let _ = unsafe { madvise(first.cast(), len, Advice::LinuxPopulateWrite) };
        }
    }
}

/// Writes zeros to all of `room`, whose pages are [made](populate) first.
pub fn clear<T: Zeroable>(room: &mut [MaybeUninit<T>]) {
    populate(room);
    // SAFETY: it is the caller's for this call, and zeros are a value of its type.
    unsafe { room.as_mut_ptr().write_bytes(0, room.len()) };
}

/// Whether the pages of so many bytes from a page on are all there. Where the kernel does not say, they are not.
pub(crate) fn are_there(first: *mut u8, len: usize) -> bool {
    let page = page_size();
    (0..len.div_ceil(page)).step_by(ASKED).all(|at| {
        let pages = (len.div_ceil(page) - at).min(ASKED);
        let resident = &mut [0; ASKED][..pages];
        let first = first.wrapping_add(at * page).cast();
        // SAFETY: the kernel writes a byte for each of the pages, as many as `resident` has. Of the pages themselves it reads and
        // changes nothing; where none is mapped it says so.
        let said = unsafe { libc::mincore(first, pages * page, resident.as_mut_ptr()) };
        said == 0 && resident.iter().all(|there| there & 1 == 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of this process that are there.
    fn resident_pages() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(1).unwrap().parse().unwrap()
    }

    #[test]
    fn pages_are_there_before_they_are_written_and_keep_what_they_hold() {
        const LEN: usize = 64 << 20;
        let mut bytes: Vec<u8> = Vec::with_capacity(LEN);
        bytes.extend([1, 2, 3]);
        let before = resident_pages();
        populate(bytes.spare_capacity_mut());
        let made = resident_pages().saturating_sub(before);
        // Other tests of this process take and give back memory meanwhile, but not as much.
        let want = LEN / page_size();
        assert!(made > want / 2, "{made} pages of {want} were made");
        assert_eq!(bytes, [1, 2, 3]);
        bytes.resize(LEN, 7);
        assert_eq!(bytes[LEN - 1], 7);
    }

    #[test]
    fn pages_are_asked_about_by_their_whole_number() {
        let page = page_size();
        let mut bytes: Vec<u8> = Vec::with_capacity((3 * ASKED + 2) * page);
        let room = bytes.spare_capacity_mut();
        let before = room.as_ptr().align_offset(page);
        let room = &mut room[before..before + (3 * ASKED + 1) * page];
        // Some there and some not, in each part that is asked about by itself.
        for part in [1, ASKED, 2 * ASKED + 7] {
            room[part * page].write(7);
        }
        populate(room);
        let first = room.as_mut_ptr().cast::<u8>();
        for (at, pages) in [(0, ASKED), (ASKED, ASKED), (2 * ASKED, ASKED), (3 * ASKED, 1)] {
            assert!(are_there(first.wrapping_add(at * page), pages * page), "{at}");
        }
        // A place where nothing is mapped, as nothing ever is on the first page.
        assert!(!are_there(std::ptr::null_mut(), page));
        assert!(are_there(first, room.len()));
        let mut new: Vec<u8> = Vec::with_capacity(64 << 20);
        let first = new.as_mut_ptr().wrapping_add(new.as_ptr().align_offset(page));
        assert!(!are_there(first, (64 << 20) - page));
    }

    #[test]
    fn what_is_cleared_is_zero_and_nothing_beside_it() {
        let mut list = vec![MaybeUninit::new([7_u64; 8]); 3 * ASKED];
        clear(&mut list[1..2 * ASKED]);
        // SAFETY: all of it was made with values, and cleared to values.
        let values: Vec<[u64; 8]> =
            list.iter().map(|value| unsafe { value.assume_init() }).collect();
        assert_eq!(values[0], [7; 8]);
        assert!(values[1..2 * ASKED].iter().all(|value| *value == [0; 8]));
        assert!(values[2 * ASKED..].iter().all(|value| *value == [7; 8]));
    }

    #[test]
    fn room_without_a_whole_page_is_left_alone() {
        populate::<u8>(&mut []);
        populate(&mut [MaybeUninit::<u64>::uninit(); 3]);
        let mut two_pages = vec![MaybeUninit::<u8>::uninit(); 2 * page_size()];
        populate(&mut two_pages[1..page_size()]);
    }
}

//! Pages of memory that is about to be written, made in one go.
//!
//! Memory that the allocator has just taken from the kernel has no pages yet. Each one is made when it is
//! first written, by an exception of its own, which takes longer than filling the page. Who is about to fill
//! all of it asks for many pages at once (`MADV_POPULATE_WRITE`), which halves the time.

#![allow(unsafe_code, reason = "advises the kernel about memory that the caller holds")]

use rustix::mm::{Advice, madvise};
use rustix::param::page_size;

/// Has the kernel make the pages now that lie wholly within `room`. What stands there stays as it is.
///
/// Best effort: where the kernel does not know this (before 5.14), has no such memory or forbids the call,
/// pages are made when they are written, as ever.
pub fn populate<T>(room: &mut [T]) {
    let (page, bytes) = (page_size(), size_of_val(room));
    let begin = room.as_mut_ptr().cast::<u8>();
    let before = begin.align_offset(page);
    let whole = bytes.saturating_sub(before) / page * page;
    if whole == 0 {
        return;
    }
    // SAFETY: `before` is less than `bytes`, as whole pages follow it, so the pointer stays within `room`.
    let first = unsafe { begin.add(before) };
    // SAFETY: `first..first + whole` lies within `room`, which the caller holds alone for this call. The
    // advice makes pages and changes no byte of them, nor what may be done with them.
    let _ = unsafe { madvise(first.cast(), whole, Advice::LinuxPopulateWrite) };
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

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
    fn room_without_a_whole_page_is_left_alone() {
        populate::<u8>(&mut []);
        populate(&mut [MaybeUninit::<u64>::uninit(); 3]);
        let mut two_pages = vec![MaybeUninit::<u8>::uninit(); 2 * page_size()];
        populate(&mut two_pages[1..page_size()]);
    }
}

//! A window onto memory that another process can write at any instant.
//!
//! Rules of this module:
//! 1. Payload bytes leave only as copies; no `&[u8]` into a shared mapping is ever made.
//! 2. A `&T` leaves only when `T: PeerWritable`, that is, atomics all the way down.
//! 3. Every pointer that is read or written through is made by [`Region::check`], the only place
//!    that adds an offset. ([`Region::prefetch`] rounds one down to a cache line; it is a hint to
//!    the processor and never read through.)
//!
//! # Why the copies are sound although the peer may write while they run
//!
//! Rust's data-race rule speaks about threads of one program. The other process is not part of
//! this program: to the compiler its stores are like those of a device. What must not happen is
//! that the compiler reads a byte twice and believes that it saw one value. So a copy is one call
//! of `copy_nonoverlapping` between raw pointers, or a row of atomic stores, and one side of it is
//! private memory that no other process can reach: there is no reference to the shared side whose
//! stability the compiler could assume, and everything that is decided about the bytes is decided
//! on the private copy. A copy made while the peer writes holds arbitrary bytes, which is harmless
//! for `u8`, and no more than a hostile peer could have sent anyway.
//!
//! *Threads of this process* must not copy in and out of overlapping bytes at one time. The users
//! of a region see to it: a queue hands a byte to exactly one end at a time (its counters, with
//! Release and Acquire, are the hand-over), a pool belongs to one execution at a time. Where a
//! client lies about that, both copies still only move bytes between the mapping and private
//! memory, by the same single machine-level copy: values, never control flow or bounds, suffer.

#![allow(unsafe_code, reason = "the one module that dereferences a shared mapping")]

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::error::ShmError;
use crate::mapping::Mapping;

/// Types that may be borrowed from memory which another process writes.
///
/// # Safety
/// All of `Self` is reached only through atomic operations, so that a write by another process at
/// any instant is not a data race; every bit pattern is a value (`FromBytes`).
pub unsafe trait PeerWritable: zerocopy::FromBytes + Sync {}
// SAFETY: `&AtomicU64` offers nothing but atomic access.
unsafe impl PeerWritable for AtomicU64 {}
// SAFETY: `&AtomicU32` offers nothing but atomic access.
unsafe impl PeerWritable for AtomicU32 {}

/// A bounds-checked window onto a [`Mapping`], borrowed from it.
#[derive(Debug, Clone, Copy)]
pub struct Region<'m> {
    base: *mut u8,
    len: usize,
    writable: bool,
    mapping: PhantomData<&'m Mapping>,
}

// SAFETY: a region is a pointer into a mapping that outlives it (`'m`) and can be used from any
// thread: it offers copies and atomics only.
unsafe impl Send for Region<'_> {}
// SAFETY: as above.
unsafe impl Sync for Region<'_> {}

impl Mapping {
    /// A window of `len` bytes at `offset`.
    ///
    /// # Errors
    /// [`ShmError::OutOfBounds`].
    pub fn region(&self, offset: usize, len: usize) -> Result<Region<'_>, ShmError> {
        Region::whole(self).subregion(offset, len)
    }
}

impl<'m> Region<'m> {
    fn whole(mapping: &'m Mapping) -> Region<'m> {
        let (base, len, writable) = (mapping.base(), mapping.len(), mapping.is_writable());
        Region { base, len, writable, mapping: PhantomData }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the window has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether bytes can be copied in.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// A smaller window.
    ///
    /// # Errors
    /// [`ShmError::OutOfBounds`].
    pub fn subregion(&self, offset: usize, len: usize) -> Result<Region<'m>, ShmError> {
        let base = self.check(offset, len)?;
        Ok(Region { base, len, writable: self.writable, mapping: PhantomData })
    }

    /// Borrows the atomic at `offset` bytes from the start of the region.
    ///
    /// In a read-only mapping only loads may be used: a store there ends the process.
    ///
    /// # Errors
    /// [`ShmError::OutOfBounds`], [`ShmError::Misaligned`].
    pub fn atomic<T: PeerWritable>(&self, offset: usize) -> Result<&'m T, ShmError> {
        let at = self.check(offset, size_of::<T>())?.cast::<T>();
        if !at.is_aligned() {
            let (offset, align) = (offset as u64, align_of::<T>() as u64);
            return Err(ShmError::Misaligned { offset, align });
        }
        // SAFETY: `check` put `at..at + size_of::<T>()` inside the mapping, which lives for `'m`
        // and is readable; alignment checked above; every bit pattern is a `T` (`FromBytes`);
        // concurrent writes are atomic (`PeerWritable`).
        Ok(unsafe { &*at })
    }

    /// Copies `bytes` into the region.
    ///
    /// # Errors
    /// [`ShmError::OutOfBounds`], [`ShmError::ReadOnly`]; nothing is written then.
    #[inline(always)]
    pub fn copy_in(&self, offset: usize, bytes: &[u8]) -> Result<(), ShmError> {
        if !self.writable {
            return Err(ShmError::ReadOnly);
        }
        let to = self.check(offset, bytes.len())?;
        if let (words, []) = bytes.as_chunks::<WORD>()
            && bytes.len() <= BY_WORDS_MAX
            && to.cast::<AtomicU64>().is_aligned()
        {
            // SAFETY: `check` put the target inside the mapping, which lives for `'m`; `words` are
            // all of it, and it is aligned for them, as was just seen. Every bit pattern is an
            // atomic, and writes by the peer are atomic to us (`PeerWritable`).
            let targets = unsafe { slice::from_raw_parts(to.cast::<AtomicU64>(), words.len()) };
            store_words(targets, words);
            return Ok(());
        }
        // SAFETY: `check` put the target inside the mapping, which lives for `'m` and is writable;
        // `bytes` is a live slice of the same length. They do not overlap: no `&[u8]` points into
        // a mapping that a `Region` can be made of, except the borrows of `SoleWriter` and
        // `SealedBytes`, whose mappings are private to those types. The peer: see the module.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    /// Copies bytes out of the region. What was copied stays what it is; what is in the region may
    /// be something else an instant later.
    ///
    /// # Errors
    /// [`ShmError::OutOfBounds`]; nothing is read then.
    #[inline]
    pub fn copy_out(&self, offset: usize, bytes: &mut [u8]) -> Result<(), ShmError> {
        let from = self.check(offset, bytes.len())?;
        // SAFETY: `check` put the source inside the mapping, which lives for `'m` and is readable;
        // `bytes` is ours alone (`&mut`), of the same length, and cannot point into the mapping as
        // no `&mut [u8]` to it exists. The peer: see the module.
        unsafe { ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    /// Prefetches these bytes into the processor's caches, on processors where this crate knows how.
    /// Changes nothing and waits for nothing; bytes outside the region are left alone.
    #[inline]
    pub fn prefetch(&self, offset: usize, len: usize) {
        let Ok(from) = self.check(offset, len) else { return };
        // From the beginning of the first line, or the last one would be left out at times.
        let before = from.addr() % CACHE_LINE;
        let first = from.wrapping_sub(before);
        for line in (0..before + len).step_by(CACHE_LINE) {
            prefetch_line(first.wrapping_add(line));
        }
    }

    /// The one place that adds an offset: `offset..offset + len` lies inside the region.
    #[inline(always)]
    fn check(&self, offset: usize, len: usize) -> Result<*mut u8, ShmError> {
        // Two comparisons and no addition: nothing can overflow.
        if offset > self.len || len > self.len - offset {
            return Err(self.out_of_bounds(offset, len));
        }
        // SAFETY: `offset <= self.len`, and `base..base + self.len` lies inside one live mapping,
        // so the sum stays inside it or one past its end.
        Ok(unsafe { self.base.add(offset) })
    }

    #[cold]
    fn out_of_bounds(&self, offset: usize, len: usize) -> ShmError {
        let (offset, len, size) = (offset as u64, len as u64, self.len as u64);
        ShmError::OutOfBounds { offset, len, size }
    }
}

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// Longest message that is copied in word by word; above it the many small stores cost more than
/// they save (1 KiB: a quarter more than `memcpy` takes).
const BY_WORDS_MAX: usize = 128;

/// Stores each word in the target of the same index.
///
/// A message has mostly been put together an instant ago, number by number. A copy in wide pieces, as
/// `memcpy` makes it, loads several of these numbers at once, which no processor can serve from
/// stores that are still on their way to the cache: it waits for them. Words do not wait.
#[inline(always)]
fn store_words(targets: &[AtomicU64], words: &[[u8; WORD]]) {
    for (target, word) in targets.iter().zip(words) {
        // Relaxed: a counter that is stored with Release hands the message over.
        target.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
    }
}

/// Bytes that the processor moves between cores at once.
const CACHE_LINE: usize = 64;

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn prefetch_line(at: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a hint; it accesses no memory in the sense of the language and faults on no address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn prefetch_line(_: *const u8) {}

/// A window that keeps its mapping alive itself, for structures that live long.
#[derive(Debug, Clone)]
pub struct SharedRegion {
    // Holds a pointer into `mapping`; the field order does not matter as `Region` has no drop.
    region: Region<'static>,
    mapping: Arc<Mapping>,
}

impl SharedRegion {
    /// `len` bytes at `offset` of `mapping`.
    ///
    /// # Errors
    /// [`ShmError::OutOfBounds`].
    pub fn new(mapping: Arc<Mapping>, offset: usize, len: usize) -> Result<Self, ShmError> {
        let region = mapping.region(offset, len)?;
        let (base, len, writable) = (region.base, region.len, region.writable);
        // `'static` never leaves this type: `region()` shortens it to the borrow of `self`, which
        // holds the mapping.
        let region = Region { base, len, writable, mapping: PhantomData };
        Ok(SharedRegion { region, mapping })
    }

    /// The window, for as long as `self` is borrowed.
    #[inline]
    pub fn region(&self) -> Region<'_> {
        self.region
    }

    /// The mapping it lies in.
    pub fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }
}

/// An atomic in shared memory that keeps its mapping alive itself.
pub struct Shared<T: PeerWritable> {
    at: *const T,
    mapping: Arc<Mapping>,
}

// SAFETY: it is a `&T` (`T: Sync`) plus the `Arc` that keeps it valid.
unsafe impl<T: PeerWritable> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: PeerWritable> Sync for Shared<T> {}

impl<T: PeerWritable> Shared<T> {
    /// The atomic at `offset` of `mapping`.
    ///
    /// # Errors
    /// [`ShmError::OutOfBounds`], [`ShmError::Misaligned`].
    pub fn new(mapping: Arc<Mapping>, offset: usize) -> Result<Self, ShmError> {
        let at: *const T = Region::whole(&mapping).atomic(offset)?;
        Ok(Shared { at, mapping })
    }

    /// Whether stores are allowed; in a read-only mapping a store ends the process.
    pub fn is_writable(&self) -> bool {
        self.mapping.is_writable()
    }
}

impl<T: PeerWritable> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared { at: self.at, mapping: Arc::clone(&self.mapping) }
    }
}

impl<T: PeerWritable> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `at` came from `Region::atomic`, which checked bounds and alignment; the mapping
        // is alive because `self` holds it.
        unsafe { &*self.at }
    }
}

impl<T: PeerWritable> std::fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("at", &self.at).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_object::Memory;
    use std::sync::atomic::Ordering;

    fn mapping(len: usize) -> Arc<Mapping> {
        Arc::new(Mapping::map(&Memory::create("region", len).unwrap()).unwrap())
    }

    #[test]
    fn copies_move_bytes_both_ways_through_two_mappings() {
        let memory = Memory::create("two", 100).unwrap();
        let (one, two) = (Mapping::map(&memory).unwrap(), Mapping::map(&memory).unwrap());
        one.region(10, 20).unwrap().copy_in(5, b"hello").unwrap();
        let mut out = [0; 5];
        two.region(15, 5).unwrap().copy_out(0, &mut out).unwrap();
        assert_eq!(&out, b"hello");
    }

    /// Whole words at an aligned offset take a path of their own.
    #[test]
    fn every_length_arrives_at_every_offset_and_nothing_beside_it() {
        let mapping = mapping(512);
        let region = mapping.region(0, 512).unwrap();
        let bytes: Vec<u8> = (1..=255).cycle().take(BY_WORDS_MAX + 40).collect();
        for offset in 100..117 {
            for len in 0..=bytes.len() {
                region.copy_in(0, &[0; 512]).unwrap();
                region.copy_in(offset, &bytes[..len]).unwrap();
                let mut expected = [0; 512];
                expected[offset..offset + len].copy_from_slice(&bytes[..len]);
                let mut out = [0; 512];
                region.copy_out(0, &mut out).unwrap();
                assert_eq!(out, expected, "{len} bytes at {offset}");
            }
        }
    }

    #[test]
    fn every_range_outside_is_refused() {
        let mapping = mapping(100);
        let region = mapping.region(20, 60).unwrap();
        let mut out = [0; 8];
        for (offset, len) in [(0, 61), (60, 1), (61, 0), (usize::MAX, 1), (1, usize::MAX)] {
            let expected =
                ShmError::OutOfBounds { offset: offset as u64, len: len as u64, size: 60 };
            assert_eq!(region.subregion(offset, len).unwrap_err(), expected);
        }
        assert!(region.copy_in(53, &[0; 8]).is_err());
        assert!(region.copy_out(usize::MAX, &mut out).is_err());
        assert!(region.atomic::<AtomicU64>(56).is_err());
        assert!(region.copy_out(60, &mut []).is_ok(), "nothing, at the end, is inside");
    }

    #[test]
    fn a_misaligned_atomic_is_refused() {
        let mapping = mapping(64);
        let region = mapping.region(0, 64).unwrap();
        for offset in [1, 2, 4, 7, 12] {
            let error = region.atomic::<AtomicU64>(offset).unwrap_err();
            assert_eq!(error, ShmError::Misaligned { offset: offset as u64, align: 8 });
        }
        assert!(region.atomic::<AtomicU32>(4).is_ok());
    }

    #[test]
    fn shared_parts_outlive_the_arc_they_came_from() {
        let mapping = mapping(64);
        let counter: Shared<AtomicU64> = Shared::new(Arc::clone(&mapping), 8).unwrap();
        let bytes = SharedRegion::new(mapping, 8, 8).unwrap();
        counter.store(0x0102_0304_0506_0708, Ordering::Relaxed);
        let mut out = [0; 8];
        bytes.region().copy_out(0, &mut out).unwrap();
        assert_eq!(u64::from_ne_bytes(out), 0x0102_0304_0506_0708);
    }

    #[test]
    fn a_read_only_mapping_takes_no_bytes() {
        let memory = Memory::create("ro", 64).unwrap();
        let mapping = Mapping::map_read_only(&memory).unwrap();
        let region = mapping.region(0, 64).unwrap();
        for bytes in [&b"x"[..], &[0; WORD]] {
            assert_eq!(region.copy_in(0, bytes), Err(ShmError::ReadOnly));
        }
    }
}

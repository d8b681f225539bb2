//! A window onto memory that another process can write at any instant.
//!
//! Rules of this module:
//! 1. Payload bytes leave only as copies; no `&[u8]` into a shared mapping is ever made.
//! 2. A `&T` leaves only when `T: PeerWritable`, that is, atomics all the way down.
//! 3. Every pointer that is read or written through is made by [`Region::check`], the only place
//!    that adds an offset. (What prefetches rounds one down to a cache line; it is a hint to
//!    the processor and never read through.)
//!
//! # Why the copies are sound although others may write while they run
//!
//! To the compiler a copy is a row of relaxed atomic loads or stores of bytes ([`copy`](crate::copy)):
//! it can neither read a byte twice and believe that it saw one value, nor call it a race when another
//! process, or a thread of this one, writes meanwhile. One side of a copy is private memory; everything
//! that is decided about the bytes is decided there. A copy made while another end writes holds
//! a mixture of old and new bytes, no more than a hostile peer could have sent anyway. So a
//! [`Region`] may be copied and sent to threads freely: who hands a byte over to whom, in order, is
//! said by atomics beside it (a queue's counters, with Release and Acquire).

#![allow(unsafe_code, reason = "the one module that dereferences a shared mapping")]

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::copy;
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
    /// In a mapping made for reading a store would end the process, and the language promises no more
    /// than relaxed loads there: of such a mapping see [`ReadOnlyWord`].
    ///
    /// # Errors
    /// [`ShmError::OutOfBounds`], [`ShmError::Misaligned`], [`ShmError::ReadOnly`].
    pub fn atomic<T: PeerWritable>(&self, offset: usize) -> Result<&'m T, ShmError> {
        let at = self.aligned::<T>(offset)?;
        if !self.writable {
            return Err(ShmError::ReadOnly);
        }
        // SAFETY: `aligned` put `at..at + size_of::<T>()` inside the mapping, which lives for `'m`
        // and is readable and writable, and looked at the alignment; every bit pattern is a `T`
        // (`FromBytes`); concurrent writes are atomic (`PeerWritable`).
        Ok(unsafe { &*at })
    }

    /// Where a `T` lies at `offset`.
    fn aligned<T>(&self, offset: usize) -> Result<*const T, ShmError> {
        let at = self.check(offset, size_of::<T>())?.cast::<T>();
        if !at.is_aligned() {
            let (offset, align) = (offset as u64, align_of::<T>() as u64);
            return Err(ShmError::Misaligned { offset, align });
        }
        Ok(at)
    }

    /// Copies `bytes` into the region.
    ///
    /// # Errors
    /// [`ShmError::OutOfBounds`], [`ShmError::ReadOnly`]; nothing is written then.
    #[inline(always)]
    pub fn copy_in(&self, offset: usize, bytes: &[u8]) -> Result<(), ShmError> {
        let to = self.check_to_write(offset, bytes.len())?;
        // SAFETY: `check_to_write` put the target inside the mapping, which lives for `'m` and is writable. No
        // reference to these bytes exists but to atomics: the mappings of `SoleWriter` and
        // `SealedBytes`, which are borrowed from, are private to those types.
        unsafe { copy::store(to, bytes) };
        Ok(())
    }

    /// As [`copy_in`](Region::copy_in), in few and wide stores from a shorter length on: for who knows that stores are what takes long.
    ///
    /// # Errors
    /// As [`copy_in`](Region::copy_in).
    #[inline(always)]
    pub fn copy_in_wide(&self, offset: usize, bytes: &[u8]) -> Result<(), ShmError> {
        let to = self.check_to_write(offset, bytes.len())?;
        // SAFETY: as in `copy_in`.
        unsafe { copy::store_wide(to, bytes) };
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
        // of references to it see `copy_in`.
        unsafe { copy::load(from, bytes) };
        Ok(())
    }

    /// Prefetches these bytes into the processor's caches, on processors where this crate knows how.
    /// Changes nothing and waits for nothing; bytes outside the region are left alone.
    #[inline]
    pub fn prefetch(&self, offset: usize, len: usize) {
        self.each_line(offset, len, prefetch_line);
    }

    /// As [`prefetch`](Region::prefetch), and takes the lines from all other caches: for who is about to write there.
    #[inline]
    pub fn prefetch_to_write(&self, offset: usize, len: usize) {
        self.each_line(offset, len, prefetch_line_to_write);
    }

    /// Asks this CPU to hand these lines to the cache that all CPUs share: for who has written them and knows that another CPU is
    /// about to read them. A hint, as prefetching is; a CPU that has none does nothing.
    #[inline]
    pub fn give_away(&self, offset: usize, len: usize) {
        self.each_line(offset, len, give_line_away);
    }

    #[inline(always)]
    fn each_line(&self, offset: usize, len: usize, fetch: impl Fn(*const u8)) {
        let Ok(from) = self.check(offset, len) else { return };
        // From the beginning of the first line, or the last one would be left out at times.
        let before = from.addr() % CACHE_LINE;
        let first = from.wrapping_sub(before);
        for line in (0..before + len).step_by(CACHE_LINE) {
            fetch(first.wrapping_add(line));
        }
    }

    /// As [`check`](Region::check), for who writes there.
    #[inline(always)]
    fn check_to_write(&self, offset: usize, len: usize) -> Result<*mut u8, ShmError> {
        if self.writable { self.check(offset, len) } else { Err(ShmError::ReadOnly) }
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

/// Written out, as the compiler makes a fetch for reading of it where it does not know the processor to have one for
/// writing; those that have none do nothing here.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn prefetch_line_to_write(at: *const u8) {
    // SAFETY: a hint; it changes no memory and no register, and faults on no address.
    unsafe {
        std::arch::asm!("prefetchw [{at}]", at = in(reg) at, options(nostack, preserves_flags));
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
fn prefetch_line_to_write(_: *const u8) {}

/// Written out, as the compiler has no name for it. Processors that have no such hint take it for an instruction that does nothing.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn give_line_away(at: *const u8) {
    // SAFETY: a hint (`cldemote`); it changes no memory and no register, and faults on no address.
    unsafe {
        std::arch::asm!("cldemote [{at}]", at = in(reg) at, options(nostack, preserves_flags));
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
fn give_line_away(_: *const u8) {}

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
    /// [`ShmError::OutOfBounds`], [`ShmError::Misaligned`]; [`ShmError::ReadOnly`] where the mapping was
    /// made for reading.
    pub fn new(mapping: Arc<Mapping>, offset: usize) -> Result<Self, ShmError> {
        let at: *const T = Region::whole(&mapping).atomic(offset)?;
        Ok(Shared { at, mapping })
    }

    /// As [`Region::give_away`], for the line that the atomic lies in.
    #[inline]
    pub fn give_away(&self) {
        give_line_away(self.at.cast());
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

/// A word that another process changes and this end only loads. It may lie in a mapping made for
/// reading.
///
/// There the language promises nothing of any access but a relaxed load of at most a machine word
/// (stronger ones may be instructions that write). So that is all there is; behind it stands a
/// [`fence`](std::sync::atomic::fence) where the caller needs Acquire.
#[derive(Debug, Clone)]
pub struct ReadOnlyWord {
    at: *const AtomicU64,
    // Keeps `at` valid.
    _mapping: Arc<Mapping>,
}

// SAFETY: it is a `&AtomicU64` plus the `Arc` that keeps it valid.
unsafe impl Send for ReadOnlyWord {}
// SAFETY: as above.
unsafe impl Sync for ReadOnlyWord {}

impl ReadOnlyWord {
    /// The word at `offset` of `mapping`.
    ///
    /// # Errors
    /// [`ShmError::OutOfBounds`], [`ShmError::Misaligned`].
    pub fn new(mapping: Arc<Mapping>, offset: usize) -> Result<Self, ShmError> {
        let at = Region::whole(&mapping).aligned(offset)?;
        Ok(ReadOnlyWord { at, _mapping: mapping })
    }

    /// Its value, by one relaxed load.
    #[inline]
    pub fn load_relaxed(&self) -> u64 {
        // SAFETY: `at` came from `Region::aligned`, which checked bounds and alignment; the mapping
        // is alive because `self` holds it. A relaxed load is all that is done with the reference.
        let word = unsafe { &*self.at };
        word.load(Ordering::Relaxed)
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
    fn fetching_lines_and_giving_them_away_changes_no_byte_and_minds_no_range_outside() {
        let mapping = mapping(300);
        let region = mapping.region(30, 200).unwrap();
        let bytes: Vec<u8> = (0..200).collect();
        region.copy_in(0, &bytes).unwrap();
        let counter: Shared<AtomicU64> = Shared::new(Arc::clone(&mapping), 256).unwrap();
        counter.store(7, Ordering::Relaxed);
        for (offset, len) in [(0, 200), (1, 64), (199, 1), (200, 0), (199, 2), (usize::MAX, 9)] {
            region.prefetch(offset, len);
            region.prefetch_to_write(offset, len);
            region.give_away(offset, len);
        }
        counter.give_away();
        let mut out = [0; 200];
        region.copy_out(0, &mut out).unwrap();
        assert_eq!((&out[..], counter.load(Ordering::Relaxed)), (&bytes[..], 7));
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
        for bytes in [&b"x"[..], &[0; 8]] {
            assert_eq!(region.copy_in(0, bytes), Err(ShmError::ReadOnly));
        }
    }

    /// A reference to an atomic would let safe code store, which is a fault there.
    #[test]
    fn words_of_a_read_only_mapping_are_loaded_and_no_more() {
        let memory = Memory::create("ro", 64).unwrap();
        let writable = Arc::new(Mapping::map(&memory).unwrap());
        let read_only = Arc::new(Mapping::map_read_only(&memory).unwrap());
        let refused = read_only.region(0, 64).unwrap().atomic::<AtomicU64>(8).map(drop);
        assert_eq!(refused, Err(ShmError::ReadOnly));
        let refused = Shared::<AtomicU32>::new(Arc::clone(&read_only), 8).map(drop);
        assert_eq!(refused, Err(ShmError::ReadOnly));
        let word: Shared<AtomicU64> = Shared::new(writable, 8).unwrap();
        let seen = ReadOnlyWord::new(Arc::clone(&read_only), 8).unwrap();
        word.store(7, Ordering::Relaxed);
        assert_eq!(seen.load_relaxed(), 7);
        assert!(ReadOnlyWord::new(Arc::clone(&read_only), 57).is_err());
        let misaligned = ReadOnlyWord::new(read_only, 4).map(drop);
        assert_eq!(misaligned, Err(ShmError::Misaligned { offset: 4, align: 8 }));
    }
}

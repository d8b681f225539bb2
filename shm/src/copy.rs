//! Copies between private memory and memory that anybody may read and write meanwhile: another
//! process, another thread of this one through another mapping or through the same.
//!
//! An ordinary copy there would be a data race, which the language does not define. These are not:
//! to the compiler each one is a number of relaxed atomic loads, or stores, of single bytes, in no
//! particular order. Bytes copied while another end writes them are any mixture of old and new ones,
//! and nothing else happens; what hands bytes over in order is an atomic with Acquire and Release
//! beside them.
//!
//! * On x86-64 the instructions are written out (`asm!`), so that the compiler knows nothing of them
//!   but what is said here. No instruction of that processor tears a byte or invents one. Long
//!   copies call `memcpy` from there: its code is machine code like ours, and as quick as it ever was.
//! * Elsewhere, and under Miri, they are loops over atomics of the language, by words where the shared
//!   side is aligned. That is slower for long copies (measured on x86-64: two to five times above
//!   half a kibibyte).
//!
//! The argument and the figures: `docs/decisions/0013-copies-that-may-race.md`.

#![allow(unsafe_code, reason = "reads and writes memory that others write too")]

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(crate) use atomics::{load, store, store as store_wide};
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) use instructions::{load, store, store_wide};

/// Longest message that is stored word by word; above it the many small stores cost more than
/// they save.
///
/// A message has mostly been put together an instant ago, number by number. A copy in wide pieces, as
/// `memcpy` makes it, loads several of these numbers at once, which no processor can serve from
/// stores that are still on their way to the cache: it waits for them. Words do not wait.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const BY_WORDS_MAX: usize = 512;

/// The same where fewer and wider stores were measured to be quicker from there on: on AMD's fourth generation and its fifth
/// (`docs/decisions/0055-fewer-instructions-between-two-messages.md`, `0059-the-fifth-generation-looks-ahead.md`), and for a reader on the other half of the writer's core
/// (`0058-looks-at-far-lines-in-place.md`).
#[cfg(all(target_arch = "x86_64", not(miri)))]
const BY_WORDS_MAX_WHERE_WIDE: usize = 128;

/// Longest message that is stored in wide pieces from its beginning to its end. `memcpy` stores its last piece
/// before the first: stores reach the cache in their order, so those to a line that is still on its way
/// from the other end hold up all behind them (`docs/decisions/0038-looking-less-often.md`).
#[cfg(all(target_arch = "x86_64", not(miri)))]
const IN_ORDER_MAX: usize = 4096;

/// Longest copy out that is not worth a call of `memcpy`.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LOADED_HERE_MAX: usize = 64;

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod instructions {
    use std::arch::asm;
    use std::arch::x86_64::{__m128i, _mm_storeu_si128};

    use super::{BY_WORDS_MAX, BY_WORDS_MAX_WHERE_WIDE, IN_ORDER_MAX, LOADED_HERE_MAX};
    use crate::cpu::is_zen4_or_zen5;

    /// Stores `bytes` at `to`.
    ///
    /// # Safety
    /// `to..to + bytes.len()` is mapped for writing and overlaps no memory that the compiler knows
    /// to be anybody's own: nothing but these copies and atomics touches it.
    #[inline(always)]
    pub(crate) unsafe fn store(to: *mut u8, bytes: &[u8]) {
        if bytes.len() <= BY_WORDS_MAX && !is_zen4_or_zen5() {
            // SAFETY: our own contract.
            unsafe { store_words(to, bytes) };
        } else {
            // SAFETY: our own contract.
            unsafe { store_wide(to, bytes) };
        }
    }

    /// As [`store`], where wide stores are quicker from a shorter message on.
    ///
    /// # Safety
    /// As [`store`].
    #[inline(always)]
    pub(crate) unsafe fn store_wide(to: *mut u8, bytes: &[u8]) {
        let len = bytes.len();
        if len <= BY_WORDS_MAX_WHERE_WIDE {
            // SAFETY: our own contract.
            unsafe { store_words(to, bytes) };
        } else if len <= IN_ORDER_MAX && is_x86_feature_detected!("avx") {
            let (pairs, rest) = bytes.as_chunks::<PAIR>();
            // SAFETY: as many bytes as the first half of `bytes` has, at the target's beginning; the processor
            // has these instructions.
            unsafe { store_pairs(to, pairs) };
            let behind = to.wrapping_add(len - rest.len());
            // SAFETY: the target's last bytes, as many as there are left.
            unsafe { store_words(behind, rest) };
        } else {
            // SAFETY: the target by our own contract; the source is a live slice of this length.
            unsafe { memcpy(to, bytes.as_ptr(), len) };
        }
    }

    /// Bytes of two wide pieces.
    const PAIR: usize = 64;

    /// Stores `pairs` at `to`, from the first to the last, 32 bytes at a time.
    ///
    /// # Safety
    /// As [`store`]; the processor has AVX.
    #[inline(always)]
    unsafe fn store_pairs(to: *mut u8, pairs: &[[u8; PAIR]]) {
        if pairs.is_empty() {
            return;
        }
        // SAFETY: loads what `pairs` holds, stores as much at `to`, by our own contract; one turn for each of
        // them, and there is one. What it changes is named (`clobber_abi` names all vector registers, the upper
        // halves too, which `vzeroupper` clears).
        unsafe {
            asm!(
                "2:",
                "vmovups ymm0, [rsi]",
                "vmovups ymm1, [rsi + 32]",
                "vmovups [rdi], ymm0",
                "vmovups [rdi + 32], ymm1",
                "add rsi, 64",
                "add rdi, 64",
                "dec rcx",
                "jnz 2b",
                "vzeroupper",
                inout("rsi") pairs.as_ptr() => _,
                inout("rdi") to => _,
                inout("rcx") pairs.len() => _,
                clobber_abi("C"),
                options(nostack),
            );
        }
    }

    /// Stores `bytes` at `to`, word by word.
    ///
    /// # Safety
    /// As [`store`].
    #[inline(always)]
    unsafe fn store_words(to: *mut u8, bytes: &[u8]) {
        let (words, mut rest) = bytes.as_chunks::<8>();
        let (fours, words) = words.as_chunks::<4>();
        let mut at = to;
        for four in fours {
            // SAFETY: here and below, `at` has gone as far into the target as `bytes` are used up, so
            // as many bytes as are stored lie inside it.
            unsafe { store_4_words(at, four) };
            at = at.wrapping_add(32);
        }
        for word in words {
            // SAFETY: as above.
            unsafe { store_u64(at, u64::from_ne_bytes(*word)) };
            at = at.wrapping_add(8);
        }
        if let Some((four, less)) = rest.split_first_chunk() {
            // SAFETY: as above.
            unsafe { store_u32(at, u32::from_ne_bytes(*four)) };
            (at, rest) = (at.wrapping_add(4), less);
        }
        if let Some((two, less)) = rest.split_first_chunk() {
            // SAFETY: as above.
            unsafe { store_u16(at, u16::from_ne_bytes(*two)) };
            (at, rest) = (at.wrapping_add(2), less);
        }
        if let [one] = rest {
            // SAFETY: as above.
            unsafe { store_u8(at, *one) };
        }
    }

    /// Fills `bytes` with what is at `from`.
    ///
    /// Short ones are loaded from both ends at once, so that the pieces overlap in the middle: no loop,
    /// and a byte that is loaded twice is as good from either load.
    ///
    /// # Safety
    /// `from..from + bytes.len()` is mapped for reading; nothing but these copies and atomics
    /// writes it on our side.
    #[inline(always)]
    pub(crate) unsafe fn load(from: *const u8, bytes: &mut [u8]) {
        let len = bytes.len();
        if len > LOADED_HERE_MAX {
            // SAFETY: the source by our own contract; the target is ours alone, of this length.
            unsafe { memcpy(bytes.as_mut_ptr(), from, len) };
        } else if let [Some(low), Some(high)] = halves::<32>(bytes, from) {
            // SAFETY: `halves` gave places that are followed by 32 bytes of the source.
            unsafe { load_16_twice(low, bytes, 0) };
            // SAFETY: as above.
            unsafe { load_16_twice(high, bytes, len - 32) };
        } else if let [Some(low), Some(high)] = halves::<16>(bytes, from) {
            // SAFETY: as above, 16 bytes.
            let low = unsafe { load_16(low) };
            // SAFETY: as above.
            let high = unsafe { load_16(high) };
            set_16(&mut bytes[..16], low);
            set_16(&mut bytes[len - 16..], high);
        } else if let [Some(low), Some(high)] = halves::<8>(bytes, from) {
            // SAFETY: as above, 8 bytes.
            let low = unsafe { load_u64(low) };
            // SAFETY: as above.
            let high = unsafe { load_u64(high) };
            bytes[..8].copy_from_slice(&low.to_ne_bytes());
            bytes[len - 8..].copy_from_slice(&high.to_ne_bytes());
        } else if let [Some(low), Some(high)] = halves::<4>(bytes, from) {
            // SAFETY: as above, 4 bytes.
            let low = unsafe { load_u32(low) };
            // SAFETY: as above.
            let high = unsafe { load_u32(high) };
            bytes[..4].copy_from_slice(&low.to_ne_bytes());
            bytes[len - 4..].copy_from_slice(&high.to_ne_bytes());
        } else if let [Some(low), Some(high)] = halves::<2>(bytes, from) {
            // SAFETY: as above, 2 bytes.
            let low = unsafe { load_u16(low) };
            // SAFETY: as above.
            let high = unsafe { load_u16(high) };
            bytes[..2].copy_from_slice(&low.to_ne_bytes());
            bytes[len - 2..].copy_from_slice(&high.to_ne_bytes());
        } else if let [byte] = bytes {
            // SAFETY: the one byte of the source.
            *byte = unsafe { load_u8(from) };
        }
    }

    /// Where the first `N` bytes of the source begin, and where the last ones do, if it has so many.
    #[inline(always)]
    fn halves<const N: usize>(bytes: &[u8], from: *const u8) -> [Option<*const u8>; 2] {
        let last = bytes.len().checked_sub(N);
        [last.map(|_| from), last.map(|last| from.wrapping_add(last))]
    }

    /// 32 bytes from `from` to `bytes[at..]`.
    ///
    /// # Safety
    /// As [`load_16`], for 32 bytes.
    #[inline(always)]
    unsafe fn load_16_twice(from: *const u8, bytes: &mut [u8], at: usize) {
        // SAFETY: the first 16 of the 32 bytes.
        let first = unsafe { load_16(from) };
        // SAFETY: the other 16.
        let second = unsafe { load_16(from.wrapping_add(16)) };
        set_16(&mut bytes[at..at + 16], first);
        set_16(&mut bytes[at + 16..at + 32], second);
    }

    #[inline(always)]
    fn set_16(bytes: &mut [u8], value: __m128i) {
        assert!(bytes.len() == 16);
        // SAFETY: an unaligned store of 16 bytes into private memory of that length.
        unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), value) };
    }

    /// As `memcpy` of the C library, but opaque to the compiler, which would otherwise take it for a
    /// copy that nobody disturbs.
    ///
    /// # Safety
    /// As [`load`] or [`store`] for the shared side; the other one is private memory.
    #[inline(always)]
    unsafe fn memcpy(to: *mut u8, from: *const u8, len: usize) {
        // SAFETY: a call by the C convention: three arguments in their registers, everything that it
        // may change is named, the stack is aligned at the beginning of the block, and the
        // two sides are mapped and apart by our own contract.
        unsafe {
            asm!(
                "call {memcpy}",
                memcpy = sym libc::memcpy,
                inout("rdi") to => _,
                inout("rsi") from => _,
                inout("rdx") len => _,
                clobber_abi("C"),
            );
        }
    }

    /// # Safety
    /// 32 bytes at `at` are mapped for writing.
    #[inline(always)]
    unsafe fn store_4_words(at: *mut u8, words: &[[u8; 8]; 4]) {
        // One by one: `map` over the array is a call that copies it through memory, four times as slow.
        let [a, b, c, d] = words;
        let (a, b) = (u64::from_ne_bytes(*a), u64::from_ne_bytes(*b));
        let (c, d) = (u64::from_ne_bytes(*c), u64::from_ne_bytes(*d));
        // SAFETY: stores 32 bytes at `at`, by our own contract, and changes nothing else.
        unsafe {
            asm!(
                "mov qword ptr [{at}], {a}",
                "mov qword ptr [{at} + 8], {b}",
                "mov qword ptr [{at} + 16], {c}",
                "mov qword ptr [{at} + 24], {d}",
                at = in(reg) at, a = in(reg) a, b = in(reg) b, c = in(reg) c, d = in(reg) d,
                options(nostack, preserves_flags),
            );
        }
    }

    macro_rules! move_instructions {
        ($($store:ident $load:ident $type:ty: $class:ident $template:literal;)*) => {$(
            /// # Safety
            /// As many bytes at `at` are mapped for writing.
            #[inline(always)]
            unsafe fn $store(at: *mut u8, value: $type) {
                // SAFETY: stores the value at `at`, by our own contract, and changes nothing else.
                unsafe {
                    asm!(
                        concat!("mov [{at}], ", $template),
                        at = in(reg) at, value = in($class) value,
                        options(nostack, preserves_flags),
                    );
                }
            }

            /// # Safety
            /// As many bytes at `at` are mapped for reading.
            #[inline(always)]
            unsafe fn $load(at: *const u8) -> $type {
                let value;
                // SAFETY: loads the value at `at`, by our own contract, and changes nothing.
                unsafe {
                    asm!(
                        concat!("mov ", $template, ", [{at}]"),
                        at = in(reg) at, value = out($class) value,
                        options(nostack, preserves_flags, readonly),
                    );
                }
                value
            }
        )*};
    }

    move_instructions! {
        store_u64 load_u64 u64: reg "{value}";
        store_u32 load_u32 u32: reg "{value:e}";
        store_u16 load_u16 u16: reg "{value:x}";
        store_u8 load_u8 u8: reg_byte "{value}";
    }

    /// # Safety
    /// 16 bytes at `at` are mapped for reading.
    #[inline(always)]
    unsafe fn load_16(at: *const u8) -> __m128i {
        let value;
        // SAFETY: loads 16 bytes at `at`, by our own contract, and changes nothing.
        unsafe {
            asm!(
                "movups {value}, [{at}]",
                at = in(reg) at, value = out(xmm_reg) value,
                options(nostack, preserves_flags, readonly),
            );
        }
        value
    }
}

#[cfg(any(test, not(all(target_arch = "x86_64", not(miri)))))]
mod atomics {
    use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

    /// Bytes of a word.
    const WORD: usize = size_of::<u64>();

    /// Stores `bytes` at `to`.
    ///
    /// # Safety
    /// As the function of this name for x86-64: `to..to + bytes.len()` is mapped for writing, and nothing but
    /// these copies and atomics touches it.
    pub(crate) unsafe fn store(to: *mut u8, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(to.align_offset(WORD).min(bytes.len()));
        let (words, tail) = rest.as_chunks::<WORD>();
        let mut at = to;
        for byte in head {
            // SAFETY: here and below, `at` has gone as far into the target as `bytes` are used up.
            unsafe { store_byte(at, *byte) };
            at = at.wrapping_add(1);
        }
        for word in words {
            // SAFETY: as above; behind the head `at` is aligned for a word. Each bit pattern is one.
            let target = unsafe { &*at.cast::<AtomicU64>() };
            // Relaxed, here and in `store_byte`: a counter that is stored with Release hands the
            // bytes over.
            target.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
            at = at.wrapping_add(WORD);
        }
        for byte in tail {
            // SAFETY: as above.
            unsafe { store_byte(at, *byte) };
            at = at.wrapping_add(1);
        }
    }

    /// Fills `bytes` with what is at `from`.
    ///
    /// # Safety
    /// `from..from + bytes.len()` is mapped for reading; nothing but these copies and atomics
    /// writes it on our side.
    pub(crate) unsafe fn load(from: *const u8, bytes: &mut [u8]) {
        let (head, rest) = bytes.split_at_mut(from.align_offset(WORD).min(bytes.len()));
        let (words, tail) = rest.as_chunks_mut::<WORD>();
        let mut at = from;
        for byte in head {
            // SAFETY: here and below, `at` has gone as far into the source as `bytes` are filled.
            *byte = unsafe { load_byte(at) };
            at = at.wrapping_add(1);
        }
        for word in words {
            // SAFETY: as above; behind the head `at` is aligned for a word. Each bit pattern is one.
            let source = unsafe { &*at.cast::<AtomicU64>() };
            // Relaxed, here and in `load_byte`: a counter that was loaded with Acquire says that
            // the bytes are there.
            *word = source.load(Ordering::Relaxed).to_ne_bytes();
            at = at.wrapping_add(WORD);
        }
        for byte in tail {
            // SAFETY: as above.
            *byte = unsafe { load_byte(at) };
            at = at.wrapping_add(1);
        }
    }

    /// # Safety
    /// The byte at `at` is mapped for writing.
    unsafe fn store_byte(at: *mut u8, byte: u8) {
        // SAFETY: our own contract; a byte is always aligned.
        let target = unsafe { &*at.cast::<AtomicU8>() };
        target.store(byte, Ordering::Relaxed);
    }

    /// # Safety
    /// The byte at `at` is mapped for reading.
    unsafe fn load_byte(at: *const u8) -> u8 {
        // SAFETY: our own contract; a byte is always aligned.
        let source = unsafe { &*at.cast::<AtomicU8>() };
        source.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use crate::{Mapping, Memory};

    const LEN: usize = 4300;

    type Store = unsafe fn(*mut u8, &[u8]);
    type Load = unsafe fn(*const u8, &mut [u8]);

    /// Every length from every offset, and nothing beside it, on the shared and on the private side.
    fn moves_what_it_should(store: Store, load: Load) {
        let mapping = Mapping::map(&Memory::create("copies", LEN).unwrap()).unwrap();
        let pattern: Vec<u8> = (1..=250).cycle().take(4097).collect();
        for offset in 100..117 {
            for len in
                (0..=140).chain([199, 255, 256, 257, 300, 512, 513, 575, 576, 600, 4096, 4097])
            {
                let mut shared = vec![0xEE; LEN];
                // SAFETY: here and below, the mapping has `LEN` bytes, and no other thread knows it.
                unsafe { store(mapping.base(), &shared) };
                // SAFETY: `offset + len` is at most 4,213.
                unsafe { store(mapping.base().wrapping_add(offset), &pattern[..len]) };
                shared[offset..offset + len].copy_from_slice(&pattern[..len]);
                let mut all = vec![0; LEN];
                // SAFETY: as above.
                unsafe { load(mapping.base(), &mut all) };
                assert_eq!(all, shared, "{len} bytes at {offset}");
                let mut private = vec![0xDD; len + 2];
                // SAFETY: as above.
                unsafe { load(mapping.base().wrapping_add(offset), &mut private[1..=len]) };
                assert_eq!(private[1..=len], pattern[..len], "{len} bytes from {offset}");
                assert_eq!([private[0], private[len + 1]], [0xDD; 2], "{len} bytes from {offset}");
            }
        }
    }

    #[test]
    fn every_length_is_copied_from_every_offset_and_nothing_beside_it() {
        moves_what_it_should(super::store, super::load);
    }

    #[test]
    fn wide_stores_do_the_same() {
        moves_what_it_should(super::store_wide, super::load);
    }

    #[test]
    fn the_portable_copies_do_the_same() {
        moves_what_it_should(super::atomics::store, super::atomics::load);
    }

    /// Two threads of one process at the same bytes, through one region, in safe code: each byte is
    /// one that was written.
    #[test]
    fn threads_that_race_over_a_region_see_bytes_that_were_written() {
        let mapping = Arc::new(Mapping::map(&Memory::create("race", LEN).unwrap()).unwrap());
        let over = Arc::new(AtomicBool::new(false));
        let writer = std::thread::spawn({
            let (mapping, over) = (Arc::clone(&mapping), Arc::clone(&over));
            move || {
                let region = mapping.region(0, LEN).unwrap();
                for value in [0x11, 0x22].into_iter().cycle() {
                    region.copy_in(1, &[value; LEN - 1]).unwrap();
                    region.copy_in(3, &[value; 40]).unwrap();
                    region.copy_in(5, &[value; 600]).unwrap();
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            }
        });
        let region = mapping.region(0, LEN).unwrap();
        for len in [1, 7, 8, 24, 64, 65, 128, 600].into_iter().cycle().take(4000) {
            let mut bytes = vec![0xFF; len];
            region.copy_out(2, &mut bytes).unwrap();
            assert!(bytes.iter().all(|byte| [0, 0x11, 0x22].contains(byte)), "{bytes:x?}");
        }
        over.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    }
}

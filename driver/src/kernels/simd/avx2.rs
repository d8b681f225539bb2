//! Loads and stores of AVX2 on arrays and slices.

use core::arch::x86_64::*;

/// Numbers of 32 bits in a register.
pub(crate) const LANES: usize = 8;

/// The first lanes of a register of 8, none to all of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lanes8 {
    count: usize,
    /// All bits of these lanes.
    mask: __m256i,
}

impl Lanes8 {
    /// Those that hold elements `first..len`, where `first` is at most `len`.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn holding(first: usize, len: usize) -> Self {
        const ORDER: [i32; LANES] = [0, 1, 2, 3, 4, 5, 6, 7];
        let count = (len - first).min(LANES);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_possible_wrap,
            reason = "at most 8"
        )]
        let end = _mm256_set1_epi32(count as i32);
        Lanes8 { count, mask: _mm256_cmpgt_epi32(end, load_i32s(&ORDER, 0)) }
    }

    /// How many there are.
    #[inline(always)]
    pub(crate) fn count(self) -> usize {
        self.count
    }

    /// As a mask.
    #[inline(always)]
    pub(crate) fn mask(self) -> __m256i {
        self.mask
    }
}

/// 8 numbers of `values` from `first` on; where there are not as many, 0 for the others.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load_i32s(values: &[i32], first: usize) -> __m256i {
    let values = &values[first..];
    if let Some(full) = values.first_chunk::<LANES>() {
        // SAFETY: 32 bytes are read from an array of 8 numbers of 4.
        return unsafe { _mm256_loadu_si256(full.as_ptr().cast()) };
    }
    let mut few = [0; LANES];
    few[..values.len()].copy_from_slice(values);
    // SAFETY: as above.
    unsafe { _mm256_loadu_si256(few.as_ptr().cast()) }
}

/// 8 floats.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load_floats(values: &[f32; LANES]) -> __m256 {
    // SAFETY: 32 bytes are read from an array of 8 floats.
    unsafe { _mm256_loadu_ps(values.as_ptr()) }
}

/// The first floats, as many as there are lanes; 0 for the others.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load_few_floats(values: &[f32], lanes: Lanes8) -> __m256 {
    let values = &values[..lanes.count()];
    // SAFETY: the slice has an element for each lane of the mask; others are not read.
    unsafe { _mm256_maskload_ps(values.as_ptr(), lanes.mask()) }
}

/// Writes 8 floats.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn store_floats(out: &mut [f32; LANES], values: __m256) {
    // SAFETY: 32 bytes are written to an array of 8 floats.
    unsafe { _mm256_storeu_ps(out.as_mut_ptr(), values) };
}

/// 8 pairs of numbers of 16 bits.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load_pairs(pairs: &[[i16; 2]; LANES]) -> __m256i {
    // SAFETY: 32 bytes are read from 8 pairs of numbers of 2.
    unsafe { _mm256_loadu_si256(pairs.as_ptr().cast()) }
}

/// 8 times four bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load_quads(quads: &[[i8; 4]; LANES]) -> __m256i {
    // SAFETY: 32 bytes are read from 8 arrays of 4.
    unsafe { _mm256_loadu_si256(quads.as_ptr().cast()) }
}

/// 32 bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load_32_bytes(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: 32 bytes are read from an array of 32.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// 16 bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load_16_bytes(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: 16 bytes are read from an array of 16.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// 8 bytes, and as many zeros.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load_8_bytes(bytes: &[u8; 8]) -> __m128i {
    // SAFETY: 8 bytes are read from an array of 8.
    unsafe { _mm_loadl_epi64(bytes.as_ptr().cast()) }
}

/// The first 16 bytes; where there are not as many, 0 for the others.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load_bytes(bytes: &[u8]) -> __m128i {
    if let Some(full) = bytes.first_chunk() {
        return load_16_bytes(full);
    }
    let mut few = [0; 16];
    few[..bytes.len()].copy_from_slice(bytes);
    load_16_bytes(&few)
}

/// Writes 16 numbers of 16 bits.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn store_i16s(out: &mut [i16; 16], values: __m256i) {
    // SAFETY: 32 bytes are written to an array of 16 numbers of 2.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), values) };
}

/// Writes 8 numbers of 16 bits.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn store_8_i16s(out: &mut [i16; 8], values: __m128i) {
    // SAFETY: 16 bytes are written to an array of 8 numbers of 2.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), values) };
}

/// Writes 32 bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn store_32_bytes(out: &mut [u8; 32], bytes: __m256i) {
    // SAFETY: 32 bytes are written to an array of 32.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), bytes) };
}

/// Writes 16 bytes to the front of `out`, or as many as it has room for.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn store_bytes(out: &mut [u8], bytes: __m128i) {
    if let Some(full) = out.first_chunk_mut::<16>() {
        // SAFETY: 16 bytes are written to an array of 16.
        unsafe { _mm_storeu_si128(full.as_mut_ptr().cast(), bytes) };
        return;
    }
    // Half of them at once: rows of 8 and 24 channels are common.
    let (out, bytes) = match out.split_first_chunk_mut::<8>() {
        Some((front, out)) => {
            // SAFETY: 8 bytes are written to an array of 8.
            unsafe { _mm_storel_epi64(front.as_mut_ptr().cast(), bytes) };
            (out, _mm_unpackhi_epi64(bytes, bytes))
        }
        None => (out, bytes),
    };
    let rest = _mm_cvtsi128_si64(bytes).to_le_bytes();
    for (out, byte) in out.iter_mut().zip(rest) {
        *out = byte;
    }
}

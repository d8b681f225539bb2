//! Loads and stores of AVX-512 (F, BW, DQ, VL) on arrays and slices, of whole registers or of their
//! first lanes.

use core::arch::x86_64::*;

/// Numbers of 32 bits in a register.
pub(crate) const LANES: usize = 16;

/// The first lanes of a register of 16, none to all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lanes16(__mmask16);

impl Lanes16 {
    /// All lanes.
    pub(crate) const ALL: Lanes16 = Lanes16(!0);

    /// Those that hold elements `first..len`, where `first` is at most `len`.
    pub(crate) fn holding(first: usize, len: usize) -> Self {
        let count = (len - first).min(LANES);
        Lanes16(if count == LANES { !0 } else { (1 << count) - 1 })
    }

    /// How many there are.
    #[inline(always)]
    pub(crate) fn count(self) -> usize {
        // The first bit that is not set, for which any x86 has an instruction; not all count bits.
        (!u32::from(self.0)).trailing_zeros() as usize
    }

    /// As a mask: a run of low bits.
    #[inline(always)]
    pub(crate) fn mask(self) -> __mmask16 {
        self.0
    }
}

/// The first lanes of a register of 32, none to all of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lanes32(__mmask32);

impl Lanes32 {
    /// So many of them, or all where there are not as many.
    #[inline(always)]
    pub(crate) fn first(count: usize) -> Self {
        Lanes32(if count >= 32 { !0 } else { (1 << count) - 1 })
    }

    /// How many there are.
    #[inline(always)]
    pub(crate) fn count(self) -> usize {
        (!u64::from(self.0)).trailing_zeros() as usize
    }

    /// As a mask: a run of low bits.
    #[inline(always)]
    pub(crate) fn mask(self) -> __mmask32 {
        self.0
    }
}

/// 16 numbers of `values` from `first` on; lanes not in `lanes` are 0.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load_i32s(values: &[i32], first: usize, lanes: Lanes16) -> __m512i {
    let values = &values[first..][..lanes.count()];
    // SAFETY: the mask is a run of low bits, as many as the slice has elements; lanes that are not in
    // it are not read.
    unsafe { _mm512_maskz_loadu_epi32(lanes.mask(), values.as_ptr()) }
}

/// 16 floats from `first` on; lanes not in `lanes` are 0.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load_floats(values: &[f32], first: usize, lanes: Lanes16) -> __m512 {
    let values = &values[first..][..lanes.count()];
    // SAFETY: the mask is a run of low bits, as many as the slice has elements; lanes that are not in
    // it are not read.
    unsafe { _mm512_maskz_loadu_ps(lanes.mask(), values.as_ptr()) }
}

/// 16 floats.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load_16_floats(values: &[f32; 16]) -> __m512 {
    // SAFETY: 64 bytes are read from an array of 16 floats.
    unsafe { _mm512_loadu_ps(values.as_ptr()) }
}

/// 16 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load_16_bytes(values: &[u8; 16]) -> __m128i {
    // SAFETY: 16 bytes are read from an array of 16.
    unsafe { _mm_loadu_si128(values.as_ptr().cast()) }
}

/// A register of bytes.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load_64_bytes(values: &[u8; 64]) -> __m512i {
    // SAFETY: 64 bytes are read from an array of 64.
    unsafe { _mm512_loadu_si512(values.as_ptr().cast()) }
}

/// 32 numbers of 16 bits.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load_i16s(values: &[i16; 32]) -> __m512i {
    // SAFETY: 64 bytes are read from an array of 32 numbers of 2 bytes.
    unsafe { _mm512_loadu_si512(values.as_ptr().cast()) }
}

/// 16 pairs of numbers of 16 bits.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load_pairs(pairs: &[[i16; 2]; 16]) -> __m512i {
    // SAFETY: 64 bytes are read from an array of 32 numbers of 2 bytes.
    unsafe { _mm512_loadu_si512(pairs.as_ptr().cast()) }
}

/// The first 32 bytes, or as many as there are; says which. The others are 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn load_block(values: &[u8]) -> (Lanes32, __m256i) {
    let lanes = Lanes32::first(values.len());
    // SAFETY: the mask is a run of low bits, at most as many as there are bytes in the slice; bytes
    // that are not in it are not read.
    (lanes, unsafe { _mm256_maskz_loadu_epi8(lanes.mask(), values.as_ptr().cast()) })
}

/// Writes the bytes in `lanes` to the front of `out`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn store_16_bytes(out: &mut [u8], lanes: Lanes16, bytes: __m128i) {
    let out = &mut out[..lanes.count()];
    if let Some(full) = out.first_chunk_mut::<LANES>() {
        // SAFETY: 16 bytes are written to an array of 16.
        unsafe { _mm_storeu_si128(full.as_mut_ptr().cast(), bytes) };
    } else {
        // SAFETY: the bytes in the mask are those of the slice; the others are not written.
        unsafe { _mm_mask_storeu_epi8(out.as_mut_ptr().cast(), lanes.mask(), bytes) };
    }
}

/// Writes the bytes in `lanes` to the front of `out`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn store_32_bytes(out: &mut [u8], lanes: Lanes32, bytes: __m256i) {
    let out = &mut out[..lanes.count()];
    if let Some(full) = out.first_chunk_mut::<32>() {
        // SAFETY: 32 bytes are written to an array of 32.
        unsafe { _mm256_storeu_si256(full.as_mut_ptr().cast(), bytes) };
    } else {
        // SAFETY: the bytes in the mask are those of the slice; the others are not written.
        unsafe { _mm256_mask_storeu_epi8(out.as_mut_ptr().cast(), lanes.mask(), bytes) };
    }
}

/// Writes 64 bytes to `out`, or the first of them where it is shorter.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn store_64_bytes(out: &mut [u8], bytes: __m512i) {
    if let Some(full) = out.first_chunk_mut::<64>() {
        // SAFETY: 64 bytes are written to an array of 64.
        unsafe { _mm512_storeu_si512(full.as_mut_ptr().cast(), bytes) };
    } else {
        // Fewer than 64, so that the shift is one.
        let mask = (1_u64 << out.len()) - 1;
        // SAFETY: the bytes in the mask are those of the slice; the others are not written.
        unsafe { _mm512_mask_storeu_epi8(out.as_mut_ptr().cast(), mask, bytes) };
    }
}

/// Writes the floats in `lanes` to the front of `out`.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn store_floats(out: &mut [f32], lanes: Lanes16, values: __m512) {
    let out = &mut out[..lanes.count()];
    // SAFETY: the lanes in the mask, a run of low bits, are the elements of the slice; the others
    // are not written.
    unsafe { _mm512_mask_storeu_ps(out.as_mut_ptr(), lanes.mask(), values) };
}

//! Sums of quantized values for AVX2 and FMA.
//!
//! Nearly every sum is so far from the middle between two stored values that floats tell which one it is: the
//! exact rule cannot lead to another. Where one of a block of sums is not, the exact rule computes the block.

use core::arch::x86_64::*;

use super::portable::{self, Reals, Stored, Sum};
use crate::kernels::simd::avx2::{load_8_bytes, store_32_bytes};

/// Values of a block.
const BLOCK: usize = 32;

/// As [`portable::sum`].
#[target_feature(enable = "avx2,fma")]
pub(crate) fn unsigned(rule: &Sum, a: &[u8], b: &[u8], out: &mut [u8]) {
    sum::<u8, false>(rule, a, b, out);
}

/// As [`portable::sum`].
#[target_feature(enable = "avx2,fma")]
pub(crate) fn signed(rule: &Sum, a: &[i8], b: &[i8], out: &mut [i8]) {
    sum::<i8, true>(rule, a, b, out);
}

#[target_feature(enable = "avx2,fma")]
fn sum<T: Stored, const SIGNED: bool>(rule: &Sum, a: &[T], b: &[T], out: &mut [T]) {
    let Some(reals) = rule.reals::<T>() else { return portable::sum(rule, a, b, out) };
    let floats = Floats::new(reals);
    let (a_blocks, a_rest) = a.as_chunks::<BLOCK>();
    let (b_blocks, b_rest) = b.as_chunks::<BLOCK>();
    let (out_blocks, out_rest) = out.as_chunks_mut::<BLOCK>();
    for ((a, b), out) in a_blocks.iter().zip(b_blocks).zip(out_blocks) {
        let left = bytemuck::cast_ref(a);
        let right = bytemuck::cast_ref(b);
        if !floats.block::<SIGNED>(left, right, bytemuck::cast_mut(out)) {
            portable::sum(rule, a, b, out);
        }
    }
    portable::sum(rule, a_rest, b_rest, out_rest);
}

/// The rule in floats.
struct Floats {
    a: __m256,
    b: __m256,
    start: __m256,
    /// How far from a whole number a sum may be.
    certain: __m256,
    low: __m256i,
    high: __m256i,
}

impl Floats {
    #[target_feature(enable = "avx2,fma")]
    fn new(reals: Reals) -> Self {
        Floats {
            a: _mm256_set1_ps(reals.factors[0]),
            b: _mm256_set1_ps(reals.factors[1]),
            start: _mm256_set1_ps(reals.start),
            certain: _mm256_set1_ps(reals.certain),
            low: _mm256_set1_epi8(reals.range[0].cast_signed()),
            high: _mm256_set1_epi8(reals.range[1].cast_signed()),
        }
    }

    /// Writes the sums of a block; whether all are certain.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn block<const SIGNED: bool>(
        &self,
        a: &[u8; BLOCK],
        b: &[u8; BLOCK],
        out: &mut [u8; BLOCK],
    ) -> bool {
        let mut sums = [_mm256_setzero_si256(); 4];
        let mut farthest = _mm256_setzero_ps();
        let eights = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
        for (sums, (a, b)) in sums.iter_mut().zip(eights) {
            let (a, b) = (wide::<SIGNED>(a), wide::<SIGNED>(b));
            let sum = _mm256_fmadd_ps(b, self.b, _mm256_fmadd_ps(a, self.a, self.start));
            let nearest = _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(sum);
            let distance = _mm256_andnot_ps(_mm256_set1_ps(-0.0), _mm256_sub_ps(sum, nearest));
            farthest = _mm256_max_ps(farthest, distance);
            *sums = _mm256_cvtps_epi32(nearest);
        }
        let [first, second, third, fourth] = sums;
        // Packing takes four numbers of one register and four of the other by turns, twice.
        let (low, high) = (_mm256_packs_epi32(first, second), _mm256_packs_epi32(third, fourth));
        let bytes = if SIGNED {
            let bytes = _mm256_packs_epi16(low, high);
            _mm256_min_epi8(_mm256_max_epi8(bytes, self.low), self.high)
        } else {
            let bytes = _mm256_packus_epi16(low, high);
            _mm256_min_epu8(_mm256_max_epu8(bytes, self.low), self.high)
        };
        let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
        store_32_bytes(out, _mm256_permutevar8x32_epi32(bytes, order));
        let uncertain = _mm256_cmp_ps::<_CMP_NLE_UQ>(farthest, self.certain);
        _mm256_movemask_ps(uncertain) == 0
    }
}

/// 8 stored values as floats.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn wide<const SIGNED: bool>(bytes: &[u8; 8]) -> __m256 {
    let bytes = load_8_bytes(bytes);
    let wide = if SIGNED { _mm256_cvtepi8_epi32(bytes) } else { _mm256_cvtepu8_epi32(bytes) };
    _mm256_cvtepi32_ps(wide)
}

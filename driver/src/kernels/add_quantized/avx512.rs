//! Sums of quantized values for AVX-512: as for AVX2, by what floats can be certain of.

use core::arch::x86_64::*;

use super::portable::{self, Reals, Stored, Sum};
use crate::kernels::simd::avx512::{LANES, load_16_bytes, store_64_bytes};

/// Values of a block.
const BLOCK: usize = 64;

/// As [`portable::sum`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn unsigned(rule: &Sum, a: &[u8], b: &[u8], out: &mut [u8]) {
    sum::<u8, false>(rule, a, b, out);
}

/// As [`portable::sum`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn signed(rule: &Sum, a: &[i8], b: &[i8], out: &mut [i8]) {
    sum::<i8, true>(rule, a, b, out);
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
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
    a: __m512,
    b: __m512,
    start: __m512,
    /// How far from a whole number a sum may be.
    certain: __m512,
    low: __m512i,
    high: __m512i,
    /// Brings packed bytes into the order of the values.
    order: __m512i,
}

impl Floats {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn new(reals: Reals) -> Self {
        Floats {
            a: _mm512_set1_ps(reals.factors[0]),
            b: _mm512_set1_ps(reals.factors[1]),
            start: _mm512_set1_ps(reals.start),
            certain: _mm512_set1_ps(reals.certain),
            low: _mm512_set1_epi8(reals.range[0].cast_signed()),
            high: _mm512_set1_epi8(reals.range[1].cast_signed()),
            order: _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
        }
    }

    /// Writes the sums of a block; whether all are certain.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn block<const SIGNED: bool>(
        &self,
        a: &[u8; BLOCK],
        b: &[u8; BLOCK],
        out: &mut [u8; BLOCK],
    ) -> bool {
        let mut sums = [_mm512_setzero_si512(); BLOCK / LANES];
        let mut farthest = _mm512_setzero_ps();
        let sixteens = a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0);
        for (sums, (a, b)) in sums.iter_mut().zip(sixteens) {
            let (a, b) = (wide::<SIGNED>(a), wide::<SIGNED>(b));
            let sum = _mm512_fmadd_ps(b, self.b, _mm512_fmadd_ps(a, self.a, self.start));
            let distance = _mm512_reduce_ps::<TO_NEAREST>(sum);
            farthest = _mm512_range_ps::<LARGER_MAGNITUDE>(farthest, distance);
            *sums = _mm512_cvt_roundps_epi32::<TO_NEAREST>(sum);
        }
        let [first, second, third, fourth] = sums;
        // Packing takes four numbers of each register by turns, four times.
        let (low, high) = (_mm512_packs_epi32(first, second), _mm512_packs_epi32(third, fourth));
        let bytes = if SIGNED {
            let bytes = _mm512_packs_epi16(low, high);
            _mm512_min_epi8(_mm512_max_epi8(bytes, self.low), self.high)
        } else {
            let bytes = _mm512_packus_epi16(low, high);
            _mm512_min_epu8(_mm512_max_epu8(bytes, self.low), self.high)
        };
        store_64_bytes(out, _mm512_permutexvar_epi32(self.order, bytes));
        _mm512_cmp_ps_mask::<_CMP_NLE_UQ>(farthest, self.certain) == 0
    }
}

/// Rounds to whole numbers, ties to even ones, and raises no flags.
const TO_NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

/// Takes the number of larger magnitude, and drops its sign.
const LARGER_MAGNITUDE: i32 = 0b10_11;

/// 16 stored values as floats.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn wide<const SIGNED: bool>(bytes: &[u8; LANES]) -> __m512 {
    let bytes = load_16_bytes(bytes);
    let wide = if SIGNED { _mm512_cvtepi8_epi32(bytes) } else { _mm512_cvtepu8_epi32(bytes) };
    _mm512_cvtepi32_ps(wide)
}

//! Words of 16 rows brought into the order of a panel, in registers.

use core::arch::x86_64::*;

use super::LANES;
use super::portable::{SQUARE_BYTES, squares};
use crate::kernels::simd::Lines;
use crate::kernels::simd::avx512::load_64_bytes;

/// See [`turn`](super::portable::turn).
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn turn(rows: &[&[u8]; LANES], flip: u8, lines: &mut Lines) {
    // Where the rows of the next 16 units are, if all lie at even distances. They come from memory, and are asked for
    // while these are turned, into the second cache: the first has room for few that are on their way. An address at
    // which nothing lies is no harm, as none of it is read.
    let apart = rows[1].as_ptr().addr().wrapping_sub(rows[0].as_ptr().addr());
    let next = rows.map(|row| row.as_ptr().wrapping_add(apart.wrapping_mul(LANES)));
    let squares = squares(rows);
    let rows = rows.map(|row| &row.as_chunks::<SQUARE_BYTES>().0[..squares]);
    let flip = _mm512_set1_epi8(flip.cast_signed());
    for number in 0..squares {
        let mut fours = [[_mm512_setzero_si512(); 4]; 4];
        for (rows, four) in rows.as_chunks::<4>().0.iter().zip(&mut fours) {
            *four = quarters(rows, number, flip);
        }
        for row in next {
            _mm_prefetch::<_MM_HINT_T1>(row.wrapping_add(number * SQUARE_BYTES).cast());
        }
        let [a, b, c, d] = fours;
        let mut square = lines.sixteen();
        for word in 0..4 {
            // Of each four rows, this word and every fourth after it: their even ones, and their odd ones.
            let even = _mm512_shuffle_i32x4::<0x88>(a[word], b[word]);
            let odd = _mm512_shuffle_i32x4::<0xdd>(a[word], b[word]);
            let more_even = _mm512_shuffle_i32x4::<0x88>(c[word], d[word]);
            let more_odd = _mm512_shuffle_i32x4::<0xdd>(c[word], d[word]);
            square.put(word, _mm512_shuffle_i32x4::<0x88>(even, more_even));
            square.put(word + 4, _mm512_shuffle_i32x4::<0x88>(odd, more_odd));
            square.put(word + 8, _mm512_shuffle_i32x4::<0xdd>(even, more_even));
            square.put(word + 12, _mm512_shuffle_i32x4::<0xdd>(odd, more_odd));
        }
        square.append();
    }
}

/// Of a square of four rows, words 0, 4, 8 and 12, side by side in a quarter of the first register each; those after them
/// in the next three.
#[inline]
#[target_feature(enable = "avx512f")]
fn quarters(rows: &[&[[u8; SQUARE_BYTES]]; 4], number: usize, flip: __m512i) -> [__m512i; 4] {
    let mut values = [_mm512_setzero_si512(); 4];
    for (value, row) in values.iter_mut().zip(rows) {
        *value = _mm512_xor_si512(load_64_bytes(&row[number]), flip);
    }
    let [a, b, c, d] = values;
    let (low, high) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let (more_low, more_high) = (_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    [
        _mm512_unpacklo_epi64(low, more_low),
        _mm512_unpackhi_epi64(low, more_low),
        _mm512_unpacklo_epi64(high, more_high),
        _mm512_unpackhi_epi64(high, more_high),
    ]
}

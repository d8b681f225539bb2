//! Words of 16 rows brought into the order of a panel, in registers.

use core::arch::x86_64::*;

use super::LANES;
use super::portable::{SQUARE_BYTES, squares};
use crate::kernels::simd::Lines;
use crate::kernels::simd::avx2::load_16_bytes;

/// Rows of which a register has a word each.
const HALF: usize = LANES / 2;

/// Bytes of the words that are turned together.
const FOUR_WORDS: usize = 16;

/// Words that are turned together.
const FOUR: usize = FOUR_WORDS / size_of::<super::Word>();

/// As often as that are words of a square turned.
const FOURS: usize = SQUARE_BYTES / FOUR_WORDS;

/// See [`turn`](super::portable::turn).
#[target_feature(enable = "avx2")]
pub(crate) fn turn(rows: &[&[u8]; LANES], flip: u8, lines: &mut Lines) {
    let (parts, next) = (Parts::of(rows), next(rows));
    let flip = _mm256_set1_epi8(flip.cast_signed());
    for number in 0..parts.squares {
        fetch(&next, number);
        for four in 0..FOURS {
            let [a, b, c, d] = parts.columns(number, 0, four, flip);
            let [e, f, g, h] = parts.columns(number, 1, four, flip);
            lines.append([[a, e], [b, f], [c, g], [d, h]]);
        }
    }
}

/// See [`turn_pairs`](super::portable::turn_pairs).
#[target_feature(enable = "avx2")]
pub(crate) fn turn_pairs(rows: &[&[u8]; LANES], flip: u8, zero: i8, lines: &mut Lines) {
    let (parts, next) = (Parts::of(rows), next(rows));
    let (flip, zero) = (_mm256_set1_epi8(flip.cast_signed()), _mm256_set1_epi16(zero.into()));
    // The first two bytes of each word, each the upper one of 16 bits, and the last two.
    #[rustfmt::skip]
    let bytes = _mm_setr_epi8(-1, 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13);
    let first = _mm256_broadcastsi128_si256(bytes);
    let last = _mm256_add_epi8(first, _mm256_set1_epi16(0x0200));
    for number in 0..parts.squares {
        fetch(&next, number);
        for four in 0..FOURS {
            let low = parts.columns(number, 0, four, flip);
            let high = parts.columns(number, 1, four, flip);
            for (low, high) in low.into_iter().zip(high) {
                lines.append([
                    [widened(low, first, zero), widened(high, first, zero)],
                    [widened(low, last, zero), widened(high, last, zero)],
                ]);
            }
        }
    }
}

/// Bytes of these words that belong to a pair, in this order, as numbers of 16 bits, less `zero`.
#[inline]
#[target_feature(enable = "avx2")]
fn widened(words: __m256i, order: __m256i, zero: __m256i) -> __m256i {
    let wide = _mm256_srai_epi16::<8>(_mm256_shuffle_epi8(words, order));
    _mm256_sub_epi16(wide, zero)
}

/// Where the rows of the next 16 units are, if all lie at even distances. They come from memory, and are asked for
/// while these are turned; an address at which nothing lies is no harm, as none of it is read.
fn next(rows: &[&[u8]; LANES]) -> [*const u8; LANES] {
    let apart = rows[1].as_ptr().addr().wrapping_sub(rows[0].as_ptr().addr());
    rows.map(|row| row.as_ptr().wrapping_add(apart.wrapping_mul(LANES)))
}

/// Asks for the part of these rows that belongs to a square.
#[inline]
#[target_feature(enable = "avx2")]
fn fetch(rows: &[*const u8; LANES], number: usize) {
    for row in rows {
        _mm_prefetch::<_MM_HINT_T0>(row.wrapping_add(number * SQUARE_BYTES).cast());
    }
}

/// The parts of rows that belong to squares.
struct Parts<'a> {
    rows: [&'a [[u8; SQUARE_BYTES]]; LANES],
    squares: usize,
}

impl<'a> Parts<'a> {
    fn of(rows: &[&'a [u8]; LANES]) -> Self {
        let squares = squares(rows);
        Parts { rows: rows.map(|row| &row.as_chunks::<SQUARE_BYTES>().0[..squares]), squares }
    }

    /// Of four words of half of the rows all first words, all second ones, and so on, each byte XORed with `flip`.
    // Loops rather than `map`, which is a call where it is not inlined.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn columns(&self, number: usize, half: usize, four: usize, flip: __m256i) -> [__m256i; FOUR] {
        let rows = &self.rows.as_chunks::<HALF>().0[half];
        let mut pairs = [_mm256_setzero_si256(); FOUR];
        for (pair, (low, high)) in pairs.iter_mut().zip(rows[..4].iter().zip(&rows[4..])) {
            let (low, high) = (&low[number].as_chunks().0[four], &high[number].as_chunks().0[four]);
            let pair_of_rows = _mm256_set_m128i(load_16_bytes(high), load_16_bytes(low));
            *pair = _mm256_xor_si256(pair_of_rows, flip);
        }
        let [a, b, c, d] = pairs;
        let (low, high) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
        let (more_low, more_high) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
        [
            _mm256_unpacklo_epi64(low, more_low),
            _mm256_unpackhi_epi64(low, more_low),
            _mm256_unpacklo_epi64(high, more_high),
            _mm256_unpackhi_epi64(high, more_high),
        ]
    }
}

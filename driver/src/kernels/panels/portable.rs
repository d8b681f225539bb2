//! Words of 16 rows brought into the order of a panel.

use bytemuck::Zeroable;

use super::LANES;
use crate::aligned::Line;
use crate::kernels::simd::Lines;

/// What a unit has in a block: one float, or four bytes.
pub(crate) type Word = [u8; 4];

/// Bytes of a row that a square has.
pub(crate) const SQUARE_BYTES: usize = LANES * size_of::<Word>();

/// As many words of as many units: 16 blocks of a panel.
type Square = [[Word; LANES]; LANES];

/// Two weights of 16 bits of each unit.
pub(crate) type Pairs = [[i16; 2]; LANES];

/// Blocks of pairs that the part of a row which belongs to a square becomes.
pub(crate) const SQUARE_PAIRS: usize = SQUARE_BYTES / 2;

/// Appends a square for each [`SQUARE_BYTES`] that all rows have: its line of each word has that word of each unit's row, each byte
/// XORed with `flip`.
#[inline(always)]
pub(crate) fn turn(rows: &[&[u8]; LANES], flip: u8, lines: &mut Lines) {
    for number in 0..squares(rows) {
        let mut square = Square::zeroed();
        for (unit, row) in rows.iter().enumerate() {
            let part = &row[number * SQUARE_BYTES..][..SQUARE_BYTES];
            for (word, block) in part.as_chunks::<4>().0.iter().zip(&mut square) {
                block[unit] = word.map(|byte| byte ^ flip);
            }
        }
        lines.append_each(square.map(|words| Line(bytemuck::cast(words))));
    }
}

/// The same with a line for each pair of bytes: those of each unit's row, signed once each is XORed with `flip`, less
/// `zero`, in 16 bits each.
#[inline(always)]
pub(crate) fn turn_pairs(rows: &[&[u8]; LANES], flip: u8, zero: i8, lines: &mut Lines) {
    for number in 0..squares(rows) {
        let mut square = [Pairs::zeroed(); SQUARE_PAIRS];
        for (unit, row) in rows.iter().enumerate() {
            let part = &row[number * SQUARE_BYTES..][..SQUARE_BYTES];
            for (pair, block) in part.as_chunks::<2>().0.iter().zip(&mut square) {
                block[unit] =
                    pair.map(|byte| i16::from((byte ^ flip).cast_signed()) - i16::from(zero));
            }
        }
        lines.append_each(square.map(|pairs| Line(bytemuck::cast(pairs))));
    }
}

/// Whole squares that all rows have.
pub(crate) fn squares(rows: &[&[u8]; LANES]) -> usize {
    rows.iter().map(|row| row.len() / SQUARE_BYTES).min().unwrap_or_default()
}

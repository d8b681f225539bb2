//! Words of 16 rows brought into the order of a panel.

use super::LANES;

/// What a unit has in a block: one float, or four bytes.
pub(crate) type Word = [u8; 4];

/// Bytes of a row that a square has.
pub(crate) const SQUARE_BYTES: usize = LANES * size_of::<Word>();

/// As many words of as many units: 16 blocks of a panel.
pub(crate) type Square = [[Word; LANES]; LANES];

/// Two weights of 16 bits of each unit.
pub(crate) type Pairs = [[i16; 2]; LANES];

/// Blocks of pairs that the part of a row which belongs to a square becomes.
pub(crate) const SQUARE_PAIRS: usize = SQUARE_BYTES / 2;

/// `squares[number][word][unit]` is that word of the part of a unit's row which belongs to that square, each byte
/// XORed with `flip`. A row has [`SQUARE_BYTES`] for each square.
#[inline(always)]
pub(crate) fn turn(rows: &[&[u8]; LANES], flip: u8, squares: &mut [Square]) {
    for (unit, row) in rows.iter().enumerate() {
        let parts = row.as_chunks::<SQUARE_BYTES>().0;
        for (part, square) in parts.iter().zip(&mut *squares) {
            for (word, block) in part.as_chunks::<4>().0.iter().zip(square) {
                block[unit] = word.map(|byte| byte ^ flip);
            }
        }
    }
}

/// `blocks[pair][unit]` are two bytes of a unit's row, signed once each is XORed with `flip`, less `zero`. A row has as many pairs as there are
/// blocks, which are those of whole squares.
#[inline(always)]
pub(crate) fn turn_pairs(rows: &[&[u8]; LANES], flip: u8, zero: i8, blocks: &mut [Pairs]) {
    for (unit, row) in rows.iter().enumerate() {
        for (pair, block) in row.as_chunks::<2>().0.iter().zip(&mut *blocks) {
            block[unit] = pair.map(|byte| i16::from((byte ^ flip).cast_signed()) - i16::from(zero));
        }
    }
}

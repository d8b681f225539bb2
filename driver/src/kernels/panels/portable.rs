//! Words of 16 rows brought into the order of a panel.

use super::LANES;

/// What a unit has in a block: one float, or four bytes.
pub(crate) type Word = [u8; 4];

/// Bytes of a row that a square has.
pub(crate) const SQUARE_BYTES: usize = LANES * size_of::<Word>();

/// As many words of as many units: 16 blocks of a panel.
pub(crate) type Square = [[Word; LANES]; LANES];

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

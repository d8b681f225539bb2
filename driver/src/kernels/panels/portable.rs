//! Words of 16 rows brought into the order of a panel.

use bytemuck::{Pod, Zeroable};

use super::LANES;

/// What a unit has in a block: one float, or four bytes.
pub(crate) type Word = [u8; 4];

/// Bytes of a row that a square has.
pub(crate) const SQUARE_BYTES: usize = LANES * size_of::<Word>();

/// As many words of as many units: 16 blocks of a panel.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Square(pub(crate) [[Word; LANES]; LANES]);

/// `square[word][unit] = rows[unit][word]`, each byte XORed with `flip`.
#[inline(always)]
pub(crate) fn turn(rows: &[&[u8; SQUARE_BYTES]; LANES], flip: u8, square: &mut Square) {
    for (unit, row) in rows.iter().enumerate() {
        for (word, block) in row.as_chunks::<4>().0.iter().zip(&mut square.0) {
            block[unit] = word.map(|byte| byte ^ flip);
        }
    }
}

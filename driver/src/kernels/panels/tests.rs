//! Packed words against a look at each.

use super::*;
use crate::kernels::testing::Numbers;

/// A block of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
struct Block([Word; LANES]);

pub(crate) fn turn(isa: Isa) {
    const SQUARES: usize = 3;
    const ROW: usize = SQUARES * SQUARE_BYTES;
    // Rows that begin anywhere.
    let values = Numbers::new(5).bytes(LANES * (ROW + 3));
    let rows: [&[u8]; LANES] = std::array::from_fn(|unit| &values[unit * (ROW + 3)..][..ROW]);
    for flip in [0, 0x80] {
        let mut squares = [Square::zeroed(); SQUARES];
        dispatch::turn(isa, &rows, flip, &mut squares);
        for (word, block) in squares.as_flattened().iter().enumerate() {
            for (got, row) in block.iter().zip(&rows) {
                let want: [u8; 4] = std::array::from_fn(|byte| row[4 * word + byte] ^ flip);
                assert_eq!(*got, want, "word {word}");
            }
        }
    }
    packed_words(isa);
}

/// Whole squares and rests of units, words and bytes; what is missing is 0, flipped or not.
fn packed_words(isa: Isa) {
    let more = SQUARES_AT_ONCE * SQUARE_BYTES;
    let shapes = [(1, 1), (16, 64), (16, 63), (17, 128), (40, 130), (33, 7), (5, 65)];
    for (units, depth) in shapes.into_iter().chain([(18, more), (16, more + 70)]) {
        let weights = Numbers::new(9).bytes(units * depth);
        for flip in [0, 0x80] {
            let row = |unit: usize| &weights[unit * depth..][..depth];
            let budget = Budget::default();
            let packed = Panels::<Block, 4>::pack_words(isa, row, (units, depth), flip, &budget);
            let packed = packed.unwrap();
            let mut blocks = packed.blocks().iter();
            for first in (0..units).step_by(LANES) {
                for word in (0..depth).step_by(4) {
                    let want = Block(std::array::from_fn(|lane| {
                        std::array::from_fn(|byte| {
                            let (unit, at) = (first + lane, word + byte);
                            let is_there = unit < units && at < depth;
                            if is_there { weights[unit * depth + at] ^ flip } else { 0 }
                        })
                    }));
                    assert_eq!(blocks.next(), Some(&want), "{units} x {depth}, {flip}");
                }
            }
            assert_eq!(blocks.next(), None);
        }
    }
}

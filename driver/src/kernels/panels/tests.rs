//! Packed words against a look at each.

use bytemuck::Zeroable;

use super::portable::Pairs;
use super::*;
use crate::kernels::testing::Numbers;

/// A block of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
struct Block([Word; LANES]);

/// A list in which something lies already, and which has no room for what is appended.
fn list_of_one() -> Packed<Line> {
    let mut list = PageRoom::default().list(1).unwrap();
    list.push(Line([7; 64]));
    list
}

pub(crate) fn turn(isa: Isa) {
    const SQUARES: usize = 3;
    const ROW: usize = SQUARES * SQUARE_BYTES;
    // Rows that begin anywhere.
    let values = Numbers::new(5).bytes(LANES * (ROW + 3));
    let rows: [&[u8]; LANES] = std::array::from_fn(|unit| &values[unit * (ROW + 3)..][..ROW]);
    for (flip, streams) in [(0, false), (0x80, false), (0, true), (0x80, true)] {
        let mut lines = Lines::of(list_of_one(), streams);
        dispatch::turn(isa, &rows, flip, &mut lines);
        let list = lines.into_list();
        let blocks: &[[Word; LANES]] = bytemuck::cast_slice(&list[1..]);
        assert_eq!((list[0].0, blocks.len()), ([7; 64], ROW / size_of::<Word>()));
        for (word, block) in blocks.iter().enumerate() {
            for (got, row) in block.iter().zip(&rows) {
                let want: [u8; 4] = std::array::from_fn(|byte| row[4 * word + byte] ^ flip);
                assert_eq!(*got, want, "word {word}");
            }
        }
    }
    packed_words(isa);
}

pub(crate) fn turn_pairs(isa: Isa) {
    const ROW: usize = 3 * SQUARE_BYTES;
    let values = Numbers::new(6).bytes(LANES * (ROW + 3));
    let rows: [&[u8]; LANES] = std::array::from_fn(|unit| &values[unit * (ROW + 3)..][..ROW]);
    let cases = [(0, 0), (0x80, 0), (0, -128), (0x80, 127), (0, 5)];
    for ((flip, zero), streams) in cases.into_iter().zip([false, true].into_iter().cycle()) {
        let mut lines = Lines::of(list_of_one(), streams);
        dispatch::turn_pairs(isa, &rows, flip, zero, &mut lines);
        let list = lines.into_list();
        let blocks: &[Pairs] = bytemuck::cast_slice(&list[1..]);
        assert_eq!((list[0].0, blocks.len()), ([7; 64], ROW / 2));
        for (pair, block) in blocks.iter().enumerate() {
            for (got, row) in block.iter().zip(&rows) {
                let want = [row[2 * pair], row[2 * pair + 1]];
                let want =
                    want.map(|byte| i16::from((byte ^ flip).cast_signed()) - i16::from(zero));
                assert_eq!(*got, want, "pair {pair}");
            }
        }
    }
    packed_pairs(isa);
}

/// Whole squares and rests of units and bytes; what is missing is 0 less the zero point.
fn packed_pairs(isa: Isa) {
    let more = BYTES_AT_ONCE;
    let shapes = [(1, 1), (16, 64), (16, 63), (17, 128), (40, 130), (33, 7), (5, 65)];
    for (units, depth) in shapes.into_iter().chain([(18, more), (16, more + 70)]) {
        let weights = Numbers::new(11).bytes(units * depth);
        let row = |unit: usize| &weights[unit * depth..][..depth];
        let budget = Budget::default();
        let packed = Panels::<Pairs, 2>::pack_pairs(isa, row, (units, depth), (0x80, 3), &budget);
        let packed = packed.unwrap();
        let mut blocks = packed.blocks().iter();
        for first in (0..units).step_by(LANES) {
            for pair in (0..depth).step_by(2) {
                let want: Pairs = std::array::from_fn(|lane| {
                    std::array::from_fn(|byte| {
                        let (unit, at) = (first + lane, pair + byte);
                        let is_there = unit < units && at < depth;
                        let weight = if is_there { weights[unit * depth + at] ^ 0x80 } else { 0 };
                        i16::from(weight.cast_signed()) - 3
                    })
                });
                assert_eq!(blocks.next(), Some(&want), "{units} x {depth}");
            }
        }
        assert_eq!(blocks.next(), None);
    }
}

/// Whole squares and rests of units, words and bytes; what is missing is 0, flipped or not.
fn packed_words(isa: Isa) {
    let more = BYTES_AT_ONCE;
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

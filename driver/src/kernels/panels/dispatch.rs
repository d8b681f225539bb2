//! Announces the kernel of this family. `kernel!` expands to calls of functions for instruction sets
//! that it asks the CPU for first.
#![allow(unsafe_code, reason = "calls for instruction sets that are checked first")]

use super::LANES;
use super::portable;
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::kernels::simd::{Lines, kernel};

kernel! {
    /// Sixteen words of each of sixteen rows for each square, see [`portable::turn`].
    fn turn(rows: &[&[u8]; LANES], flip: u8, lines: &mut Lines);
    announced as TURN = "panels/turn",
    operations: [
        BidirectionalSequenceLstm,
        Conv2d,
        FullyConnected,
        Lstm,
        UnidirectionalSequenceLstm,
    ],
    types: [TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned],
    portable: portable::turn,
    avx2: avx2::turn,
    avx512: avx512::turn,
}

kernel! {
    /// Pairs of bytes of each of sixteen rows, widened to 16 bits, see [`portable::turn_pairs`].
    fn turn_pairs(rows: &[&[u8]; LANES], flip: u8, zero: i8, lines: &mut Lines);
    announced as TURN_PAIRS = "panels/turn_pairs",
    operations: [Conv2d, FullyConnected],
    types: [TensorQuant8Asymm, TensorQuant8AsymmSigned],
    portable: portable::turn_pairs,
    avx2: avx2::turn_pairs,
    // Pairs are for machines without products of bytes, some of which have AVX-512: this body is for them, too.
    avx512: avx2::turn_pairs,
}

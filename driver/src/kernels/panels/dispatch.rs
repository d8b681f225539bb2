//! Announces the kernel of this family. `kernel!` expands to calls of functions for instruction sets
//! that it asks the CPU for first.
#![allow(unsafe_code, reason = "calls for instruction sets that are checked first")]

use super::LANES;
#[cfg(target_arch = "x86_64")]
use super::avx512;
use super::portable::{self, Square};
use crate::kernels::simd::kernel;

kernel! {
    /// Sixteen words of each of sixteen rows for each square, see [`portable::turn`].
    fn turn(rows: &[&[u8]; LANES], flip: u8, squares: &mut [Square]);
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
    avx512: avx512::turn,
}

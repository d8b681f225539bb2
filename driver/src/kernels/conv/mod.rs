//! 2-D convolutions: their geometry, their plain loops for every type and layout, and their form as a
//! matrix product ([`matmul_float`](crate::kernels::matmul_float),
//! [`matmul_quantized`](crate::kernels::matmul_quantized)).

use crate::kernels::simd::portable_kernel;

mod geometry;
mod im2col;
mod reference;
mod rows;
mod taps;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(target_arch = "x86_64")]
mod tile;
mod walk;

pub(crate) use geometry::{Axis, Conv, Filter, Images};
pub(crate) use im2col::{Source, fill_rows};
pub(crate) use reference::{Operands, Rule, convolve, convolve_transposed};
pub(crate) use rows::{Cursor, EvenRows, MAX_SEGMENTS, MatrixRows, Segments};
pub(crate) use taps::{Taps, pixels, pixels_of};
#[cfg(target_arch = "x86_64")]
pub(crate) use tile::{Piece, each_row};

portable_kernel! {
    /// `conv/loops`: see [`convolve`] and [`convolve_transposed`].
    LOOPS = "conv/loops",
    operations: [Conv2d, DepthwiseConv2d, FullyConnected, GroupedConv2d, TransposeConv2d],
    types: [TensorFloat32, TensorFloat16, TensorQuant8Asymm, TensorQuant8AsymmSigned],
}

//! Long short-term memory cells: on floats as they are defined and with packed weights, and two kinds
//! on integers.

use crate::kernels::simd::portable_kernel;

mod dispatch;
mod fixed_point;
pub(crate) mod float;
mod packed;
pub(crate) mod quant16;
pub(crate) mod quant8;
mod step;
#[cfg(test)]
pub(super) mod tests;

pub(crate) use dispatch::{GATES, QUANT8, quant8_step};
pub(crate) use packed::{LayerSizes, PackedLstm};

portable_kernel! {
    /// `lstm/float`: see [`float::Lstm::step`].
    FLOAT = "lstm/float",
    operations: [BidirectionalSequenceLstm, Lstm, UnidirectionalSequenceLstm],
    types: [TensorFloat32, TensorFloat16],
}

portable_kernel! {
    /// `lstm/quant16`: see [`quant16::Lstm16::step`].
    QUANT16 = "lstm/quant16",
    operations: [Quantized16bitLstm],
    types: [TensorQuant8Asymm, TensorQuant16Symm],
}

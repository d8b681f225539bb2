//! Resizing pictures: bilinear and nearest neighbour. Pictures are NHWC.

use crate::kernels::simd::portable_kernel;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod dispatch;
mod fixed;
mod portable;
mod reference;
#[cfg(test)]
pub(super) mod tests;

pub(crate) use dispatch::{BYTES, FLOATS, SIGNED, bytes, floats, signed};
pub(crate) use fixed::FixedWork;
pub(crate) use portable::{Work, fits};
pub(crate) use reference::{Alignment, Resize, ResizeAxis};

portable_kernel! {
    /// `resize/pixels`: see [`Resize::nearest`], [`Resize::bilinear`] and
    /// [`Resize::bilinear_fixed`].
    PIXELS = "resize/pixels",
    operations: [ResizeBilinear, ResizeNearestNeighbor],
    types: [TensorFloat32, TensorFloat16, TensorQuant8Asymm, TensorQuant8AsymmSigned],
}

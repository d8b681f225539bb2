//! Depthwise convolution of quantized NHWC images with one output per input channel: each channel has
//! its own filter, so that channels are what is computed side by side.
//!
//! Taps that fall outside of the image are left out of the loops, or, where taps are taken two by two,
//! read from a row of zeros, so that nothing is padded or checked inside of the loops.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod columns;
mod dispatch;
#[cfg(target_arch = "aarch64")]
mod neon;
mod pairs;
mod portable;
#[cfg(test)]
pub(super) mod tests;

pub(crate) use dispatch::{COLUMNS, DepthwiseInput, DepthwisePairs, PAIRS, ROWS, rows};
pub(crate) use portable::ByteFilter;

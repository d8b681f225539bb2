//! Depthwise convolution of NHWC images of floats with one output per input channel: each channel has
//! its own filter, so that channels are what is computed side by side.
//!
//! Taps that fall outside of the image are left out of the loops, so that nothing is padded or checked
//! inside of them.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod dispatch;
mod portable;
#[cfg(target_arch = "x86_64")]
mod runs;
#[cfg(test)]
pub(super) mod tests;

pub(crate) use dispatch::{ROWS, rows};
pub(crate) use portable::FloatFilter;

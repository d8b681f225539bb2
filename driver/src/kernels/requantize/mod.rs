//! From 32-bit sums to stored values: the last step of every quantized product.

use crate::kernels::simd::Isa;

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
mod dispatch;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
mod portable;
#[cfg(test)]
pub(super) mod tests;

pub(crate) use dispatch::ROWS;
pub(crate) use portable::{Channels, Requantize, shifts_of};

impl Requantize {
    /// Turns rows of sums, one column per channel, into stored values (of either sign, as bytes).
    /// `row_terms` holds a number per row that is added to all its sums; empty: none.
    pub(crate) fn rows(&self, isa: Isa, sums: &[i32], row_terms: &[i32], out: &mut [u8]) {
        let width = self.bias.len();
        if width == 0 {
            return;
        }
        dispatch::rows(isa, self.channels(0..width), sums, row_terms, out);
    }
}

//! Floats as quantized values of 8 bits, and back.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod dispatch;
mod portable;
#[cfg(test)]
pub(super) mod tests;

pub(crate) use dispatch::{BYTES, FLOATS, bytes, floats};
pub(crate) use portable::stored;

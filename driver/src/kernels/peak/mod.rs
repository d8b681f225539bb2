//! How many multiplications a thread can add up at best: loops of nothing else, in registers.
//!
//! No operation uses these. What a kernel reaches is compared with them.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx_vnni;
mod dispatch;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

pub(crate) use dispatch::{bytes, floats};

/// Registers that are added up in; enough of them that none waits for itself.
const SUMS: usize = 16;

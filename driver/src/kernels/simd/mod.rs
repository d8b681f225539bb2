//! What kernels for instruction sets stand on: which sets there are ([`Isa`]), how a kernel announces
//! itself and is called ([`kernel!`]), and loads and stores on arrays and slices.
//!
//! Kernels themselves lie in the folders of their families. The rules of all `unsafe` here and there
//! (`docs/decisions/0012-unsafe-in-kernels.md`):
//!
//! 1. A function with `#[target_feature]` is called only after the CPU was asked for those features;
//!    what a caller says in an [`Isa`] can only take features away.
//! 2. Functions are safe to call: slices are checked before a pointer is made of them. A mask that
//!    names more lanes than there are elements ends in a panic, one that is no run of low bits is
//!    not made anywhere.
//! 3. Instructions of Arm whose intrinsics the oldest supported compiler does not have are assembly of one
//!    instruction, from registers to a register.
#![allow(
    unsafe_code,
    reason = "loads and stores, instructions, and calls for instruction sets that are checked"
)]

mod announcement;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
mod isa;
mod lines;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;

#[cfg(target_arch = "aarch64")]
pub(crate) use announcement::neon_or_on;
#[cfg(target_arch = "x86_64")]
pub(crate) use announcement::own_or;
pub(crate) use announcement::{KernelInfo, kernel, level_of, portable_kernel};
pub use isa::Isa;
#[cfg(target_arch = "x86_64")]
pub(crate) use isa::has_avx512;
#[cfg(test)]
pub(crate) use isa::pretended::on_both_widths;
pub(crate) use isa::{Level, has_avx_vnni, has_avx2, has_dotprod, has_halved_vnni, has_vnni};
#[cfg(target_arch = "aarch64")]
pub(crate) use isa::{has_i8mm, has_neon};
pub(crate) use lines::Lines;

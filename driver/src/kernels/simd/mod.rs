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
#![allow(unsafe_code, reason = "loads and stores, and calls for instruction sets that are checked")]

mod announcement;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
mod isa;

pub(crate) use announcement::{KernelInfo, kernel, level_of, own_or, portable_kernel};
pub use isa::Isa;
pub(crate) use isa::{Level, has_avx_vnni, has_avx2, has_avx512, has_vnni};

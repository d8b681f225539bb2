//! The position of the largest of a few bytes, by one comparison for all: value and position make
//! one number, in which the earlier of two equal values is the larger.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod dispatch;
mod portable;
#[cfg(test)]
pub(super) mod tests;

pub(crate) use dispatch::{POSITIONS, positions};
pub(crate) use portable::MAX_LEN;

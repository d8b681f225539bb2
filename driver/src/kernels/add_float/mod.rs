//! Sums of two tensors of floats of one shape.

mod dispatch;
mod portable;
#[cfg(test)]
pub(super) mod tests;

pub(crate) use dispatch::{ADDENDS, SUMS, add_to, sums};
pub(crate) use portable::held;

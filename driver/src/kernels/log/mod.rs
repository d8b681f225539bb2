//! Natural logarithms of floats.

mod dispatch;
mod portable;
#[cfg(test)]
pub(super) mod tests;

pub(crate) use dispatch::{FLOATS, floats};
pub(crate) use portable::ln;

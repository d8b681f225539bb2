//! Functions of one float, in operations that vectors have: no branch, no table, no call, and the same bits on every
//! machine.

mod dispatch;
mod exponential;
mod logarithm;
mod sigmoid;
#[cfg(test)]
pub(super) mod tests;

pub(crate) use dispatch::{EXP, LN, LOGISTIC, TANH, exp_all, ln_all, logistic_all, tanh_all};
pub(crate) use exponential::exp;
pub(crate) use logarithm::ln;
pub(crate) use sigmoid::{logistic, tanh};

/// Applies a function to each value; both slices have as many.
#[inline(always)]
fn apply(function: impl Fn(f32) -> f32, values: &[f32], out: &mut [f32]) {
    for (out, value) in out.iter_mut().zip(values) {
        *out = function(*value);
    }
}

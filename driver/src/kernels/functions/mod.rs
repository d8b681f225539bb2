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

/// `ln 2` in two parts, of which the first has few bits, so that multiples of it by exponents are exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// Applies a function to each value; both slices have as many.
#[inline(always)]
fn apply(function: impl Fn(f32) -> f32, values: &[f32], out: &mut [f32]) {
    for (out, value) in out.iter_mut().zip(values) {
        *out = function(*value);
    }
}

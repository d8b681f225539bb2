//! Activation functions, SOFTMAX among them.

use crate::OpError;
use crate::op::{OpDef, Run, Signature};
use crate::ops::reduce::axes;

mod clamp;
pub mod elu;
pub mod hard_swish;
pub mod log_softmax;
pub mod logistic;
pub mod relu;
pub mod relu1;
pub mod relu6;
pub mod softmax;
pub mod tanh;
#[cfg(test)]
mod tests;
mod unary;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[
    &elu::DEF,
    &hard_swish::DEF,
    &log_softmax::DEF,
    &logistic::DEF,
    &relu::DEF,
    &relu1::DEF,
    &relu6::DEF,
    &softmax::DEF,
    &tanh::DEF,
];

/// Most dimensions of the older operations here.
const MAX_RANK: usize = 4;

/// The input has at most [`MAX_RANK`] dimensions, where the model says how many.
fn expect_input_rank(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    let rank = signature.input(0).map_or(0, |input| input.dimensions.len());
    signature.rule(rank <= MAX_RANK, "the input has more than 4 dimensions")
}

/// A factor of exponents, which must be above 0.
fn positive_beta(beta: f32) -> Result<f32, OpError> {
    if beta > 0.0 { Ok(beta) } else { Err(OpError::Range { what: "beta" }) }
}

/// The axis that the scalar at input `index` gives, or the last one.
fn optional_axis(run: &Run<'_, '_>, index: usize, rank: usize) -> Result<usize, OpError> {
    let axis = run.optional(index).map_or(Ok(-1), |axis| axis.scalar_i32())?;
    axes::resolve(axis, rank)
}

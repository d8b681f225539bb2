//! Activation functions, SOFTMAX among them.

use crate::OpError;
use crate::op::{OpDef, Operands};
use crate::ops::attributes::{Axis, positive_float};

mod clamp;
pub mod elu;
mod float_lanes;
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

/// The attributes of SOFTMAX and LOG_SOFTMAX.
#[derive(Debug, Clone, Copy)]
struct SoftmaxAttributes {
    /// The axis that is summed up along.
    axis: Axis,
    /// A factor of exponents, above 0 and finite.
    beta: f32,
}

impl SoftmaxAttributes {
    fn parse(operands: &dyn Operands) -> Result<Self, OpError> {
        let axis = Axis::optional(operands, 2)?;
        let beta = positive_float(operands, 1, "beta")?;
        Ok(SoftmaxAttributes { axis, beta })
    }
}

//! Activations and other functions of one value that neural networks use: RELU and its kin, LOGISTIC, TANH, ELU, HARD_SWISH, SOFTMAX, LOG_SOFTMAX.

use crate::op::OpDef;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[];

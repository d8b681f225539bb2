//! Announces the kernels of this family. `kernel!` expands to calls of functions for instruction sets
//! that it asks the CPU for first.
#![allow(unsafe_code, reason = "calls for instruction sets that are checked first")]

use super::{exponential, logarithm, sigmoid};
use crate::kernels::simd::kernel;

kernel! {
    /// `e` to the power of each value, see [`exp`](super::exp).
    fn exp_all(values: &[f32], out: &mut [f32]);
    announced as EXP = "functions/exp",
    operations: [Exp, LogSoftmax, Softmax],
    types: [TensorFloat32, TensorFloat16],
    portable: exponential::exp_all,
}

kernel! {
    /// The natural logarithm of each value, see [`ln`](super::ln).
    fn ln_all(values: &[f32], out: &mut [f32]);
    announced as LN = "functions/ln",
    operations: [Log],
    types: [TensorFloat32],
    portable: logarithm::ln_all,
}

kernel! {
    /// The logistic function of each value, see [`logistic`](super::logistic).
    fn logistic_all(values: &[f32], out: &mut [f32]);
    announced as LOGISTIC = "functions/logistic",
    operations: [Logistic],
    types: [TensorFloat32],
    portable: sigmoid::logistic_all,
}

kernel! {
    /// The hyperbolic tangent of each value, see [`tanh`](super::tanh).
    fn tanh_all(values: &[f32], out: &mut [f32]);
    announced as TANH = "functions/tanh",
    operations: [Tanh],
    types: [TensorFloat32],
    portable: sigmoid::tanh_all,
}

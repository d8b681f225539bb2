//! Activations that are fused into an operation.

use burst_hal::FusedActivation;

use crate::OpError;
use crate::kernels::rnn::Activation;
use crate::op::Operands;

/// The fused activation whose code is the INT32 at input `index`.
///
/// # Errors
/// As [`Operands::i32`]; [`OpError::Value`] for a code outside of 0 to 3.
pub(crate) fn activation(
    operands: &dyn Operands,
    index: usize,
) -> Result<FusedActivation, OpError> {
    let code = operands.i32(index)?;
    FusedActivation::from_code(code).ok_or(OpError::value("fused activation", code))
}

/// The activation of a recurrent layer whose code is the INT32 at input `index`.
///
/// # Errors
/// As [`Operands::i32`]; [`OpError::Value`] for a code that no recurrent layer has.
pub(crate) fn recurrent_activation(
    operands: &dyn Operands,
    index: usize,
) -> Result<Activation, OpError> {
    let code = operands.i32(index)?;
    Activation::from_code(code).ok_or(OpError::value("activation of a recurrent layer", code))
}

//! Numbers that must be above 0.

use crate::OpError;
use crate::op::Operands;

/// The INT32 above 0 at input `index`; `what` names it in errors.
///
/// # Errors
/// As [`Operands::i32`]; [`OpError::Value`] when it is not above 0.
pub(crate) fn positive_i32(
    operands: &dyn Operands,
    index: usize,
    what: &'static str,
) -> Result<u32, OpError> {
    let value = operands.i32(index)?;
    u32::try_from(value).ok().filter(|value| *value > 0).ok_or(OpError::value(what, value))
}

/// The float above 0, not infinite and not NaN, at input `index`; `what` names it in errors.
///
/// # Errors
/// As [`Operands::float`]; [`OpError::Range`] for another number.
pub(crate) fn positive_float(
    operands: &dyn Operands,
    index: usize,
    what: &'static str,
) -> Result<f32, OpError> {
    let value = operands.float(index)?;
    if value > 0.0 && value.is_finite() { Ok(value) } else { Err(OpError::Range { what }) }
}

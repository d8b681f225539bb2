//! Numbers: those that must be above 0, and those that fill a tensor.

use burst_hal::OperandType;

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

/// A number to fill a tensor with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    /// A stored value.
    Int(i32),
    /// A real value.
    Float(f32),
}

impl Number {
    /// The INT32, FLOAT32 or FLOAT16 at input `index`.
    ///
    /// # Errors
    /// As [`Operands::i32`] and [`Operands::float`].
    pub(crate) fn parse(operands: &dyn Operands, index: usize) -> Result<Self, OpError> {
        match operands.ty(index) {
            Some(OperandType::Int32) => operands.i32(index).map(Number::Int),
            _ => operands.float(index).map(Number::Float),
        }
    }
}

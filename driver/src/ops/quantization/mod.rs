//! Changing the element type: QUANTIZE, DEQUANTIZE, CAST.

use crate::op::OpDef;

pub mod dequantize;
pub mod quantize;
pub(crate) mod rules;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[&dequantize::DEF, &quantize::DEF];

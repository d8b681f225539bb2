//! Changing the element type: QUANTIZE, DEQUANTIZE, CAST.

use crate::op::OpDef;

pub mod cast;
pub mod dequantize;
pub mod quantize;
pub(crate) mod rules;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[&cast::DEF, &dequantize::DEF, &quantize::DEF];

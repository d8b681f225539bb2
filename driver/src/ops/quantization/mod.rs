//! Changing the element type: QUANTIZE, DEQUANTIZE, CAST.

use crate::op::OpDef;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[];

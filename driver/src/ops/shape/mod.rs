//! Moving values without computing: reshape, transpose, pad, slice, join, split.

use crate::op::OpDef;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[];

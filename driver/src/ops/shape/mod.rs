//! Moving values without computing: reshape, transpose, pad, slice, join, split.

use crate::op::OpDef;

mod common;
pub mod reshape;
pub mod squeeze;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[&reshape::DEF, &squeeze::DEF];

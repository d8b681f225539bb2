//! Convolutions and fully connected layers.

use crate::op::OpDef;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[];

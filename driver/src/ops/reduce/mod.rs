//! Reductions over axes.

use crate::op::OpDef;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[];

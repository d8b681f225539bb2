//! Control flow and operations around it: IF, WHILE.

use crate::op::OpDef;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[];

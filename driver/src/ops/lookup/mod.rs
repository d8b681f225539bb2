//! Tables, hashes and random draws.

use crate::op::OpDef;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[];

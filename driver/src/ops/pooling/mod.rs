//! Pooling, resizing, normalisation over space or channels.

use crate::op::OpDef;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[];

//! Pooling, resizing, normalisation over space or channels.

use crate::op::OpDef;

pub mod average_pool_2d;
pub mod max_pool_2d;
mod window;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[&average_pool_2d::DEF, &max_pool_2d::DEF];

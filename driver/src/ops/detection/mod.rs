//! Boxes, regions, keypoints: what detection networks end in.

use crate::op::OpDef;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[];

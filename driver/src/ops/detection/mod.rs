//! Boxes, regions, keypoints: what detection networks end in.

use crate::op::OpDef;

pub mod box_with_nms_limit;
mod boxes;
mod reals;
mod regions;
pub mod roi_align;
pub mod roi_pooling;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[&box_with_nms_limit::DEF, &roi_align::DEF, &roi_pooling::DEF];

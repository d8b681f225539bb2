//! Boxes, regions, keypoints: what detection networks end in.

use crate::op::OpDef;

pub mod axis_aligned_bbox_transform;
pub mod box_with_nms_limit;
mod boxes;
pub mod detection_postprocessing;
pub mod generate_proposals;
pub mod heatmap_max_keypoint;
mod reals;
mod regions;
pub mod roi_align;
pub mod roi_pooling;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[
    &axis_aligned_bbox_transform::DEF,
    &box_with_nms_limit::DEF,
    &detection_postprocessing::DEF,
    &generate_proposals::DEF,
    &heatmap_max_keypoint::DEF,
    &roi_align::DEF,
    &roi_pooling::DEF,
];

//! Moving values without computing: reshape, transpose, pad, slice, join, split.

use crate::op::OpDef;

pub mod batch_to_space_nd;
mod blocks;
pub mod channel_shuffle;
mod common;
pub mod concatenation;
pub mod depth_to_space;
pub mod expand_dims;
pub mod fill;
pub mod gather;
pub mod pad;
pub mod pad_v2;
mod padding;
pub mod rank;
pub mod reshape;
pub mod slice;
pub mod space_to_batch_nd;
pub mod space_to_depth;
pub mod split;
pub mod squeeze;
pub mod strided_slice;
pub mod tile;
pub mod topk_v2;
pub mod transpose;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[
    &batch_to_space_nd::DEF,
    &channel_shuffle::DEF,
    &concatenation::DEF,
    &depth_to_space::DEF,
    &expand_dims::DEF,
    &fill::DEF,
    &gather::DEF,
    &pad::DEF,
    &pad_v2::DEF,
    &rank::DEF,
    &reshape::DEF,
    &slice::DEF,
    &space_to_batch_nd::DEF,
    &space_to_depth::DEF,
    &split::DEF,
    &squeeze::DEF,
    &strided_slice::DEF,
    &tile::DEF,
    &topk_v2::DEF,
    &transpose::DEF,
];

#[cfg(test)]
mod tests;

//! Pooling, resizing, normalisation over space or channels.

use burst_hal::HalVersion::V1_2;

use crate::op::{OpDef, Signature};

pub mod average_pool_2d;
pub mod instance_normalization;
pub mod l2_normalization;
pub mod l2_pool_2d;
pub mod local_response_normalization;
pub mod max_pool_2d;
pub mod resize_bilinear;
pub mod resize_nearest_neighbor;
mod resizing;
#[cfg(test)]
mod tests;
mod window;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[
    &average_pool_2d::DEF,
    &instance_normalization::DEF,
    &l2_normalization::DEF,
    &l2_pool_2d::DEF,
    &local_response_normalization::DEF,
    &max_pool_2d::DEF,
    &resize_bilinear::DEF,
    &resize_nearest_neighbor::DEF,
];

/// Most dimensions of an input that is normalised along an axis.
const MAX_RANK: usize = 4;

/// Before HAL 1.2 an input normalised along an axis has exactly 4 dimensions. That it never has more is for the
/// inference to say.
fn expect_lane_rank(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    let rank = signature.input(0).map_or(0, |input| input.dimensions.len());
    let old_rank = signature.version >= V1_2 || rank == MAX_RANK;
    signature.rule(old_rank, "before HAL 1.2 the input has 4 dimensions")
}

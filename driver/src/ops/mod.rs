//! The operations of the base range: one file each, one row each, grouped by family. A device looks
//! them up in its [`Registry`](crate::Registry).

use crate::op::OpDef;

pub mod activation;
mod attributes;
pub mod broadcast;
pub mod control;
pub mod conv;
pub mod detection;
pub mod elementwise;
mod float_map;
pub mod lookup;
pub mod pooling;
pub mod quantization;
mod rank_limit;
pub mod recurrent;
pub mod reduce;
pub mod shape;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod verdict_tests;

/// The tables of the families; each lists its operations.
static FAMILIES: &[&[&OpDef]] = &[
    activation::OPS,
    control::OPS,
    conv::OPS,
    detection::OPS,
    elementwise::OPS,
    lookup::OPS,
    pooling::OPS,
    quantization::OPS,
    recurrent::OPS,
    reduce::OPS,
    shape::OPS,
];

/// Every operation of the base range that this driver has, in no order.
pub fn all() -> impl Iterator<Item = &'static OpDef> {
    FAMILIES.iter().copied().flatten().copied()
}

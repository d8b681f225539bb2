//! Convolutions and fully connected layers.

use crate::OpError;
use crate::op::OpDef;
use crate::tensor::Args;

mod channel_blocks;
mod channels;
pub mod conv_2d;
pub mod depthwise_conv_2d;
mod dynamic_weights;
mod float_product;
mod forms;
pub mod fully_connected;
mod geometry;
pub mod grouped_conv_2d;
mod matrix;
mod quantized;
mod reference;
mod row_tiles;
#[cfg(test)]
mod test_support;
pub mod transpose_conv_2d;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[
    &conv_2d::DEF,
    &depthwise_conv_2d::DEF,
    &fully_connected::DEF,
    &grouped_conv_2d::DEF,
    &transpose_conv_2d::DEF,
];

/// Checks that input 2 is a vector of as many biases as there are output channels.
fn one_bias_per_channel(args: &Args<'_>, channels: usize) -> Result<(), OpError> {
    match args.dims(2)? {
        [count] if *count as usize == channels => Ok(()),
        other => Err(OpError::shape("one bias per output channel", other, args.dims(1)?)),
    }
}

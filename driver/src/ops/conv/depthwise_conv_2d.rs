//! DEPTHWISE_CONV_2D: slides a filter over each channel of the images by itself; each input channel
//! gives `multiplier` output channels.
//!
//! Inputs: images `[batches, height, width, depth_in]`, filter `[1, filter_height, filter_width,
//! depth_in * multiplier]`, bias `[depth_in * multiplier]`; then four paddings (explicit) or a
//! padding scheme (implicit), strides, the multiplier, the activation, and since 1.2 the layout and
//! the dilation.
//!
//! Source: NNAPI `types.hal`, `OperationType::DEPTHWISE_CONV_2D`.

use burst_hal::{OperandType, OperationType};

use crate::OpError;
use crate::kernels::conv::{Conv, Filter};
use crate::op::{Inferred, OpDef, OpTraits, PrepareContext, Prepared, Row, Run, Signature};
use crate::ops::conv::conv_2d::of_sizes;
use crate::ops::conv::quantized::{Scales, Task, check_filter};
use crate::ops::conv::reference;
use crate::ops::conv::rows::conv_rows;
use crate::ops::conv::window::{Form, Scalars, Window, four};
use crate::ops::conv::{channels, one_bias_per_channel};
use crate::tensor::Args;

/// The definition of DEPTHWISE_CONV_2D.
pub static DEF: OpDef = OpDef {
    code: OperationType::DepthwiseConv2d,
    validate,
    infer,
    prepare: Some(prepare),
    execute,
    traits: OpTraits::PLAIN,
};

const ROWS: &[Row] = conv_rows!(
    explicit [I32, I32, I32, I32, I32, I32, I32, I32, BOOL, I32, I32]
        counts [(11, V1_0), (12, V1_2), (14, V1_2)],
    implicit [I32, I32, I32, I32, I32, BOOL, I32, I32]
        counts [(8, V1_0), (9, V1_2), (11, V1_2)],
    since V1_0,
);

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_rows(ROWS)?;
    check_filter(signature, 3)
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    let window = window(args)?;
    let conv = geometry(&window, args.dims(0)?, args.dims(1)?)?;
    one_bias_per_channel(args, conv.filter.outputs)?;
    Scales::of_args(Task::Convolution, args)?.check(conv.filter.outputs)?;
    Ok(Inferred::one(window.dims_of(&conv.output)?))
}

fn prepare(args: &Args<'_>, context: &PrepareContext) -> Result<Option<Prepared>, OpError> {
    channels::prepare(args, &window(args)?, context)
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let window = window(run)?;
    let conv = geometry(&window, run.input(0)?.dims, run.input(1)?.dims)?;
    reference::execute(run, &conv, window.activation, Task::Convolution)
}

fn window(scalars: &impl Scalars) -> Result<Window, OpError> {
    // With 11 operands the one at 8 tells the forms apart: a stride, or the layout.
    let is_explicit = scalars.count() >= 11 && scalars.ty(8) == Some(OperandType::Int32);
    Window::read(scalars, Form { padding: 3, is_explicit, has_number: true })
}

/// The convolution that these operands ask for.
pub(super) fn geometry(window: &Window, input: &[u32], filter: &[u32]) -> Result<Conv, OpError> {
    let images = window.images(four("images of a depthwise convolution", input)?);
    let [one, height, width, outputs] = four("filter of a depthwise convolution", filter)?;
    if one != 1 || images.channels.checked_mul(window.number) != Some(outputs) {
        return Err(OpError::shape("channels of images, filter and multiplier", input, filter));
    }
    of_sizes(window, images, Filter::depthwise([height, width, outputs]), images.channels)
}

#[cfg(test)]
#[path = "depthwise_conv_2d_tests.rs"]
mod tests;

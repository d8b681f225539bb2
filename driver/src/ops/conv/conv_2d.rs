//! CONV_2D: slides a filter over images; each output channel is the sum of all input channels under
//! the filter, weighted, plus a bias, through an activation.
//!
//! Inputs: images `[batches, height, width, depth_in]`, filter `[depth_out, filter_height,
//! filter_width, depth_in]`, bias `[depth_out]`; then four paddings (explicit) or a padding scheme
//! (implicit), strides, the activation, and since 1.2 the layout and the dilation.
//!
//! Source: NNAPI `types.hal`, `OperationType::CONV_2D`.

use burst_hal::OperationType;

use crate::OpError;
use crate::kernels::conv::{Conv, Filter, Images};
use crate::op::{Inferred, OpDef, OpTraits, PrepareContext, Prepared, Row, Run, Signature};
use crate::ops::conv::matrix::{self, Rows};
use crate::ops::conv::one_bias_per_channel;
use crate::ops::conv::quantized::{Scales, Task, check_filter};
use crate::ops::conv::reference;
use crate::ops::conv::rows::conv_rows;
use crate::ops::conv::window::{Form, Scalars, Window, four};
use crate::tensor::Args;

/// The definition of CONV_2D.
pub static DEF: OpDef = OpDef {
    code: OperationType::Conv2d,
    validate,
    infer,
    prepare: Some(prepare),
    execute,
    traits: OpTraits::PLAIN,
};

const ROWS: &[Row] = conv_rows!(
    explicit [I32, I32, I32, I32, I32, I32, I32, BOOL, I32, I32]
        counts [(10, V1_0), (11, V1_2), (13, V1_2)],
    implicit [I32, I32, I32, I32, BOOL, I32, I32]
        counts [(7, V1_0), (8, V1_2), (10, V1_2)],
    since V1_0,
);

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_rows(ROWS)?;
    check_filter(signature, 0)
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    let window = window(args)?;
    let conv = geometry(&window, args.dims(0)?, args.dims(1)?)?;
    one_bias_per_channel(args, conv.filter.outputs)?;
    Scales::of_args(Task::Convolution, args)?.check(conv.filter.outputs)?;
    Ok(Inferred::one(window.dims_of(&conv.output)?))
}

fn prepare(args: &Args<'_>, context: &PrepareContext) -> Result<Option<Prepared>, OpError> {
    let window = window(args)?;
    matrix::prepare(args, Rows::Images(window), window.activation, context)
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let window = window(run)?;
    let conv = geometry(&window, run.input(0)?.dims, run.input(1)?.dims)?;
    reference::execute(run, &conv, window.activation, Task::Convolution)
}

fn window(scalars: &impl Scalars) -> Result<Window, OpError> {
    // With 10 operands the one at 7 tells the forms apart: a stride, or the layout.
    let is_explicit = scalars.count() >= 10 && scalars.ty(7) == Some(burst_hal::OperandType::Int32);
    Window::read(scalars, Form { padding: 3, is_explicit, has_number: false })
}

/// The convolution that these operands ask for.
pub(super) fn geometry(window: &Window, input: &[u32], filter: &[u32]) -> Result<Conv, OpError> {
    let images = window.images(four("images of a convolution", input)?);
    let taps = four("filter of a convolution", filter)?;
    if taps[0] == 0 || taps[3] != images.channels {
        return Err(OpError::shape("channels of images and filter", input, filter));
    }
    of_sizes(window, images, Filter::dense(taps), 1)
}

/// A convolution of these images by this filter.
pub(super) fn of_sizes(
    window: &Window,
    input: Images,
    filter: Filter,
    groups: usize,
) -> Result<Conv, OpError> {
    let (vertical, height) = window.slide(0, input.height, filter.height)?;
    let (horizontal, width) = window.slide(1, input.width, filter.width)?;
    let sizes = [input.batches, height, width, filter.outputs];
    sizes
        .iter()
        .try_fold(1usize, |count, size| count.checked_mul(*size))
        .ok_or(OpError::Range { what: "output size of a convolution" })?;
    let output = window.images_of(sizes);
    Ok(Conv { input, filter, output, vertical, horizontal, groups })
}

#[cfg(test)]
#[path = "conv_2d_tests.rs"]
mod tests;

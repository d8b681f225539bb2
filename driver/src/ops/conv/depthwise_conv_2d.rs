//! DEPTHWISE_CONV_2D: slides a filter over each channel of the images by itself; each input channel
//! gives `multiplier` output channels.
//!
//! Inputs: images `[batches, height, width, depth_in]`, filter `[1, filter_height, filter_width,
//! depth_in * multiplier]`, bias `[depth_in * multiplier]`; then four paddings (explicit) or a
//! padding scheme (implicit), strides, the multiplier, the activation, and since 1.2 the layout and
//! the dilation.
//!
//! Source: NNAPI `types.hal`, `OperationType::DEPTHWISE_CONV_2D`.

use burst_hal::OperationType;

use crate::OpError;
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, PrepareContext, Prepared, Run, Signature,
    WithAttributes,
};
use crate::ops::attributes::{ConvAttributes, ConvForm};
use crate::ops::conv::dynamic_weights::Dynamic;
use crate::ops::conv::forms::conv_forms;
use crate::ops::conv::quantized::{Task, check_filter};
use crate::ops::conv::{channels, geometry, reference};
use crate::tensor::Args;

/// The definition of DEPTHWISE_CONV_2D.
pub static DEF: OpDef = OpDef {
    code: OperationType::DepthwiseConv2d,
    validate,
    body: &WithAttributes { parse, infer, prepare: Some(prepare), execute },
    traits: OpTraits::PLAIN,
};

const FORMS: &[Form] = conv_forms!(
    explicit [I32, I32, I32, I32, I32, I32, I32, I32, BOOL, I32, I32]
        counts [(11, V1_0), (12, V1_2), (14, V1_2)],
    implicit [I32, I32, I32, I32, I32, BOOL, I32, I32]
        counts [(8, V1_0), (9, V1_2), (11, V1_2)],
    since V1_0,
);

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)?;
    check_filter(signature, 3)
}

fn parse(operands: &dyn Operands) -> Result<ConvAttributes, OpError> {
    let is_explicit = ConvForm::is_explicit(operands, 11, 8);
    ConvAttributes::parse(operands, ConvForm { padding: 3, is_explicit, has_number: true })
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, ConvAttributes>) -> Result<Inferred, OpError> {
    geometry::infer(args, attributes, geometry::depthwise)
}

fn prepare(
    args: &Args<'_>,
    attributes: &ConvAttributes,
    context: &PrepareContext<'_>,
) -> Result<Option<Prepared>, OpError> {
    Dynamic { prepare: channels::prepare, execute }.prepared(args, attributes, context)
}

fn execute(run: &mut Run<'_, '_>, attributes: &ConvAttributes) -> Result<(), OpError> {
    let conv = geometry::depthwise(attributes, run.input(0)?.dims, run.input(1)?.dims)?;
    reference::execute(run, &conv, attributes.activation, Task::Convolution)
}

#[cfg(test)]
#[path = "depthwise_conv_2d_tests.rs"]
mod tests;

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
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, PrepareContext, PrepareWith, Prepared, Run,
    Signature, WithAttributes,
};
use crate::ops::attributes::{ConvAttributes, ConvForm};
use crate::ops::conv::dynamic_weights::Dynamic;
use crate::ops::conv::forms::conv_forms;
use crate::ops::conv::matrix;
use crate::ops::conv::quantized::{Task, check_filter};
use crate::ops::conv::row_tiles::Rows;
use crate::ops::conv::{geometry, reference};
use crate::tensor::Args;

/// The definition of CONV_2D.
pub static DEF: OpDef = OpDef {
    code: OperationType::Conv2d,
    validate,
    body: &WithAttributes { parse, infer, prepare: Some(prepare), execute },
    traits: OpTraits::PLAIN,
};

const FORMS: &[Form] = conv_forms!(
    explicit [I32, I32, I32, I32, I32, I32, I32, BOOL, I32, I32]
        counts [(10, V1_0), (11, V1_2), (13, V1_2)],
    implicit [I32, I32, I32, I32, BOOL, I32, I32]
        counts [(7, V1_0), (8, V1_2), (10, V1_2)],
    since V1_0,
);

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)?;
    check_filter(signature, 0)
}

fn parse(operands: &dyn Operands) -> Result<ConvAttributes, OpError> {
    let is_explicit = ConvForm::is_explicit(operands, 10, 7);
    ConvAttributes::parse(operands, ConvForm { padding: 3, is_explicit, has_number: false })
}

fn infer(args: &Args<'_>, attributes: Parsed<'_, ConvAttributes>) -> Result<Inferred, OpError> {
    geometry::infer(args, attributes, geometry::dense)
}

fn prepare(
    args: &Args<'_>,
    attributes: &ConvAttributes,
    context: &PrepareContext<'_>,
) -> Result<Option<Prepared>, OpError> {
    let prepare: PrepareWith<ConvAttributes> = |args, attributes, context| {
        matrix::prepare(args, Rows::Images(*attributes), attributes.activation, context)
    };
    Dynamic { prepare, execute }.prepared(args, attributes, context)
}

fn execute(run: &mut Run<'_, '_>, attributes: &ConvAttributes) -> Result<(), OpError> {
    let conv = geometry::dense(attributes, run.input(0)?.dims, run.input(1)?.dims)?;
    reference::execute(run, &conv, attributes.activation, Task::Convolution)
}

#[cfg(test)]
#[path = "conv_2d_tests.rs"]
mod tests;

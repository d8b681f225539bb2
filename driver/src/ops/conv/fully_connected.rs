//! FULLY_CONNECTED: each output is the weighted sum of all inputs of its batch, plus a bias,
//! through an activation.
//!
//! Inputs: a tensor of rank 2 to 4 that is read as `[batches, inputs]`, weights `[units, inputs]`,
//! bias `[units]`, the activation. Output: `[batches, units]`.
//!
//! Source: NNAPI `types.hal`, `OperationType::FULLY_CONNECTED`.

use burst_hal::HalVersion::{V1_0, V1_2, V1_3};
use burst_hal::{FusedActivation, HalVersion, OperandType, OperationType};

use crate::OpError;
use crate::op::types::{I32, TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, PrepareContext, PrepareWith, Prepared, Run,
    Signature, WithAttributes,
};
use crate::ops::attributes::activation;
use crate::ops::conv::dynamic_weights::Dynamic;
use crate::ops::conv::matrix;
use crate::ops::conv::quantized::Task;
use crate::ops::conv::row_tiles::Rows;
use crate::ops::conv::{geometry, reference};
use crate::tensor::Args;

/// The definition of FULLY_CONNECTED.
pub static DEF: OpDef = OpDef {
    code: OperationType::FullyConnected,
    validate,
    body: &WithAttributes { parse, infer, prepare: Some(prepare), execute },
    traits: OpTraits::PLAIN,
};

const FORMS: &[Form] = &[
    Form::new(V1_0, &[TF32, TF32, TF32, I32], &[TF32]),
    Form::new(V1_0, &[TQ8, TQ8, TI32, I32], &[TQ8]),
    Form::new(V1_2, &[TF16, TF16, TF16, I32], &[TF16]),
    Form::new(V1_3, &[TQ8S, TQ8S, TI32, I32], &[TQ8S]),
];

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)?;
    let [Some(input), Some(weights), Some(output)] =
        [signature.input(0), signature.input(1), signature.output(0)]
    else {
        return Ok(());
    };
    let needs_large_scale =
        signature.version < HalVersion::V1_2 && input.ty == OperandType::TensorQuant8Asymm;
    signature.rule(
        !needs_large_scale || output.scale > input.scale * weights.scale,
        "before HAL 1.2 the scale of the output must be above that of input times weights",
    )?;
    let Some(bias) = signature.input(2) else { return Ok(()) };
    expect_shapes(signature, &input.dimensions, &weights.dimensions, &bias.dimensions)
}

/// The declared shapes go together, as far as they are known: nothing is said unless all three ranks are, and then of
/// each number only where it is.
fn expect_shapes(
    signature: &Signature<'_>,
    input: &[u32],
    weights: &[u32],
    bias: &[u32],
) -> Result<(), crate::SignatureError> {
    if input.is_empty() || weights.is_empty() || bias.is_empty() {
        return Ok(());
    }
    signature.rule((2..=4).contains(&input.len()), "the input has 2 to 4 dimensions")?;
    let (&[units, inputs], &[biases]) = (weights, bias) else {
        return signature.rule(false, "weights have 2 dimensions and a bias has 1");
    };
    let are_known = |sizes: &[u32]| !sizes.contains(&0);
    signature.rule(
        units == biases || !are_known(&[units, biases]),
        "the bias has a number for each unit",
    )?;
    // Four sizes of 32 bits.
    let elements: u128 = input.iter().map(|size| u128::from(*size)).product();
    signature.rule(
        !are_known(input) || !are_known(&[inputs]) || elements.is_multiple_of(inputs.into()),
        "the input is whole batches",
    )
}

fn parse(operands: &dyn Operands) -> Result<FusedActivation, OpError> {
    activation(operands, 3)
}

fn infer(args: &Args<'_>, activation: Parsed<'_, FusedActivation>) -> Result<Inferred, OpError> {
    let layer = geometry::fully_connected(args.dims(0)?, args.dims(1)?)?;
    activation?;
    geometry::check_operands(args, &layer, Task::FullyConnected)?;
    let [batches, units] = [layer.output.batches, layer.output.channels]
        .map(|size| u32::try_from(size).map_err(|_| OpError::Range { what: "output size" }));
    Ok(Inferred::one([batches?, units?].as_slice()))
}

fn prepare(
    args: &Args<'_>,
    activation: &FusedActivation,
    context: &PrepareContext<'_>,
) -> Result<Option<Prepared>, OpError> {
    let prepare: PrepareWith<FusedActivation> =
        |args, activation, context| matrix::prepare(args, Rows::Batches, *activation, context);
    Dynamic { prepare, execute }.prepared(args, activation, context)
}

fn execute(run: &mut Run<'_, '_>, activation: &FusedActivation) -> Result<(), OpError> {
    let layer = geometry::fully_connected(run.input(0)?.dims, run.input(1)?.dims)?;
    reference::execute(run, &layer, *activation, Task::FullyConnected)
}

#[cfg(test)]
#[path = "fully_connected_tests.rs"]
mod tests;

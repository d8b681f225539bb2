//! FULLY_CONNECTED: each output is the weighted sum of all inputs of its batch, plus a bias,
//! through an activation.
//!
//! Inputs: a tensor of rank 2 to 4 that is read as `[batches, inputs]`, weights `[units, inputs]`,
//! bias `[units]`, the activation. Output: `[batches, units]`.
//!
//! Source: NNAPI `types.hal`, `OperationType::FULLY_CONNECTED`.

use burst_hal::HalVersion::{V1_0, V1_2, V1_3};
use burst_hal::{HalVersion, OperandType, OperationType};

use crate::OpError;
use crate::kernels::conv::{Axis, Conv, Filter, Images};
use crate::kernels::quant::activation;
use crate::op::types::{I32, TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{Inferred, OpDef, OpTraits, PrepareContext, Prepared, Row, Run, Signature};
use crate::ops::conv::matrix::{self, Rows};
use crate::ops::conv::one_bias_per_channel;
use crate::ops::conv::quantized::{Scales, Task};
use crate::ops::conv::reference;
use crate::tensor::{Args, element_count};

/// The definition of FULLY_CONNECTED.
pub static DEF: OpDef = OpDef {
    code: OperationType::FullyConnected,
    validate,
    infer,
    prepare: Some(prepare),
    execute,
    traits: OpTraits::PLAIN,
};

const ROWS: &[Row] = &[
    Row::new(V1_0, &[TF32, TF32, TF32, I32], &[TF32]),
    Row::new(V1_0, &[TQ8, TQ8, TI32, I32], &[TQ8]),
    Row::new(V1_2, &[TF16, TF16, TF16, I32], &[TF16]),
    Row::new(V1_3, &[TQ8S, TQ8S, TI32, I32], &[TQ8S]),
];

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_rows(ROWS)?;
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
    )
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    let layer = geometry(args.dims(0)?, args.dims(1)?)?;
    one_bias_per_channel(args, layer.filter.outputs)?;
    activation(args.i32(3)?)?;
    Scales::of_args(Task::FullyConnected, args)?.check(layer.filter.outputs)?;
    let [batches, units] = [layer.output.batches, layer.output.channels]
        .map(|size| u32::try_from(size).map_err(|_| OpError::Range { what: "output size" }));
    Ok(Inferred::one([batches?, units?].as_slice()))
}

fn prepare(args: &Args<'_>, context: &PrepareContext) -> Result<Option<Prepared>, OpError> {
    matrix::prepare(args, Rows::Batches, activation(args.i32(3)?)?, context)
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let layer = geometry(run.input(0)?.dims, run.input(1)?.dims)?;
    let activation = activation(run.i32(3)?)?;
    reference::execute(run, &layer, activation, Task::FullyConnected)
}

/// The layer as a convolution of images of one pixel.
pub(super) fn geometry(input: &[u32], weights: &[u32]) -> Result<Conv, OpError> {
    let mismatch =
        || OpError::shape("input and weights of a fully connected layer", input, weights);
    let [units, inputs] = *weights else { return Err(mismatch()) };
    if !(2..=4).contains(&input.len()) || units == 0 || inputs == 0 {
        return Err(mismatch());
    }
    let (units, inputs) = (units as usize, inputs as usize);
    let values = element_count(input)?;
    if !values.is_multiple_of(inputs) {
        return Err(mismatch());
    }
    let batches = values / inputs;
    let still = Axis { stride: 1, dilation: 1, pad: 0 };
    Ok(Conv {
        input: Images::nhwc([batches, 1, 1, inputs]),
        filter: Filter::dense([units, 1, 1, inputs]),
        output: Images::nhwc([batches, 1, 1, units]),
        vertical: still,
        horizontal: still,
        groups: 1,
    })
}

#[cfg(test)]
#[path = "fully_connected_tests.rs"]
mod tests;

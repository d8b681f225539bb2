//! GATHER: slices along one axis, chosen by index.
//!
//! Inputs: a tensor, an axis (INT32; below 0 counts from the end), a tensor of indices (INT32).
//! Output: the dimensions before the axis, those of the indices, those after the axis. An index
//! outside of the axis (below 0 included) fails the execution.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::GATHER`.

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::{Dimensions, OperationType};

use super::common;
use crate::op::types::{I32, TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, WithAttributes,
};
use crate::ops::attributes::Axis;
use crate::ops::quantization::rules::expect_same_outputs;
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of GATHER.
pub static DEF: OpDef = OpDef {
    code: OperationType::Gather,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TF32, I32, TI32], &[TF32]),
    Form::new(V1_2, &[TF16, I32, TI32], &[TF16]),
    Form::new(V1_2, &[TI32, I32, TI32], &[TI32]),
    Form::new(V1_2, &[TQ8, I32, TI32], &[TQ8]),
    Form::new(V1_3, &[TQ8S, I32, TI32], &[TQ8S]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

fn parse(operands: &dyn Operands) -> Result<Axis, OpError> {
    Axis::required(operands, 1)
}

fn infer(args: &Args<'_>, axis: Parsed<'_, Axis>) -> Result<Inferred, OpError> {
    expect_same_outputs(args, 0)?;
    let dims = args.dims(0)?;
    let axis = axis?.position(dims.len())?;
    let indices = args.dims(2)?;
    common::check_rank(dims.len() - 1 + indices.len())?;
    let mut shape = Dimensions::from_slice(&dims[..axis]);
    shape.extend_from_slice(indices);
    shape.extend_from_slice(&dims[axis + 1..]);
    Ok(Inferred::one(shape))
}

fn execute(run: &mut Run<'_, '_>, axis: &Axis) -> Result<(), OpError> {
    if common::writes_nothing(run)? {
        return Ok(());
    }
    let input = run.input(0)?;
    let axis = axis.position(input.dims.len())?;
    let indices = run.input(2)?.i32()?;
    let (_, along, after) = common::around(input.dims, axis);
    for index in indices {
        if usize::try_from(*index).map_or(true, |index| index >= along) {
            return Err(OpError::value("index to gather", *index));
        }
    }
    let slice = after * common::width(input.info.ty)?;
    let mut checkpoints = run.stop.checkpoints();
    let bytes = input.bytes.ok_or(OpError::Omitted { index: 0 })?;
    let out = run.output(0)?.bytes_mut();
    let parts = out.chunks_exact_mut(slice * indices.len()).zip(bytes.chunks_exact(slice * along));
    for (out, input) in parts {
        for (out, index) in out.chunks_exact_mut(slice).zip(indices) {
            checkpoints.after(common::copy_steps(slice))?;
            // Checked above to be a position along the axis.
            let start = usize::try_from(*index).unwrap_or_default() * slice;
            out.copy_from_slice(&input[start..start + slice]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;
    use crate::ops::testing::{Tensor, run_one};

    fn gather(axis: i32, indices: Tensor) -> Result<Tensor, OpError> {
        let input = Tensor::i32(&[2, 3, 2], &[0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121]);
        let out = Tensor::output(OperandType::TensorInt32);
        run_one(&DEF, &[input, Tensor::scalar_i32(axis), indices], out)
    }

    #[test]
    fn slices_come_in_the_order_of_the_indices() {
        let got = gather(1, Tensor::i32(&[2], &[2, 0])).unwrap();
        assert_eq!(got.dims.as_slice(), [2, 2, 2]);
        assert_eq!(got.values::<i32>(), [20, 21, 0, 1, 120, 121, 100, 101]);
        let got = gather(-1, Tensor::i32(&[1, 3], &[1, 1, 0])).unwrap();
        assert_eq!(got.dims.as_slice(), [2, 3, 1, 3]);
        assert_eq!(got.values::<i32>()[..6], [1, 1, 0, 11, 11, 10]);
        let got = gather(0, Tensor::i32(&[1], &[1])).unwrap();
        assert_eq!(got.values::<i32>(), [100, 101, 110, 111, 120, 121]);
    }

    #[test]
    fn narrow_elements_are_moved_whole() {
        let got = run_one(
            &DEF,
            &[
                Tensor::f16(&[3], &[1.0, 2.0, 3.0]),
                Tensor::scalar_i32(0),
                Tensor::i32(&[2], &[2, 1]),
            ],
            Tensor::output(OperandType::TensorFloat16),
        );
        assert_eq!(got.unwrap().halves(), [3.0, 2.0]);
    }

    #[test]
    fn an_index_outside_fails_the_execution() {
        for bad in [3, -1, i32::MAX, i32::MIN] {
            let got = gather(1, Tensor::i32(&[2], &[0, bad])).map(|_| ());
            assert_eq!(got, Err(OpError::value("index to gather", bad)));
        }
        assert!(gather(3, Tensor::i32(&[1], &[0])).is_err());
    }
}

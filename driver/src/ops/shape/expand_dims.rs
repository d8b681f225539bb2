//! EXPAND_DIMS: inserts a dimension of size 1.
//!
//! Inputs: a tensor of `n` dimensions, an axis (INT32, `-(n + 1)..=n`; below 0 counts from the end
//! of the new shape). Output: the tensor with the new dimension at that axis.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::EXPAND_DIMS`.

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

/// The definition of EXPAND_DIMS.
pub static DEF: OpDef = OpDef {
    code: OperationType::ExpandDims,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TF32, I32], &[TF32]),
    Form::new(V1_2, &[TF16, I32], &[TF16]),
    Form::new(V1_2, &[TI32, I32], &[TI32]),
    Form::new(V1_2, &[TQ8, I32], &[TQ8]),
    Form::new(V1_3, &[TQ8S, I32], &[TQ8S]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

fn parse(operands: &dyn Operands) -> Result<Axis, OpError> {
    Axis::required(operands, 1)
}

fn infer(args: &Args<'_>, axis: Parsed<'_, Axis>) -> Result<Inferred, OpError> {
    expect_same_outputs(args, 0)?;
    let mut dims = Dimensions::from_slice(args.dims(0)?);
    common::check_rank(dims.len() + 1)?;
    let axis = axis?.position(dims.len() + 1)?;
    dims.insert(axis, 1);
    Ok(Inferred::one(dims))
}

fn execute(run: &mut Run<'_, '_>, _: &Axis) -> Result<(), OpError> {
    common::copy(run)
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;
    use crate::ops::testing::{Tensor, run_one};

    #[test]
    fn a_dimension_of_one_appears() {
        let expand = |axis| {
            let inputs = [Tensor::i32(&[2, 3], &[1, 2, 3, 4, 5, 6]), Tensor::scalar_i32(axis)];
            let got = run_one(&DEF, &inputs, Tensor::output(OperandType::TensorInt32))?;
            assert_eq!(got.values::<i32>(), [1, 2, 3, 4, 5, 6]);
            Ok::<_, OpError>(got.dims.to_vec())
        };
        for (axis, want) in [
            (0, [1, 2, 3]),
            (1, [2, 1, 3]),
            (2, [2, 3, 1]),
            (-1, [2, 3, 1]),
            (-2, [2, 1, 3]),
            (-3, [1, 2, 3]),
        ] {
            assert_eq!(expand(axis), Ok(want.to_vec()), "{axis}");
        }
        assert!(expand(3).is_err());
        assert!(expand(-4).is_err());
    }
}

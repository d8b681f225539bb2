//! FILL: a tensor of one value.
//!
//! Inputs: the shape (a list of INT32, not below 0), the value: a FLOAT32, FLOAT16 or INT32 scalar.
//! Output: a tensor of that shape and kind.
//!
//! Source: NNAPI 1.3 `types.hal`, `OperationType::FILL`.

use burst_hal::HalVersion::V1_3;
use burst_hal::OperationType;
use smallvec::SmallVec;

use super::common;
use crate::op::types::{F16, F32, I32, TF16, TF32, TI32};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, WithAttributes,
};
use crate::ops::attributes::{Number, list};
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of FILL.
pub static DEF: OpDef = OpDef {
    code: OperationType::Fill,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_3, &[TI32, F32], &[TF32]),
    Form::new(V1_3, &[TI32, F16], &[TF16]),
    Form::new(V1_3, &[TI32, I32], &[TI32]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

/// What to fill with.
fn parse(operands: &dyn Operands) -> Result<Number, OpError> {
    Number::parse(operands, 1)
}

fn infer(args: &Args<'_>, _: Parsed<'_, Number>) -> Result<Inferred, OpError> {
    let list = list(args, 0)?;
    if let Some(bad) = list.iter().find(|size| **size < 0) {
        return Err(OpError::value("size to fill", *bad));
    }
    let sizes: SmallVec<[i64; 8]> = list.iter().map(|size| (*size).into()).collect();
    Ok(Inferred::one(common::shape_of(&sizes)?))
}

fn execute(run: &mut Run<'_, '_>, number: &Number) -> Result<(), OpError> {
    common::fill(run.output(0)?, *number)
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;
    use crate::ops::testing::{Tensor, has_form, run_one};

    fn fill(dims: &[i32], value: Tensor, ty: OperandType) -> Result<Tensor, OpError> {
        let dims = Tensor::i32(&[u32::try_from(dims.len()).unwrap()], dims);
        run_one(&DEF, &[dims, value], Tensor::output(ty))
    }

    #[test]
    fn every_element_is_the_value() {
        let got = fill(&[2, 3], Tensor::scalar_f32(-1.5), OperandType::TensorFloat32).unwrap();
        assert_eq!(got.dims.as_slice(), [2, 3]);
        assert_eq!(got.values::<f32>(), [-1.5; 6]);
        let got = fill(&[2], Tensor::scalar_f16(0.25), OperandType::TensorFloat16).unwrap();
        assert_eq!(got.halves(), [0.25; 2]);
        let got = fill(&[1, 1, 2], Tensor::scalar_i32(7), OperandType::TensorInt32).unwrap();
        assert_eq!(got.values::<i32>(), [7; 2]);
        let got = fill(&[3, 0], Tensor::scalar_i32(7), OperandType::TensorInt32).unwrap();
        assert_eq!(got.dims.as_slice(), [3, 0]);
    }

    #[test]
    fn sizes_that_make_no_sense_are_refused() {
        let with = |dims: &[i32]| fill(dims, Tensor::scalar_i32(7), OperandType::TensorInt32);
        assert!(with(&[-1]).is_err());
        assert!(with(&[i32::MAX; 3]).is_err());
        assert!(with(&[1; 100]).is_err());
    }

    #[test]
    fn the_value_has_the_outputs_kind() {
        use OperandType::{Float16, Float32, Int32, TensorFloat16, TensorFloat32, TensorInt32};
        for (tensor, scalar) in
            [(TensorFloat32, Float32), (TensorFloat16, Float16), (TensorInt32, Int32)]
        {
            for value in [Float16, Float32, Int32] {
                let has = has_form(&DEF, V1_3, &[TensorInt32, value], &[tensor]);
                assert_eq!(has, value == scalar, "{tensor:?} {value:?}");
            }
        }
    }
}

//! REDUCE_PROD: the product along some axes.
//!
//! Inputs: a tensor of up to 4 dimensions, a 1-D INT32 tensor (the axes, negative from the end), a
//! BOOL scalar (the axes stay with size 1). Output: the input's shape without the axes, `[1]` when
//! nothing is left.
//!
//! Source: NNAPI `types.hal`, `OperationType::REDUCE_PROD`.

use burst_hal::HalVersion::V1_2;
use burst_hal::OperationType;

use crate::op::types::{BOOL, TF16, TF32, TI32};
use crate::op::{Form, OpDef, OpTraits, Run, Signature, WithAttributes};
use crate::ops::reduce::{ReduceAttributes, listed};
use crate::{OpError, SignatureError};

/// The definition of REDUCE_PROD.
pub static DEF: OpDef = OpDef {
    code: OperationType::ReduceProd,
    validate,
    body: &WithAttributes {
        parse: ReduceAttributes::parse,
        infer: listed::infer,
        prepare: None,
        execute,
    },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] =
    &[Form::new(V1_2, &[TF32, TI32, BOOL], &[TF32]), Form::new(V1_2, &[TF16, TI32, BOOL], &[TF16])];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    listed::validate(signature, FORMS)
}

fn execute(run: &mut Run<'_, '_>, attributes: &ReduceAttributes) -> Result<(), OpError> {
    listed::fold_float(run, attributes, 1.0, |a, b| a * b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run_one};
    use burst_hal::OperandType;

    fn reduce(input: Tensor, axes: &[i32], keep: bool, out: Tensor) -> Result<Tensor, OpError> {
        let count = u32::try_from(axes.len()).unwrap();
        run_one(&DEF, &[input, Tensor::i32(&[count], axes), Tensor::scalar_bool(keep)], out)
    }

    #[test]
    fn along_each_axis_and_all() {
        let input = || Tensor::f32(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        for (axes, keep, dims, want) in [
            (&[0][..], false, &[3][..], &[4.0, 10.0, 18.0][..]),
            (&[-1, 1], true, &[2, 1], &[6.0, 120.0]),
            (&[0, 1], false, &[1], &[720.0]),
        ] {
            let got =
                reduce(input(), axes, keep, Tensor::output(OperandType::TensorFloat32)).unwrap();
            assert_eq!(got.dims.as_slice(), dims, "{axes:?}");
            assert_eq!(got.values::<f32>(), want, "{axes:?}");
        }
        let out = Tensor::output(OperandType::TensorFloat32);
        assert!(reduce(input(), &[2], false, out).is_err());
    }

    #[test]
    fn halves_are_rounded_once() {
        // 300 * 300 is beyond half precision, the product 90 is not.
        let input = Tensor::f16(&[3], &[300.0, 300.0, 0.001]);
        let got = reduce(input, &[0], false, Tensor::output(OperandType::TensorFloat16)).unwrap();
        assert!((got.halves()[0] - 90.0).abs() < 0.2, "{:?}", got.halves());
    }
}
